//! Dispatch by port: branches of the fused body for each pipe, and for each parser of a gress.
//!
//! Bits 8 and 7 of a packet's port are its pipe. Bits 6 to 2 are its group of four ports in the
//! pipe, which selects the parser ([`Gress::parser`]). This module emits these switches and appends
//! ingress and egress for each combination. If egress would have too many branches
//! ([`MAX_BRANCHES`]), packets leave for the driver.

use super::super::fields::{Gress, Pipe};
use super::intrinsic::IntrinsicPrefix;
use super::{Builder, away, egress};
use crate::pipeline_builder::{constant, endless};
use std::sync::Arc;
use weir_ir::{BinaryOp, Bits, BlockId, Operand, Rvalue, Terminator, VarId};

/// The most branches for egress (pipes of ingress times parsers of egress). If there are more, the
/// driver does egress.
const MAX_BRANCHES: usize = 16;

/// The error block of a parser, and the variable that holds its error.
pub(super) struct Failure {
    error: VarId,
    to: BlockId,
}

/// The parsers of a gress, each with the groups of four ports that it serves.
fn parsers(gress: &Gress) -> Vec<(usize, Vec<u64>)> {
    let mut all: Vec<(usize, Vec<u64>)> = Vec::new();
    for group in 0..32 {
        let parser = gress.parser(group * 4);
        match all.iter_mut().find(|(known, _)| *known == parser) {
            Some((_, groups)) => groups.push(group.into()),
            None => all.push((parser, vec![group.into()])),
        }
    }
    all
}

/// Bits (high, low) of a port's number that hold its pipe, and its group of four ports in the pipe.
const PIPE: (u32, u32) = (8, 7);
const GROUP: (u32, u32) = (6, 2);

impl<'a> Builder<'a> {
    /// Switches on bits of a variable. Returns a block for each case in `cases`, which lists the
    /// values of that case. The first case is the default too.
    fn switch_on(&mut self, var: VarId, (hi, lo): (u32, u32), cases: &[&[u64]]) -> Vec<BlockId> {
        if cases.len() < 2 {
            return vec![self.at];
        }
        let value = Rvalue::Slice {
            value: Operand::Var(var),
            hi,
            lo,
        };
        let value = Operand::Var(self.compute(hi - lo + 1, value));
        let blocks: Vec<BlockId> = cases.iter().map(|_| self.block()).collect();
        let others = cases.iter().zip(&blocks).skip(1);
        let targets = others.flat_map(|(values, block)| {
            let bits = |value: &u64| Bits::new(hi - lo + 1, (*value).into());
            values.iter().map(move |value| (bits(value), *block))
        });
        let cases = targets.collect();
        self.end(Terminator::Switch {
            value,
            cases,
            default: blocks[0],
        });
        blocks
    }

    /// Appends the whole pipeline. Returns the body's `on_error` and `error`.
    pub(super) fn append_pipeline(&mut self, pipes: &[(&'a Pipe, Vec<u64>)]) -> Option<(BlockId, VarId)> {
        let gress = |pipe: &'a Pipe| if self.is_egress { &pipe.egress } else { &pipe.ingress };
        let many: usize = pipes.iter().map(|(pipe, _)| parsers(gress(pipe)).len()).sum();
        let (which, error) = (self.variable("$parser", 8), self.variable("$error", 32));
        let mut failures = Vec::new();
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let port = self.dispatch_port();
        let which_of_many = (many > 1).then_some(which);
        for (block, (pipe, _)) in self.switch_on(port, PIPE, &numbers).into_iter().zip(pipes) {
            self.at = block;
            (self.ingress, self.egress) = (pipe, pipe);
            match self.is_egress {
                true => self.egress_alone(which_of_many, error, &mut failures)?,
                false => self.ingress(pipes, which_of_many, error, &mut failures)?,
            }
        }
        if let [failure] = failures.as_slice() {
            return Some((failure.to, failure.error));
        }
        let on_error = self.block();
        self.at = on_error;
        let numbers: Vec<[u64; 1]> = (0..failures.len() as u64).map(|n| [n]).collect();
        let numbers: Vec<&[u64]> = numbers.iter().map(<[u64; 1]>::as_slice).collect();
        for (block, failure) in self.switch_on(which, (7, 0), &numbers).into_iter().zip(&failures) {
            self.at = block;
            self.copy(Some(failure.error), error);
            self.end(Terminator::Goto(failure.to));
        }
        Some((on_error, error))
    }

    /// The port that selects pipe and parser: the received one, or that of egress.
    fn dispatch_port(&self) -> VarId {
        if self.is_egress { self.port } else { self.came }
    }

    /// Appends the parsers of the current gress, which read `prefix` before the packet, and joins
    /// their ends. If there are several, the number of the one that runs is stored in `which`.
    pub(super) fn parsed_by(
        &mut self,
        prefix: &IntrinsicPrefix,
        which: Option<VarId>,
        error: VarId,
        failures: &mut Vec<Failure>,
    ) -> Option<()> {
        let gress = self.gress();
        for (var, value) in &gress.unset {
            self.set(Some(*var), *value);
        }
        let (accepted, rejected) = (self.block(), self.block());
        let all = parsers(gress);
        let groups: Vec<&[u64]> = all.iter().map(|(_, groups)| groups.as_slice()).collect();
        let port = self.dispatch_port();
        let program = Arc::clone(self.arch.program());
        for (block, (parser, _)) in self.switch_on(port, GROUP, &groups).into_iter().zip(&all) {
            self.at = block;
            let body = &program.blocks[*parser].body;
            if let Some(state) = endless(body).first() {
                self.refuse(
                    body.blocks[*state].loc,
                    "a parser state that never ends has no compiled form here",
                );
                return None;
            }
            self.set(which, failures.len() as u64);
            self.clear_sums(body);
            self.parsing = true;
            let parsed = self.parser(body, prefix);
            self.parsing = false;
            let own = body.error?;
            failures.push(Failure {
                error: own,
                to: parsed.on_error,
            });
            self.at = parsed.accepted;
            self.end(Terminator::Goto(accepted));
            self.at = parsed.rejected;
            self.copy(Some(error), own);
            self.end(Terminator::Goto(rejected));
        }
        self.after_parser(gress, accepted, rejected, error);
        Some(())
    }

    /// Appends ingress of the current pipe, and everything behind it.
    fn ingress(
        &mut self,
        pipes: &[(&'a Pipe, Vec<u64>)],
        which: Option<VarId>,
        error: VarId,
        failures: &mut Vec<Failure>,
    ) -> Option<()> {
        let gress = &self.ingress.ingress;
        let prefix = IntrinsicPrefix::new(self.came, self.now_ns, &self.port_metadata);
        self.parsed_by(&prefix, which, error, failures)?;
        self.fill_intrinsic(gress, |builder, name| match name {
            "ingress_port" => Some(builder.came),
            "ingress_mac_tstamp" => Some(builder.now_ns),
            _ => None,
        });
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.block_of(gress.control);
        let queued = self.queues.then(|| self.block());
        let by_egress = self.end_of_ingress(queued);
        self.block_of(gress.deparser);
        self.send();
        if let Some(by_egress) = by_egress {
            self.at = by_egress;
            self.egresses(pipes, queued)?;
        }
        if let Some(queued) = queued {
            self.at = queued;
            self.give_to_queue();
        }
        Some(())
    }

    /// Sets the fields of the intrinsic header for the control if the parser has not extracted it:
    /// each to the variable that `source` knows by the field's name, else to 0.
    pub(super) fn fill_intrinsic(&mut self, gress: &Gress, source: impl Fn(&Self, &str) -> Option<VarId>) {
        let Some(valid) = gress.intrinsic.valid else { return };
        let extracted = self.compute(1, Rvalue::Binary(BinaryOp::Ne, Operand::Var(valid), constant(1, 0)));
        let absent = self.branch(Operand::Var(extracted));
        let join = self.block();
        self.end(Terminator::Goto(join));
        self.at = absent;
        for (name, field) in &gress.intrinsic.fields {
            match source(self, name) {
                Some(from) => self.copy(Some(*field), from),
                None => self.set(Some(*field), 0),
            }
        }
        self.jump_to(join);
    }

    /// Appends egress for a packet from the current pipe, dispatched by its egress port.
    fn egresses(&mut self, pipes: &[(&'a Pipe, Vec<u64>)], queued: Option<BlockId>) -> Option<()> {
        let branches: usize = pipes.iter().map(|(pipe, _)| parsers(&pipe.egress).len()).sum();
        if branches * pipes.len() > MAX_BRANCHES {
            self.end(away(queued));
            return Some(());
        }
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let port = self.port;
        for (block, (pipe, _)) in self.switch_on(port, PIPE, &numbers).into_iter().zip(pipes) {
            self.at = block;
            self.egress = pipe;
            let all = parsers(&pipe.egress);
            let groups: Vec<&[u64]> = all.iter().map(|(_, groups)| groups.as_slice()).collect();
            for (block, (parser, _)) in self.switch_on(port, GROUP, &groups).into_iter().zip(&all) {
                self.at = block;
                match egress::plan(self.arch, self.ingress, pipe, *parser, queued, &mut self.builder) {
                    Some((intrinsic, emitted)) => {
                        self.emitted = emitted;
                        self.egress(&intrinsic, *parser)?;
                    }
                    None => self.end(away(queued)),
                }
            }
        }
        Some(())
    }
}
