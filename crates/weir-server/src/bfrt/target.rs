//! Checks the target of a request: the part of the device that it addresses.
//!
//! Pipes that share a program share its tables, registers and counters, so a control plane sees one
//! pipe. A target may name a single pipe only if that makes no difference: pipe 0, of a switch
//! whose ports are all in pipe 0. Packet generators are the exception: each pipe of the chip has
//! one.

use super::schema::{Kind, Table};
use crate::refusal::Refusal;
use weir_proto::bfrt_proto as pb;

/// Pipe id that means all pipes.
pub(crate) const ALL_PIPES: u32 = 0xffff;
/// Pipes that BF Runtime clients see: the chip's pipes share one program state.
pub(crate) const PIPE_COUNT: u32 = 1;

/// The pipe that a target addresses; `None` means all.
pub(crate) fn pipe_of(target: Option<&pb::TargetDevice>) -> Option<u32> {
    target.map(|t| t.pipe_id).filter(|pipe| *pipe != ALL_PIPES)
}

/// Port numbers per pipe; bits 8 and 7 of a number are its pipe.
pub(crate) const PORT_NUMBERS_PER_PIPE: u32 = 128;

/// The ports outside of pipe 0 from which packets may arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OtherPipePorts {
    /// Unknown: the switch takes any number as a port, also those of other pipes.
    #[default]
    Unknown,
    /// At least this port.
    AtLeast(u32),
    /// None: all packets meet the entries of pipe 0.
    None,
}

impl OtherPipePorts {
    /// Checks that there is only pipe 0.
    ///
    /// # Errors
    /// There are others; the reason begins with `request`.
    fn check(self, request: &str) -> Result<(), Refusal> {
        let why = match self {
            OtherPipePorts::None => return Ok(()),
            OtherPipePorts::AtLeast(port) => format!("port {port} is of pipe {}", port / PORT_NUMBERS_PER_PIPE),
            OtherPipePorts::Unknown => "this switch takes any number as a port".to_owned(),
        };
        Err(Refusal::unsupported(format!(
            "the pipes of weir share the entries and values of their program, so {request} where all ports are of pipe 0 (below \
             {PORT_NUMBERS_PER_PIPE}), and {why}. Tables of one pipe's own are those of a pipeline of its own, in a `Switch` of several"
        )))
    }
}

/// The targets that requests may address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scopes {
    pub device: u32,
    pub other_pipe_ports: OtherPipePorts,
}

impl Scopes {
    /// Checks an entry scope. All directions and parsers share their entries, so their scopes must
    /// be ALL. So must that of pipes, unless there is only pipe 0.
    ///
    /// # Errors
    /// It is another scope.
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
            _ => self.other_pipe_ports.check("scopes of pipes other than ALL are taken"),
        }
    }

    /// Checks that a target is a part of the device where the table has entries.
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
            if target.pipe_id >= PIPE_COUNT {
                return Err(Refusal::unsupported(format!(
                    "the pipes of weir share the entries and values of their program: the target's pipe is {ALL_PIPES}, or 0 where \
                     all ports are of that pipe, not {}",
                    target.pipe_id
                )));
            }
            return self.other_pipe_ports.check("a target's pipe is 0");
        };
        // The generators check the pipe themselves.
        if fixed.is_per_pipe() || target.pipe_id < PIPE_COUNT {
            return Ok(());
        }
        Err(Refusal::malformed(format!(
            "there is no pipe {}; there is {PIPE_COUNT}, and {ALL_PIPES} means all",
            target.pipe_id
        )))
    }

    /// Checks a device id; 0 also means the only device.
    ///
    /// # Errors
    /// There is no such device.
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
