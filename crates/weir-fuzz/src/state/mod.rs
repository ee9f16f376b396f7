//! State files that are damaged, cut, put together from others, or hold what no switch has written.
//!
//! An input is the number of a program and a file. It is opened as a restart does it: whatever is
//! in the file, it is refused or read; what is read can be kept, and is read again.

mod frames;

use crate::engines::{Amount, Traffic};
use crate::mutate::Mutator;
use crate::rng::Rng;
use frames::Frames;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use weir_compiler::{Options as CompilerOptions, compile_source};
use weir_ir::{ExternId, Program};
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved, StateError};
use weir_stf::{RunOptions, Session};
use weir_switch::{CloneSession, Kept, Switch, Write};

/// Programs whose state is kept.
const PROGRAMS: [&str; 3] = [
    include_str!("../../../weir-server/tests/p4/everything.p4"),
    include_str!("../../../../p4/programs/heavy_hitter_tna/heavy_hitter_tna.p4"),
    include_str!("../../../../p4/programs/ipv4_router_psa/ipv4_router_psa.p4"),
];
/// Good files of each program.
const FILES: u64 = 4;
/// How long it may take until a file is closed.
const PATIENCE: Duration = Duration::from_secs(5);
/// The session that is written after a restart.
const SESSION: u32 = 77;

fn program(number: u8) -> &'static Arc<Program> {
    static COMPILED: OnceLock<Vec<Arc<Program>>> = OnceLock::new();
    let all = COMPILED.get_or_init(|| {
        let compiled = |source: &&str| {
            let compilation = compile_source("state.p4", source, &CompilerOptions::default(), weir_arch::targets());
            Arc::new(compilation.program.expect("the program compiles"))
        };
        PROGRAMS.iter().map(compiled).collect()
    });
    &all[usize::from(number) % all.len()]
}

fn fresh(program: &Arc<Program>) -> Option<Switch> {
    Switch::new(Arc::clone(program)).ok()
}

/// Good state files, each after the number of its program.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let numbers = (0..PROGRAMS.len() as u8).flat_map(|p| (0..FILES).map(move |n| (p, n)));
    numbers.filter_map(|(p, n)| written(p, n)).collect()
}

/// The file of a switch that a control plane has worked with.
fn written(number: u8, seed: u64) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("state");
    let program = program(number);
    let mut switch = fresh(program)?;
    let mut rng = Rng::new(seed);
    let amount = Amount { rounds: 4, packets: 3 };
    let test = Traffic::new(&mut rng, &switch).test("", &[], amount);
    let claim = Claim::new(&path).ok()?;
    let keeper = Keeper::start(claim, Options::default(), Contents::new(&Begin::of(program))).ok()?;
    keeper.set("servers", &seed.to_le_bytes());
    switch.set_journal(Some(keeper.journal()));
    let mut session = Session::new(switch, RunOptions::default());
    for line in weir_stf::parse(&test).ok()?.lines {
        // What the program has no use for is refused.
        let _ = session.line(&line);
    }
    keeper.kept_blocking().ok()?;
    let mut file = vec![number];
    file.extend(std::fs::read(&path).ok()?);
    Some(file)
}

/// A file made bad, or put together anew.
pub(crate) fn input(mutator: &mut Mutator) -> Vec<u8> {
    let mut rng = Rng::new(mutator.next_number());
    let mut file = mutator.next_seed().to_vec();
    let other = mutator.next_seed().to_vec();
    if file.is_empty() {
        return file;
    }
    let number = file.remove(0);
    for _ in 0..rng.between(1, 3) {
        file = match rng.below(3) {
            0 => spoiled(&mut rng, file),
            _ => Frames::of(&file).changed(&mut rng, &Frames::of(&other[1..])),
        };
    }
    file.insert(0, number);
    file
}

/// Other bytes, whatever they are in.
fn spoiled(rng: &mut Rng, mut bytes: Vec<u8>) -> Vec<u8> {
    let at = rng.below(bytes.len());
    match rng.below(5) {
        _ if bytes.is_empty() => bytes.push(rng.number() as u8),
        0 | 1 => bytes[at] ^= 1 << rng.below(8),
        2 => bytes.truncate(at),
        3 => {
            let zeros = rng.below(100);
            bytes.extend(vec![0; zeros]);
        }
        _ => {
            let end = (at + rng.below(100)).min(bytes.len());
            drop(bytes.drain(at..end));
        }
    }
    bytes
}

/// What a switch would keep of itself, but for numbers of entries, which are others after a
/// restart, and what is named by them.
fn kept(switch: &Switch) -> Vec<Kept> {
    let tables = switch.program().tables.iter();
    let direct: HashSet<ExternId> = tables.flat_map(|(_, t)| t.direct.iter().copied()).collect();
    let mut all = Vec::new();
    switch.keep(|piece| match piece {
        Kept::Change(Write::Meter(id, ..) | Write::Register(id, ..) | Write::Lpf(id, ..) | Write::Wred(id, ..), _)
            if direct.contains(&id) => {}
        Kept::Change(write, _) => all.push(Kept::Change(write, None)),
        Kept::Replication(_) => all.push(piece),
    });
    all
}

/// What counters hold, without the places.
fn counts(switch: &Switch) -> Vec<(ExternId, u64, u64)> {
    let values = switch.counter_values();
    let mut all: Vec<_> = values.iter().map(|((id, _), c)| (*id, c.packets, c.bytes)).collect();
    all.sort_unstable();
    all
}

/// Opens a file as a restart does.
///
/// # Panics
/// Something that was acknowledged is lost, or what was kept is not read again.
pub(crate) fn run(input: &[u8]) {
    let Some((&number, file)) = input.split_first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    std::fs::write(&path, file).expect("a file");
    let program = program(number);
    if let Some(switch) = restarted(&path, program, file) {
        again(&path, &switch);
    }
}

/// Starts with a file, and keeps one thing more; gives the switch. `None`: it is refused.
fn restarted(path: &Path, started: &Arc<Program>, file: &[u8]) -> Option<Switch> {
    let mut claim = Claim::new(path).expect("nobody has it");
    let saved = match claim.read() {
        Ok(saved) => saved,
        Err(error) => {
            refused(path, file, &error);
            return None;
        }
    };
    let begin = match &saved {
        Some(saved) => saved.begin().clone(),
        None => Begin::of(started),
    };
    let program = saved.as_ref().map_or(Ok(Arc::clone(started)), |s| s.program(started));
    let program = program.ok()?;
    // As a server does with a program from a file.
    if !weir_arch::nonconformities(&program).is_empty() {
        return None;
    }
    let mut switch = fresh(&program)?;
    let mut contents = Contents::new(&begin);
    if let Some(saved) = &saved {
        assert_eq!(saved.end(), Frames::of(file).whole(), "another part of it is whole");
        if let Err(error) = saved.restore(0, &mut switch) {
            refused(path, file, &error);
            return None;
        }
        for (name, value) in saved.settings() {
            contents = contents.setting(name, value);
        }
    }
    let contents = contents.switch(&switch).counters(&switch.counter_values());
    let keeper = Keeper::start(claim, Options::default(), contents).expect("it can be written");
    switch.set_journal(Some(keeper.journal()));
    let written = switch.write(Write::Session(SESSION, Some(CloneSession::default())));
    keeper.kept_blocking().expect("it is kept");
    switch.set_journal(None);
    written.ok()?;
    Some(switch)
}

/// A file that is refused is left as it is.
fn refused(path: &Path, file: &[u8], error: &StateError) {
    let left = std::fs::read(path).unwrap_or_default();
    assert!(left == file, "a file was refused and changed: {error}");
}

/// Reads again what a switch has kept.
fn again(path: &Path, switch: &Switch) {
    let saved = closed(path).expect("it is read again").expect("there is a state");
    let mut second = fresh(switch.program()).expect("it was loaded before");
    saved.restore(0, &mut second).expect("it is restored again");
    assert!(
        second.replication().session(SESSION).is_some(),
        "the last write is lost"
    );
    let (before, after) = (kept(switch), kept(&second));
    assert_eq!(before.len(), after.len(), "pieces before and after");
    let differ = before.iter().zip(&after).find(|(a, b)| a != b);
    assert!(differ.is_none(), "what is read is not what was kept: {differ:?}");
    assert_eq!(counts(switch), counts(&second), "counters differ");
}

/// What a file holds after its last writer has closed it.
fn closed(path: &Path) -> Result<Option<Saved>, StateError> {
    let begun = Instant::now();
    loop {
        match Claim::new(path) {
            Err(StateError::InUse { .. }) if begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_micros(200));
            }
            claim => return claim?.read(),
        }
    }
}
