//! Subscribed clients and their bindings to programs: a state machine without I/O, driven by
//! streams and requests.

use super::SHARED;
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use weir_proto::bfrt_proto::subscribe::Notifications;

/// Identifies an open stream.
pub(crate) type StreamId = u64;

/// A client that has subscribed.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub stream: StreamId,
    /// The notifications it subscribes to.
    pub notifications: Notifications,
    /// The program it is bound to.
    pub bound: Option<String>,
}

/// All clients by id.
#[derive(Debug, Default)]
pub(crate) struct Clients(BTreeMap<u32, Client>);

impl Clients {
    /// Subscribes the client of a stream. Returns whether it is new: a second subscription of the
    /// same stream changes nothing.
    ///
    /// # Errors
    /// Another stream has this client id.
    pub fn subscribe(&mut self, stream: StreamId, id: u32, notifications: Notifications) -> Result<bool, Refusal> {
        if self.0.values().any(|c| c.stream == stream) {
            return Ok(false);
        }
        if self.0.contains_key(&id) {
            return Err(Refusal::malformed(format!(
                "there is a client with the id {id} already"
            )));
        }
        let bound = None;
        self.0.insert(
            id,
            Client {
                stream,
                notifications,
                bound,
            },
        );
        Ok(true)
    }

    /// Removes the client of a stream that has ended, with its binding.
    pub fn leave(&mut self, stream: StreamId) {
        self.0.retain(|_, c| c.stream != stream);
    }

    /// Binds a client to a program.
    ///
    /// # Errors
    /// The client is unknown, or another client is bound to the program.
    pub fn bind(&mut self, id: u32, program: &str) -> Result<(), Refusal> {
        self.require(id)?;
        let holder = self.0.iter().find(|(_, c)| c.bound.as_deref() == Some(program));
        if let Some((holder, _)) = holder.filter(|_| program != SHARED) {
            return Err(Refusal::exists(format!("client {holder} is bound to `{program}`")));
        }
        if let Some(client) = self.0.get_mut(&id) {
            client.bound = Some(program.to_owned());
        }
        Ok(())
    }

    /// Checks that a client has subscribed.
    ///
    /// # Errors
    /// It has not subscribed.
    pub fn require(&self, id: u32) -> Result<(), Refusal> {
        self.0.get(&id).map(|_| ()).ok_or_else(|| unknown(id))
    }

    /// The program that a client is bound to.
    ///
    /// # Errors
    /// The client is unknown, or not bound.
    pub fn bound(&self, id: u32) -> Result<String, Refusal> {
        let client = self.0.get(&id).ok_or_else(|| unknown(id))?;
        let bound = client.bound.clone();
        bound.ok_or_else(|| Refusal::unavailable(format!("client {id} is bound to no program")))
    }

    /// Handles a new program: bindings to other programs end.
    pub fn program_changed(&mut self, program: &str) {
        for client in self.0.values_mut() {
            client.bound = client.bound.take().filter(|b| b == program || b == SHARED);
        }
    }

    /// All clients.
    pub fn all(&self) -> impl Iterator<Item = &Client> {
        self.0.values()
    }

    /// The streams of clients that are bound to a program and subscribe to a notification.
    pub fn subscribers(&self, program: &str, what: impl Fn(&Notifications) -> bool) -> Vec<StreamId> {
        let bound = self.0.values().filter(|c| c.bound.as_deref() == Some(program));
        bound.filter(|c| what(&c.notifications)).map(|c| c.stream).collect()
    }
}

fn unknown(id: u32) -> Refusal {
    Refusal::unavailable(format!("there is no client with the id {id}; subscribe first"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Cause;

    #[test]
    fn a_number_belongs_to_one_stream_and_a_program_to_one_client() {
        let mut clients = Clients::default();
        let none = Notifications::default();
        assert_eq!(clients.subscribe(1, 7, none), Ok(true));
        assert_eq!(clients.subscribe(1, 8, none), Ok(false));
        assert_eq!(clients.subscribe(2, 7, none).unwrap_err().cause, Cause::Malformed);
        assert_eq!(clients.subscribe(2, 9, none), Ok(true));
        assert_eq!(clients.bind(3, "p").unwrap_err().cause, Cause::Unavailable);
        assert_eq!(clients.bind(7, "p"), Ok(()));
        assert_eq!(clients.bind(9, "p").unwrap_err().cause, Cause::Exists);
        assert_eq!(clients.bind(7, "p").unwrap_err().cause, Cause::Exists);
        clients.leave(1);
        assert_eq!(clients.bind(9, "p"), Ok(()));
        clients.program_changed("q");
        assert_eq!(clients.bound(9).unwrap_err().cause, Cause::Unavailable);
    }
}
