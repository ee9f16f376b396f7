//! P4Info: what a control plane can name in a program.
//!
//! [`p4info`] describes the objects, [`entries`] the table entries that the source gives. Ids,
//! aliases and the ids of fields follow the rules of the reference compiler, so that a controller
//! written for its output finds everything under the same number.
//!
//! ```
//! let info = weir_compiler::p4info::p4info(&weir_ir::Program::default(), &[]).unwrap();
//! assert!(info.tables.is_empty());
//! ```

pub(crate) mod annotations;
mod custom_crc;
mod entries;
pub(crate) mod extern_keys;
pub(crate) mod externs;
pub(crate) mod symbols;
pub(crate) mod tables;
mod types;

pub use entries::entries;

use annotations::Field;
use symbols::{Kind, Symbols};
use weir_ir::target::{ControlSpec, Target};
use weir_ir::{Annotation, Loc, Program};
use weir_proto::p4::config::v1 as pb;

/// Why a program has no P4Info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum P4InfoError {
    /// Two objects of one kind would have the same name.
    #[error("there are two objects of the kind {kind} named `{name}`; give one of them another @name")]
    DuplicateName {
        /// What they are.
        kind: &'static str,
        /// Their name.
        name: String,
        /// The second one.
        loc: Loc,
        /// The first one.
        other: Loc,
    },
    /// `@id(0)`, or something that is not a number of 32 bits.
    #[error("@id takes a number from 1 to 0xffffffff")]
    BadId {
        /// The annotation.
        loc: Loc,
    },
    /// The top byte of `@id` names another kind of object.
    #[error(
        "the top byte of @id({id:#010x}) belongs to another kind of object; here it is {expected:#04x}, or leave it 0"
    )]
    WrongPrefix {
        /// The number given.
        id: u32,
        /// The right top byte.
        expected: u8,
        /// The annotation.
        loc: Loc,
    },
    /// The same `@id` twice.
    #[error("@id({id:#x}) is given twice")]
    DuplicateId {
        /// The number given.
        id: u32,
        /// The second one.
        loc: Loc,
    },
    /// `@tableonly` and `@defaultonly` at once.
    #[error("the table `{table}` lists `{action}` as @tableonly and @defaultonly at once: nothing could use it")]
    NoScope {
        /// The table.
        table: String,
        /// The action.
        action: String,
        /// The table.
        loc: Loc,
    },
    /// The type of a register, digest or the like that BF Runtime has no form for.
    #[error(
        "`{name}` has a type that BF Runtime cannot show: bits, bool, enums with a width, and structs, headers and tuples of these"
    )]
    TooComplex {
        /// The object.
        name: String,
        /// The object.
        loc: Loc,
    },
    /// A value that P4Info has no room for.
    #[error("`{name}` has {what} {value}, and P4Info has no room for more than {limit}")]
    TooLarge {
        /// The object.
        name: String,
        /// What of it.
        what: &'static str,
        /// How large.
        value: u64,
        /// How large it may be.
        limit: u64,
        /// The object.
        loc: Loc,
    },
    /// More extern types with keys than P4Runtime has ids for.
    #[error("the program has more than {limit} extern types with keys, and P4Runtime has no ids for more")]
    TooManyExternTypes {
        /// How many there may be.
        limit: u32,
        /// An instance of the first type beyond.
        loc: Loc,
    },
    /// An annotation that P4Info interprets does not say what it should.
    #[error("@{annotation} takes {expected}")]
    BadAnnotation {
        /// Its name.
        annotation: &'static str,
        /// What it takes.
        expected: &'static str,
        /// The annotation.
        loc: Loc,
    },
}

impl P4InfoError {
    /// Where in the source.
    #[must_use]
    pub fn loc(&self) -> Loc {
        match self {
            P4InfoError::DuplicateName { loc, .. }
            | P4InfoError::BadId { loc }
            | P4InfoError::WrongPrefix { loc, .. }
            | P4InfoError::DuplicateId { loc, .. }
            | P4InfoError::NoScope { loc, .. }
            | P4InfoError::TooComplex { loc, .. }
            | P4InfoError::TooLarge { loc, .. }
            | P4InfoError::TooManyExternTypes { loc, .. }
            | P4InfoError::BadAnnotation { loc, .. } => *loc,
        }
    }

    /// The message with its places: `FILE:LINE: …; the other one is at FILE:LINE`.
    #[must_use]
    pub fn with_places(&self, program: &Program) -> String {
        let place = |loc: Loc| {
            let file = program.files.get(loc.file as usize).filter(|_| loc.line > 0);
            file.map(|file| format!("{file}:{}", loc.line))
        };
        let first = place(self.loc()).map_or(String::new(), |at| format!("{at}: "));
        let other = match self {
            P4InfoError::DuplicateName { other, .. } => place(*other),
            P4InfoError::BadId { .. }
            | P4InfoError::WrongPrefix { .. }
            | P4InfoError::DuplicateId { .. }
            | P4InfoError::NoScope { .. }
            | P4InfoError::TooComplex { .. }
            | P4InfoError::TooLarge { .. }
            | P4InfoError::TooManyExternTypes { .. }
            | P4InfoError::BadAnnotation { .. } => None,
        };
        let other = match other {
            Some(at) if first == format!("{at}: ") => "; it is there once for each instance of its control".to_owned(),
            Some(at) => format!("; the other one is at {at}"),
            None => String::new(),
        };
        format!("{first}{self}{other}")
    }
}

/// The P4Info of a program; `targets`, among them its own, say what externs are to a control plane.
///
/// # Errors
///
/// Everything that is wrong with the names, ids and annotations of the program.
pub fn p4info(program: &Program, targets: &[Target]) -> Result<pb::P4Info, Vec<P4InfoError>> {
    let mut generator = Generator::new(program, control(program, targets));
    generator.package();
    generator.tables();
    generator.actions();
    generator.externs();
    generator.custom_crcs();
    generator.extern_keys();
    generator.digest_calls();
    generator.value_sets();
    generator.controller_headers();
    generator.finish()
}

/// What control planes are told of the externs of a program; nothing where its target is unknown.
pub(crate) fn control(program: &Program, targets: &[Target]) -> ControlSpec {
    let target = targets.iter().find(|t| t.name == program.target);
    target.map(|t| t.control).unwrap_or_default()
}

/// What one run knows.
struct Generator<'p> {
    program: &'p Program,
    control: ControlSpec,
    /// Which tables have direct resources.
    owners: externs::Owners<'p>,
    symbols: Symbols,
    info: pb::P4Info,
    types: pb::P4TypeInfo,
    errors: Vec<P4InfoError>,
}

impl<'p> Generator<'p> {
    fn new(program: &'p Program, control: ControlSpec) -> Self {
        let mut errors = Vec::new();
        let owners = externs::owners(program);
        let symbols = symbols::of_program(control, program, &owners, &mut errors);
        Generator {
            program,
            control,
            owners,
            symbols,
            info: pb::P4Info::default(),
            types: pb::P4TypeInfo::default(),
            errors,
        }
    }

    fn finish(mut self) -> Result<pb::P4Info, Vec<P4InfoError>> {
        if self.types != pb::P4TypeInfo::default() {
            self.info.type_info = Some(self.types);
        }
        if self.errors.is_empty() {
            Ok(self.info)
        } else {
            Err(self.errors)
        }
    }

    /// The preamble of an object that is known by its own name.
    fn preamble(&mut self, kind: Kind, name: &str, list: &[Annotation]) -> pb::Preamble {
        pb::Preamble {
            id: self.symbols.id(kind, name),
            name: name.to_string(),
            alias: self.symbols.alias(name).to_string(),
            annotations: annotations::texts(list, &[]),
            doc: annotations::documentation(list),
            structured_annotations: annotations::structured(list, &[]),
            ..pb::Preamble::default()
        }
    }

    fn field_ids(&mut self, fields: &[Field<'_>]) -> Vec<u32> {
        annotations::field_ids(fields, &mut self.errors)
    }

    /// A number that P4Info holds in an `int32`.
    fn int32(&mut self, name: &str, what: &'static str, value: u64, loc: Loc) -> i32 {
        i32::try_from(value).unwrap_or_else(|_| {
            self.errors.push(P4InfoError::TooLarge {
                name: name.to_string(),
                what,
                value,
                limit: i32::MAX as u64,
                loc,
            });
            0
        })
    }

    /// A number that P4Info holds in an `int64`.
    fn int64(&mut self, name: &str, what: &'static str, value: u64, loc: Loc) -> i64 {
        i64::try_from(value).unwrap_or_else(|_| {
            self.errors.push(P4InfoError::TooLarge {
                name: name.to_string(),
                what,
                value,
                limit: i64::MAX as u64,
                loc,
            });
            0
        })
    }

    fn package(&mut self) {
        let list = &self.program.annotations;
        let mut package = pb::PkgInfo {
            arch: self.program.target.clone(),
            doc: annotations::documentation(list),
            annotations: annotations::texts(list, &["pkginfo", "platform_property"]),
            structured_annotations: annotations::structured(list, &["pkginfo", "platform_property"]),
            ..pb::PkgInfo::default()
        };
        for annotation in list {
            match annotation.name.as_str() {
                "pkginfo" => annotations::package_strings(annotation, &mut package, &mut self.errors),
                "platform_property" => annotations::platform_numbers(annotation, &mut package, &mut self.errors),
                _ => {}
            }
        }
        self.info.pkg_info = Some(package);
    }
}

#[cfg(test)]
mod tests;
