//! Runs a TNA parser, at compile time, over the intrinsic metadata that precedes each packet.
//!
//! On the chip a parser reads the intrinsic header and the port's metadata before the packet.
//! Compiled code receives the packet alone. Each parser state is therefore specialised by how many
//! bits of the prefix it has consumed ([`ParserPosition`]): extracts from the prefix become copies
//! of variables, and those behind it stay extracts. Where the position in the prefix is not known
//! at compile time, the packet leaves by the restart exit.

use super::counters::Depths;
use super::{Builder, exit};
use crate::error::NotCompiled;
use crate::pipeline_builder::{AppendBlocks, constant};
use std::collections::BTreeMap;
use weir_ir::{BinaryOp, Bits, BlockId, Body, Call, HeaderId, InstKind, Loc, Operand, Rvalue, Terminator, VarId};

/// Bits of the intrinsic header.
const HEADER: u32 = 64;

/// Width of the variables that hold the port's metadata, in bits.
const WORD: u32 = 64;

/// The intrinsic metadata before a packet. Each piece is its first bit, its width and its value.
#[derive(Debug, Clone)]
pub(super) struct IntrinsicPrefix {
    pieces: Vec<(u32, u32, Operand)>,
    /// Length in bits.
    length: u32,
}

/// The blocks behind a parser.
pub(super) struct Parsed {
    pub accepted: BlockId,
    pub rejected: BlockId,
    pub on_error: BlockId,
}

impl IntrinsicPrefix {
    /// Consecutive pieces, each with its width in bits.
    pub(super) fn of(pieces: Vec<(u32, Operand)>) -> Self {
        let mut prefix = IntrinsicPrefix {
            pieces: Vec::new(),
            length: 0,
        };
        for (width, operand) in pieces {
            prefix.pieces.push((prefix.length, width, operand));
            prefix.length += width;
        }
        prefix
    }

    /// The intrinsic header of a packet that came in at a port, and the words of the port's
    /// metadata.
    pub(super) fn new(port: VarId, now_ns: VarId, port_metadata: &[VarId]) -> Self {
        let mut pieces = vec![
            // Not resubmitted, and zeros up to the port.
            (0, 1, constant(1, 0)),
            (1, 1, constant(1, 0)),
            (2, 2, constant(2, 0)),
            (4, 3, constant(3, 0)),
            (7, 9, Operand::Var(port)),
            (16, 48, Operand::Var(now_ns)),
        ];
        let words = port_metadata.iter().zip((HEADER..).step_by(WORD as usize));
        pieces.extend(words.map(|(word, at)| (at, WORD, Operand::Var(*word))));
        IntrinsicPrefix {
            pieces,
            length: HEADER + port_metadata.len() as u32 * WORD,
        }
    }
}

/// A position of a parser: its block, how many bits of the prefix were consumed, and the depths of
/// its counters' stacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ParserPosition {
    block: BlockId,
    taken: u32,
    depths: Depths,
}

/// A parser being specialised: the blocks made so far, by the position before them.
struct ParserWalk<'a> {
    body: &'a Body,
    prefix: &'a IntrinsicPrefix,
    made: BTreeMap<ParserPosition, BlockId>,
    waiting: Vec<ParserPosition>,
    parsed: Parsed,
    counts: bool,
}

impl Builder<'_> {
    /// Appends the parser. Where its position is unknown, or it reads prefix bits that are unknown,
    /// the packet leaves by [`exit::RESTART`].
    pub(super) fn parser(&mut self, body: &Body, prefix: &IntrinsicPrefix) -> Parsed {
        let parsed = Parsed {
            accepted: self.block(),
            rejected: self.block(),
            on_error: self.at,
        };
        self.find_deposits(body);
        let mut walk = ParserWalk {
            body,
            prefix,
            made: BTreeMap::new(),
            waiting: Vec::new(),
            parsed,
            counts: self.counts(body),
        };
        let position = |block, taken| ParserPosition {
            block,
            taken,
            depths: Depths::default(),
        };
        let start = self.block_at(&mut walk, position(BlockId::new(0), 0));
        self.end(Terminator::Goto(start));
        walk.parsed.on_error = match body.on_error {
            // No operation fails within the prefix.
            Some(block) => self.block_at(&mut walk, position(block, prefix.length)),
            None => walk.parsed.rejected,
        };
        while let Some(position) = walk.waiting.pop() {
            self.parser_block(&mut walk, position);
        }
        for end in [&mut walk.parsed.accepted, &mut walk.parsed.rejected] {
            let before = std::mem::replace(end, self.block());
            self.at = before;
            self.settle_deposits();
            self.end(Terminator::Goto(*end));
        }
        if body.on_error.is_none() {
            walk.parsed.on_error = walk.parsed.rejected;
        }
        walk.parsed
    }

    fn block_at(&mut self, walk: &mut ParserWalk<'_>, position: ParserPosition) -> BlockId {
        if let Some(made) = walk.made.get(&position) {
            return *made;
        }
        let made = self.block();
        walk.made.insert(position.clone(), made);
        walk.waiting.push(position);
        made
    }

    fn parser_block(&mut self, walk: &mut ParserWalk<'_>, mut position: ParserPosition) {
        let source = &walk.body.blocks[position.block];
        self.at = walk.made[&position];
        let at = self.at;
        self.blocks[at].loc = source.loc;
        if walk.counts {
            // Engines recognise a parser's loop that consumes no bits by its state name.
            self.blocks[at].state.clone_from(&source.state);
        }
        for inst in &source.insts {
            if self
                .parser_inst(&inst.kind, inst.loc, &mut position, walk.prefix)
                .is_none()
            {
                self.note_lost(inst.loc);
                return self.end(Terminator::Exit(exit::RESTART));
            }
        }
        let terminator = match &source.terminator {
            Terminator::Accept | Terminator::Return => Terminator::Goto(walk.parsed.accepted),
            Terminator::Reject => Terminator::Goto(walk.parsed.rejected),
            other => {
                let mut other = other.clone();
                other.map_targets(|block| {
                    let position = ParserPosition {
                        block,
                        ..position.clone()
                    };
                    self.block_at(walk, position)
                });
                other
            }
        };
        self.end(terminator);
    }

    /// Notes the first place at which the parser's position is unknown.
    pub(super) fn note_lost(&mut self, loc: Loc) {
        let problem =
            "the parser takes something, from in front of the packet or of a residual checksum, that is not known";
        let program = self.arch.program();
        self.lost.get_or_insert_with(|| NotCompiled::new(program, loc, problem));
    }

    /// Appends an instruction and advances `position`; `None` where the new position is unknown.
    fn parser_inst(
        &mut self,
        kind: &InstKind,
        loc: Loc,
        position: &mut ParserPosition,
        prefix: &IntrinsicPrefix,
    ) -> Option<()> {
        if let InstKind::Call(call) = kind {
            if let Some(done) = self.counter(call, &mut position.depths, loc) {
                self.check(done, call, loc);
                return Some(());
            }
            if call.instance.is_none() && call.function == "port_metadata_unpack" {
                return self.unpack(call, position, prefix);
            }
            if let Some(done) = self.deposit(call, position.taken >= prefix.length, loc) {
                self.check(done, call, loc);
                return Some(());
            }
        }
        if position.taken >= prefix.length {
            return self.packet_inst(kind, loc);
        }
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => position.taken = self.extract_prefix(*header, position.taken, prefix)?,
            InstKind::Lookahead { dst, offset } => {
                let value = self.prefix_bits(prefix, position.taken.checked_add(*offset)?, self.width(*dst))?;
                self.assign(*dst, Rvalue::Use(value));
            }
            InstKind::Advance {
                bits: Operand::Const(bits),
            } => {
                let end = position.taken.checked_add(u32::try_from(bits.to_u64()?).ok()?)?;
                if end > prefix.length {
                    let rest = Bits::new(bits.width(), (end - prefix.length).into());
                    let bits = Operand::Const(rest);
                    self.push(InstKind::Advance { bits }, loc);
                }
                position.taken = end.min(prefix.length);
            }
            InstKind::Extract { .. } | InstKind::Advance { .. } | InstKind::PacketLength { .. } => return None,
            _ => self.instruction(kind, loc),
        }
        Some(())
    }

    /// Bits of the prefix; `None` beyond its end.
    fn prefix_bits(&mut self, prefix: &IntrinsicPrefix, at: u32, width: u32) -> Option<Operand> {
        let end = at.checked_add(width)?;
        if end > prefix.length {
            return None;
        }
        let mut whole: Option<(Operand, u32)> = None;
        for (from, bits, operand) in &prefix.pieces {
            let (first, last) = (at.max(*from), end.min(from + bits));
            if first >= last {
                continue;
            }
            let part = match last - first == *bits {
                true => operand.clone(),
                false => {
                    let (hi, lo) = (from + bits - 1 - first, from + bits - last);
                    let value = operand.clone();
                    Operand::Var(self.compute(last - first, Rvalue::Slice { value, hi, lo }))
                }
            };
            whole = Some(match whole {
                None => (part, last - first),
                Some((before, known)) => {
                    let known = known + last - first;
                    let value = Rvalue::Binary(BinaryOp::Concat, before, part);
                    (Operand::Var(self.compute(known, value)), known)
                }
            });
        }
        whole.map(|(operand, _)| operand)
    }

    fn extract_prefix(&mut self, header: HeaderId, taken: u32, prefix: &IntrinsicPrefix) -> Option<u32> {
        let (valid, fields) = {
            let header = self.header(header);
            (header.valid, header.fields.clone())
        };
        let mut at = taken;
        for field in fields {
            let width = self.width(field);
            let value = self.prefix_bits(prefix, at, width)?;
            self.assign(field, Rvalue::Use(value));
            at += width;
        }
        self.set(Some(valid), 1);
        Some(at)
    }

    /// `port_metadata_unpack`: consumes all port metadata, whatever it reads of it.
    fn unpack(&mut self, call: &Call, position: &mut ParserPosition, prefix: &IntrinsicPrefix) -> Option<()> {
        let mut at = position.taken;
        for &result in &call.results {
            let width = self.width(result);
            let value = self.prefix_bits(prefix, at, width)?;
            self.assign(result, Rvalue::Use(value));
            at += width;
        }
        let end = position.taken + (prefix.length - HEADER);
        (end <= prefix.length).then(|| position.taken = end)
    }
}
