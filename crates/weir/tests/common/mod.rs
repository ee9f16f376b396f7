//! What tests of the command line have in common.

#![allow(dead_code)] // Not every test needs all of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A program with a table `t` that answers keys with values.
pub const ANSWERS: &str = include_str!("answers.p4");

/// Runs `weir` to its end: exit code, stdout, stderr.
pub fn weir(arguments: &[&str]) -> (i32, String, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

/// A `weir run` that goes on until this is dropped.
pub struct Running {
    pub child: Child,
    /// Where it serves what was waited for.
    pub address: String,
    /// What it said on stderr until then.
    pub said: Vec<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Running {
    /// Starts it with these arguments, and waits until it says that it serves something
    /// (`P4Runtime`, `HTTP`, …).
    pub fn start(arguments: &[&str], serves: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let prefix = format!("{serves} at ");
        let mut said = Vec::new();
        let address = lines.find_map(|line| {
            let address = line.strip_prefix(&prefix).map(str::to_owned);
            said.push(line);
            address
        });
        let Some(address) = address else {
            let _ = child.wait();
            panic!("it does not serve {serves}: {said:?}");
        };
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Running { child, address, said }
    }

    /// Ends it with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to stop (SIGTERM), and waits until it has.
    pub fn terminate(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        self.child.wait().unwrap();
    }
}
