//! What happens where nobody reads what is written: the answer stays, nothing panics, packets go
//! on.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn program(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs");
    folder.join(name).to_str().unwrap().to_owned()
}

/// A stream that nothing reads.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unread {
    /// Its reader is gone.
    Gone,
    /// Its device is full.
    Full,
    /// It is not open.
    Closed,
}

impl Unread {
    fn stream(self) -> Stdio {
        match self {
            Unread::Gone => {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                writer.into()
            }
            Unread::Full => File::options().write(true).open("/dev/full").unwrap().into(),
            Unread::Closed => Stdio::inherit(),
        }
    }
}

/// The exit code with these streams.
fn code(arguments: &[&str], out: Unread, err: Unread) -> Option<i32> {
    let mut closing = String::new();
    for (stream, redirection) in [(out, " >&-"), (err, " 2>&-")] {
        if stream == Unread::Closed {
            closing.push_str(redirection);
        }
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec \"$@\"{closing}")).arg("sh");
    command.arg(env!("CARGO_BIN_EXE_weir")).args(arguments);
    let status = command
        .stdin(Stdio::null())
        .stdout(out.stream())
        .stderr(err.stream())
        .status();
    status.unwrap().code()
}

/// A folder with a program that is right, one that is wrong, and packet tests that pass and fail.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("wrong.p4", "control c() { apply { x = 1; } }\n");
    write("passes.stf", "# nothing to send\n");
    write("fails.stf", "packet 0 00\nexpect 3 ff\n");
    folder
}

#[test]
fn the_exit_code_is_the_answer_also_where_nobody_reads() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (right, wrong) = (program("l2_switch/l2_switch.p4"), path("wrong.p4"));
    let (passes, fails) = (path("passes.stf"), path("fails.stf"));
    let cases: [(&[&str], i32); 6] = [
        (&["check", &right], 0),
        (&["check", &wrong], 1),
        (&["test", &right, &passes], 0),
        (&["test", &right, &fails], 1),
        (&["test", &wrong, &fails], 2),
        (&["trace", "/nowhere.p4", "--packet", "00"], 2),
    ];
    for (arguments, expected) in cases {
        for err in [Unread::Gone, Unread::Full, Unread::Closed] {
            for out in [Unread::Gone, Unread::Closed] {
                assert_eq!(
                    code(arguments, out, err),
                    Some(expected),
                    "{arguments:?} {out:?} {err:?}"
                );
            }
        }
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let right = program("l2_switch/l2_switch.p4");
    let arguments = ["build", &right, "--emit", "ir"];
    assert_eq!(code(&arguments, Unread::Full, Unread::Gone), Some(2));
    assert_eq!(code(&arguments, Unread::Gone, Unread::Gone), Some(0));
}

/// A switch that traces every packet of an endless generator, and serves its counters.
struct Traced {
    child: Child,
    address: String,
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Traced {
    fn start(out: Stdio, err: Stdio, more: &[&str]) -> Self {
        let address = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().to_string()
        };
        let program = program("l2_switch/l2_switch.p4");
        let mut arguments = vec![
            "run",
            &program,
            "-i",
            "0@gen:size=64,rate=20000",
            "-i",
            "1@null",
            "--http",
            &address,
        ];
        arguments.extend_from_slice(more);
        let child = command(&arguments).stdout(out).stderr(err).spawn().unwrap();
        Traced { child, address }
    }

    /// Packets that were received so far.
    fn received(&self) -> u64 {
        let Ok(mut stream) = TcpStream::connect(&self.address) else {
            return 0;
        };
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        let line = text
            .lines()
            .find(|l| l.starts_with("weir_port_received_packets_total{") && l.contains("port=\"0\""));
        line.and_then(|l| l.rsplit(' ').next()?.parse::<f64>().ok())
            .map_or(0, |n| n as u64)
    }

    fn until_received(&self, more: u64) {
        let start = Instant::now();
        let before = self.received();
        while self.received() < before + more {
            assert!(start.elapsed() < LONG, "packets stand still at {before}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn stop(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn output_that_nobody_reads_holds_up_neither_packets_nor_the_end() {
    // The readers' ends stay open; nothing is ever read from them.
    let (out_reader, out) = std::io::pipe().unwrap();
    let (err_reader, err) = std::io::pipe().unwrap();
    let more = ["--trace", "1", "--stats-interval", "10ms", "--json"];
    let switch = Traced::start(out.into(), err.into(), &more);
    for _ in 0..3 {
        switch.until_received(5000);
    }
    assert_eq!(switch.stop("-TERM").code(), Some(0));
    drop((out_reader, err_reader));
}

#[test]
fn a_switch_whose_readers_are_gone_goes_on() {
    for (out, err) in [
        (Unread::Gone, Unread::Gone),
        (Unread::Full, Unread::Full),
        (Unread::Gone, Unread::Full),
    ] {
        let more = ["--trace", "50", "--stats-interval", "10ms"];
        let switch = Traced::start(out.stream(), err.stream(), &more);
        switch.until_received(5000);
        switch.until_received(5000);
        assert_eq!(switch.stop("-INT").code(), Some(0), "{out:?} {err:?}");
    }
}

#[test]
fn messages_that_were_lost_are_counted_when_somebody_reads_again() {
    let (reader, err) = std::io::pipe().unwrap();
    let more = ["--trace", "1"];
    let switch = Traced::start(Stdio::null(), err.into(), &more);
    // A trace has some 100 bytes at least; a pipe has 64 KiB, the queue 1 MiB.
    switch.until_received(40_000);
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("messages were lost: their reader is too slow")));
    std::thread::spawn(move || lines.for_each(drop));
    assert_eq!(switch.stop("-TERM").code(), Some(0));
}

#[test]
fn statistics_whose_reader_is_gone_are_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let err = File::create(&said).unwrap();
    let more = ["--stats-interval", "10ms"];
    let switch = Traced::start(Unread::Gone.stream(), err.into(), &more);
    switch.until_received(5000);
    switch.until_received(5000);
    let status = switch.stop("-TERM");
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    assert_eq!(
        said.matches("statistics are not written any more: their reader is gone")
            .count(),
        1,
        "{said}"
    );
}

/// Files that a command was asked to write.
fn written(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}

#[test]
fn a_file_that_cannot_be_written_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let program = program("l2_switch/l2_switch.p4");
    for path in [fifo.to_str().unwrap(), "/dev/zero", "/dev/full"] {
        let output = command(&["build", &program, "--p4info", path]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{path}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("give a regular file"), "{said}");
    }
    assert_eq!(written(folder.path()), [fifo]);
}
