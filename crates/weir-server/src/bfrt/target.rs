//! Which part of the device a request means.
//!
//! A control plane sees one pipe: those that share a program share its tables, registers and counters, so a target cannot mean one of
//! them. Only packet generators are in as many pipes as the chip has.

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

/// What of the device targets may mean.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes {
    pub device: u32,
}

/// Whether an attribute asks for nothing but what there is: all pipes, directions and parsers have the same.
///
/// # Errors
/// It asks for another scope.
pub(crate) fn check_scope(scope: &pb::EntryScope) -> Result<(), Refusal> {
    let all = i32::from(pb::mode::PredefinedMode::All);
    let is_all = |mode: &Option<pb::Mode>| match mode.as_ref().and_then(|m| m.scope.as_ref()) {
        Some(pb::mode::Scope::Predef(predefined)) => *predefined == all,
        Some(pb::mode::Scope::UserDefined(_)) => false,
        None => true,
    };
    if is_all(&scope.gress_scope) && is_all(&scope.pipe_scope) && is_all(&scope.prsr_scope) {
        return Ok(());
    }
    Err(Refusal::unsupported(
        "the pipes of weir share the tables of their program: the scope is ALL. Tables of one pipe's own are those of a pipeline \
         of its own, in a `Switch` of several",
    ))
}

impl Scopes {
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
            return Err(Refusal::unsupported(format!(
                "the pipes of weir share the entries and values of their program: the target's pipe is {ALL_PIPES}, not {}",
                target.pipe_id
            )));
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
