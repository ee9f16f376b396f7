//! Faults: a file system that fails at every call in turn, output that nobody reads, signals at
//! random times. A switch ends with 0, 1 or 2 or by a signal, and has every acknowledged write when
//! it starts again.
//!
//! `WEIR_FAULT_RUNS` says how many runs there are; without it as many as a test suite has time for.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir_client::{Client, Entry, Options};

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> key; bit<32> value; }
struct headers { h_t h; }
struct meta { }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    action answer(bit<32> value) { h.h.value = value; s.egress_spec = 1; }
    table t { key = { h.h.key : exact @name("key"); } actions = { answer; NoAction; } size = 100000; }
    apply { t.apply(); }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Fails calls that concern files in a folder: those from number `FAULT_AT` on, as many as
/// `FAULT_COUNT`, with `FAULT_ERRNO`.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static const char *folder(void) { return getenv("FAULT_FOLDER"); }
static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }
static int concerns(const char *path) { return path && folder() && !strncmp(path, folder(), strlen(folder())); }
static int concerns_fd(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0) return 0;
    path[n] = 0;
    return concerns(path);
}
static int fails(void) {
    static long calls;
    long call = __sync_add_and_fetch(&calls, 1), at = number("FAULT_AT");
    if (!at || call < at || call >= at + number("FAULT_COUNT")) return 0;
    errno = (int)number("FAULT_ERRNO");
    return 1;
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
ssize_t write(int fd, const void *data, size_t size) {
    if (fd > 2 && concerns_fd(fd) && fails()) return -1;
    return REAL(write)(fd, data, size);
}
int fsync(int fd) { return concerns_fd(fd) && fails() ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return concerns_fd(fd) && fails() ? -1 : REAL(fdatasync)(fd); }
int ftruncate64(int fd, off64_t size) { return concerns_fd(fd) && fails() ? -1 : REAL(ftruncate64)(fd, size); }
off64_t lseek64(int fd, off64_t to, int from) { return concerns_fd(fd) && fails() ? -1 : REAL(lseek64)(fd, to, from); }
int rename(const char *from, const char *to) { return concerns(to) && fails() ? -1 : REAL(rename)(from, to); }
int open64(const char *path, int flags, ...) {
    va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list);
    return concerns(path) && fails() ? -1 : REAL(open64)(path, flags, mode);
}
"#;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// Numbers by xorshift: a run that failed can be run again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// What the client knows.
#[derive(Default)]
struct Known {
    there: BTreeMap<u32, u32>,
    /// Keys whose writes were answered by an error, or not at all.
    unsure: BTreeSet<u32>,
    /// Writes that were answered by an error.
    refused: u32,
    next: u32,
}

struct Bench {
    folder: tempfile::TempDir,
    shim: PathBuf,
    known: Known,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("program.p4"), PROGRAM).unwrap();
        std::fs::create_dir(path("data")).unwrap();
        std::fs::write(path("shim.c"), SHIM).unwrap();
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

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg("run")
            .arg(self.path("program.p4"))
            .args(["-i", "1@gen:size=64,rate=2000", "-i", "2@null"]);
        command
            .arg("--p4runtime")
            .arg(format!("unix:{}", self.path("socket").display()));
        command.arg("--state").arg(self.path("data/state"));
        command.stdin(Stdio::null());
        command
    }

    /// A client, unless the switch ends before it can be asked.
    async fn client(&self, child: &mut Child) -> Option<Client> {
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

    async fn write(&mut self, client: &Client) {
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
    async fn check(&mut self, run: u64) {
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
fn end(child: &mut Child, signal: &str) -> ExitStatus {
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

/// A stream that is read, closed, full, or stuck.
fn stream(dice: &mut Dice, stuck: &mut Vec<std::io::PipeReader>) -> Stdio {
    match dice.below(4) {
        0 => Stdio::null(),
        1 => File::options().write(true).open("/dev/full").unwrap().into(),
        2 => std::io::pipe().unwrap().1.into(),
        _ => {
            let (reader, writer) = std::io::pipe().unwrap();
            stuck.push(reader);
            writer.into()
        }
    }
}

/// One run with a fault.
async fn one(bench: &mut Bench, run: u64, dice: &mut Dice) {
    let mut stuck = Vec::new();
    let mut command = bench.command();
    command.args(["--stats-interval", "10ms", "--trace", "1"]);
    if dice.below(2) == 0 {
        command.arg("--state-sync");
    }
    let data = bench.path("data").canonicalize().unwrap();
    let errno = *dice.pick(&[libc_errno::EIO, libc_errno::ENOSPC, libc_errno::EROFS]);
    let count = *dice.pick(&[1, 1, 3, 1_000_000]);
    command.env("LD_PRELOAD", &bench.shim).env("FAULT_FOLDER", &data);
    command.env("FAULT_AT", dice.below(40).to_string());
    command
        .env("FAULT_ERRNO", errno.to_string())
        .env("FAULT_COUNT", count.to_string());
    command
        .stdout(stream(dice, &mut stuck))
        .stderr(stream(dice, &mut stuck));
    let mut child = command.spawn().unwrap();
    if let Some(client) = bench.client(&mut child).await {
        for _ in 0..dice.below(4) {
            bench.write(&client).await;
        }
        if dice.below(3) == 0 {
            // In the middle of a write.
            let pid = child.id().to_string();
            let kill = tokio::task::spawn_blocking(move || Command::new("kill").args(["-KILL", &pid]).status());
            bench.write(&client).await;
            drop(kill.await);
        }
    }
    let signal = *dice.pick(&["-TERM", "-INT", "-HUP", "-KILL"]);
    let status = end(&mut child, signal);
    let is_orderly = matches!(status.code(), Some(0..=2)) || status.signal().is_some_and(|s| s == 9);
    assert!(is_orderly, "run {run}: {status} after {signal}");
    if run.is_multiple_of(8) {
        bench.check(run).await;
    }
}

/// Numbers of Linux.
mod libc_errno {
    pub const EIO: i32 = 5;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_fault_costs_an_acknowledged_write_or_ends_a_switch_otherwise_than_it_should() {
    let runs = std::env::var("WEIR_FAULT_RUNS").ok().and_then(|n| n.parse().ok());
    let mut bench = Bench::new();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for run in 1..=runs.unwrap_or(80) {
        one(&mut bench, run, &mut dice).await;
    }
    bench.check(0).await;
    // Some writes met a fault, and others did not.
    assert!(bench.known.refused > 0 && !bench.known.there.is_empty());
}

/// The names in the folder of a state: nothing is left of files that were never finished.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_files_that_a_killed_switch_did_not_finish() {
    let mut bench = Bench::new();
    std::fs::write(bench.path("data/.state.weir-abc123"), "half").unwrap();
    bench.check(0).await;
    assert_eq!(names(&bench.path("data")), ["state"]);
}
