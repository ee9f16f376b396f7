//! `weir rina cat`: standard input and output over a flow.

use super::arguments::CatArguments;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use weir_rina_host::{HostError, Ipcp, Qos};

/// The time for the allocation of a flow.
const ALLOCATION: Duration = Duration::from_secs(10);
/// How long a reader waits before it looks again.
const WAIT: Duration = Duration::from_secs(3600);
/// Bytes of an SDU.
const SDU: usize = 16 * 1024;

/// Connects, or waits for a flow; ends when the other side does, or when all input is sent.
pub fn cat(arguments: &CatArguments) -> Result<u8> {
    let ipcp = Ipcp::connect(&arguments.socket.socket)?;
    let (flow, _registration) = match (&arguments.listen, &arguments.name) {
        (Some(name), _) => {
            let registration = ipcp.register(name)?;
            let incoming = loop {
                if let Some(incoming) = registration.next(WAIT)? {
                    break incoming;
                }
            };
            (incoming.accept()?, Some(registration))
        }
        (None, Some(name)) => (ipcp.allocate("cat", name, Qos::RELIABLE, ALLOCATION)?, None),
        (None, None) => return Ok(2),
    };
    let flow = Arc::new(flow);
    let is_listening = arguments.listen.is_some();
    let reader = Arc::clone(&flow);
    let output = std::thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || -> Result<()> {
            loop {
                match reader.read_sdu(WAIT) {
                    Ok(Some(sdu)) => {
                        let mut out = crate::output::stdout();
                        out.write_all(&sdu)?;
                        out.flush()?;
                    }
                    Ok(None) => {}
                    Err(HostError::Closed(_)) => return Ok(()),
                    Err(error) => return Err(error.into()),
                }
            }
        })?;
    if is_listening {
        // The other side ends it. Input, if there is any, is sent until then.
        let writer = Arc::clone(&flow);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || send(&writer))?;
        drop(flow);
        return output.join().map_or(Ok(2), |done| done.map(|()| 0));
    }
    send(&flow)?;
    Ok(0)
}

/// Sends standard input.
fn send(flow: &weir_rina_host::Flow) -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; SDU];
    loop {
        let length = input.read(&mut buffer).context("standard input")?;
        if length == 0 {
            return Ok(());
        }
        flow.write_sdu(&buffer[..length])?;
    }
}
