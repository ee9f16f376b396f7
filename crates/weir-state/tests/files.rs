//! What happens to the file of a state: links, other kinds of files, damage, removal.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_state::{Begin, Claim, Contents, Keeper, Options, Saved, SetAside, StateError};
use weir_switch::testing;

/// Told of trouble.
#[derive(Clone, Default)]
struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    fn options(&self) -> Options {
        let told = Arc::clone(&self.0);
        Options {
            on_trouble: Some(Arc::new(move |what: &str| told.lock().unwrap().push(what.to_owned()))),
            ..Options::default()
        }
    }

    fn has(&self, what: &str) -> bool {
        self.0.lock().unwrap().iter().any(|line| line.contains(what))
    }
}

fn contents() -> Contents {
    Contents::new(&Begin::of(&testing::reflector()))
}

fn start(path: &Path, complaints: &Complaints) -> Keeper {
    Keeper::start(Claim::new(path).unwrap(), complaints.options(), contents()).unwrap()
}

/// Keeps a setting.
fn keep(path: &Path, value: &[u8]) {
    let keeper = start(path, &Complaints::default());
    keeper.set("mine", value);
    keeper.kept_blocking().unwrap();
    drop(keeper);
    // Its thread unlocks the file when it has seen that.
    until(|| Claim::new(path).is_ok());
}

fn kept(path: &Path) -> Vec<u8> {
    let saved = Saved::of(path, fs::read(path).unwrap()).unwrap();
    saved.setting("mine").unwrap_or_default().to_vec()
}

fn until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", path.display()))
}

#[test]
fn what_is_no_regular_file_is_refused_and_left_alone() {
    for path in ["/dev/null", "/dev/zero"] {
        assert!(
            matches!(Claim::new(Path::new(path)), Err(StateError::File(_))),
            "{path}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let refused = Claim::new(&fifo).unwrap_err().to_string();
    assert!(refused.contains("is a FIFO"), "{refused}");
}

#[test]
fn a_state_behind_a_link_is_kept_where_the_link_pointed_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink("real", path("link")).unwrap();
    let keeper = start(&path("link"), &Complaints::default());
    fs::remove_file(path("link")).unwrap();
    symlink("elsewhere", path("link")).unwrap();
    keeper.replace(contents().setting("mine", b"new"));
    keeper.kept_blocking().unwrap();
    assert_eq!(kept(&path("real")), b"new");
    assert!(!path("elsewhere").exists());
    assert!(path("link").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn links_with_foreseeable_names_beside_the_file_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let precious = folder.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    keep(&path, b"one");
    fs::write(&path, [fs::read(&path).unwrap(), b"cut".to_vec()].concat()).unwrap();
    for suffix in [".new", ".shorter", ".old", ".tail", ".empty"] {
        symlink(&precious, beside(&path, suffix)).unwrap();
    }
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_some());
    claim.set_other_program_aside().unwrap();
    Keeper::start(claim, Options::default(), contents())
        .unwrap()
        .kept_blocking()
        .unwrap();
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(beside(&path, ".old2").exists() && beside(&path, ".tail2").exists());
}

#[test]
fn permissions_stay_and_a_new_file_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    keep(&path, b"one");
    let mode = || path.metadata().unwrap().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    keep(&path, b"two");
    assert_eq!(mode(), 0o640);
}

#[test]
fn a_file_of_another_kind_is_refused_by_its_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.img");
    // A sparse terabyte: reading all of it would end this test.
    let file = OpenOptions::new().create_new(true).write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    assert!(matches!(
        Claim::new(&path).unwrap().read(),
        Err(StateError::Foreign { .. })
    ));
}

#[test]
fn a_tail_that_is_not_whole_is_told_of_and_kept_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    keep(&path, b"one");
    let whole = fs::read(&path).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"half of a batch").unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert_eq!(claim.read().unwrap().unwrap().setting("mine"), Some(&b"one"[..]));
    let expected = SetAside::Tail {
        path: path.canonicalize().unwrap(),
        at: whole.len(),
        bytes: 15,
        aside: beside(&path.canonicalize().unwrap(), ".tail"),
    };
    assert_eq!(claim.set_aside(), [expected]);
    assert_eq!(fs::read(beside(&path, ".tail")).unwrap(), b"half of a batch");
    // A keeper starts with what is whole.
    let keeper = Keeper::start(claim, Options::default(), contents()).unwrap();
    keeper.set("mine", b"two");
    keeper.kept_blocking().unwrap();
    assert_eq!(kept(&path), b"two");
}

#[test]
fn an_empty_file_is_told_of_and_kept_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    fs::write(&path, "").unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_none());
    assert!(matches!(claim.set_aside(), [SetAside::Empty { .. }]));
    assert!(beside(&path, ".empty").exists() && !path.exists());
    Keeper::start(claim, Options::default(), contents())
        .unwrap()
        .kept_blocking()
        .unwrap();
    assert!(Saved::of(&path, fs::read(&path).unwrap()).is_ok());
}

#[test]
fn a_file_that_is_removed_or_replaced_is_noticed_without_a_write_and_taken_up_again_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let complaints = Complaints::default();
    let keeper = start(&path, &complaints);
    let away = folder.path().join("away");
    fs::rename(&path, &away).unwrap();
    until(|| complaints.has("was removed or replaced"));
    assert!(keeper.check().is_err());
    keeper.set("mine", b"late");
    assert!(keeper.kept_blocking().is_err());
    // Another file of that name is left alone.
    fs::write(&path, "theirs").unwrap();
    keeper.replace(contents().setting("mine", b"later"));
    assert!(keeper.kept_blocking().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    fs::rename(&away, &path).unwrap();
    until(|| keeper.kept_blocking().is_ok());
    assert!(complaints.has("is written again"));
    assert_eq!(kept(&path), b"later");
}

#[test]
fn a_write_to_a_file_that_is_gone_is_never_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    for round in 0..20 {
        let keeper = start(&path, &Complaints::default());
        fs::remove_file(&path).unwrap();
        keeper.set("mine", &[round]);
        assert!(keeper.kept_blocking().is_err(), "{round}");
    }
}

#[test]
fn where_no_new_file_can_be_written_at_the_start_the_old_state_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let path = inner.join("state");
    keep(&path, b"one");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"half").unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_some());
    // Nothing can be created in a directory that is gone by its name, as on a full disk; the file
    // itself can be written.
    let moved = folder.path().join("moved");
    fs::rename(&inner, &moved).unwrap();
    let complaints = Complaints::default();
    let keeper = Keeper::start(claim, complaints.options(), contents()).unwrap();
    assert!(complaints.has("goes on with the state file as it is"));
    fs::rename(&moved, &inner).unwrap();
    keeper.set("mine", b"two");
    until(|| keeper.kept_blocking().is_ok());
    assert_eq!(kept(&path), b"two");
}

#[test]
fn a_write_to_a_file_that_somebody_else_has_cut_or_lengthened_is_never_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    for length in [0, 1 << 20] {
        let path = folder.path().join(length.to_string());
        let keeper = start(&path, &Complaints::default());
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(length)
            .unwrap();
        keeper.set("mine", b"lost");
        assert!(keeper.kept_blocking().is_err(), "{length}");
    }
}
