//! Source lines for traces.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use weir_ir::{Loc, Program};
use weir_syntax::source::SourceMap;

/// The lines of a program that was compiled here, found by the places in it.
///
/// The texts are those that were compiled. A place is never opened as a file: a line marker (`# 1
/// "file"`) and a saved program may name any file of the machine, and both may come from a control
/// plane. A program without its source has no lines.
#[derive(Debug, Clone, Default)]
pub struct Lines(Option<Arc<Source>>);

#[derive(Debug)]
struct Source {
    map: SourceMap,
    /// By file and number; made when the first line is shown.
    index: OnceLock<HashMap<(Arc<str>, u32), String>>,
}

impl Lines {
    /// Those of a compilation.
    pub fn new(map: SourceMap) -> Self {
        Lines(Some(Arc::new(Source {
            map,
            index: OnceLock::new(),
        })))
    }

    /// The line of a place, of the program that was compiled.
    pub fn get(&self, program: &Program, loc: Loc) -> Option<String> {
        let source = self.0.as_deref()?;
        let file = program.files.get(loc.file as usize)?;
        let index = source.index.get_or_init(|| {
            let mut index = HashMap::new();
            for (place, text) in source.map.shown_lines() {
                index.entry((place.file, place.line)).or_insert_with(|| text.to_owned());
            }
            index
        });
        index.get(&(file.as_str().into(), loc.line)).cloned()
    }
}
