//! Which part of the device a request means.
//!
//! A control plane sees one pipe: those that share a program share its tables, registers and
//! counters. So a target can mean one of them only where that makes no difference: pipe 0, of a
//! switch all of whose ports are there. Only packet generators are in as many pipes as the chip
//! has.

use super::schema::{Kind, Table};
use crate::refusal::Refusal;
use weir_proto::bfrt_proto as pb;

/// All pipes.
pub(crate) const ALL_PIPES: u32 = 0xffff;
/// Pipes that the device has.
pub(crate) const PIPES: u32 = 1;

/// The pipe that a target means; `None`: all of them.
pub(crate) fn pipe_of(target: Option<&pb::TargetDevice>) -> Option<u32> {
    target.map(|t| t.pipe_id).filter(|pipe| *pipe != ALL_PIPES)
}

/// Ports of one pipe, by their numbers.
pub(crate) const PORTS_OF_PIPE: u32 = 128;

/// Where packets may come from besides pipe 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Elsewhere {
    /// Any number is a port, also those of other pipes.
    #[default]
    Anywhere,
    /// This port.
    Port(u32),
    /// Nowhere: what pipe 0 has is what packets meet.
    Nowhere,
}

impl Elsewhere {
    /// Whether pipe 0 is all that there is.
    ///
    /// # Errors
    /// It is not; the reason begins with what was asked for.
    fn check(self, request: &str) -> Result<(), Refusal> {
        let why = match self {
            Elsewhere::Nowhere => return Ok(()),
            Elsewhere::Port(port) => format!("port {port} is of pipe {}", port / PORTS_OF_PIPE),
            Elsewhere::Anywhere => "this switch takes any number as a port".to_owned(),
        };
        Err(Refusal::unsupported(format!(
            "the pipes of weir share the entries and values of their program, so {request} where all ports are of pipe 0 (below \
             {PORTS_OF_PIPE}), and {why}. Tables of one pipe's own are those of a pipeline of its own, in a `Switch` of several"
        )))
    }
}

/// What of the device targets may mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes {
    pub device: u32,
    pub elsewhere: Elsewhere,
}

impl Scopes {
    /// Whether an attribute asks for what there is: all directions and parsers have the same, and
    /// all pipes, unless there is but one.
    ///
    /// # Errors
    /// It asks for another scope.
    pub fn check_scope(&self, scope: &pb::EntryScope) -> Result<(), Refusal> {
        let all = i32::from(pb::mode::PredefinedMode::All);
        let single = i32::from(pb::mode::PredefinedMode::Single);
        let predefined = |mode: &Option<pb::Mode>| match mode.as_ref().and_then(|m| m.scope.as_ref()) {
            Some(pb::mode::Scope::Predef(predefined)) => Some(*predefined),
            Some(pb::mode::Scope::UserDefined(_)) => None,
            None => Some(all),
        };
        if predefined(&scope.gress_scope) != Some(all) || predefined(&scope.prsr_scope) != Some(all) {
            return Err(Refusal::unsupported(
                "all directions and parsers of weir share the entries of their program: their scopes are ALL",
            ));
        }
        match predefined(&scope.pipe_scope) {
            Some(mode) if mode == all => Ok(()),
            Some(mode) if mode != single => Err(Refusal::malformed("there is no such mode of scopes")),
            _ => self.elsewhere.check("scopes of pipes other than ALL are taken"),
        }
    }

    /// Whether a target is a part of the device where the table has entries.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self, table: &Table, target: Option<&pb::TargetDevice>) -> Result<(), Refusal> {
        let Some(target) = target else { return Ok(()) };
        self.check_device(target.device_id)?;
        if target.pipe_id == ALL_PIPES {
            return Ok(());
        }
        let Kind::Fixed(fixed) = &table.kind else {
            if target.pipe_id >= PIPES {
                return Err(Refusal::unsupported(format!(
                    "the pipes of weir share the entries and values of their program: the target's pipe is {ALL_PIPES}, or 0 where \
                     all ports are of that pipe, not {}",
                    target.pipe_id
                )));
            }
            return self.elsewhere.check("a target's pipe is 0");
        };
        // Packet generators know themselves how many pipes they are in.
        if fixed.is_per_pipe() || target.pipe_id < PIPES {
            return Ok(());
        }
        Err(Refusal::malformed(format!(
            "there is no pipe {}; there is {PIPES}, and {ALL_PIPES} means all",
            target.pipe_id
        )))
    }

    /// Whether there is a device of this number: 0 means the only one, too.
    ///
    /// # Errors
    /// There is none.
    pub fn check_device(&self, device: u32) -> Result<(), Refusal> {
        if device == 0 || device == self.device {
            return Ok(());
        }
        Err(Refusal::not_found(format!(
            "there is no device {device}; this one is {}",
            self.device
        )))
    }
}
