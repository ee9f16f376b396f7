//! Routers in a line, forwarding as fast as they can: throughput by size, loss by interval.

use super::frames::{self, FAR, Protocol};
use crate::rina::fabric::{free_address, write_program};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_io::{Batch, Device, Frame, UdpTunnel};

/// The routers of the path.
pub const ROUTERS: usize = 3;
/// Packets on their way at most, where throughput is measured: more would be lost in the sockets.
const WINDOW: u64 = 256;
/// A packet that has not arrived after this time is lost.
const LOST: Duration = Duration::from_millis(20);
/// Packets of a batch.
const BATCH: usize = 32;
/// The time for the routers to start.
const START: Duration = Duration::from_secs(30);
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The routers, and a socket at each end.
pub struct Line {
    routers: Vec<Child>,
    near: UdpTunnel,
    far: UdpTunnel,
}

impl Drop for Line {
    fn drop(&mut self) {
        for router in &mut self.routers {
            let _ = router.kill();
            let _ = router.wait();
        }
    }
}

/// What a receiver has counted.
#[derive(Debug, Default)]
struct Arrived {
    packets: AtomicU64,
}

/// Packets that were sent, and those that arrived, in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Sent.
    pub sent: u64,
    /// Arrived.
    pub arrived: u64,
    /// From the first to the last packet that was sent.
    pub time: Duration,
}

impl Counted {
    /// Percent that did not arrive.
    pub fn loss(&self) -> f64 {
        100.0 * self.sent.saturating_sub(self.arrived) as f64 / self.sent.max(1) as f64
    }

    /// Packets per second that arrived.
    pub fn rate(&self) -> f64 {
        self.arrived as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl Line {
    /// Starts the routers with static entries for both protocols.
    ///
    /// # Errors
    /// A router cannot be started, or a socket cannot be opened.
    pub fn start(folder: &Path) -> Result<Self> {
        let program = write_program(folder)?;
        let entries = folder.join("line.entries");
        weir_files::write(&entries, entries_text().as_bytes())?;
        // Two ends of each link.
        let ends: Vec<[SocketAddr; 2]> = (0..=ROUTERS)
            .map(|_| Ok([free_address()?, free_address()?]))
            .collect::<Result<_>>()?;
        let mut line = Line {
            routers: Vec::new(),
            near: UdpTunnel::open(ends[0][0], ends[0][1])?,
            far: UdpTunnel::open(ends[ROUTERS][1], ends[ROUTERS][0])?,
        };
        for pair in ends.windows(2) {
            let log = File::options()
                .create(true)
                .append(true)
                .open(folder.join("line.log"))?;
            let device = |port, [local, remote]: [SocketAddr; 2]| format!("{port}@udp:{local},{remote}");
            let router = crate::children::weir()?
                .arg("run")
                .arg(&program)
                .args(["-i", &device(1, [pair[0][1], pair[0][0]])])
                .args(["-i", &device(2, pair[1])])
                .arg("--entries")
                .arg(&entries)
                .arg("--die-with-parent")
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()
                .context("cannot start a router")?;
            line.routers.push(router);
        }
        line.wait_until_it_forwards(folder)?;
        Ok(line)
    }

    fn wait_until_it_forwards(&mut self, folder: &Path) -> Result<()> {
        let end = Instant::now() + START;
        for protocol in [Protocol::Efcp, Protocol::Ipv4] {
            while self.run(protocol, 100, Duration::from_millis(1), Pace::Window)?.arrived == 0 {
                ensure!(
                    Instant::now() < end,
                    "the routers do not forward: their log is {}",
                    folder.join("line.log").display()
                );
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }

    /// Sends frames of one size for a time, and counts those that arrive.
    ///
    /// # Errors
    /// A socket fails.
    pub fn run(&mut self, protocol: Protocol, bytes: usize, time: Duration, pace: Pace) -> Result<Counted> {
        let mut frame = Vec::new();
        let payload = vec![0; bytes.saturating_sub(protocol.headers())];
        frames::write(protocol, MAC, &payload, &mut frame);
        let (arrived, is_over) = (Arrived::default(), AtomicBool::new(false));
        let (near, far) = (&mut self.near, &mut self.far);
        std::thread::scope(|scope| {
            let receiver = std::thread::Builder::new()
                .name("receiver".to_owned())
                .spawn_scoped(scope, || receive(far, protocol, bytes, &arrived, &is_over))
                .context("cannot start a thread")?;
            let sent = send(near, &frame, time, pace, &arrived);
            // What is on its way still arrives.
            let mut last = arrived.packets.load(Ordering::Acquire);
            loop {
                std::thread::sleep(LOST);
                let now = arrived.packets.load(Ordering::Acquire);
                if now == last {
                    break;
                }
                last = now;
            }
            is_over.store(true, Ordering::Release);
            receiver
                .join()
                .map_err(|_| anyhow::anyhow!("the receiver has failed"))??;
            let (sent, time) = sent?;
            Ok(Counted {
                sent,
                arrived: arrived.packets.load(Ordering::Acquire),
                time,
            })
        })
    }
}

/// When the next packet is sent.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// As fast as packets arrive: at most [`WINDOW`] are on their way.
    Window,
    /// After this time.
    Interval(Duration),
}

fn send(near: &mut UdpTunnel, frame: &[u8], time: Duration, pace: Pace, arrived: &Arrived) -> Result<(u64, Duration)> {
    let batch = [Frame {
        data: frame,
        time_ns: 0,
    }; BATCH];
    let start = Instant::now();
    let (mut sent, mut lost) = (0, 0);
    let mut progress = (0, start);
    loop {
        let now = Instant::now();
        let elapsed = now - start;
        if elapsed >= time {
            return Ok((sent, elapsed));
        }
        let due = match pace {
            Pace::Window => {
                let received = arrived.packets.load(Ordering::Acquire);
                if received != progress.0 {
                    progress = (received, now);
                } else if now - progress.1 > LOST {
                    lost = sent - received;
                    progress.1 = now;
                }
                (received + lost + WINDOW).saturating_sub(sent)
            }
            Pace::Interval(interval) => {
                let due = elapsed.as_nanos() / interval.as_nanos().max(1) + 1;
                u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(sent)
            }
        };
        if due == 0 {
            match pace {
                Pace::Window => std::thread::yield_now(),
                Pace::Interval(_) => std::hint::spin_loop(),
            }
            continue;
        }
        let count = usize::try_from(due).unwrap_or(BATCH).min(BATCH);
        sent += near.transmit(&batch[..count])? as u64;
    }
}

fn receive(
    far: &mut UdpTunnel,
    protocol: Protocol,
    bytes: usize,
    arrived: &Arrived,
    is_over: &AtomicBool,
) -> Result<()> {
    let mut batch = Batch::new(BATCH * 4);
    while !is_over.load(Ordering::Acquire) {
        batch.clear();
        if far.receive(&mut batch)? == 0 {
            weir_io::wait(&[&*far as &dyn Device], Duration::from_millis(5))?;
            continue;
        }
        let is_counted =
            |frame: &Frame<'_>| frame.data.len() == bytes && frames::payload(protocol, frame.data).is_some();
        let count = batch.iter().filter(is_counted).count() as u64;
        arrived.packets.fetch_add(count, Ordering::AcqRel);
    }
    Ok(())
}

/// The entries of each router: what has the address of the far end leaves at port 2.
fn entries_text() -> String {
    format!(
        "add efcp_exact hdr.efcp.dst_addr:{FAR} efcp_forward(vlan_id:0, dst_mac:02-00-00-00-00-01, port:2)\n\
         add ipv4_lpm hdr.ipv4.dst_addr:10.0.{FAR}.0/24 ipv4_forward(vlan_id:0, dst_mac:02-00-00-00-00-01, port:2)\n\
         add port_macs standard_metadata.egress_port:2 set_src_mac(mac:02-00-00-00-00-02)\n"
    )
}
