//! A switch whose files fail, and a client that knows what was acknowledged.

use crate::common::ANSWERS;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir_client::{Client, Entry, Options};

/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// Numbers of Linux.
pub mod errno {
    pub const EIO: i32 = 5;
    pub const EAGAIN: i32 = 11;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
}

/// What the client knows.
#[derive(Default)]
pub struct Known {
    /// Values that were acknowledged, by key.
    pub there: BTreeMap<u32, u32>,
    /// Keys whose writes were answered by an error, or not at all.
    unsure: BTreeSet<u32>,
    /// Writes that were answered by an error.
    pub refused: u32,
    next: u32,
}

pub struct Bench {
    folder: tempfile::TempDir,
    shim: PathBuf,
    pub known: Known,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("program.p4"), ANSWERS).unwrap();
        std::fs::create_dir(path("data")).unwrap();
        std::fs::write(path("shim.c"), include_str!("shim.c")).unwrap();
        let shim = path("shim.so");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim);
        let made = cc.arg(path("shim.c")).arg("-ldl").status();
        assert!(made.expect("there is a C compiler").success());
        Bench {
            folder,
            shim,
            known: Known::default(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The state file.
    pub fn state(&self) -> PathBuf {
        self.path("data/state")
    }

    /// A switch whose program a shell starts, after these redirections.
    pub fn redirected(&self, redirections: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("exec \"$0\" \"$@\" {redirections}")])
            .arg(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .arg(self.path("program.p4"))
            .args(["-i", "1@gen:size=64,rate=2000", "-i", "2@null"]);
        command
            .arg("--p4runtime")
            .arg(format!("unix:{}", self.path("socket").display()));
        command.arg("--state").arg(self.state());
        command.stdin(Stdio::null());
        command
    }

    pub fn command(&self) -> Command {
        self.redirected("")
    }

    /// Has calls of a switch that concern its state fail with a number, as `shim.c` says.
    pub fn fault(&self, command: &mut Command, errno: i32, how: &[(&str, &str)]) {
        let data = self.path("data").canonicalize().unwrap();
        command.env("LD_PRELOAD", &self.shim).env("FAULT_FOLDER", data);
        command.env("FAULT_ERRNO", errno.to_string());
        command.envs(how.iter().copied());
    }

    /// The names beside the state file, in order.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("data")).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A client, unless the switch ends before it can be asked.
    pub async fn client(&self, child: &mut Child) -> Option<Client> {
        let start = Instant::now();
        while start.elapsed() < LONG {
            let options = Options::p4runtime(&format!("unix:{}", self.path("socket").display())).unwrap();
            if let Ok(client) = Client::connect(options).await
                && client.primary().await.is_ok()
            {
                return Some(client);
            }
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the switch neither serves nor ends");
    }

    pub async fn write(&mut self, client: &Client) {
        let key = self.known.next;
        self.known.next += 1;
        let table = client.table("t").unwrap();
        let entry = Entry::of(&table)
            .key("key", key)
            .action("answer")
            .data("value", key + 1);
        match tokio::time::timeout(LONG, client.insert(&entry))
            .await
            .expect("an answer")
        {
            Ok(()) => drop(self.known.there.insert(key, key + 1)),
            Err(_) => {
                self.known.unsure.insert(key);
                self.known.refused += 1;
            }
        }
    }

    /// Starts a switch without faults and compares what it has with what is known.
    pub async fn check(&mut self, run: u64) {
        let mut child = self
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = self.client(&mut child).await;
        let client = client.unwrap_or_else(|| panic!("run {run}: it does not start again"));
        let table = client.table("t").unwrap();
        let mut found = BTreeMap::new();
        for entry in client.entries(&table).await.unwrap() {
            let key = entry.key_of("key").and_then(|m| m.exact()?.as_u64()).unwrap() as u32;
            found.insert(key, entry.get("value").and_then(|v| v.as_u64()).unwrap() as u32);
        }
        for (key, value) in &self.known.there {
            assert_eq!(found.get(key), Some(value), "run {run}: an acknowledged write is lost");
        }
        for (key, value) in found {
            let is_expected = self.known.there.contains_key(&key) || self.known.unsure.remove(&key);
            assert!(is_expected && value == key + 1, "run {run}: nobody has written {key}");
            self.known.there.insert(key, value);
        }
        // What is not there now never comes back.
        self.known.unsure.clear();
        end(&mut child, "-TERM");
    }
}

/// Ends a switch.
pub fn end(child: &mut Child, signal: &str) -> ExitStatus {
    let _ = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(start.elapsed() < LONG, "it does not end by {signal}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
