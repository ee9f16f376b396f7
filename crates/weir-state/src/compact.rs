//! A file without what has been changed since.

use crate::file::{Contents, Saved, StateError};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use weir_switch::Switch;

/// What the first bytes of a file say, shorter. It is worked out on a switch that no packet meets.
pub fn compact(path: &Path, length: u64) -> Result<Contents, StateError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(StateError::io("read", path))?;
    let taken = file.take(length).read_to_end(&mut bytes);
    taken.map_err(StateError::io("read", path))?;
    let saved = Saved::of(path, bytes)?;
    let program = saved.own_program()?;
    let mut switch = Switch::new(program).map_err(|e| saved.not_run(&e))?;
    saved.restore(0, &mut switch)?;
    let mut contents = Contents::new(saved.begin());
    for (name, value) in saved.settings() {
        contents = contents.setting(name, value);
    }
    Ok(contents.switch(&switch).counters(&switch.counter_values()))
}
