//! The protocol between an IPC process and the applications of its machine.
//!
//! A frame is its length (32 bits, big-endian, of what follows), a kind (8 bits), and a body. Kind
//! 0: a message, as postcard. Kind 1: an SDU after the number of its flow (32 bits, big-endian).
//! The first message of each side is [`Request::Hello`] and [`Reply::Welcome`].
//!
//! Each side may send as many SDUs of a flow as the other has granted: [`WINDOW`] at the start,
//! then by [`Request::Credit`] and [`Reply::Credit`]. A flow that is not read delays no other.

use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// SDUs of a flow that may be sent before the first grant.
pub const WINDOW: u32 = 256;
/// Bytes of the longest frame.
pub const MAX_FRAME: usize = (16 << 20) + 64;
/// Bytes of the longest message.
pub const MAX_MESSAGE: usize = 8 << 20;

const KIND_MESSAGE: u8 = 0;
const KIND_SDU: u8 = 1;

/// The local end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowNumber(pub u32);

/// A call that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Call(pub u32);

/// What an application requires of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qos {
    /// Lost SDUs are retransmitted; all are delivered in order.
    pub is_reliable: bool,
    /// SDUs are delivered in order, perhaps with gaps.
    pub is_ordered: bool,
    /// The largest rate, in bytes per second; `None`: as fast as possible.
    pub rate: Option<u64>,
}

impl Qos {
    /// In order, without loss.
    pub const RELIABLE: Qos = Qos {
        is_reliable: true,
        is_ordered: true,
        rate: None,
    };
    /// As the network delivers.
    pub const UNRELIABLE: Qos = Qos {
        is_reliable: false,
        is_ordered: false,
        rate: None,
    };
}

/// From an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// The first message.
    Hello {
        /// [`VERSION`].
        version: u32,
    },
    /// Others may find this name here.
    Register {
        /// Answered by [`Reply::Done`].
        call: Call,
        /// `process|instance|entity|instance`, empty ones at the end left out.
        name: String,
    },
    /// Not any more.
    Unregister {
        /// As registered.
        name: String,
    },
    /// A flow to another application.
    Allocate {
        /// Answered by [`Reply::Allocated`] or [`Reply::Done`] with an error.
        call: Call,
        /// The application here.
        local: String,
        /// The other one.
        remote: String,
        /// What the flow has to provide.
        qos: Qos,
    },
    /// Accepts a requested flow.
    Accept {
        /// The flow.
        flow: FlowNumber,
    },
    /// Refuses one.
    Refuse {
        /// The flow.
        flow: FlowNumber,
        /// Why, for the other side.
        reason: String,
    },
    /// Ends a flow. What was sent before still arrives.
    Deallocate {
        /// The flow.
        flow: FlowNumber,
    },
    /// The application has read SDUs.
    Credit {
        /// The flow.
        flow: FlowNumber,
        /// How many more may be sent to it.
        sdus: u32,
    },
    /// For the management agent.
    Manage {
        /// Answered by [`Reply::Managed`].
        call: Call,
        /// A command.
        command: String,
    },
}

/// From an IPC process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The answer to [`Request::Hello`].
    Welcome {
        /// [`VERSION`].
        version: u32,
        /// The name of the IPC process.
        name: String,
        /// The DIF.
        dif: String,
        /// Bytes of the longest SDU.
        max_sdu: u32,
    },
    /// A call is done, or why not.
    Done {
        /// Which.
        call: Call,
        /// The reason of a failure.
        result: Result<(), String>,
    },
    /// A flow that this application has requested.
    Allocated {
        /// The call.
        call: Call,
        /// The flow.
        flow: FlowNumber,
    },
    /// A flow that another application requests.
    Requested {
        /// The flow.
        flow: FlowNumber,
        /// The name that this application has registered.
        local: String,
        /// The other application.
        remote: String,
        /// What it has to provide.
        qos: Qos,
    },
    /// The IPC process has taken SDUs.
    Credit {
        /// The flow.
        flow: FlowNumber,
        /// How many more it takes.
        sdus: u32,
    },
    /// A flow has ended; no SDUs follow.
    Closed {
        /// The flow.
        flow: FlowNumber,
        /// Why.
        reason: String,
    },
    /// The answer of the management agent, JSON, or why there is none.
    Managed {
        /// The call.
        call: Call,
        /// The answer.
        result: Result<String, String>,
    },
    /// The IPC process ends the connection.
    Goodbye {
        /// Why.
        reason: String,
    },
}

/// A defect of the bytes of the other side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A frame is too long or too short.
    #[error("expected a frame of 1 to {MAX_FRAME} bytes, found {0}")]
    Length(u64),
    /// There is no such kind.
    #[error("expected a frame of kind 0 or 1, found {0}")]
    Kind(u8),
    /// A message is no value of its type.
    #[error("malformed message: {0}")]
    Message(String),
}

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a, M> {
    /// A message.
    Message(M),
    /// An SDU of a flow.
    Sdu(FlowNumber, &'a [u8]),
}

/// Appends a message.
pub fn write_message<M: Serialize>(message: &M, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0; 4]);
    out.push(KIND_MESSAGE);
    // Serialising to a vector cannot fail: the types have no maps or sequences of unknown length.
    let body = postcard::to_allocvec(message).unwrap_or_default();
    out.extend(body);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// The header of a frame with an SDU, which follows.
#[must_use]
pub fn sdu_header(flow: FlowNumber, sdu: usize) -> [u8; 9] {
    let [a, b, c, d] = (sdu as u32 + 5).to_be_bytes();
    let [e, f, g, h] = flow.0.to_be_bytes();
    [a, b, c, d, KIND_SDU, e, f, g, h]
}

/// Reads the first frame of some bytes, and how long it is; `None` if it is not complete.
///
/// # Errors
/// It is malformed.
pub fn read_frame<'a, M: Deserialize<'a>>(bytes: &'a [u8]) -> Result<Option<(Frame<'a, M>, usize)>, ProtocolError> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    if length == 0 || length as usize > MAX_FRAME {
        return Err(ProtocolError::Length(length.into()));
    }
    let Some((frame, _)) = rest.split_at_checked(length as usize) else {
        return Ok(None);
    };
    let size = 4 + length as usize;
    let frame = match frame.split_first() {
        Some((&KIND_MESSAGE, body)) if body.len() <= MAX_MESSAGE => {
            let message = postcard::from_bytes(body).map_err(|error| ProtocolError::Message(error.to_string()))?;
            Frame::Message(message)
        }
        Some((&KIND_MESSAGE, _)) => return Err(ProtocolError::Length(length.into())),
        Some((&KIND_SDU, body)) => match body.split_first_chunk::<4>() {
            Some((flow, sdu)) => Frame::Sdu(FlowNumber(u32::from_be_bytes(*flow)), sdu),
            None => return Err(ProtocolError::Length(length.into())),
        },
        Some((&kind, _)) => return Err(ProtocolError::Kind(kind)),
        None => return Err(ProtocolError::Length(0)),
    };
    Ok(Some((frame, size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        let hello = Request::Hello { version: VERSION };
        write_message(&hello, &mut bytes);
        bytes.extend(sdu_header(FlowNumber(7), 3));
        bytes.extend(b"abc");
        let (frame, size) = read_frame::<Request>(&bytes).unwrap().unwrap();
        assert_eq!(frame, Frame::Message(hello));
        for cut in size..bytes.len() {
            assert_eq!(read_frame::<Request>(&bytes[size..cut]), Ok(None));
        }
        let (frame, rest) = read_frame::<Request>(&bytes[size..]).unwrap().unwrap();
        assert_eq!(
            (frame, size + rest),
            (Frame::Sdu(FlowNumber(7), &b"abc"[..]), bytes.len())
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_frame::<Request>(&bytes);
            let _ = read_frame::<Reply>(&bytes);
        }
    }
}
