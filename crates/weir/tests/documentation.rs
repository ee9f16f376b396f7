//! What the documentation shows is what weir prints: every `console` block of the Markdown files is
//! run.
//!
//! A block begins with `$ ` and a command, which runs in the repository's root with `weir` on the
//! path; the rest is its output. `WEIR_BLESS=1 cargo test -p weir --test documentation` writes the
//! output anew. `docs/own-extern.md` has a test of its own, in `examples/own_extern`.

use std::path::{Path, PathBuf};
use std::process::Command;

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
    found.retain(|path| !path.ends_with("docs/own-extern.md"));
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
    let weir = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap().to_path_buf();
    let path = format!("{}:{}", weir.display(), std::env::var("PATH").unwrap());
    let out = Command::new("sh")
        .args(["-c", command])
        .current_dir(root())
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
fn rerun(text: &str) -> (String, usize) {
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
        out.push_str(&run(command));
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
        let (now, count) = rerun(&text);
        total += count;
        if now == text {
            continue;
        }
        if bless {
            std::fs::write(&path, now).unwrap();
            continue;
        }
        let difference = text.lines().zip(now.lines()).find(|(a, b)| a != b);
        let (shown, printed) = difference.unwrap_or(("the end", "more, or less"));
        stale.push(format!("{}:\n  shown   {shown}\n  printed {printed}", path.display()));
    }
    assert!(stale.is_empty(), "bless with WEIR_BLESS=1:\n{}", stale.join("\n"));
    assert!(total >= 10, "only {total} blocks were found");
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
fn what_the_demo_writes_is_ignored_by_git() {
    let ignored = std::fs::read_to_string(root().join(".gitignore")).unwrap();
    assert!(ignored.lines().any(|line| line == "/weir-demo.svg"));
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
