//! `weir rina cat`: standard input and output over a flow.
//!
//! The side that connects ends the flow. The first byte of each SDU is [`DATA`], [`END`] or
//! [`DONE`]: an end of the flow without them is a failure, such as the death of the other side.

use super::arguments::CatArguments;
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use weir_rina_host::{Flow, HostError, Ipcp, Qos};

/// The time for the allocation of a flow.
const ALLOCATION: Duration = Duration::from_secs(10);
/// How long a reader waits before it looks again.
const WAIT: Duration = Duration::from_secs(3600);
/// Bytes of an SDU.
const SDU: usize = 16 * 1024;

/// Bytes of the input follow.
const DATA: u8 = 0;
/// All input is sent: its number of bytes follows (64 bits, big-endian).
const END: u8 = 1;
/// The answer to it: the number of bytes that arrived.
const DONE: u8 = 2;

/// Connects, or waits for a flow; ends when the input of the side that connects is at its end.
pub fn cat(arguments: &CatArguments, messages: &Messages) -> Result<u8> {
    let ipcp = Ipcp::connect(&arguments.socket.socket)?;
    let outcome = match (&arguments.listen, &arguments.name) {
        (Some(name), _) => listen(&ipcp, name),
        (None, Some(name)) => {
            let flow = ipcp.allocate("cat", name, Qos::RELIABLE, ALLOCATION)?;
            connect(flow, std::io::stdin())
        }
        (None, None) => return Ok(2),
    };
    Ok(match outcome {
        Ok(()) => 0,
        Err(error) => {
            messages.line(format!("error: {error:#}"));
            NO
        }
    })
}

fn listen(ipcp: &Ipcp, name: &str) -> Result<()> {
    let registration = ipcp.register(name)?;
    let incoming = loop {
        if let Some(incoming) = registration.next(WAIT)? {
            break incoming;
        }
    };
    let flow = Arc::new(incoming.accept()?);
    // Its input, if there is any, is sent until the other side ends the flow.
    let writer = Arc::clone(&flow);
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || send(&writer, std::io::stdin()))?;
    receive(&flow, END, &mut crate::output::stdout())
}

fn connect(flow: Flow, input: impl Read) -> Result<()> {
    let flow = Arc::new(flow);
    let reader = Arc::clone(&flow);
    let output = std::thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || receive(&reader, DONE, &mut crate::output::stdout()))?;
    let (sent, failure) = send(&flow, input);
    let ended = match failure {
        None => flow.write_sdu(&numbered(END, sent)).map_err(anyhow::Error::from),
        Some(error) => Err(error),
    };
    let confirmed = match ended {
        Ok(()) => output.join().unwrap_or_else(|_| bail!("the output has failed")),
        Err(error) => Err(error),
    };
    confirmed.with_context(|| format!("{sent} bytes were sent, and the other side has not confirmed them"))
}

/// Writes what arrives, until the SDU of kind `last` with the number of bytes of the other side.
fn receive(flow: &Flow, last: u8, out: &mut impl Write) -> Result<()> {
    let mut arrived = 0_u64;
    loop {
        let sdu = match flow.read_sdu(WAIT) {
            Ok(None) => continue,
            Ok(Some(sdu)) => sdu,
            Err(error @ (HostError::Closed(_) | HostError::Gone(_))) => {
                return Err(error).with_context(|| format!("{arrived} bytes arrived, and no end of the input"));
            }
            Err(error) => return Err(error.into()),
        };
        match sdu.split_first() {
            Some((&DATA, bytes)) => {
                out.write_all(bytes)?;
                out.flush()?;
                arrived += bytes.len() as u64;
            }
            Some((kind, number)) if *kind == last => {
                let sent = number.try_into().map(u64::from_be_bytes);
                let sent = sent.context("the number of bytes at the end is malformed")?;
                // The side that connects confirms nothing: its counterpart ends with this answer.
                if last == END {
                    ensure!(sent == arrived, "{arrived} bytes arrived of {sent}");
                    flow.write_sdu(&numbered(DONE, arrived))?;
                }
                return Ok(());
            }
            Some(_) | None => bail!("the other side is no `weir rina cat`: expected an SDU of kind 0 or {last}"),
        }
    }
}

fn numbered(kind: u8, number: u64) -> Vec<u8> {
    [&[kind][..], &number.to_be_bytes()].concat()
}

/// Sends the input. Returns how many bytes were sent, and why not all.
fn send(flow: &Flow, mut input: impl Read) -> (u64, Option<anyhow::Error>) {
    let mut buffer = vec![DATA; SDU];
    let mut sent = 0;
    loop {
        match input.read(&mut buffer[1..]) {
            Ok(0) => return (sent, None),
            Ok(length) => {
                if let Err(error) = flow.write_sdu(&buffer[..=length]) {
                    return (sent, Some(error.into()));
                }
                sent += length as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return (sent, Some(anyhow::Error::new(error).context("standard input"))),
        }
    }
}
