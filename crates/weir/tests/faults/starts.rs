//! Starts on storage that is full, read-only or fails, with every kind of old file: the switch
//! forwards, refuses to acknowledge writes, changes nothing, and keeps its state as soon as that is
//! possible.

use crate::bench::{Bench, LONG, end, errno};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir_client::Client;

/// What fails on a disk that is full.
const FULL: (i32, &str) = (errno::ENOSPC, ",create,write,link,");
/// What fails on a file system that is mounted read-only.
const READ_ONLY: (i32, &str) = (
    errno::EROFS,
    ",create,open to write,write,ftruncate,fchmod,fchown,rename,renameat2,link,unlink,",
);
/// What fails on a disk that takes nothing more.
const BROKEN: (i32, &str) = (
    errno::EIO,
    ",write,ftruncate,fsync,fsync folder,fdatasync,rename,renameat2,",
);
/// What fails where names cannot be made durable.
const UNSYNCED: (i32, &str) = (errno::EIO, ",fsync folder,");

impl Bench {
    /// A switch whose storage is as `fault` says while the file [`Bench::flag`] exists.
    fn start(&self, (errno, calls): (i32, &str), more: &[&str]) -> Child {
        fs::write(self.flag(), "").unwrap();
        let flag = self.flag();
        let mut command = self.command();
        command.args(more);
        let how = [("FAULT_CALLS", calls), ("FAULT_WHILE", flag.to_str().unwrap())];
        self.fault(&mut command, errno, &how);
        let said = File::create(self.path("said")).unwrap();
        command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap()
    }

    fn flag(&self) -> PathBuf {
        self.path("flag")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.path("said")).unwrap()
    }

    /// A state with two entries.
    async fn good_state(&mut self) {
        let mut child = self.start((errno::EIO, ",none,"), &[]);
        let client = self.client(&mut child).await.expect("it runs");
        self.write(&client).await;
        self.write(&client).await;
        end(&mut child, "-KILL");
        assert_eq!(self.known.there.len(), 2, "{}", self.said());
    }

    /// Writes until one is acknowledged.
    async fn write_until_kept(&mut self, client: &Client) {
        let (start, before) = (Instant::now(), self.known.there.len());
        while self.known.there.len() == before {
            assert!(start.elapsed() < LONG, "it is never written again: {}", self.said());
            self.write(client).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// An old file of a switch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Old {
    Missing,
    Empty,
    Whole,
    Torn,
    OtherProgram,
}

const OLD: [Old; 5] = [Old::Missing, Old::Empty, Old::Whole, Old::Torn, Old::OtherProgram];
const TAIL: &[u8] = b"half of a batch";

impl Old {
    async fn make(self, bench: &mut Bench) {
        match self {
            Old::Missing => {}
            Old::Empty => fs::write(bench.state(), "").unwrap(),
            Old::Whole => bench.good_state().await,
            Old::Torn => {
                bench.good_state().await;
                let mut file = OpenOptions::new().append(true).open(bench.state()).unwrap();
                file.write_all(TAIL).unwrap();
            }
            Old::OtherProgram => {
                bench.good_state().await;
                bench.known.there.clear();
                let program = fs::read_to_string(bench.path("program.p4")).unwrap();
                let other = program.replace("size = 1000000", "size = 1000");
                fs::write(bench.path("program.p4"), other).unwrap();
            }
        }
    }

    /// What is beside the state file in the end.
    fn aside(self) -> Option<&'static str> {
        match self {
            Old::Missing | Old::Whole => None,
            Old::Empty => Some("state.empty"),
            Old::Torn => Some("state.tail"),
            Old::OtherProgram => Some("state.old"),
        }
    }
}

fn contents(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

/// Starts twice on storage that fails, then has it work again.
async fn start_on(old: Old, fault: (i32, &str)) {
    let mut bench = Bench::new();
    old.make(&mut bench).await;
    let (file, names) = (contents(&bench.state()), bench.names());
    for attempt in 0..2 {
        let mut child = bench.start(fault, &[]);
        let client = bench.client(&mut child).await;
        let client = client.unwrap_or_else(|| panic!("{old:?}: {}", bench.said()));
        let before = bench.known.there.clone();
        bench.write(&client).await;
        assert_eq!(bench.known.there, before, "{old:?}: a write is acknowledged");
        if attempt > 0 {
            fs::remove_file(bench.flag()).unwrap();
            bench.write_until_kept(&client).await;
            end(&mut child, "-KILL");
        } else {
            let status = end(&mut child, "-TERM");
            let said = bench.said();
            assert!(matches!(status.code(), Some(0..=2)), "{old:?}: {status}: {said}");
            // Keys without an entry go to this port.
            assert!(said.contains("packets went to port 0"), "{old:?}: {said}");
            let is_kept = contents(&bench.state()) == file && bench.names() == names;
            assert!(is_kept, "{old:?}: {:?} were {names:?}: {said}", bench.names());
        }
    }
    bench.check(0).await;
    let aside = old.aside().map(str::to_owned);
    let expected: Vec<String> = std::iter::once("state".to_owned()).chain(aside).collect();
    assert_eq!(bench.names(), expected, "{old:?}");
    if let Some(aside) = old.aside() {
        let is_tail = old == Old::Torn;
        let kept = contents(&bench.path("data").join(aside));
        assert_eq!(kept, if is_tail { Some(TAIL.to_vec()) } else { file }, "{old:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_a_switch_starts_with_every_kind_of_old_file_and_loses_none() {
    for old in OLD {
        start_on(old, FULL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_read_only_file_system_a_switch_starts_with_every_kind_of_old_file_and_loses_none() {
    for old in OLD {
        start_on(old, READ_ONLY).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_disk_that_fails_a_switch_starts_with_every_kind_of_old_file_and_loses_none() {
    for old in OLD {
        start_on(old, BROKEN).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_disk_is_reported_once_with_what_was_found_and_what_follows() {
    let mut bench = Bench::new();
    Old::Torn.make(&mut bench).await;
    let whole = fs::metadata(bench.state()).unwrap().len() - TAIL.len() as u64;
    let mut child = bench.start(FULL, &[]);
    let client = bench.client(&mut child).await.expect("it runs");
    // The file is tried again in this time.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let said = bench.said();
    let found = format!(
        "ends in {} bytes that are no whole batch, from byte {whole} on",
        TAIL.len()
    );
    assert!(said.contains(&found), "{said}");
    assert_eq!(said.matches("No space left on device").count(), 1, "{said}");
    assert!(said.contains("writes are refused until it can be written"), "{said}");
    fs::remove_file(bench.flag()).unwrap();
    bench.write_until_kept(&client).await;
    let said = bench.said();
    assert!(said.contains("is written again"), "{said}");
    assert!(said.contains(&format!("from byte {whole} on are in")), "{said}");
    end(&mut child, "-KILL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_directory_cannot_be_synchronised_no_write_is_acknowledged_until_it_can() {
    for old in [Old::Missing, Old::Whole] {
        let mut bench = Bench::new();
        old.make(&mut bench).await;
        let mut child = bench.start(UNSYNCED, &["--state-sync"]);
        let client = bench.client(&mut child).await;
        let client = client.unwrap_or_else(|| panic!("{old:?}: {}", bench.said()));
        let before = bench.known.there.clone();
        bench.write(&client).await;
        assert_eq!(bench.known.there, before, "{old:?}: a write is acknowledged");
        fs::remove_file(bench.flag()).unwrap();
        bench.write_until_kept(&client).await;
        end(&mut child, "-KILL");
        bench.check(0).await;
        assert_eq!(bench.names(), ["state"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shim_sees_every_call_by_which_a_state_file_is_changed() {
    let mut bench = Bench::new();
    Old::Torn.make(&mut bench).await;
    let log = bench.path("log");
    let mut command = bench.command();
    let how = [("FAULT_AT", "0"), ("FAULT_LOG", log.to_str().unwrap())];
    bench.fault(&mut command, errno::EIO, &how);
    let said = File::create(bench.path("said")).unwrap();
    command
        .arg("--state-sync")
        .stdout(said.try_clone().unwrap())
        .stderr(said);
    let mut child = command.spawn().unwrap();
    let client = bench.client(&mut child).await.expect("it runs");
    bench.write(&client).await;
    end(&mut child, "-KILL");
    let seen = fs::read_to_string(log).unwrap();
    let calls = [
        "open",
        "open to write",
        "create",
        "read",
        "write",
        "lseek",
        "ftruncate",
        "fsync",
        "fsync folder",
        "fdatasync",
        "flock",
        "fchmod",
        "stat",
        "rename",
        "renameat2",
    ];
    let missing: Vec<&str> = calls.into_iter().filter(|c| !seen.lines().any(|s| s == *c)).collect();
    assert!(missing.is_empty(), "{missing:?} are not seen: {seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_a_file_s_size_writes_are_refused_and_the_switch_goes_on() {
    let mut bench = Bench::new();
    bench.good_state().await;
    // `ulimit` counts blocks of 512 bytes.
    let blocks = fs::metadata(bench.state()).unwrap().len() / 512 + 3;
    let mut limited = Command::new("sh");
    let command = bench.command();
    limited
        .args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = limited.spawn().unwrap();
    let client = bench.client(&mut child).await.expect("it runs");
    while bench.known.refused == 0 {
        assert!(bench.known.there.len() < 1000, "no write meets the limit");
        assert!(child.try_wait().unwrap().is_none(), "the switch has ended");
        bench.write(&client).await;
    }
    let status = end(&mut child, "-TERM");
    assert!(matches!(status.code(), Some(0..=2)), "{status}");
    bench.check(0).await;
}
