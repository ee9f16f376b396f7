//! The description of an architecture for the compiler, as data.
//!
//! The architecture's P4 include file says which types and externs exist; a [`Target`] says how the
//! blocks of its package hang together: which role each plays and which of their parameters are the
//! same variables. Everything an extern *does* is the business of whoever runs the program.

mod custom_crc;

pub use custom_crc::{Calculation, CustomCrc, CustomCrcSpec, calculation_name};

/// A description of an architecture.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name for people and for [`crate::Program::target`].
    pub name: &'static str,
    /// The packages that `main` may be an instance of; most architectures have one.
    pub packages: &'static [PackageSpec],
    /// The P4 files that declare it: the names that programs include them by, and their texts.
    pub files: &'static [(&'static str, &'static str)],
    /// Macros that its programs expect to be defined before the first line where it was chosen by
    /// name: the file that they include may define them otherwise.
    pub macros: &'static [(&'static str, &'static str)],
    /// Macros that its files do not define and many programs define alike: their names and values.
    /// A program that lacks one gets an error with the line to write.
    pub customary: &'static [(&'static str, &'static str)],
    /// Externs that are nothing but assignments.
    pub expansions: &'static [Expansion],
    /// How some externs relate to tables.
    pub tables: TableSpec,
    /// The externs that control planes see.
    pub control: ControlSpec,
    /// Annotations that mean something on the real target which weir leaves out: programs that use
    /// them are warned.
    pub without_effect: &'static [IgnoredAnnotation],
}

/// An annotation that weir reads past.
#[derive(Debug, Clone, Copy)]
pub struct IgnoredAnnotation {
    /// Its name.
    pub name: &'static str,
    /// The behaviour instead, as a sentence for the user.
    pub instead: &'static str,
}

/// A package of an architecture.
#[derive(Debug, Clone, Copy)]
pub struct PackageSpec {
    /// Name of the package type, e.g. `V1Switch`.
    pub name: &'static str,
    /// Its blocks in the order of its parameters.
    pub blocks: &'static [BlockSpec],
    /// Its parameters that are whole pipelines: where they are not all the same one, names begin
    /// with the pipeline's.
    pub pipelines: &'static [&'static str],
}

/// One block of a package.
#[derive(Debug, Clone, Copy)]
pub struct BlockSpec {
    /// Path of package parameters to it: `["ig"]`, or `["ingress", "ip"]` for nested packages.
    pub path: &'static [&'static str],
    /// Its role, unique in the package.
    pub role: &'static str,
    /// For each parameter of the block in order: the role of the [`crate::Shared`] group it is
    /// bound to; `""` for the packet.
    pub bindings: &'static [&'static str],
    /// The package parameter is `@optional`.
    pub optional: bool,
}

/// The externs that control planes see.
#[derive(Debug, Clone, Copy, Default)]
pub struct ControlSpec {
    /// Extern types whose instances they see; no others are visible.
    pub resources: &'static [ResourceSpec],
    /// The extern function whose second argument is a message to them, where no extern type sends
    /// such messages.
    pub digest_function: Option<&'static str>,
    /// The metadata that can be configured per port for parsers.
    pub port_metadata: Option<PortMetadataSpec>,
    /// How programs name CRCs whose parameters control planes set, where there are such.
    pub custom_crcs: Option<CustomCrcSpec>,
}

/// Data of each port that comes before the packets that it receives.
#[derive(Debug, Clone, Copy)]
pub struct PortMetadataSpec {
    /// Roles of the parsers that may read it.
    pub parsers: &'static [&'static str],
    /// For each of these the role of the shared variables that hold the port.
    pub keys: &'static [&'static str],
    /// The function that gives it as a type of the program's.
    pub function: &'static str,
    /// Its bits, where no type is given.
    pub width: u32,
    /// Bits of a port.
    pub port_width: u32,
    /// Number of ports.
    pub ports: u64,
}

impl ControlSpec {
    /// The kind of resource of an extern type.
    #[must_use]
    pub fn resource(&self, extern_type: &str) -> Option<&'static ResourceSpec> {
        self.resources.iter().find(|r| r.extern_type == extern_type)
    }
}

/// An extern type whose instances control planes see.
#[derive(Debug, Clone, Copy)]
pub struct ResourceSpec {
    /// Its name.
    pub extern_type: &'static str,
    /// The kind of its instances.
    pub kind: ResourceKind,
    /// Position among its type parameters of the type of its index.
    pub index: Option<usize>,
    /// Instances that are direct to a table are executed by every hit, whatever the action does;
    /// others only by actions that call them.
    pub on_every_hit: bool,
}

impl ResourceSpec {
    /// A type without an index, or with an index of no type of its own.
    #[must_use]
    pub const fn new(extern_type: &'static str, kind: ResourceKind) -> Self {
        ResourceSpec {
            extern_type,
            kind,
            index: None,
            on_every_hit: false,
        }
    }

    /// A type whose instances run on every hit of the table that they are attached to.
    #[must_use]
    pub const fn on_every_hit(extern_type: &'static str, kind: ResourceKind) -> Self {
        ResourceSpec {
            on_every_hit: true,
            ..ResourceSpec::new(extern_type, kind)
        }
    }

    /// A type whose index has the type of this type parameter.
    #[must_use]
    pub const fn indexed(extern_type: &'static str, kind: ResourceKind, parameter: usize) -> Self {
        ResourceSpec {
            extern_type,
            kind,
            index: Some(parameter),
            on_every_hit: false,
        }
    }
}

/// The kind of an extern instance for control planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// An array of counters.
    Counter,
    /// A counter per table entry.
    DirectCounter,
    /// An array of meters.
    Meter,
    /// A meter per table entry.
    DirectMeter,
    /// An array of registers.
    Register,
    /// Actions that entries share.
    ActionProfile,
    /// The same with groups.
    ActionSelector,
    /// A source of messages.
    Digest,
    /// A register per table entry.
    DirectRegister,
    /// A number that register actions read.
    RegisterParameter,
    /// An array of low-pass filters.
    Filter,
    /// A low-pass filter per table entry.
    DirectFilter,
    /// An array of filters for random early drops.
    EarlyDrop,
    /// A filter for random early drops per table entry.
    DirectEarlyDrop,
}

impl ResourceKind {
    /// Whether instances have a value per entry of the table that they are attached to.
    #[must_use]
    pub fn is_direct(self) -> bool {
        matches!(
            self,
            ResourceKind::DirectCounter
                | ResourceKind::DirectMeter
                | ResourceKind::DirectRegister
                | ResourceKind::DirectFilter
                | ResourceKind::DirectEarlyDrop
        )
    }
}

/// A block at `path` of the package, not optional.
#[must_use]
pub const fn block(path: &'static [&'static str], role: &'static str, bindings: &'static [&'static str]) -> BlockSpec {
    BlockSpec {
        path,
        role,
        bindings,
        optional: false,
    }
}

/// An extern function that only assigns constants to scalars of an argument.
#[derive(Debug, Clone, Copy)]
pub struct Expansion {
    /// Name of the function.
    pub function: &'static str,
    /// `(parameter, path below it, value)`.
    pub assignments: &'static [(&'static str, &'static str, u64)],
}

/// Which table properties and externs belong to tables.
#[derive(Debug, Clone, Copy)]
pub struct TableSpec {
    /// Its properties besides those of the language; programs are warned of all others.
    pub properties: &'static [PropertySpec],
    /// Match kinds of its own.
    pub own_kinds: &'static [OwnKind],
    /// Match kinds that its files declare and weir refuses, with the reason.
    pub refused_kinds: &'static [(&'static str, &'static str)],
}

impl TableSpec {
    /// The property of a name.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&'static PropertySpec> {
        self.properties.iter().find(|p| p.name == name)
    }
}

/// A table property of an architecture.
#[derive(Debug, Clone, Copy)]
pub struct PropertySpec {
    /// Its name.
    pub name: &'static str,
    /// Its purpose.
    pub role: PropertyRole,
    /// The values that it may have, one of these.
    pub takes: &'static [PropertyValue],
}

/// The purpose of a table property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyRole {
    /// It says how the table is implemented: by an action profile or selector, where its value is
    /// one.
    Implementation,
    /// It attaches a resource to the table: one with a value per entry belongs to that table alone.
    Attachment,
    /// It turns on idle time-outs, with this value (`None`: any) or with an instance of an extern.
    IdleTimeout(Option<&'static str>),
    /// Another, which the architecture reads, or a hint about memory.
    Other,
}

/// A kind of value of a table property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyValue {
    /// An instance of an extern type with one of these names.
    Instance(&'static [&'static str]),
    /// `true` or `false`.
    Bool,
    /// A member of the enum of this name.
    Member(&'static str),
    /// An action of the table.
    Action,
}

impl PropertySpec {
    /// A property of this name and role, whose value is one of these.
    #[must_use]
    pub const fn new(name: &'static str, role: PropertyRole, takes: &'static [PropertyValue]) -> Self {
        PropertySpec { name, role, takes }
    }
}

/// A match kind that an architecture declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnKind {
    /// Its name in the source.
    pub name: &'static str,
    /// How keys of it match.
    pub matches: crate::MatchKind,
    /// Its name for control planes.
    pub shown: &'static str,
}
