//! What a program asks of a device: parser paths, tables, and how they depend on each other.

mod block;
mod control;
mod dependency;
mod effects;
mod facts;
mod operations;
mod parser;
mod path;
mod sequence;
mod stages;
mod tables;
mod walk;

pub use block::Gress;
pub use dependency::{Dependencies, DependencyKind, Edge, Node, NodeKind};
pub use operations::Operations;
pub(crate) use path::headers_of;
pub use path::{ParserFeatures, ParserPath, State};
pub use sequence::{Control, Cost, Piece, Sequence, length};
pub use stages::{Chip, Placement, Stage};
pub use tables::{ActionFeatures, DEFAULT_SIZE, KeyFeatures, Search, StatefulKind, TableFeatures};

use serde::{Deserialize, Serialize};
use weir_ir::{Loc, Program};

/// Why a program has no features.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FeatureError {
    /// It has no parser or no control for this direction.
    #[error("the program has no {gress} {what}: expected a package with both, found the blocks {found}")]
    NoBlock {
        /// Which direction.
        gress: Gress,
        /// `parser` or `control`.
        what: &'static str,
        /// The roles that it has, with commas between them.
        found: String,
    },
    /// It has no such pipe.
    #[error("the program has no pipe `{wanted}`; its pipes: {found}")]
    NoPipe {
        /// The requested pipe.
        wanted: String,
        /// Its pipes, with commas between them.
        found: String,
    },
    /// No packet gets through the parser.
    #[error("{place}: no path of parser {name} accepts a packet")]
    NothingAccepted {
        /// Name of the parser.
        name: String,
        /// Its declaration.
        place: String,
    },
}

/// A place in the source. Line 0: unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file as the compiler was given it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl Place {
    fn of(program: &Program, loc: Loc) -> Self {
        Place {
            file: program.files.get(loc.file as usize).cloned().unwrap_or_default(),
            line: loc.line,
            column: loc.column,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Everything that models look at, of one direction of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Name of the architecture that the program was compiled for.
    pub architecture: String,
    /// Which direction.
    pub gress: Gress,
    /// The parser and its paths.
    pub parser: ParserFeatures,
    /// Tables of the control in the order in which packets come to them.
    pub tables: Vec<TableFeatures>,
    /// How packets get from table to table; a path of the parser names one of these.
    pub controls: Vec<Control>,
    /// Tables and statements, and how each depends on those before it.
    pub dependencies: Dependencies,
    /// Bytes of all headers that the deparser may emit.
    pub emitted_bytes: u32,
    /// Headers in which blocks besides the control write, as they do with checksums.
    pub checksummed: Vec<String>,
    /// Bytes over which blocks besides the control verify or compute checksums.
    pub checksum_bytes: u32,
}

impl Features {
    /// The path on which most tables may be met; of several the one that extracts most.
    #[must_use]
    pub fn busiest_path(&self) -> Option<&ParserPath> {
        let key = |path: &&ParserPath| (self.controls[path.control].tables().len(), path.header_bytes);
        self.parser.paths.iter().max_by_key(key)
    }

    /// The tables and statements laid out in the stages of a chip, with its padding.
    #[must_use]
    pub fn placement(&self, chip: &Chip) -> Placement {
        Placement::of(&self.dependencies, &self.tables, chip).padded(self.gress, chip)
    }

    /// The pipes of a program, in order; none where its architecture has no pipes.
    #[must_use]
    pub fn pipes(program: &Program) -> Vec<String> {
        block::pipes(program)
    }

    /// As [`Features::of_pipe`], of the only pipe or the first.
    ///
    /// # Errors
    /// There is no parser or no control, or the parser accepts nothing.
    pub fn of(program: &Program, gress: Gress) -> Result<Self, FeatureError> {
        Features::of_pipe(program, gress, None)
    }

    /// Extracts the features of a checked program that no pass has optimised: passes remove what
    /// has no effect on weir, but costs a parser state on a device.
    ///
    /// # Errors
    /// There is no such pipe, no parser or no control, or the parser accepts nothing.
    pub fn of_pipe(program: &Program, gress: Gress, pipe: Option<&str>) -> Result<Self, FeatureError> {
        let blocks = block::Blocks::find(program, gress, pipe)?;
        let effects = effects::Effects::of(program, &blocks.control.body);
        let (tables, indices) = tables::of(program, blocks.control, &effects);
        let initial = facts::Initial::of(program);
        let walked = parser::walk(program, &blocks, &initial)?;
        let mut controls = control::Controls::new(program, blocks.control, &effects, &indices);
        let parser = walked.finish(program, &initial, &mut controls, &tables);
        let dependencies = dependency::of(program, blocks.control, &effects, &indices);
        Ok(Features {
            architecture: program.target.clone(),
            gress,
            parser,
            tables,
            controls: controls.finish(),
            dependencies,
            emitted_bytes: block::emitted_bytes(program, blocks.deparser),
            checksummed: block::checksummed(program, &blocks),
            checksum_bytes: block::checksum_bytes(program, &blocks),
        })
    }
}
