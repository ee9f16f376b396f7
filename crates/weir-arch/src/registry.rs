//! The registry of architectures: the properties by which the compiler and the switch select one.

use crate::conform;
use crate::driver::Architecture;
use crate::error::LoadError;
use crate::{psa, tna, v1};
use std::sync::{Arc, LazyLock};
use weir_extern_api::Registry;
use weir_interp::{Executable, Interpreter};
use weir_ir::target::{PortMetadataSpec, Target};
use weir_ir::{Loc, Program, SharedLeaf};

/// Every architecture, a line each: nothing outside this crate names one.
pub static ARCHITECTURES: &[&Registration] = &[&v1::REGISTRATION, &psa::REGISTRATION, &tna::TNA, &tna::T2NA];

/// An architecture as the compiler and the switch find it.
#[derive(Debug, Clone, Copy)]
pub struct Registration {
    /// Its description for the compiler.
    pub target: Target,
    /// The scalar that holds the port a packet came in at: the role of its group, and its path
    /// there.
    pub ingress_port: (&'static str, &'static str),
    /// The variables of a program that its driver reads: see [`observes`].
    pub observes: fn(&Program) -> Observer,
    /// Features that programs rely on and devices of the architecture lack.
    pub advise: fn(&Program) -> Vec<Advice>,
    /// Prepares a program to run.
    pub load: Loader,
}

/// Something that a program relies on and that real devices cannot do, though weir can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// A stable code in kebab-case.
    pub code: &'static str,
    /// The feature, and the rule that it violates.
    pub message: String,
    /// The remedy.
    pub help: &'static str,
    /// Where.
    pub loc: Loc,
}

/// Says of a scalar of a shared group, by the group's role, whether the architecture reads it.
pub type Observer = Box<dyn Fn(&str, &SharedLeaf) -> bool>;

/// Makes an architecture of a program and its engine, or returns all reasons why that is
/// impossible.
pub type Loader = fn(Arc<dyn Executable>, &Registry) -> Result<Box<dyn Architecture>, Vec<LoadError>>;

/// Every architecture that programs can be compiled for.
///
/// ```
/// let names: Vec<_> = weir_arch::targets().iter().map(|t| t.name).collect();
/// assert_eq!(names, ["v1model", "psa", "tna", "t2na"]);
/// ```
#[must_use]
pub fn targets() -> &'static [Target] {
    static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(|| ARCHITECTURES.iter().map(|a| a.target).collect());
    &TARGETS
}

/// Names of the architectures, for messages: `v1model, psa`.
#[must_use]
pub fn known() -> String {
    let names: Vec<&str> = ARCHITECTURES.iter().map(|a| a.target.name).collect();
    names.join(", ")
}

fn find(program: &Program) -> Option<&'static Registration> {
    ARCHITECTURES.iter().find(|a| a.target.name == program.target).copied()
}

/// The architecture of a program, with the engine that runs it and externs besides its own.
///
/// # Errors
/// The first reason why it cannot be run: its target, a missing programmable block, or an unknown
/// extern. [`unimplemented()`] knows the others.
pub fn load(engine: Arc<dyn Executable>, externs: &Registry) -> Result<Box<dyn Architecture>, LoadError> {
    let target = engine.program().target.clone();
    load_all(engine, externs).map_err(|errors| {
        let first = errors.into_iter().next();
        first.unwrap_or_else(|| LoadError::Target { target, known: known() })
    })
}

fn load_all(engine: Arc<dyn Executable>, externs: &Registry) -> Result<Box<dyn Architecture>, Vec<LoadError>> {
    match find(engine.program()) {
        Some(registration) => (registration.load)(engine, externs),
        None => Err(vec![LoadError::Target {
            target: engine.program().target.clone(),
            known: known(),
        }]),
    }
}

/// All reasons why a program cannot be run with these externs besides its architecture's; none: it
/// can.
#[must_use]
pub fn unimplemented(program: &Program, externs: &Registry) -> Vec<LoadError> {
    let engine = Arc::new(Interpreter::new(Arc::new(program.clone())));
    load_all(engine, externs).err().unwrap_or_default()
}

/// All that a compiler would not have made of a program that was read from a text: programmable
/// blocks, shared variables, tables and calls that are not those of its architecture. Loading a
/// saved program checks this first; the program has been verified.
#[must_use]
pub fn nonconformities(program: &Program) -> Vec<LoadError> {
    find(program).map_or(Vec::new(), |a| conform::errors(program, &a.target))
}

/// The features that a program relies on and devices of its architecture lack.
#[must_use]
pub fn advice(program: &Program) -> Vec<Advice> {
    find(program).map_or(Vec::new(), |a| (a.advise)(program))
}

/// Whether an architecture reads a scalar of a shared group by itself, besides what the program's
/// code reads. The passes of weir-ir may drop everything else that no code reads.
#[must_use]
pub fn observes(program: &Program) -> Observer {
    match find(program) {
        Some(registration) => (registration.observes)(program),
        None => Box::new(|_, _| true),
    }
}

/// How many bits a program has for the number of the port a packet comes in at, at most 32: a
/// switch's ports have no more.
#[must_use]
pub fn port_bits(program: &Program) -> u32 {
    let var = find(program).and_then(|a| program.shared_var(a.ingress_port.0, a.ingress_port.1));
    var.map_or(32, |v| program.vars[v].ty.width().min(32))
}

/// The port metadata that can be configured for the program's parsers; `None`: its architecture has
/// none.
#[must_use]
pub fn port_metadata(program: &Program) -> Option<&'static PortMetadataSpec> {
    find(program).and_then(|a| a.target.control.port_metadata.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_unique_within_a_package() {
        for target in targets() {
            for package in target.packages {
                let mut roles: Vec<_> = package.blocks.iter().map(|b| b.role).collect();
                roles.sort_unstable();
                roles.dedup();
                assert_eq!(roles.len(), package.blocks.len(), "{}", package.name);
            }
        }
    }
}
