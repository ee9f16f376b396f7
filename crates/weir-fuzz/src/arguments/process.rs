//! The binary as a process, and a switch for `weir ctl`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the switch runs at a time: nothing is left of it for long.
const SWITCH_SECONDS: u64 = 60;
const PROGRAM: &str = include_str!("../../../weir-server/tests/p4/everything.p4");
/// Where the switch serves P4Runtime and BF Runtime, in the folder.
pub(super) const P4RUNTIME: &str = "unix:p4runtime.sock";
pub(super) const BFRT: &str = "unix:bfrt.sock";

/// How a process has ended.
pub(super) enum Ended {
    Well,
    /// Why not.
    Badly(String),
}

/// The binary `weir`, beside this one or where the environment's `WEIR` says; `None`: it is not
/// built.
#[must_use]
pub fn binary() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WEIR") {
        return Some(path.into());
    }
    let own = std::env::current_exe().ok()?;
    let folders = own.ancestors().skip(1).take(2);
    folders.map(|f| f.join("weir")).find(|p| p.is_file())
}

/// The folder that everything runs in: a program, and what the switch serves.
static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("here.p4"), PROGRAM).expect("a program");
    folder
});
static SWITCH: Mutex<Option<(Child, Instant)>> = Mutex::new(None);

fn weir(folder: &Path) -> Command {
    let mut command = Command::new(binary().expect("build it first: cargo build -p weir"));
    command
        .current_dir(folder)
        .env_remove("WEIR_TARGET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Sees to it that the switch runs; what it has kept of earlier inputs does not matter.
fn serve(folder: &Path) {
    let mut switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    let lives = Duration::from_secs(SWITCH_SECONDS) - 2 * PATIENCE;
    if let Some((child, since)) = switch.as_mut() {
        let ended = child.try_wait().ok().flatten();
        if ended.is_none() && since.elapsed() < lives {
            return;
        }
        assert!(
            ended.is_none_or(|e| e.success()),
            "the switch that `ctl` speaks to has ended"
        );
        // It is ours, and holds nothing.
        let _ = child.kill();
        let _ = child.wait();
    }
    for name in ["p4runtime.sock", "bfrt.sock"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let time = format!("{SWITCH_SECONDS}s");
    let child = weir(folder)
        .args([
            "run", "here.p4", "-i", "1@null", "-i", "2@null", "--time", &time, "--engine", "interp",
        ])
        .args(["--p4runtime", P4RUNTIME, "--bfrt", BFRT])
        .spawn();
    *switch = Some((child.expect("it starts"), Instant::now()));
    drop(switch);
    let begun = Instant::now();
    while !folder.join("bfrt.sock").exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs `weir` with arguments.
pub(super) fn run_weir(arguments: &[&[u8]]) -> Ended {
    let folder = FOLDER.path();
    if arguments.first() == Some(&&b"ctl"[..]) {
        serve(folder);
    }
    let messages = folder.join("stderr");
    let file = std::fs::File::create(&messages).expect("a file");
    let mut child = weir(folder)
        .args(arguments.iter().map(|a| OsStr::from_bytes(a)))
        .stderr(file)
        .spawn()
        .expect("it starts");
    let Some(status) = ended(&mut child) else {
        return Ended::Badly(format!("no end after {PATIENCE:?}"));
    };
    let text = std::fs::read(&messages).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    match status.code() {
        Some(0..=2) if !text.contains("panicked") => Ended::Well,
        _ => Ended::Badly(format!("{status}: {text}")),
    }
}

/// How a process ends; `None`: it had to be ended.
fn ended(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        // The clock is read first: while this process was suspended, the child may have ended.
        let is_overdue = begun.elapsed() >= PATIENCE;
        if let Some(status) = child.try_wait().expect("it is ours") {
            return Some(status);
        }
        if is_overdue {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}
