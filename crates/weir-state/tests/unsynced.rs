//! A file that is shortened in a directory that cannot be synchronised. The test runs itself again
//! in a process whose calls fail by the shim of weir's fault tests.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved};
use weir_switch::testing;

const NAME: &str = "no_write_is_acknowledged_in_a_shorter_file_whose_name_may_be_lost";
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../weir/tests/faults/shim.c");

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not happen");
    }
}

#[test]
fn no_write_is_acknowledged_in_a_shorter_file_whose_name_may_be_lost() {
    if let Some(folder) = std::env::var_os("FAULT_FOLDER") {
        return shortened(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let shim = folder.path().join("shim.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(SHIM);
    assert!(cc.arg("-ldl").status().expect("there is a C compiler").success());
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", NAME, "--nocapture"]);
    again
        .env("LD_PRELOAD", &shim)
        .env("FAULT_FOLDER", data.canonicalize().unwrap());
    again.env("FAULT_CALLS", ",fsync folder,").env("FAULT_ERRNO", "5");
    again.env("FAULT_WHILE", folder.path().join("flag"));
    assert!(again.status().unwrap().success());
}

/// The test itself, below the shim.
fn shortened(folder: &Path) {
    let path = folder.join("state");
    let flag = PathBuf::from(std::env::var_os("FAULT_WHILE").unwrap());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let options = Options {
        sync: true,
        many: Some(1),
        on_trouble: Some(Arc::new({
            let told = Arc::clone(&told);
            move |what: &str| told.lock().unwrap().push(what.to_owned())
        })),
    };
    let contents = Contents::new(&Begin::of(&testing::reflector()));
    let keeper = Keeper::start(Claim::new(&path).unwrap(), options, contents).unwrap();
    fs::write(&flag, "").unwrap();
    let has = |what: &str| told.lock().unwrap().iter().any(|line| line.contains(what));
    until(|| {
        keeper.set("mine", &[1; 4096]);
        let _ = keeper.kept_blocking();
        has("it cannot be shortened: cannot synchronise")
    });
    keeper.set("mine", b"last");
    assert!(keeper.kept_blocking().is_err());
    fs::remove_file(&flag).unwrap();
    until(|| keeper.kept_blocking().is_ok());
    let saved = Saved::of(&path, fs::read(&path).unwrap()).unwrap();
    assert_eq!(saved.setting("mine"), Some(&b"last"[..]));
}
