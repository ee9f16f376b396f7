//! `cargo xtask deb`: the Debian package.
//!
//! What the package has besides the binary and files of the repository is written into
//! `crates/weir/package/generated`: man pages and completions by the binary itself, changelogs, and
//! the licences of the crates that the binary contains. `crates/weir/Cargo.toml` lists the assets.

use crate::{is_installed, root, step};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the package and prints where it is.
pub(crate) fn build() -> Result<()> {
    if !is_installed("cargo-deb") {
        bail!("cargo-deb is not installed: `cargo install cargo-deb --locked`");
    }
    if !is_installed("dpkg-shlibdeps") {
        bail!("dpkg-shlibdeps is not installed: `sudo apt-get install dpkg-dev`");
    }
    let target = target_folder()?;
    step("release", "cargo", &["build", "--release", "--locked", "-p", "weir"])?;
    let package = root().join("crates/weir/package/generated");
    let _ = std::fs::remove_dir_all(&package);
    let binary = target.join("release/weir");
    manual(&binary, &package.join("man"))?;
    completions(&binary, &package.join("completion"))?;
    changelogs(&package)?;
    std::fs::write(package.join("crates.txt"), licences()?)?;
    step(
        "package",
        "cargo",
        &[
            "deb",
            "--package",
            "weir",
            "--no-build",
            "--no-strip",
            "--output",
            &target.join("debian/").display().to_string(),
        ],
    )
}

/// The folder into which cargo builds.
fn target_folder() -> Result<PathBuf> {
    let text = output("cargo", &["metadata", "--format-version", "1", "--no-deps"])?;
    let (_, behind) = text
        .rsplit_once("\"target_directory\":\"")
        .context("`cargo metadata` names no target folder")?;
    Ok(PathBuf::from(behind.split('"').next().unwrap_or_default()))
}

fn output(program: &str, arguments: &[&str]) -> Result<String> {
    let out = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !out.status.success() {
        bail!(
            "{program} {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    String::from_utf8(out.stdout).with_context(|| format!("the output of {program} is no text"))
}

fn manual(binary: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let binary = binary.display().to_string();
    step("man pages", &binary, &["man", &folder.display().to_string()])
}

/// One file for each shell, with the name by which the shell looks for it.
fn completions(binary: &Path, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let binary = binary.display().to_string();
    for (shell, name) in [("bash", "weir"), ("zsh", "_weir"), ("fish", "weir.fish")] {
        std::fs::write(folder.join(name), output(&binary, &["completion", shell])?)?;
    }
    Ok(())
}

/// `CHANGELOG.md` as upstream's changelog, and one in Debian's form that names the version.
fn changelogs(package: &Path) -> Result<()> {
    let upstream = package.join("changelog");
    std::fs::copy(root().join("CHANGELOG.md"), &upstream)?;
    let path = upstream.display().to_string();
    step("changelog", "gzip", &["--best", "--no-name", "--force", &path])?;
    let date = output("git", &["log", "-1", "--format=%cD"])?;
    let manifest = std::fs::read_to_string(root().join("crates/weir/Cargo.toml"))?;
    let maintainer = value(&manifest, "maintainer").context("crates/weir/Cargo.toml names no maintainer")?;
    let workspace = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let version = value(&workspace, "version").context("Cargo.toml has no version")?;
    let text = format!(
        "weir ({version}-1) stable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer}  {}\n",
        date.trim()
    );
    std::fs::write(package.join("changelog.Debian"), text)?;
    Ok(())
}

/// The first `KEY = "VALUE"` of a manifest.
fn value<'a>(manifest: &'a str, key: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        rest.trim().strip_prefix('"')?.strip_suffix('"')
    })
}

/// The crates of the binary, by licence.
fn licences() -> Result<String> {
    let tree = output(
        "cargo",
        &[
            "tree", "--locked", "-p", "weir", "-e", "normal", "--prefix", "none", "--format", "{l}\t{p}",
        ],
    )?;
    let mut crates: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for line in tree.lines() {
        let Some((licence, name)) = line.trim_end_matches(" (*)").split_once('\t') else {
            continue;
        };
        let name = name.split(" (").next().unwrap_or(name).to_owned();
        let list = crates
            .entry(if licence.is_empty() { "see the crate" } else { licence })
            .or_default();
        if !list.contains(&name) {
            list.push(name);
        }
    }
    let mut text = String::from("The crates that the binary contains, by licence. Their sources: https://crates.io\n");
    for (licence, mut names) in crates {
        names.sort();
        text += &format!("\n{licence}\n  {}\n", names.join("\n  "));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_manifest_are_found() {
        let manifest = "[package]\nversion.workspace = true\nname = \"weir\"\n\nmaintainer = \"A B <a@b.example>\"\n";
        assert_eq!(value(manifest, "maintainer"), Some("A B <a@b.example>"));
        assert_eq!(value(manifest, "version"), None);
    }

    #[test]
    fn every_asset_of_the_package_is_there_or_written_by_this_task() {
        let manifest = std::fs::read_to_string(root().join("crates/weir/Cargo.toml")).expect("the manifest");
        let (_, assets) = manifest.split_once("assets = [\n").expect("assets");
        let (assets, _) = assets.split_once("\n]").expect("their end");
        for line in assets.lines() {
            let path = line.split('"').nth(1).expect("a path");
            let path = path.split("/*").next().expect("a folder");
            let is_written = path.contains("target/") || path.contains("/generated/");
            assert!(is_written || root().join("crates/weir").join(path).exists(), "{path}");
        }
    }
}
