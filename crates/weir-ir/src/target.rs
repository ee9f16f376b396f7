//! What the compiler must know of an architecture, as data.
//!
//! The architecture's P4 include file says which types and externs exist; a [`Target`] says how the
//! blocks of its package hang together: which role each plays and which of their parameters are the
//! same variables. Everything an extern *does* is the business of whoever runs the program.

/// A description of one package of one architecture.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name for people and for [`crate::Program::target`].
    pub name: &'static str,
    /// Name of the package type, e.g. `V1Switch`.
    pub package: &'static str,
    /// The blocks in the order of the package's parameters.
    pub blocks: &'static [BlockSpec],
    /// Externs that are nothing but assignments.
    pub expansions: &'static [Expansion],
    /// How some externs relate to tables.
    pub tables: TableSpec,
}

/// One block of a package.
#[derive(Debug, Clone, Copy)]
pub struct BlockSpec {
    /// Path of package parameters to it: `["ig"]`, or `["ingress", "ip"]` for nested packages.
    pub path: &'static [&'static str],
    /// Its role, unique in the target.
    pub role: &'static str,
    /// For each parameter of the block in order: the role of the [`crate::Shared`] group it is bound
    /// to; `""` for the packet.
    pub bindings: &'static [&'static str],
    /// The package parameter is `@optional`.
    pub optional: bool,
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
    /// Properties that name an action profile or selector.
    pub implementation: &'static [&'static str],
    /// Properties that name direct resources.
    pub direct: &'static [&'static str],
    /// Properties that turn on idle time-outs, with the value that does (`None`: any).
    pub idle_timeout: &'static [(&'static str, Option<&'static str>)],
}
