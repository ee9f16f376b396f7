//! The Python package, as this build has made it: its tests, its examples, and its types.
//!
//! The library that cargo has built for this test is put beside the Python sources. A virtual
//! environment with pytest, mypy, scapy and ptf is made once, in the target folder. Where Python or
//! the registry is missing, the test says so and is left out; in CI that is an error.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the environment has.
const PACKAGES: &[&str] = &["pytest==9.*", "mypy==2.*", "scapy==2.*", "ptf==0.12.*"];

fn own() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command; its output, if it fails.
fn run(command: &mut Command) -> Result<(), String> {
    let out = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if out.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{command:?}:\n{}{}", text(&out.stdout), text(&out.stderr)))
}

/// The Python of a virtual environment with all packages.
fn environment() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = folder.join("bin/python3");
    let stamp = folder.join("packages");
    if std::fs::read_to_string(&stamp).is_ok_and(|made| made == PACKAGES.join("\n")) {
        return Ok(python);
    }
    let _ = std::fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(install.args(PACKAGES))?;
    std::fs::write(&stamp, PACKAGES.join("\n")).map_err(|error| error.to_string())?;
    Ok(python)
}

/// A folder with the package: the sources, and the library beside them.
fn package() -> Result<tempfile::TempDir, String> {
    let at = |path: &Path| format!("{}: ", path.display());
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = test.parent().ok_or("the test lies in a folder")?;
    let library = folder.join("lib_weir.so");
    let package = tempfile::tempdir().map_err(|error| error.to_string())?;
    copy(&own().join("python"), package.path()).map_err(|error| error.to_string())?;
    let to = package.path().join("weir/_weir.abi3.so");
    std::fs::copy(&library, to).map_err(|error| at(&library) + &error.to_string())?;
    Ok(package)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The environment, unless this machine cannot have it.
fn environment_or_excuse() -> Option<PathBuf> {
    match environment() {
        Ok(python) => Some(python),
        Err(error) if std::env::var_os("CI").is_some() => panic!("{error}"),
        Err(error) => {
            // Not the macro: it panics where no one reads.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("left out: {error}\n").as_bytes());
            None
        }
    }
}

#[test]
fn the_package_passes_its_tests_and_its_types_fit() {
    let Some(python) = environment_or_excuse() else { return };
    let package = package().unwrap();
    let bin = python.parent().expect("a folder").to_path_buf();
    let path = std::env::var("PATH").unwrap_or_default();
    // `cargo test --workspace` builds it, for the tests of the command line.
    let test = std::env::current_exe().expect("a program");
    let weir = test.parent().and_then(Path::parent).expect("a folder").join("weir");
    let with = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command
            .args(arguments)
            .current_dir(own())
            .env("PYTHONPATH", package.path())
            .env("MYPYPATH", package.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("WEIR_BINARY", &weir)
            .env("PATH", format!("{}:{path}", bin.display()));
        command
    };
    let cache = package.path().join("cache");
    let cache = cache.to_str().expect("a path in UTF-8");
    let tests = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "weir.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "tests",
        "examples",
    ];
    run(&mut with(&tests)).unwrap_or_else(|error| panic!("{error}"));
    let checked = ["-m", "mypy", "--config-file", "pyproject.toml", "--cache-dir", cache];
    for files in [["-p", "weir"], ["tests", "examples"]] {
        run(&mut with(&[&checked[..], &files].concat())).unwrap_or_else(|error| panic!("{error}"));
    }
}
