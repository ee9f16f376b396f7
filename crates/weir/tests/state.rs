//! `weir run --state`: whatever was acknowledged is there again after kill -9.

#![cfg(target_os = "linux")]

mod common;

use common::{ANSWERS, Running, weir};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use weir_client::{Atomicity, Batch, Client, Entry, Options, Table};

struct Switch(Running);

impl Switch {
    /// A switch that keeps its state in `folder`.
    fn start(folder: &Path, more: &[&str]) -> Self {
        let (program, state) = (folder.join("program.p4"), folder.join("state"));
        let own = [program.to_str().unwrap(), "--state", state.to_str().unwrap()];
        let rest = ["-i", "1@null", "--p4runtime", "127.0.0.1:0"];
        Switch(Running::start(&[&own[..], &rest, more].concat(), "P4Runtime"))
    }

    async fn client(&self) -> Client {
        let client = Client::connect(Options::p4runtime(&self.0.address).unwrap())
            .await
            .unwrap();
        client.primary().await.unwrap();
        client
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("program.p4"), ANSWERS).unwrap();
    folder
}

fn entry(table: &Arc<Table>, key: u32, value: u32) -> Entry {
    Entry::of(table).key("key", key).action("answer").data("value", value)
}

/// Keys and values that a switch has.
async fn contents(client: &Client) -> BTreeMap<u32, u32> {
    let table = client.table("t").unwrap();
    let entries = client.entries(&table).await.unwrap();
    let pairs = entries.iter().map(|e| {
        let key = e.key_of("key").and_then(|m| m.exact()?.as_u64()).unwrap();
        let value = e.get("value").and_then(|v| v.as_u64()).unwrap();
        (key as u32, value as u32)
    });
    pairs.collect()
}

/// What the clients know.
#[derive(Default)]
struct Known {
    /// Values that were acknowledged.
    there: BTreeMap<u32, u32>,
    /// Keys about which a request is under way.
    open: BTreeSet<u32>,
    next: u32,
}

impl Known {
    fn take(&mut self, count: u32) -> Vec<u32> {
        let keys: Vec<u32> = (self.next..self.next + count).collect();
        self.next += count;
        self.open.extend(&keys);
        keys
    }
}

/// Inserts, changes and deletes until the switch is gone.
async fn write(client: Arc<Client>, known: Arc<Mutex<Known>>, worker: usize) {
    let table = client.table("t").unwrap();
    for round in 0.. {
        match (worker + round) % 3 {
            // A batch that is there whole or not at all: its keys are a multiple of its size.
            0 => {
                let keys = known.lock().unwrap().take(BATCH);
                let mut batch = Batch::new(&client.schema()).atomicity(Atomicity::Rollback);
                for key in &keys {
                    batch.insert(&entry(&table, *key, key + 1)).unwrap();
                }
                if client.write(&batch).await.is_err() {
                    return;
                }
                let mut known = known.lock().unwrap();
                for key in keys {
                    known.open.remove(&key);
                    known.there.insert(key, key + 1);
                }
            }
            1 => {
                let some = {
                    let mut known = known.lock().unwrap();
                    let keys = known.there.keys().copied().filter(|k| !known.open.contains(k));
                    let key = keys.skip(7 * worker).step_by(13).next();
                    key.inspect(|key| {
                        known.open.insert(*key);
                    })
                };
                let Some(key) = some else { continue };
                if client.modify(&entry(&table, key, key + 2)).await.is_err() {
                    return;
                }
                let mut known = known.lock().unwrap();
                known.open.remove(&key);
                known.there.insert(key, key + 2);
            }
            _ => {
                let last = {
                    let mut known = known.lock().unwrap();
                    let keys = known.there.keys().rev().copied();
                    let key = keys.filter(|k| !known.open.contains(k)).nth(3 * BATCH as usize);
                    key.inspect(|key| {
                        known.open.insert(*key);
                    })
                };
                let Some(key) = last else { continue };
                if client.delete(&entry(&table, key, 0)).await.is_err() {
                    return;
                }
                let mut known = known.lock().unwrap();
                known.open.remove(&key);
                known.there.remove(&key);
            }
        }
    }
}

const BATCH: u32 = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_after_each_of_a_hundred_kills() {
    let folder = folder();
    let known = Arc::new(Mutex::new(Known::default()));
    let mut writes = 0;
    for round in 0..100u64 {
        let mut switch = Switch::start(folder.path(), &[]);
        let client = Arc::new(switch.client().await);
        let found = contents(&client).await;
        {
            let mut known = known.lock().unwrap();
            let unsure = std::mem::take(&mut known.open);
            for (key, value) in &known.there {
                let sure = unsure.contains(key) || found.get(key) == Some(value);
                assert!(sure, "round {round}: {key} is {:?}, not {value}", found.get(key));
            }
            for key in found.keys() {
                let sure = unsure.contains(key) || known.there.contains_key(key);
                assert!(sure, "round {round}: {key} is there, and should not be");
            }
            // Of the batches that nobody has heard of none is there in part.
            let new: Vec<u32> = unsure.into_iter().filter(|k| !known.there.contains_key(k)).collect();
            for batch in new.chunk_by(|a, b| a / BATCH == b / BATCH) {
                let count = batch.iter().filter(|k| found.contains_key(k)).count();
                assert!(
                    count == 0 || count == batch.len(),
                    "round {round}: a part of {batch:?} is there"
                );
            }
            writes += known.next / BATCH;
            known.there = found;
            known.next = known.next.next_multiple_of(BATCH);
        }
        let writers: Vec<_> = (0..4)
            .map(|worker| tokio::spawn(write(Arc::clone(&client), Arc::clone(&known), worker)))
            .collect();
        tokio::time::sleep(Duration::from_millis(5 + round * 37 % 90)).await;
        switch.0.kill();
        for writer in writers {
            writer.await.unwrap();
        }
    }
    assert!(writes > 100, "only {writes} batches were written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_a_client_has_set_goes_on_with_its_entries() {
    let folder = folder();
    let mut switch = Switch::start(folder.path(), &[]);
    let client = switch.client().await;
    let other = ANSWERS.replace(
        "bit<32> value) { h.h.value = value;",
        "bit<32> other) { h.h.value = other;",
    );
    let path = folder.path().join("other.p4");
    std::fs::write(&path, &other).unwrap();
    client.close().await;
    let load = ["program", "--load", path.to_str().unwrap()];
    let (code, _, said) = weir(&[&["ctl", "--p4runtime", &switch.0.address], &load[..]].concat());
    assert_eq!(code, 0, "{said}");
    let client = switch.client().await;
    let table = client.table("t").unwrap();
    let own = Entry::of(&table)
        .key("key", 5_u32)
        .action("answer")
        .data("other", 6_u32);
    client.insert(&own).await.unwrap();
    switch.0.kill();

    let switch = Switch::start(folder.path(), &[]);
    let client = switch.client().await;
    let table = client.table("t").unwrap();
    let found = client.entries(&table).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].to_string().contains("(other=6)"), "{}", found[0]);
    switch.0.terminate();

    // Started with another program, the switch begins anew and leaves the state alone.
    std::fs::write(
        folder.path().join("program.p4"),
        ANSWERS.replace("size = 1000000", "size = 1000"),
    )
    .unwrap();
    let switch = Switch::start(folder.path(), &[]);
    assert!(
        switch.0.said.iter().any(|l| l.contains("state of another program")),
        "{:?}",
        switch.0.said
    );
    assert!(contents(&switch.client().await).await.is_empty());
    assert!(folder.path().join("state.old").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_the_command_line_are_for_the_first_start() {
    let folder = folder();
    let entries = folder.path().join("entries");
    std::fs::write(&entries, "add I.t key:1 I.answer(value:2)\n").unwrap();
    let more = ["--entries", entries.to_str().unwrap()];
    let switch = Switch::start(folder.path(), &more);
    let client = switch.client().await;
    assert_eq!(contents(&client).await, [(1, 2)].into());
    client.delete(&entry(&client.table("t").unwrap(), 1, 2)).await.unwrap();
    client.insert(&entry(&client.table("t").unwrap(), 7, 8)).await.unwrap();
    switch.0.terminate();
    let switch = Switch::start(folder.path(), &more);
    assert_eq!(contents(&switch.client().await).await, [(7, 8)].into());
}

/// A start that is to be refused: its exit code and messages. If it is not, it ends by itself.
fn refused(program: &Path, state: &Path, more: &[&str]) -> (i32, String) {
    let (program, state) = (program.to_str().unwrap(), state.to_str().unwrap());
    let run = ["run", program, "--state", state, "-i", "1@null", "--time", "1s"];
    let (code, _, said) = weir(&[&run, more].concat());
    (code, said)
}

#[test]
fn two_switches_do_not_share_a_file_and_other_files_are_left_alone() {
    let folder = folder();
    let _first = Switch::start(folder.path(), &[]);
    let program = folder.path().join("program.p4");
    let second = |state: &Path| refused(&program, state, &["--p4runtime", "127.0.0.1:0"]);
    let (code, said) = second(&folder.path().join("state"));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("another switch keeps its state in"), "{said}");
    let (code, said) = second(&program);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is no state of a switch"), "{said}");
    assert_eq!(std::fs::read_to_string(program).unwrap(), ANSWERS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_fails_for_an_address_leaves_the_file_as_it_was() {
    let folder = folder();
    let switch = Switch::start(folder.path(), &[]);
    let client = switch.client().await;
    client.insert(&entry(&client.table("t").unwrap(), 1, 2)).await.unwrap();
    drop(switch);
    let state = folder.path().join("state");
    let mut bytes = std::fs::read(&state).unwrap();
    bytes.extend_from_slice(b"half of a batch");
    std::fs::write(&state, &bytes).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let program = folder.path().join("program.p4");
    for server in [&["--p4runtime", "127.0.0.1:0", "--http"][..], &["--p4runtime"]] {
        let (code, said) = refused(&program, &state, &[server, &[&taken]].concat());
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("cannot listen at"), "{said}");
        assert_eq!(std::fs::read(&state).unwrap(), bytes, "{server:?}: {said}");
        assert!(!folder.path().join("state.tail").exists(), "{server:?}: {said}");
    }
}

#[tokio::test]
async fn a_file_with_one_wrong_bit_in_what_was_written_as_a_whole_is_refused() {
    let folder = folder();
    let switch = Switch::start(folder.path(), &[]);
    let client = switch.client().await;
    let table = client.table("t").unwrap();
    for key in 0..50 {
        client.insert(&entry(&table, key, 1)).await.unwrap();
    }
    switch.0.terminate();
    // This start writes the file as a whole.
    let switch = Switch::start(folder.path(), &[]);
    assert_eq!(contents(&switch.client().await).await.len(), 50);
    switch.0.terminate();
    let (state, program) = (folder.path().join("state"), folder.path().join("program.p4"));
    let mut bytes = std::fs::read(&state).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&state, &bytes).unwrap();
    let (code, said) = refused(&program, &state, &["--p4runtime", "127.0.0.1:0"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("is damaged at byte") && said.contains("Restore the file from a copy"),
        "{said}"
    );
    assert_eq!(std::fs::read(&state).unwrap(), bytes);
    assert_eq!(folder.path().read_dir().unwrap().count(), 2);
}
