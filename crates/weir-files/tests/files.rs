//! What is promised of files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use weir_files::{Access, Durability, FileError, Target, Visibility, write};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refusal(path: &Path) -> String {
    write(path, b"new").unwrap_err().to_string()
}

#[test]
fn what_is_no_regular_file_is_refused_at_once_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (path, kind) in [
        (fifo.as_path(), "FIFO"),
        (&socket, "socket"),
        (folder.path(), "directory"),
        (Path::new("/dev/zero"), "character device"),
    ] {
        assert!(refusal(path).contains(&format!("is a {kind}")), "{}", refusal(path));
    }
    assert_eq!(names(folder.path()), ["fifo", "socket"]);
    assert!(refusal(Path::new("/")).contains("names no file"));
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (data, here) = (folder.path().join("data"), folder.path().join("here"));
    fs::create_dir(&data).unwrap();
    symlink("data/real", &here).unwrap();
    // It names nothing yet.
    write(&here, b"one").unwrap();
    write(&here, b"two").unwrap();
    assert!(here.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read(data.join("real")).unwrap(), b"two");
    assert_eq!((names(&data).len(), names(folder.path()).len()), (1, 2));
}

#[test]
fn a_link_that_changes_after_it_was_resolved_has_no_effect() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("first"), "first").unwrap();
    fs::write(path("second"), "second").unwrap();
    symlink("first", path("link")).unwrap();
    let target = Target::resolve(&path("link")).unwrap();
    fs::remove_file(path("link")).unwrap();
    symlink("second", path("link")).unwrap();
    let new = target.create(Visibility::Private).unwrap();
    new.replace(Durability::Synced).unwrap();
    assert_eq!(fs::read(path("first")).unwrap(), b"");
    assert_eq!(fs::read(path("second")).unwrap(), b"second");
    // A name that has become a link is not opened.
    fs::remove_file(path("first")).unwrap();
    symlink("second", path("first")).unwrap();
    assert!(matches!(
        target.open(Access::Read),
        Err(FileError::NotRegular {
            kind: "symbolic link",
            ..
        })
    ));
}

#[test]
fn links_in_a_circle_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    symlink("b", folder.path().join("a")).unwrap();
    symlink("a", folder.path().join("b")).unwrap();
    assert!(refusal(&folder.path().join("a")).contains("symbolic links"));
}

#[test]
fn a_replaced_file_keeps_its_permissions_and_a_new_one_is_private_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mode = || path.metadata().unwrap().mode() & 0o7777;
    let target = Target::resolve(&path).unwrap();
    target
        .create(Visibility::Private)
        .unwrap()
        .place(Durability::Lazy)
        .unwrap();
    assert_eq!(mode(), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(mode(), 0o640);
}

#[test]
fn a_file_that_was_never_finished_leaves_the_old_one_and_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    let target = Target::resolve(&path).unwrap();
    drop(target.create(Visibility::Shared).unwrap());
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (b"old".to_vec(), vec!["file".to_owned()])
    );
    let taken = target.create(Visibility::Shared).unwrap().place(Durability::Lazy);
    assert!(matches!(taken, Err(FileError::Exists { .. })));
}

#[test]
fn a_file_that_takes_anothers_name_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "mine").unwrap();
    let target = Target::resolve(&path).unwrap();
    let file = target.open(Access::ReadWrite).unwrap().unwrap();
    assert!(target.names(&file).unwrap());
    fs::rename(&path, folder.path().join("away")).unwrap();
    assert!(!target.names(&file).unwrap());
    fs::write(&path, "other").unwrap();
    assert!(!target.names(&file).unwrap());
    fs::rename(folder.path().join("away"), &path).unwrap();
    assert!(target.names(&file).unwrap());
}

#[test]
fn leftovers_of_a_killed_process_are_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::resolve(&folder.path().join("file")).unwrap();
    std::mem::forget(target.create(Visibility::Private).unwrap());
    for other in [".file.weir-", ".file.weir-abcdef7", ".other.weir-abcdef", "file"] {
        fs::write(folder.path().join(other), "").unwrap();
    }
    assert_eq!(target.remove_leftovers().unwrap(), 1);
    assert_eq!(
        names(folder.path()),
        [".file.weir-", ".file.weir-abcdef7", ".other.weir-abcdef", "file"]
    );
}
