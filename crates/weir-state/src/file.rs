//! What a file holds: how it is put together and read.

use crate::frame::{self, Kind, MAGIC, MAGIC_BEFORE, Next};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use weir_ir::Program;
use weir_switch::{Cell, ControlError, CounterValues, Kept, Restoring, Switch, Write};

/// Bytes of pieces after which a new frame is begun.
const FRAME: usize = 1 << 20;

/// Why a state is not read or kept.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    Io {
        /// `read`, `write`, …
        what: &'static str,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not a regular file, or cannot be opened, created or replaced.
    #[error(transparent)]
    File(#[from] weir_files::FileError),
    /// The file has been removed or changed, or another one has taken its name, while the switch
    /// runs.
    #[error(
        "{path} was removed or replaced, or changed by somebody else, while the switch runs; put it back, or stop the switch"
    )]
    Replaced {
        /// The file.
        path: String,
    },
    /// Another process has it.
    #[error("another switch keeps its state in {path}; give this one a file of its own")]
    InUse {
        /// The file.
        path: String,
    },
    /// It is something else.
    #[error("{path} is no state of a switch; give another file")]
    Foreign {
        /// The file.
        path: String,
    },
    /// It was written by another version of weir, in another format.
    #[error("{path} has the format of another version of weir; move it away to begin anew")]
    OtherVersion {
        /// The file.
        path: String,
    },
    /// A part that was complete is not what was written.
    #[error("{path} is damaged at byte {at}: {why}. Restore the file from a copy, or move it away to begin anew")]
    Damaged {
        /// The file.
        path: String,
        /// Where.
        at: usize,
        /// What is damaged.
        why: String,
    },
    /// It holds something that its own program cannot have.
    #[error("{path} does not fit the program it was kept for: {source}; move it away to begin anew")]
    Unfit {
        /// The file.
        path: String,
        /// Why.
        source: Box<ControlError>,
    },
    /// The program in it is none for this version.
    #[error("the program in {path} cannot be run by this version of weir: {why}; move it away to begin anew")]
    Program {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
}

impl StateError {
    /// Whether the storage refuses, and may accept the same later: there is no room, it is mounted
    /// read-only, or it fails.
    #[must_use]
    pub fn is_of_storage(&self) -> bool {
        match self {
            StateError::Io { source, .. } => weir_files::is_of_storage(source),
            StateError::File(error) => error.is_of_storage(),
            StateError::Replaced { .. }
            | StateError::InUse { .. }
            | StateError::Foreign { .. }
            | StateError::OtherVersion { .. }
            | StateError::Damaged { .. }
            | StateError::Unfit { .. }
            | StateError::Program { .. } => false,
        }
    }

    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |source| StateError::Io { what, path, source }
    }
}

/// Whose state it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// The program that the switch was started with, as text without places
    /// ([`weir_ir::print::print_without_places`]).
    pub started: String,
    /// The program that it runs, as text, where a control plane has given it another one.
    pub runs: Option<String>,
    /// What the caller keeps of the program.
    pub about: Vec<u8>,
}

impl Begin {
    /// For a switch that was started with a program and runs it.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        Begin {
            started: weir_ir::print::print_without_places(program),
            runs: None,
            about: Vec::new(),
        }
    }
}

/// A whole state, as a file holds it.
#[derive(Debug, Clone)]
pub struct Contents {
    bytes: Vec<u8>,
    pieces: Vec<u8>,
}

impl Contents {
    /// A program in the state in which it begins.
    #[must_use]
    pub fn new(begin: &Begin) -> Self {
        // The length is not known yet.
        let mut bytes = frame::start(0);
        frame::append(&mut bytes, Kind::Begin, &encoded(begin));
        Contents {
            bytes,
            pieces: Vec::new(),
        }
    }

    /// With something that the caller keeps, in place of what it kept by this name before.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &[u8]) -> Self {
        frame::append(&mut self.bytes, Kind::Setting, &encoded(&(name, value)));
        self
    }

    /// With a switch's state, without counters.
    #[must_use]
    pub fn switch(mut self, switch: &Switch) -> Self {
        switch.keep(|piece| self.piece(&piece));
        self
    }

    /// With what counters hold.
    #[must_use]
    pub fn counters(mut self, values: &CounterValues) -> Self {
        for ((id, index), count) in values {
            let write = Write::Counter(*id, Cell::Index(*index), *count);
            self.piece(&Kept::Change(write, None));
        }
        self
    }

    fn piece(&mut self, piece: &Kept) {
        append_piece(&mut self.pieces, piece);
        if self.pieces.len() >= FRAME {
            self.end_frame();
        }
    }

    fn end_frame(&mut self) {
        if !self.pieces.is_empty() {
            frame::append(&mut self.bytes, Kind::Pieces, &self.pieces);
            self.pieces.clear();
        }
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.end_frame();
        let start = frame::start(self.bytes.len() as u64);
        self.bytes[..start.len()].copy_from_slice(&start);
        self.bytes
    }
}

/// In the form in which things are kept.
pub(crate) fn encoded<T: Serialize>(what: &T) -> Vec<u8> {
    // Nothing that is kept has a form that cannot be written.
    postcard::to_stdvec(what).unwrap_or_default()
}

/// Appends a thing in the form in which things are kept.
pub(crate) fn append_encoded<T: Serialize>(to: &mut Vec<u8>, what: &T) {
    let bytes = std::mem::take(to);
    let before = bytes.len();
    *to = match postcard::to_extend(what, bytes) {
        Ok(bytes) => bytes,
        // See above; the place is kept.
        Err(_) => vec![0; before],
    };
}

fn append_piece(to: &mut Vec<u8>, piece: &Kept) {
    append_encoded(to, piece);
}

/// Where the record of the program begins, and how many bytes of the file were complete before it
/// took its name: 0 for files of version 02, which do not record it.
fn first_part(path: &str, bytes: &[u8]) -> Result<(usize, usize), StateError> {
    if bytes.starts_with(MAGIC_BEFORE) {
        return Ok((MAGIC_BEFORE.len(), 0));
    }
    let path = path.to_owned();
    if !bytes.starts_with(MAGIC) {
        return Err(match bytes.starts_with(frame::NAME) {
            true => StateError::OtherVersion { path },
            false => StateError::Foreign { path },
        });
    }
    let at = MAGIC.len();
    let start = match frame::next(bytes, at) {
        Next::Frame(Kind::Whole, range) => Some(range),
        Next::Frame(Kind::Begin | Kind::Pieces | Kind::Setting, _) => None,
        Next::End | Next::Torn | Next::Damaged => None,
    };
    let start = start.and_then(|range| {
        let number = bytes[range.clone()].try_into().ok().map(u64::from_le_bytes)?;
        Some((range.end, usize::try_from(number).ok()?))
    });
    let Some((begin, whole)) = start else {
        let why = "the record of the length is damaged or incomplete".to_owned();
        return Err(StateError::Damaged { path, at, why });
    };
    if bytes.len() < whole {
        let at = bytes.len();
        let why = format!("the file ends there, and the first {whole} bytes were complete before it took its name");
        return Err(StateError::Damaged { path, at, why });
    }
    Ok((begin, whole))
}

/// A state that was kept.
#[derive(Debug)]
pub struct Saved {
    path: String,
    bytes: Vec<u8>,
    begin: Begin,
    frames: Vec<Range<usize>>,
    settings: BTreeMap<String, Vec<u8>>,
    end: usize,
}

impl Saved {
    /// What a file of this name holds.
    ///
    /// # Errors
    /// It is something else, or is damaged: in the part that was written before the file took its
    /// name, or before its end.
    pub fn of(path: &Path, bytes: Vec<u8>) -> Result<Self, StateError> {
        let path = path.display().to_string();
        let (mut at, whole) = first_part(&path, &bytes)?;
        let damaged = |at, why: &str| StateError::Damaged {
            path: path.clone(),
            at,
            why: why.to_owned(),
        };
        let Next::Frame(Kind::Begin, range) = frame::next(&bytes, at) else {
            return Err(damaged(at, "the record of the program is damaged or incomplete"));
        };
        let begin = postcard::from_bytes(&bytes[range.clone()]);
        let begin: Begin = begin.map_err(|_| damaged(at, "the record of the program cannot be read"))?;
        at = range.end;
        let (mut frames, mut settings) = (Vec::new(), BTreeMap::new());
        let end = loop {
            match frame::next(&bytes, at) {
                Next::End | Next::Torn | Next::Damaged if at < whole => {
                    let why = format!(
                        "the record there is damaged or incomplete, and the first {whole} bytes were \
                         complete before the file took its name"
                    );
                    return Err(damaged(at, &why));
                }
                Next::End | Next::Torn => break at,
                Next::Damaged => {
                    return Err(damaged(at, "the record there is damaged, and others follow it"));
                }
                Next::Frame(Kind::Begin | Kind::Whole, _) => {
                    return Err(damaged(at, "a record of the beginning of a file stands there"));
                }
                Next::Frame(Kind::Pieces, range) => {
                    at = range.end;
                    frames.push(range);
                }
                Next::Frame(Kind::Setting, range) => {
                    let setting = postcard::from_bytes(&bytes[range.clone()]);
                    let setting = setting.map_err(|_| damaged(at, "the setting there cannot be read"));
                    let (name, value): (String, Vec<u8>) = setting?;
                    settings.insert(name, value);
                    at = range.end;
                }
            }
        };
        Ok(Saved {
            path,
            bytes,
            begin,
            frames,
            settings,
            end,
        })
    }

    /// Whose state it is.
    #[must_use]
    pub fn begin(&self) -> &Begin {
        &self.begin
    }

    /// What the caller keeps by this name.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&[u8]> {
        self.settings.get(name).map(Vec::as_slice)
    }

    /// All that the caller keeps.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.settings.iter().map(|(n, v)| (n.as_str(), v.as_slice()))
    }

    /// Where the part that is whole ends.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Bytes at the end that are a part of something that was never acknowledged, or are damaged.
    #[must_use]
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.end..]
    }

    /// The program that ran. It is `started` where that is what the switch was started with.
    ///
    /// A program from the file is verified, but not compared with its architecture: ask
    /// `weir_arch::nonconformities` before it is run.
    ///
    /// # Errors
    /// This version of weir does not know such a program.
    pub fn program(&self, started: &Arc<Program>) -> Result<Arc<Program>, StateError> {
        match &self.begin.runs {
            None => Ok(Arc::clone(started)),
            Some(text) => self.parsed(text),
        }
    }

    /// The program that ran, from the file alone.
    pub(crate) fn own_program(&self) -> Result<Arc<Program>, StateError> {
        self.parsed(self.begin.runs.as_ref().unwrap_or(&self.begin.started))
    }

    fn parsed(&self, text: &str) -> Result<Arc<Program>, StateError> {
        weir_ir::parse::parse(text)
            .map(Arc::new)
            .map_err(|error| self.not_run(&error))
    }

    /// That its program is not run, and why.
    #[must_use]
    pub fn not_run(&self, why: &dyn std::fmt::Display) -> StateError {
        StateError::Program {
            path: self.path.clone(),
            why: why.to_string(),
        }
    }

    /// Makes a fresh switch of the program that ran like the one whose state it is; `replica`: its
    /// number, if several share the packets. Gives the number of pieces.
    ///
    /// # Errors
    /// The switch is one of another program, or the file holds what cannot be.
    pub fn restore(&self, replica: usize, switch: &mut Switch) -> Result<u64, StateError> {
        let mut restoring = Restoring::new(switch, replica);
        let mut pieces = 0;
        for frame in &self.frames {
            let mut rest = &self.bytes[frame.clone()];
            let mut transaction = switch.transaction();
            while !rest.is_empty() {
                let taken = postcard::take_from_bytes::<Kept>(rest);
                let (piece, after) = taken.map_err(|_| StateError::Damaged {
                    path: self.path.clone(),
                    at: frame.end - rest.len(),
                    why: "the change there cannot be read".to_owned(),
                })?;
                restoring
                    .apply(&mut transaction, piece)
                    .map_err(|source| StateError::Unfit {
                        path: self.path.clone(),
                        source: Box::new(source),
                    })?;
                rest = after;
                pieces += 1;
            }
            transaction.commit();
        }
        Ok(pieces)
    }
}
