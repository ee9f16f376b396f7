//! Which part of the device a request means.
//!
//! weir has one pipe. A table has entries of each pipe's own only where its scope says so, and then pipe 0 is all there is. Only
//! packet generators are in as many pipes as the chip has.

use super::schema::Table;
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use weir_proto::bfrt_proto as pb;

/// All pipes.
pub(crate) const ALL_PIPES: u32 = 0xffff;
/// Pipes that the device has.
pub(crate) const PIPES: u32 = 1;

/// The pipe that a target means; `None`: all of them.
pub(crate) fn pipe_of(target: Option<&pb::TargetDevice>) -> Option<u32> {
    target.map(|t| t.pipe_id).filter(|pipe| *pipe != ALL_PIPES)
}

/// Tables whose pipes have entries of their own, and what was said of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes {
    pub device: u32,
    pub by_table: BTreeMap<u32, pb::EntryScope>,
}

/// Whether a mode says that each has its own.
fn is_single(mode: Option<&pb::Mode>) -> bool {
    match mode.and_then(|m| m.scope.as_ref()) {
        Some(pb::mode::Scope::Predef(predefined)) => *predefined == i32::from(pb::mode::PredefinedMode::Single),
        Some(pb::mode::Scope::UserDefined(_)) => true,
        None => false,
    }
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
        // Packet generators know themselves how many pipes they are in.
        if matches!(&table.kind, super::schema::Kind::Fixed(fixed) if fixed.is_per_pipe()) {
            return Ok(());
        }
        if target.pipe_id >= PIPES {
            return Err(Refusal::malformed(format!(
                "there is no pipe {}; there is {PIPES}, and {ALL_PIPES} means all",
                target.pipe_id
            )));
        }
        let is_matched = matches!(table.kind, super::schema::Kind::Match(_));
        let scope = self.by_table.get(&table.id);
        if is_matched && !is_single(scope.and_then(|s| s.pipe_scope.as_ref())) {
            return Err(Refusal::malformed(format!(
                "its pipes have the same entries: the target's pipe is {ALL_PIPES}, or the attribute EntryScope says SINGLE"
            )));
        }
        Ok(())
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
