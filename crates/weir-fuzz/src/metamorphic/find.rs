//! Programs and the packet tests beside them.

use crate::engines::{files, read_with_includes};
use std::path::{Path, PathBuf};

/// A program with its tests.
pub(crate) struct Subjects {
    /// Where it stands.
    pub path: PathBuf,
    /// Its text with the files beside it that it includes.
    pub source: String,
    /// Its packet tests: name and text.
    pub tests: Vec<(String, String)>,
}

/// Whether a packet test belongs to a program: it has the program's name, or that and `-` and more.
fn belongs(test: &Path, program: &Path) -> bool {
    let stem = |path: &Path| path.file_stem().and_then(|s| s.to_str()).map(str::to_owned);
    let (Some(test_name), Some(name)) = (stem(test), stem(program)) else {
        return false;
    };
    let rest = test_name.strip_prefix(&name);
    test.extension().is_some_and(|e| e == "stf") && rest.is_some_and(|r| r.is_empty() || r.starts_with('-'))
}

/// The programs below a folder that have packet tests, in the order of their paths.
pub(crate) fn programs(folder: &Path) -> Vec<Subjects> {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    let programs = paths.iter().filter(|p| p.extension().is_some_and(|e| e == "p4"));
    let found = programs.filter_map(|path| {
        let beside = paths.iter().filter(|p| p.parent() == path.parent());
        // A test of `a-b` is none of `a`.
        let other = |test: &Path| {
            let mut longer = paths.iter().filter(|p| p.extension().is_some_and(|e| e == "p4"));
            longer.any(|p| {
                p.parent() == path.parent() && p.as_os_str().len() > path.as_os_str().len() && belongs(test, p)
            })
        };
        let tests: Vec<(String, String)> = beside
            .filter(|p| belongs(p, path) && !other(p))
            .filter_map(|p| Some((p.file_name()?.to_str()?.to_owned(), std::fs::read_to_string(p).ok()?)))
            .collect();
        let source = read_with_includes(path, 0).filter(|_| !tests.is_empty())?;
        Some(Subjects {
            path: path.clone(),
            source,
            tests,
        })
    });
    found.collect()
}
