//! Carries frames between two interfaces and does nothing else: what a switch can reach at most.
//!
//! `xdp_forward A B [--packet [--bypass]] [--native | --generic] [--copy] [--separate]
//! [--seconds N]`
//!
//! `--packet` takes AF_PACKET, with `--bypass` past the queueing discipline; `--copy` the copying
//! interface of AF_XDP, `--separate` a pool for each interface instead of one for both.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::Write;
    use std::time::{Duration, Instant};
    use weir_io::{
        Batch, BusyPoll, Device, Frame, FrameBatch, FrameLayout, IoError, Pool, RawSocket, Sending, XdpMode,
        XdpOptions, XdpSocket, ZeroCopy,
    };

    const BURST: usize = 64;
    const PATIENCE: Duration = Duration::from_millis(10);

    #[derive(Default)]
    struct Arguments {
        names: Vec<String>,
        packet: bool,
        sending: Sending,
        copy: bool,
        separate: bool,
        mode: XdpMode,
        seconds: f64,
    }

    fn arguments() -> Result<Arguments, Box<dyn std::error::Error>> {
        let mut arguments = Arguments {
            seconds: 10.0,
            ..Arguments::default()
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--packet" => arguments.packet = true,
                "--bypass" => arguments.sending = Sending::Bypass,
                "--copy" => arguments.copy = true,
                "--separate" => arguments.separate = true,
                "--native" => arguments.mode = XdpMode::Native,
                "--generic" => arguments.mode = XdpMode::Generic,
                "--seconds" => arguments.seconds = words.next().ok_or("--seconds N")?.parse()?,
                _ => arguments.names.push(word),
            }
        }
        if arguments.names.len() != 2 {
            return Err("two interfaces, please: xdp_forward A B [--packet] [--seconds N]".into());
        }
        Ok(arguments)
    }

    pub fn main() -> Result<(), Box<dyn std::error::Error>> {
        let arguments = arguments()?;
        let (a, b) = (&arguments.names[0], &arguments.names[1]);
        let time = Duration::from_secs_f64(arguments.seconds);
        if arguments.packet {
            let open = |name: &str| RawSocket::with_ring(name, None, arguments.sending);
            return copying(open(a)?, open(b)?, time);
        }
        let mut options = XdpOptions {
            mode: arguments.mode,
            ..XdpOptions::default()
        };
        if !arguments.separate {
            options.pool = Some(Pool::new(
                XdpOptions::frames_for(2, 8192),
                1522,
                FrameLayout::default(),
            )?);
        }
        let (a, b) = (XdpSocket::open(a, &options)?, XdpSocket::open(b, &options)?);
        match arguments.copy {
            true => copying(a, b, time),
            false => in_place(a, b, time),
        }
    }

    /// Over frames that change hands.
    fn in_place(mut a: XdpSocket, mut b: XdpSocket, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
        let mut from_a = a.pool().batch(BURST);
        let mut from_b = b.pool().batch(BURST);
        let (started, mut idle) = (Instant::now(), BusyPoll::default());
        while started.elapsed() < time {
            let there = pass(&mut a, &mut b, &mut from_a)?;
            let back = pass(&mut b, &mut a, &mut from_b)?;
            match there + back {
                0 => drop(idle.idle(&[&a, &b], PATIENCE)?),
                _ => idle.worked(),
            }
        }
        report(&a, &b, started)
    }

    fn pass(from: &mut dyn ZeroCopy, to: &mut dyn ZeroCopy, batch: &mut FrameBatch) -> Result<usize, IoError> {
        let received = from.receive_frames(batch)?;
        // What the interface does not take now stays in the batch for the next round.
        to.transmit_frames(batch)?;
        Ok(received)
    }

    /// Over copies.
    fn copying(mut a: impl Device, mut b: impl Device, time: Duration) -> Result<(), Box<dyn std::error::Error>> {
        let mut batch = Batch::new(BURST);
        let (started, mut idle) = (Instant::now(), BusyPoll::default());
        while started.elapsed() < time {
            let there = pass_copies(&mut a, &mut b, &mut batch)?;
            let back = pass_copies(&mut b, &mut a, &mut batch)?;
            match there + back {
                0 => drop(idle.idle(&[&a, &b], PATIENCE)?),
                _ => idle.worked(),
            }
        }
        report(&a, &b, started)
    }

    fn pass_copies(from: &mut dyn Device, to: &mut dyn Device, batch: &mut Batch) -> Result<usize, IoError> {
        batch.clear();
        let received = from.receive(batch)?;
        let frames: Vec<Frame<'_>> = batch.iter().collect();
        let (mut done, mut attempts) = (0, 0);
        while done < frames.len() && attempts < 1000 {
            done += to.transmit(&frames[done..])?;
            attempts += 1;
        }
        Ok(received)
    }

    fn report(a: &dyn Device, b: &dyn Device, started: Instant) -> Result<(), Box<dyn std::error::Error>> {
        let seconds = started.elapsed().as_secs_f64();
        let (one, two) = (a.counters(), b.counters());
        let sent = one.sent + two.sent;
        let text = format!(
            "{{\"a\":\"{}\",\"b\":\"{}\",\"seconds\":{seconds:.3},\"received\":{},\"sent\":{sent},\"receive_dropped\":{},\"send_dropped\":{},\"mpps\":{:.4}}}",
            a.description(),
            b.description(),
            one.received + two.received,
            one.receive_dropped + two.receive_dropped,
            one.send_dropped + two.send_dropped,
            sent as f64 / seconds / 1e6,
        );
        writeln!(std::io::stdout(), "{text}")?;
        Ok(())
    }
}
