//! The ways of packets by their ports: several pipes, and several parsers of a gress.

use super::super::fields::{Gress, Pipe};
use super::front::Front;
use super::{Builder, away, egress};
use crate::weave::{constant, endless};
use std::sync::Arc;
use weir_ir::{BinaryOp, Bits, BlockId, Operand, Rvalue, Terminator, VarId};

/// Ways from an ingress through an egress at most; where there are more the driver does egress.
const WAYS: usize = 16;

/// Where the packet operations of a parser fail, and the variable that says how.
pub(super) struct Failure {
    error: VarId,
    to: BlockId,
}

/// The parsers of a gress, each with the groups of four ports that it is for.
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

/// Bits of a port's number that say its pipe, and its group of four in that.
const PIPE: (u32, u32) = (8, 7);
const GROUP: (u32, u32) = (6, 2);

impl<'a> Builder<'a> {
    /// A block for each of several ways that bits of a variable choose from; the first where no way
    /// has their value.
    fn choose(&mut self, var: VarId, (hi, lo): (u32, u32), ways: &[&[u64]]) -> Vec<BlockId> {
        if ways.len() < 2 {
            return vec![self.at];
        }
        let value = Rvalue::Slice {
            value: Operand::Var(var),
            hi,
            lo,
        };
        let value = Operand::Var(self.compute(hi - lo + 1, value));
        let blocks: Vec<BlockId> = ways.iter().map(|_| self.block()).collect();
        let others = ways.iter().zip(&blocks).skip(1);
        let cases = others.flat_map(|(values, block)| {
            let bits = |value: &u64| Bits::new(hi - lo + 1, (*value).into());
            values.iter().map(move |value| (bits(value), *block))
        });
        let cases = cases.collect();
        self.end(Terminator::Switch {
            value,
            cases,
            default: blocks[0],
        });
        blocks
    }

    /// Everything; gives the body's `on_error` and `error`.
    pub(super) fn whole(&mut self, pipes: &[(&'a Pipe, Vec<u64>)]) -> Option<(BlockId, VarId)> {
        let gress = |pipe: &'a Pipe| if self.is_egress { &pipe.egress } else { &pipe.ingress };
        let many: usize = pipes.iter().map(|(pipe, _)| parsers(gress(pipe)).len()).sum();
        let (which, error) = (self.variable("$parser", 8), self.variable("$error", 32));
        let mut failures = Vec::new();
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let by = self.by();
        let which_of_many = (many > 1).then_some(which);
        for (block, (pipe, _)) in self.choose(by, PIPE, &numbers).into_iter().zip(pipes) {
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
        for (block, failure) in self.choose(which, (7, 0), &numbers).into_iter().zip(&failures) {
            self.at = block;
            self.copy(Some(failure.error), error);
            self.end(Terminator::Goto(failure.to));
        }
        Some((on_error, error))
    }

    /// The port by which packets find their pipe and their parser.
    fn by(&self) -> VarId {
        if self.is_egress { self.port } else { self.came }
    }

    /// The parsers of the present gress behind `front`, and what their outcome leaves. `which` is
    /// told which parser runs,
    /// where there are several.
    pub(super) fn parsed_by(
        &mut self,
        front: &Front,
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
        let by = self.by();
        let program = Arc::clone(self.arch.program());
        for (block, (parser, _)) in self.choose(by, GROUP, &groups).into_iter().zip(&all) {
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
            let parsed = self.parser(body, front);
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

    /// Ingress of the present pipe, and what is behind it.
    fn ingress(
        &mut self,
        pipes: &[(&'a Pipe, Vec<u64>)],
        which: Option<VarId>,
        error: VarId,
        failures: &mut Vec<Failure>,
    ) -> Option<()> {
        let gress = &self.ingress.ingress;
        let front = Front::new(self.came, self.now_ns, &self.port_metadata);
        self.parsed_by(&front, which, error, failures)?;
        self.fill_front(gress);
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

    /// Gives the control the fields of the intrinsic header where its parser has not taken it.
    fn fill_front(&mut self, gress: &Gress) {
        let Some(valid) = gress.intrinsic.valid else { return };
        let taken = self.compute(1, Rvalue::Binary(BinaryOp::Ne, Operand::Var(valid), constant(1, 0)));
        let absent = self.branch(Operand::Var(taken));
        let join = self.block();
        self.end(Terminator::Goto(join));
        self.at = absent;
        let (came, now_ns) = (self.came, self.now_ns);
        for (name, field) in &gress.intrinsic.fields {
            match name.as_str() {
                "ingress_port" => self.copy(Some(*field), came),
                "ingress_mac_tstamp" => self.copy(Some(*field), now_ns),
                _ => self.set(Some(*field), 0),
            }
        }
        self.go_to(join);
    }

    /// Egress of a packet from the present pipe, by the port that it goes to.
    fn egresses(&mut self, pipes: &[(&'a Pipe, Vec<u64>)], queued: Option<BlockId>) -> Option<()> {
        let ways: usize = pipes.iter().map(|(pipe, _)| parsers(&pipe.egress).len()).sum();
        if ways * pipes.len() > WAYS {
            self.end(away(queued));
            return Some(());
        }
        let numbers: Vec<&[u64]> = pipes.iter().map(|(_, numbers)| numbers.as_slice()).collect();
        let port = self.port;
        for (block, (pipe, _)) in self.choose(port, PIPE, &numbers).into_iter().zip(pipes) {
            self.at = block;
            self.egress = pipe;
            let all = parsers(&pipe.egress);
            let groups: Vec<&[u64]> = all.iter().map(|(_, groups)| groups.as_slice()).collect();
            for (block, (parser, _)) in self.choose(port, GROUP, &groups).into_iter().zip(&all) {
                self.at = block;
                match egress::plan(self.arch, self.ingress, pipe, *parser, queued, &mut self.weaver) {
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
