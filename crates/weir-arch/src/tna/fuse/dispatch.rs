//! Dispatch by port: branches of the fused body for each pipe, and for each parser of a gress.
//!
//! Bits 8 and 7 of a packet's port are its pipe. Bits 6 to 2 are its group of four ports in the
//! pipe, which selects the parser ([`Gress::parser`]). This module emits these switches and appends
//! ingress and egress for each combination. If egress would have too many branches
//! ([`MAX_BRANCHES`]), packets leave for the traffic manager or are punted.

use super::super::fields::{Gress, Pipe};
use super::intrinsic::IntrinsicPrefix;
use super::{Builder, egress, queue_or_punt};
use crate::pipeline_builder::constant;
use std::sync::Arc;
use weir_ir::{BinaryOp, Bits, BlockId, Operand, Rvalue, Terminator, VarId};

/// The most branches for egress: pipes of ingress times parsers of egress. It bounds code size.
const MAX_BRANCHES: usize = 16;

/// Where packets continue that met a parser error, such as an extraction beyond their end.
pub(super) struct ParserErrorPath {
    /// The variable from which `on_error` reads the error.
    error: VarId,
    /// The basic block.
    on_error: BlockId,
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

/// Bits (high, low) of a port's number that hold its pipe.
const PIPE_BITS: (u32, u32) = (8, 7);
/// Bits (high, low) of a port's number that hold its group of four ports in the pipe.
const PORT_GROUP_BITS: (u32, u32) = (6, 2);

impl<'a> Builder<'a> {
    /// Switches on bits of a variable. Returns a basic block for each case in `cases`, which lists
    /// the values of that case. The first case is the default too.
    fn switch_on(&mut self, var: VarId, (hi, lo): (u32, u32), cases: &[&[u64]]) -> Vec<BlockId> {
        if cases.len() < 2 {
            return vec![self.cursor];
        }
        let value = Rvalue::Slice {
            value: Operand::Var(var),
            hi,
            lo,
        };
        let value = Operand::Var(self.compute(hi - lo + 1, value));
        let blocks: Vec<BlockId> = cases.iter().map(|_| self.new_basic_block()).collect();
        let others = cases.iter().zip(&blocks).skip(1);
        let targets = others.flat_map(|(values, block)| {
            let bits = |value: &u64| Bits::new(hi - lo + 1, (*value).into());
            values.iter().map(move |value| (bits(value), *block))
        });
        let cases = targets.collect();
        self.terminate(Terminator::Switch {
            value,
            cases,
            default: blocks[0],
        });
        blocks
    }

    /// Appends the whole pipeline. Returns the body's `on_error` and `error`.
    pub(super) fn append_pipeline(&mut self, pipes: &[(&'a Pipe, Vec<u64>)]) -> Option<(BlockId, VarId)> {
        let gress = |pipe: &'a Pipe| {
            if self.is_egress_pipeline {
                &pipe.egress
            } else {
                &pipe.ingress
            }
        };
        let parser_count: usize = pipes.iter().map(|(pipe, _)| parsers(gress(pipe)).len()).sum();
        let (parser_number, error) = (self.variable("$parser", 8), self.variable("$error", 32));
        let mut error_paths = Vec::new();
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let port = self.dispatch_port();
        let parser_number_if_many = (parser_count > 1).then_some(parser_number);
        for (block, (pipe, _)) in self.switch_on(port, PIPE_BITS, &numbers).into_iter().zip(pipes) {
            self.cursor = block;
            (self.ingress, self.egress) = (pipe, pipe);
            match self.is_egress_pipeline {
                true => self.append_queued_egress(parser_number_if_many, error, &mut error_paths)?,
                false => self.append_ingress(pipes, parser_number_if_many, error, &mut error_paths)?,
            }
        }
        if let [error_path] = error_paths.as_slice() {
            return Some((error_path.on_error, error_path.error));
        }
        let on_error = self.new_basic_block();
        self.cursor = on_error;
        let numbers: Vec<[u64; 1]> = (0..error_paths.len() as u64).map(|n| [n]).collect();
        let numbers: Vec<&[u64]> = numbers.iter().map(<[u64; 1]>::as_slice).collect();
        for (block, error_path) in self
            .switch_on(parser_number, (7, 0), &numbers)
            .into_iter()
            .zip(&error_paths)
        {
            self.cursor = block;
            self.copy(Some(error_path.error), error);
            self.terminate(Terminator::Goto(error_path.on_error));
        }
        Some((on_error, error))
    }

    /// The port that selects pipe and parser: the ingress port, or in the egress pipeline the
    /// egress port.
    fn dispatch_port(&self) -> VarId {
        if self.is_egress_pipeline {
            self.egress_port
        } else {
            self.ingress_port
        }
    }

    /// Appends the parsers of the current gress, which read `prefix` before the packet, and joins
    /// their ends. If the pipeline has several parsers, `parser_number` receives the number of the
    /// one that runs: its index in `error_paths`.
    pub(super) fn append_parsers(
        &mut self,
        prefix: &IntrinsicPrefix,
        parser_number: Option<VarId>,
        error: VarId,
        error_paths: &mut Vec<ParserErrorPath>,
    ) -> Option<()> {
        let gress = self.gress();
        for (var, value) in &gress.unset_values {
            self.set(Some(*var), *value);
        }
        let (accepted, rejected) = (self.new_basic_block(), self.new_basic_block());
        let all = parsers(gress);
        let groups: Vec<&[u64]> = all.iter().map(|(_, groups)| groups.as_slice()).collect();
        let port = self.dispatch_port();
        let program = Arc::clone(self.arch.program());
        for (block, (parser, _)) in self.switch_on(port, PORT_GROUP_BITS, &groups).into_iter().zip(&all) {
            self.cursor = block;
            let body = &program.blocks[*parser].body;
            self.set(parser_number, error_paths.len() as u64);
            self.clear_checksums(body);
            self.is_in_parser = true;
            let parsed = self.specialise_parser(body, prefix);
            self.is_in_parser = false;
            let own = body.error?;
            error_paths.push(ParserErrorPath {
                error: own,
                on_error: parsed.on_error,
            });
            self.cursor = parsed.accepted;
            self.terminate(Terminator::Goto(accepted));
            self.cursor = parsed.rejected;
            self.copy(Some(error), own);
            self.terminate(Terminator::Goto(rejected));
        }
        self.append_parser_outcome(gress, accepted, rejected, error);
        Some(())
    }

    /// Appends ingress of the current pipe, then the bypass of egress, egress, and the queue exit.
    fn append_ingress(
        &mut self,
        pipes: &[(&'a Pipe, Vec<u64>)],
        parser_number: Option<VarId>,
        error: VarId,
        error_paths: &mut Vec<ParserErrorPath>,
    ) -> Option<()> {
        let gress = &self.ingress.ingress;
        let prefix = IntrinsicPrefix::new(self.ingress_port, self.now_ns, &self.port_metadata);
        self.append_parsers(&prefix, parser_number, error, error_paths)?;
        self.set_unparsed_intrinsic(gress, |builder, name| match name {
            "ingress_port" => Some(builder.ingress_port),
            "ingress_mac_tstamp" => Some(builder.now_ns),
            _ => None,
        });
        let now_ns = self.now_ns;
        self.copy(gress.timestamp, now_ns);
        self.append_programmable_block(gress.control);
        let queue_block = self.has_egress_pipeline.then(|| self.new_basic_block());
        let through_egress = self.end_of_ingress(queue_block);
        self.append_programmable_block(gress.deparser);
        self.transmit_or_recirculate();
        if let Some(through_egress) = through_egress {
            self.cursor = through_egress;
            self.append_egress_branches(pipes, queue_block)?;
        }
        if let Some(queue_block) = queue_block {
            self.cursor = queue_block;
            self.append_queue_exit();
        }
        Some(())
    }

    /// Sets the fields of the intrinsic header for the control if the parser has not extracted it:
    /// each to the variable that `source` knows by the field's name, else to 0.
    pub(super) fn set_unparsed_intrinsic(&mut self, gress: &Gress, source: impl Fn(&Self, &str) -> Option<VarId>) {
        let Some(valid) = gress.intrinsic.valid else { return };
        let extracted = self.compute(1, Rvalue::Binary(BinaryOp::Ne, Operand::Var(valid), constant(1, 0)));
        let absent = self.branch(Operand::Var(extracted));
        let join = self.new_basic_block();
        self.terminate(Terminator::Goto(join));
        self.cursor = absent;
        for (name, field) in &gress.intrinsic.fields {
            match source(self, name) {
                Some(from) => self.copy(Some(*field), from),
                None => self.set(Some(*field), 0),
            }
        }
        self.jump_to(join);
    }

    /// Appends egress for a packet from the current pipe, dispatched by its egress port.
    fn append_egress_branches(&mut self, pipes: &[(&'a Pipe, Vec<u64>)], queue_block: Option<BlockId>) -> Option<()> {
        let branches: usize = pipes.iter().map(|(pipe, _)| parsers(&pipe.egress).len()).sum();
        if branches * pipes.len() > MAX_BRANCHES {
            self.terminate(queue_or_punt(queue_block));
            return Some(());
        }
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let port = self.egress_port;
        for (block, (pipe, _)) in self.switch_on(port, PIPE_BITS, &numbers).into_iter().zip(pipes) {
            self.cursor = block;
            self.egress = pipe;
            let all = parsers(&pipe.egress);
            let groups: Vec<&[u64]> = all.iter().map(|(_, groups)| groups.as_slice()).collect();
            for (block, (parser, _)) in self.switch_on(port, PORT_GROUP_BITS, &groups).into_iter().zip(&all) {
                self.cursor = block;
                match egress::plan_reparse(self.arch, self.ingress, pipe, *parser, queue_block, &mut self.builder) {
                    Some((intrinsic, emitted)) => {
                        self.emitted = emitted;
                        self.append_egress(&intrinsic, *parser)?;
                    }
                    None => self.terminate(queue_or_punt(queue_block)),
                }
            }
        }
        Some(())
    }
}
