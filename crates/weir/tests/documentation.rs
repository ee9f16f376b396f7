//! What the documentation shows is what weir prints: every `console` block of the Markdown files is
//! run.
//!
//! A block begins with `$ ` and a command, which runs in the repository's root with `weir` on the
//! path; the rest is its output. `WEIR_BLESS=1 cargo test -p weir --test documentation` writes the
//! output anew. `docs/own-extern.md` has a test of its own, in `examples/own_extern`.
//!
//! `docs/tutorial.md` begins in an empty folder: its commands run there, one after the other, with
//! the files that the page shows.

use std::path::{Path, PathBuf};
use std::process::Command;

const TUTORIAL: &str = "docs/tutorial.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md")];
    for folder in ["docs", "p4/programs"] {
        collect(&root().join(folder), &mut found);
    }
    found.retain(|path| !path.ends_with("docs/own-extern.md") && !path.ends_with(TUTORIAL));
    // Its commands need inference.
    found.retain(|path| cfg!(feature = "onnx") || !path.ends_with("anomaly_filter/README.md"));
    found.sort();
    found
}

fn collect(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, to);
        } else if path.extension().is_some_and(|e| e == "md") {
            to.push(path);
        }
    }
}

fn run(command: &str) -> String {
    run_in(&root(), command)
}

fn run_in(folder: &Path, command: &str) -> String {
    let weir = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap().to_path_buf();
    let path = format!("{}:{}", weir.display(), std::env::var("PATH").unwrap());
    let out = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    text.lines().map(|l| format!("{}\n", l.trim_end())).collect()
}

/// The document with the output of every block as it is now.
fn rerun(text: &str, folder: &Path) -> (String, usize) {
    let mut out = String::new();
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line.trim() != "```console" {
            continue;
        }
        let Some(command) = lines.next() else { break };
        out.push_str(command);
        out.push('\n');
        let command = command
            .strip_prefix("$ ")
            .unwrap_or_else(|| panic!("a console block begins with `$ `: {command}"));
        out.push_str(&run_in(folder, command));
        count += 1;
        for line in lines.by_ref() {
            if line.trim() == "```" {
                out.push_str("```\n");
                break;
            }
        }
    }
    (out, count)
}

#[test]
fn console_blocks_show_what_is_printed() {
    let bless = std::env::var_os("WEIR_BLESS").is_some();
    let mut total = 0;
    let mut stale = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (now, count) = rerun(&text, &root());
        total += count;
        if now == text {
            continue;
        }
        if bless {
            std::fs::write(&path, now).unwrap();
            continue;
        }
        stale.push(difference(&path, &text, &now));
    }
    assert!(stale.is_empty(), "bless with WEIR_BLESS=1:\n{}", stale.join("\n"));
    assert!(total >= 10, "only {total} blocks were found");
}

fn difference(path: &Path, text: &str, now: &str) -> String {
    let difference = text.lines().zip(now.lines()).find(|(a, b)| a != b);
    let (shown, printed) = difference.unwrap_or(("the end", "more, or less"));
    format!("{}:\n  shown   {shown}\n  printed {printed}", path.display())
}

/// Writes the files that a page shows: each is a block after a line that ends with "`NAME`:".
fn write_files(text: &str, folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (before, behind) in text.match_indices("\n```").map(|(at, _)| text.split_at(at)) {
        let title = before.trim_end().strip_suffix("`:").and_then(|t| t.rsplit('`').next());
        let block = behind.trim_start().split_once('\n').map(|(_, text)| text);
        if let (Some(name), Some(block)) = (title.filter(|n| !n.contains(' ')), block) {
            let content = block.split("```").next().unwrap();
            std::fs::write(folder.join(name), content).unwrap();
            names.push(name.to_owned());
        }
    }
    names
}

#[test]
#[cfg(target_os = "linux")]
fn the_tutorial_leads_from_an_empty_folder_to_a_network() {
    if !run("unshare -rn true && command -v ip && command -v ping && echo fine").ends_with("fine\n") {
        assert!(std::env::var_os("CI").is_none(), "no namespaces, `ip` or `ping` here");
        eprintln!("left out: there are no namespaces, `ip` or `ping` here");
        return;
    }
    let path = root().join(TUTORIAL);
    let text = std::fs::read_to_string(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = write_files(&text, folder.path());
    assert_eq!(files, ["guard.p4", "guard.stf", "guard.entries", "guard.toml"]);
    let (now, count) = rerun(&text, folder.path());
    assert_eq!(count, 7);
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let difference = difference(&path, &text, &now);
    assert!(now == text, "bless with WEIR_BLESS=1:\n{difference}");
}

#[test]
fn the_picture_is_the_one_that_the_demo_draws() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("demo.svg");
    run(&format!("weir demo --svg {}", picture.display()));
    let drawn = std::fs::read_to_string(picture).unwrap();
    let shown = root().join("docs/pipeline.svg");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&shown, &drawn).unwrap();
    }
    assert!(
        std::fs::read_to_string(shown).unwrap() == drawn,
        "docs/pipeline.svg is old: bless with WEIR_BLESS=1"
    );
}

#[test]
fn the_demo_writes_nothing_into_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    run(&format!("cd {} && weir demo", folder.path().display()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn the_readme_pings_through_a_firewall_without_root() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let example = blocks.into_iter().find(|b| b.starts_with("unshare -rn")).unwrap();
    if !run("unshare -rn true && command -v ip && command -v ping && echo fine").ends_with("fine\n") {
        assert!(std::env::var_os("CI").is_none(), "no namespaces, `ip` or `ping` here");
        eprintln!("left out: there are no namespaces, `ip` or `ping` here");
        return;
    }
    let printed = run(example);
    assert!(printed.contains("nothing passes yet"), "{printed}");
    assert!(printed.contains("3 packets transmitted, 3 received"), "{printed}");
}
