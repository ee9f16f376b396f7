//! House rules as code. Each exception stands here with its reason.

use crate::{pages, prose};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Lines of a source file beyond which there is a seam to be found; tests are not counted.
const MAX_LINES: usize = 800;
/// Crates that may have `unsafe` (each block says why): devices, machine code, tables that are read
/// while they change, and the hand-written loops that compiled programs are compared with
/// (prefetch, AVX-512).
const UNSAFE_ALLOWED: &[&str] = &["weir-baseline", "weir-io", "weir-jit", "weir-table"];

/// What is wrong, each with its place.
pub(crate) type Breaches = Vec<String>;

/// Checks every rule and reports all breaches.
pub fn check(root: &Path) -> Result<()> {
    let mut breaches = Breaches::new();
    let mut files = Vec::new();
    collect(root, &mut files);
    for path in files {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        if name.ends_with(".md") {
            prose::check_markdown(&name, &text, &mut breaches);
        } else {
            check_file(&name, &text, &mut breaches);
            prose::check_source(&name, &text, &mut breaches);
        }
    }
    pages::check(root, &mut breaches);
    if breaches.is_empty() {
        return Ok(());
    }
    bail!("{}", breaches.join("\n"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target" && n != ".git") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|e| e == "rs" || e == "md") {
            files.push(path);
        }
    }
}

fn check_file(name: &str, text: &str, breaches: &mut Breaches) {
    let is_test = name.contains("/tests/") || name.ends_with("tests.rs");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = code.lines().count();
    if !is_test && lines > MAX_LINES {
        breaches.push(format!(
            "{name}: {lines} lines; look for a seam, the limit is {MAX_LINES}"
        ));
    }
    let crate_name = name
        .strip_prefix("crates/")
        .and_then(|n| n.split('/').next())
        .unwrap_or("xtask");
    let forbidden = ["to", "do!("].concat();
    for (i, line) in code.lines().enumerate() {
        let line = line.trim_start();
        let reason = line.strip_prefix("// SAFETY:").map(str::trim);
        if reason.is_some_and(|r| r.is_empty() || r.starts_with("as above") || r.starts_with("see above")) {
            breaches.push(format!("{name}:{}: say here why this is sound", i + 1));
        }
        if line.starts_with("//") {
            continue;
        }
        if line.contains(&forbidden) || line.contains(&["unimplemented", "!("].concat()) {
            breaches.push(format!(
                "{name}:{}: a stub; finish it or make it an error that users understand",
                i + 1
            ));
        }
        let opens_unsafe = line.contains("unsafe {") || line.starts_with("unsafe ");
        if opens_unsafe && !UNSAFE_ALLOWED.contains(&crate_name) && crate_name != "xtask" {
            breaches.push(format!(
                "{name}:{}: `unsafe` belongs into {} only",
                i + 1,
                UNSAFE_ALLOWED.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breach_is_named_with_its_place() {
        let mut breaches = Vec::new();
        let stub = ["fn f() {\n    to", "do!()\n}\n"].concat();
        check_file("crates/weir-ir/src/x.rs", &stub, &mut breaches);
        check_file("crates/weir-ir/src/y.rs", &"\n".repeat(801), &mut breaches);
        check_file("crates/weir-ir/src/z.rs", "fn f() { unsafe { g() } }", &mut breaches);
        for reason in ["", " as above.", " the slot is active."] {
            check_file(
                "crates/weir-table/src/z.rs",
                &format!("// SAFETY:{reason}\n"),
                &mut breaches,
            );
        }
        assert_eq!(breaches.len(), 5, "{breaches:?}");
        assert!(breaches[0].starts_with("crates/weir-ir/src/x.rs:2:"));
    }

    #[test]
    fn the_repository_keeps_its_rules() {
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    }
}
