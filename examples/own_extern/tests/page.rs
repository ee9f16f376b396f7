//! `docs/own-extern.md` shows the files of this folder, and its commands print what it says.
//!
//! Where the page runs the crate by cargo, this runs the same binary, which is built already.
//! `WEIR_BLESS=1` writes files and output into the page.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fenced block of the page.
struct Block<'a> {
    /// The line before it.
    title: &'a str,
    /// What stands after the fence.
    language: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut rest) = (Vec::new(), page);
    while let Some((before, behind)) = rest.split_once("\n```") {
        let (language, behind) = behind.split_once('\n').expect("a fence is a line");
        let (text, behind) = behind.split_once("```\n").expect("every fence is closed");
        let title = before.trim_end().lines().next_back().unwrap_or_default();
        found.push(Block { title, language, text });
        rest = behind;
    }
    found
}

/// What the page shows of a file, whose path to weir is that of a crate beside it.
fn shown(name: &str) -> String {
    let text = std::fs::read_to_string(folder().join(name)).expect(name);
    text.replace("../../crates/weir", "../weir/crates/weir")
}

/// Runs a command of the page in a folder with the program and its test.
fn run(place: &Path, command: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_words");
    let command = command.replace("cargo run --quiet --", &format!("'{binary}'"));
    let out = Command::new("sh").args(["-c", &command]).current_dir(place).output();
    let out = out.expect("there is a shell");
    let printed = [out.stdout, out.stderr].concat();
    let printed = String::from_utf8(printed).expect("text");
    printed.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_page_shows_these_files_and_what_its_commands_print() {
    let path = folder().join("../../docs/own-extern.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("words");
    std::fs::create_dir_all(&place).expect("a folder");
    for name in ["words.p4", "words.stf"] {
        std::fs::copy(folder().join(name), place.join(name)).expect(name);
    }
    let (mut now, mut files, mut commands) = (page.clone(), Vec::new(), 0);
    for block in blocks(&page) {
        let file = block.title.strip_prefix("`words/").and_then(|t| t.strip_suffix("`:"));
        let text = match file {
            Some(name) => {
                files.push(name);
                shown(name)
            }
            None if block.language == "console" => {
                commands += 1;
                let command = block.text.lines().next().and_then(|line| line.strip_prefix("$ "));
                let command = command.expect("a command");
                format!("$ {command}\n{}", run(&place, command))
            }
            None => continue,
        };
        let fenced = |text: &str| format!("```{}\n{text}```\n", block.language);
        now = now.replace(&fenced(block.text), &fenced(&text));
    }
    assert_eq!(files, ["Cargo.toml", "src/main.rs", "words.p4", "words.stf"]);
    assert_eq!(commands, 4);
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, now).expect("the page can be written");
    } else {
        assert!(now == page, "bless with WEIR_BLESS=1; the page as it should be:\n{now}");
    }
}
