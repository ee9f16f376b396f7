//! The pages of the documentation, and their order in `docs/SUMMARY.md`.

use crate::links;
use crate::tidy::Breaches;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The table of contents. Its links are relative to its folder, as everywhere.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Where pages are, besides those of the repository's root.
const FOLDERS: &[&str] = &["docs", "p4/programs"];
/// Pages of the repository's root.
const FILES: &[&str] = &["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];

/// Every page with its text, by its path in the repository.
pub(crate) fn read(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut paths: Vec<PathBuf> = FILES.iter().map(PathBuf::from).collect();
    for folder in FOLDERS {
        collect(root, Path::new(folder), &mut paths);
    }
    let texts = paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(root.join(&path)).ok()?;
        Some((path, text))
    });
    texts.collect()
}

fn collect(root: &Path, folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else {
        return;
    };
    for entry in entries.flatten() {
        let path = folder.join(entry.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, paths);
        } else if path.extension().is_some_and(|e| e == "md") {
            paths.push(path);
        }
    }
}

/// Checks that links lead somewhere, and that every page has one place in the table of contents.
pub(crate) fn check(root: &Path, breaches: &mut Breaches) {
    let pages = read(root);
    links::check(root, &pages, breaches);
    let Some(summary) = pages.get(Path::new(SUMMARY)) else {
        breaches.push(format!("{SUMMARY} is missing"));
        return;
    };
    let mut listed = BTreeSet::new();
    for link in links::links(summary) {
        if let Some(page) = links::resolve(Path::new(SUMMARY), link.parts().0)
            && !listed.insert(page.clone())
        {
            breaches.push(format!("{SUMMARY}: {} stands there twice", page.display()));
        }
    }
    for page in pages.keys().filter(|page| *page != Path::new(SUMMARY)) {
        if !listed.contains(page) {
            breaches.push(format!("{SUMMARY}: {} is missing", page.display()));
        }
    }
}
