//! What happens to the file of a state: links, other kinds of files, damage, removal.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_state::{Begin, Claim, Contents, Finding, Keeper, Options, Saved, StateError};
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
    Keeper::start(claim, Options::default(), contents()).unwrap();
    until(|| Claim::new(&path).is_ok());
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_some());
    claim.set_other_program_aside();
    Keeper::start(claim, Options::default(), contents()).unwrap();
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
fn a_file_that_is_replaced_keeps_its_owner_group_and_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    keep(&path, b"one");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
    // Only root may give files away. For other users the file is their own before and after.
    let is_given = std::os::unix::fs::chown(&path, Some(12_345), Some(23_456)).is_ok();
    let about = || path.metadata().map(|m| (m.uid(), m.gid(), m.mode() & 0o7777)).unwrap();
    let (before, inode) = (about(), path.metadata().unwrap().ino());
    assert!(!is_given || before == (12_345, 23_456, 0o660));
    keep(&path, b"two");
    assert_ne!(path.metadata().unwrap().ino(), inode, "it is not replaced");
    assert_eq!(about(), before);
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

/// A state file with half of a batch at its end; the length of what is whole.
fn torn(path: &Path) -> u64 {
    keep(path, b"one");
    let whole = path.metadata().unwrap().len();
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"half of a batch").unwrap();
    whole
}

#[test]
fn a_tail_that_is_not_whole_is_told_of_and_kept_beside() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let whole = torn(&path);
    let mut claim = Claim::new(&path).unwrap();
    assert_eq!(claim.read().unwrap().unwrap().setting("mine"), Some(&b"one"[..]));
    let expected = Finding::Tail {
        path: path.canonicalize().unwrap(),
        at: whole,
        bytes: 15,
    };
    assert_eq!(claim.finding(), Some(&expected));
    // A keeper starts with what is whole.
    let complaints = Complaints::default();
    let keeper = Keeper::start(claim, complaints.options(), contents()).unwrap();
    assert_eq!(fs::read(beside(&path, ".tail")).unwrap(), b"half of a batch");
    assert!(complaints.has(&format!("the 15 bytes from byte {whole} on are in")));
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
    assert!(matches!(claim.finding(), Some(Finding::Empty { .. })));
    Keeper::start(claim, Options::default(), contents()).unwrap();
    assert!(beside(&path, ".empty").exists());
    assert!(Saved::of(&path, fs::read(&path).unwrap()).is_ok());
}

#[test]
fn a_start_that_ends_early_changes_no_file_and_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    torn(&path);
    for found in [fs::read(&path).unwrap(), Vec::new()] {
        fs::write(&path, &found).unwrap();
        for _ in 0..3 {
            let mut claim = Claim::new(&path).unwrap();
            claim.read().unwrap();
            claim.set_other_program_aside();
        }
        assert_eq!(fs::read(&path).unwrap(), found);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }
}

#[test]
fn a_tail_that_an_earlier_start_has_kept_is_not_kept_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    torn(&path);
    fs::write(beside(&path, ".tail"), "another tail").unwrap();
    fs::write(beside(&path, ".tail2"), "half of a batch").unwrap();
    // A killed start has left this.
    fs::write(folder.path().join(".state.weir-abc123"), "half").unwrap();
    let mut claim = Claim::new(&path).unwrap();
    claim.read().unwrap();
    let complaints = Complaints::default();
    let _keeper = Keeper::start(claim, complaints.options(), contents()).unwrap();
    assert!(complaints.has("state.tail2 now"));
    assert_eq!(folder.path().read_dir().unwrap().count(), 3);
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

/// A state file beside which no file can be created, since its own name is nearly too long.
fn lonely(folder: &Path) -> PathBuf {
    let path = folder.join("s".repeat(250));
    let made = folder.join("state");
    keep(&made, b"one");
    fs::rename(made, &path).unwrap();
    path
}

#[test]
fn where_no_new_file_can_be_written_at_the_start_the_old_state_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = lonely(folder.path());
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_some());
    let complaints = Complaints::default();
    let keeper = Keeper::start(claim, complaints.options(), contents()).unwrap();
    assert!(complaints.has("goes on with the state file as it is"));
    keeper.set("mine", b"two");
    keeper.kept_blocking().unwrap();
    assert_eq!(kept(&path), b"two");
}

#[test]
fn a_tail_that_cannot_be_kept_stays_where_it_is_and_no_write_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let path = lonely(folder.path());
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"half of a batch").unwrap();
    let before = fs::read(&path).unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_some());
    let complaints = Complaints::default();
    let keeper = Keeper::start(claim, complaints.options(), contents()).unwrap();
    assert!(complaints.has("writes are refused until it can be written"));
    assert!(keeper.check().is_err());
    keeper.set("mine", b"two");
    assert!(keeper.kept_blocking().is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn without_an_old_state_a_file_that_cannot_be_written_is_an_error_where_the_storage_is_not_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = lonely(folder.path());
    fs::write(&path, "").unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert!(claim.read().unwrap().is_none());
    let error = Keeper::start(claim, Options::default(), contents()).unwrap_err();
    assert!(error.to_string().contains("cannot create a file beside"), "{error}");
    assert!(path.exists());
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

/// How many bytes of a file were written before it took its name.
fn written_at_once(file: &[u8]) -> usize {
    u64::from_le_bytes(file[17..25].try_into().unwrap()) as usize
}

/// Every byte of the part that was written at once is damaged in turn, and the part is cut.
fn assert_damage_is_refused(path: &Path, file: &[u8]) {
    let whole = written_at_once(file);
    for at in 0..whole {
        let mut damaged = file.to_vec();
        damaged[at] ^= 0x04;
        assert!(Saved::of(path, damaged).is_err(), "byte {at} of {whole}");
        assert!(Saved::of(path, file[..at].to_vec()).is_err(), "cut at {at} of {whole}");
    }
}

#[test]
fn damage_in_what_was_written_at_once_is_refused_and_a_cut_batch_after_it_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let more = contents().setting("mine", b"one").setting("other", &[7; 100]);
    let keeper = Keeper::start(Claim::new(&path).unwrap(), Options::default(), more).unwrap();
    let begun = fs::read(&path).unwrap();
    assert_eq!(written_at_once(&begun), begun.len());
    assert_damage_is_refused(&path, &begun);
    keeper.set("mine", b"two");
    keeper.kept_blocking().unwrap();
    let file = fs::read(&path).unwrap();
    assert_damage_is_refused(&path, &file);
    for cut in begun.len() + 1..file.len() {
        let saved = Saved::of(&path, file[..cut].to_vec()).unwrap();
        assert_eq!((saved.end(), saved.setting("mine")), (begun.len(), Some(&b"one"[..])));
    }
    // Each message says what is damaged, where, and what can be done.
    let said = |bytes: &[u8]| Saved::of(&path, bytes.to_vec()).unwrap_err().to_string();
    let cut = said(&begun[..begun.len() - 1]);
    let expected = format!("is damaged at byte {}: the file ends there", begun.len() - 1);
    assert!(
        cut.contains(&expected) && cut.contains("Restore the file from a copy"),
        "{cut}"
    );
    let mut flipped = begun.clone();
    flipped[begun.len() - 50] ^= 1;
    let flipped = said(&flipped);
    assert!(flipped.contains("is damaged or incomplete"), "{flipped}");
}

#[test]
fn damage_in_a_file_that_was_shortened_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let options = Options {
        many: Some(1),
        ..Options::default()
    };
    let keeper = Keeper::start(Claim::new(&path).unwrap(), options, contents()).unwrap();
    let begun = written_at_once(&fs::read(&path).unwrap());
    until(|| {
        keeper.set("mine", &[1; 200]);
        keeper.kept_blocking().unwrap();
        written_at_once(&fs::read(&path).unwrap()) > begun
    });
    assert_damage_is_refused(&path, &fs::read(&path).unwrap());
}

#[test]
fn a_file_of_the_version_before_is_read_and_written_anew_in_this_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    keep(&path, b"one");
    let file = fs::read(&path).unwrap();
    // It has no record of what was written at once.
    let before = [&b"weirst02"[..], &file[25..]].concat();
    let cut = Saved::of(&path, before[..before.len() - 1].to_vec()).unwrap();
    assert!(cut.setting("mine").is_none() && !cut.tail().is_empty());
    fs::write(&path, &before).unwrap();
    let mut claim = Claim::new(&path).unwrap();
    assert_eq!(claim.read().unwrap().unwrap().setting("mine"), Some(&b"one"[..]));
    let _keeper = Keeper::start(claim, Options::default(), contents()).unwrap();
    assert!(fs::read(&path).unwrap().starts_with(b"weirst03"));
}
