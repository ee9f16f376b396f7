//! `docs/own-extern.md`, followed literally: its files are written into a folder, and its commands
//! run there and must print what the page shows.
//!
//! Only the path to weir is another. Cargo gets the repository's versions, profile and target
//! folder, so that it builds no dependency twice. `WEIR_BLESS=1` writes the output anew.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A fenced block of the page.
struct Block {
    /// The line before it, without what marks it as the name of a file.
    title: String,
    /// What stands behind the fence.
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut title) = (Vec::new(), "");
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text = lines.by_ref().take_while(|line| *line != "```");
            found.push(Block {
                title: title.trim_end_matches("`:").trim_start_matches('`').to_owned(),
                language: language.to_owned(),
                text: text.map(|line| format!("{line}\n")).collect(),
            });
        } else if !line.is_empty() {
            title = line;
        }
    }
    found
}

/// The folder in which the page's reader works, beside the clone of weir.
struct Workplace {
    folder: tempfile::TempDir,
    target: PathBuf,
}

impl Workplace {
    fn new() -> Self {
        let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
        let target = weir.ancestors().nth(2).unwrap().to_path_buf();
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".cargo")).unwrap();
        // The profile of the workspace: what it has built is used again.
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let profile = manifest.split_once("[profile.dev]").unwrap().1;
        let config = format!("[net]\noffline = true\n[profile.dev]{profile}");
        std::fs::write(folder.path().join(".cargo/config.toml"), config).unwrap();
        Workplace { folder, target }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let weir = root().join("crates/weir").display().to_string();
        std::fs::write(path, text.replace("../weir/crates/weir", &weir)).unwrap();
    }

    fn run(&self, command: &str) -> String {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.folder.path().join("words"))
            .env("CARGO_TARGET_DIR", &self.target);
        // Cargo sets these for tests. Build scripts that look at them would run anew, and
        // everything that depends on them would be built anew.
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "LD_LIBRARY_PATH" {
                shell.env_remove(name);
            }
        }
        let out = shell.output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

impl Drop for Workplace {
    /// The target folder stays, but for the crate of the page.
    fn drop(&mut self) {
        self.run("cargo clean --quiet -p words");
    }
}

#[test]
#[ignore = "builds weir once more, for some six minutes: cargo test -p weir --test own_extern -- --ignored"]
fn the_page_does_what_it_says() {
    let path = root().join("docs/own-extern.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let blocks = blocks(&page);
    let place = Workplace::new();
    let files = blocks.iter().filter(|b| b.title.starts_with("words/"));
    let written: Vec<&str> = files
        .map(|file| {
            place.write(&file.title, &file.text);
            &*file.title
        })
        .collect();
    assert_eq!(
        written,
        [
            "words/Cargo.toml",
            "words/src/main.rs",
            "words/words.p4",
            "words/words.stf"
        ]
    );
    std::fs::copy(root().join("Cargo.lock"), place.folder.path().join("words/Cargo.lock")).unwrap();

    let (mut now, mut commands) = (page.clone(), 0);
    for block in blocks.iter().filter(|b| b.language == "console") {
        let command = block.text.lines().next().unwrap();
        let printed = place.run(command.strip_prefix("$ ").unwrap());
        let shown = format!("```console\n{}```\n", block.text);
        now = now.replace(&shown, &format!("```console\n{command}\n{printed}```\n"));
        commands += 1;
    }
    assert!(commands >= 3, "only {commands} commands");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    } else {
        assert!(now == page, "bless with WEIR_BLESS=1; the page as it should be:\n{now}");
    }
}
