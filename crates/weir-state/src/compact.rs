//! A file without what has been changed since.

use crate::file::{Contents, Saved, StateError};
use std::io::Read;
use weir_files::{Access, Target};
use weir_switch::Switch;

/// What the first bytes of a file say, shorter. It is worked out on a switch that no packet meets.
pub fn compact(target: &Target, length: u64) -> Result<Contents, StateError> {
    let path = target.path();
    let mut bytes = Vec::new();
    let file = target.open(Access::Read)?.ok_or_else(|| StateError::Replaced {
        path: path.display().to_string(),
    })?;
    let taken = file.take(length).read_to_end(&mut bytes);
    taken.map_err(StateError::io("read", &path))?;
    let saved = Saved::of(&path, bytes)?;
    let program = saved.own_program()?;
    let mut switch = Switch::new(program).map_err(|e| saved.not_run(&e))?;
    saved.restore(0, &mut switch)?;
    let mut contents = Contents::new(saved.begin());
    for (name, value) in saved.settings() {
        contents = contents.setting(name, value);
    }
    Ok(contents.switch(&switch).counters(&switch.counter_values()))
}
