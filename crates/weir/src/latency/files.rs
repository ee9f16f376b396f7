//! Files that are written must be none that are read.

use anyhow::{Result, bail};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file by the system's number, or by its path where it is not there yet. Devices and pipes are
/// none: nothing of them is overwritten.
#[derive(PartialEq)]
enum Identity {
    Number(u64, u64),
    Path(PathBuf),
}

fn identity(path: &Path) -> Option<Identity> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => Some(Identity::Number(metadata.dev(), metadata.ino())),
        Ok(_) => None,
        Err(_) => {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let folder = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(Identity::Path(folder.join(path.file_name()?)))
        }
    }
}

/// Refuses an output that is also an input or another output. Outputs come with their flags.
pub fn distinct(outputs: &[(&str, Option<&Path>)], inputs: &[Option<&Path>]) -> Result<()> {
    let there = || outputs.iter().filter_map(|(flag, path)| Some((*flag, (*path)?)));
    for (at, (flag, output)) in there().enumerate() {
        let Some(own) = identity(output) else { continue };
        let is_own = |path: &&Path| identity(path).is_some_and(|other| other == own);
        if inputs.iter().flatten().any(&is_own) {
            bail!("{flag} {}: this file is read, too", output.display());
        }
        if there().take(at).any(|(_, other)| is_own(&other)) {
            bail!("{flag} {}: this file is written twice", output.display());
        }
    }
    Ok(())
}
