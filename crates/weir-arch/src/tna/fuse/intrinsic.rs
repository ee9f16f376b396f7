//! Runs a TNA parser, at compile time, over the intrinsic metadata that precedes each packet.
//!
//! On the chip a parser reads the intrinsic header and the port's metadata before the packet.
//! Compiled code receives the packet alone. Each parser state is therefore specialised by how many
//! bits of the prefix it has consumed ([`ParserPosition`]): extracts from the prefix become copies
//! of variables, and those after it stay extracts. Where the position in the prefix is not known
//! at compile time, the packet leaves by [`exit::PUNT_FROM_START`].

use super::parser_counters::StackDepths;
use super::{Builder, CallOutcome, exit};
use crate::error::NotCompiled;
use crate::pipeline_builder::{AppendCode, ParserCosts, constant, non_consuming_loops};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{BinaryOp, Bits, BlockId, Body, Call, HeaderId, InstKind, Loc, Operand, Rvalue, Terminator, VarId};

/// Bits of the ingress intrinsic header.
const HEADER_BITS: u32 = 64;

/// Width of the variables that hold the port's metadata, in bits.
const WORD_BITS: u32 = 64;

/// The intrinsic metadata before a packet. Each piece is its first bit, its width and its value.
#[derive(Debug, Clone)]
pub(super) struct IntrinsicPrefix {
    /// Consecutive pieces without gaps.
    pieces: Vec<(u32, u32, Operand)>,
    /// Length in bits.
    length: u32,
}

/// The basic blocks where packets continue after a parser.
pub(super) struct ParserOutcomes {
    /// Where accepted packets continue.
    pub accepted: BlockId,
    /// Where rejected packets continue.
    pub rejected: BlockId,
    /// Where packets continue that met a parser error, such as an extraction beyond their end.
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
            // The resubmit flag, then padding up to the port.
            (0, 1, constant(1, 0)),
            (1, 1, constant(1, 0)),
            (2, 2, constant(2, 0)),
            (4, 3, constant(3, 0)),
            (7, 9, Operand::Var(port)),
            (16, 48, Operand::Var(now_ns)),
        ];
        let words = port_metadata.iter().zip((HEADER_BITS..).step_by(WORD_BITS as usize));
        pieces.extend(words.map(|(word, offset)| (offset, WORD_BITS, Operand::Var(*word))));
        IntrinsicPrefix {
            pieces,
            length: HEADER_BITS + port_metadata.len() as u32 * WORD_BITS,
        }
    }
}

/// The key by which parser states are specialised: basic block, bits of the prefix that were
/// consumed, and depths of the counters' stacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ParserPosition {
    /// The parser's basic block.
    block: BlockId,
    /// Bits of the prefix that were consumed before the block.
    consumed: u32,
    /// The stack depths before the block.
    depths: StackDepths,
}

/// A parser that is being specialised.
struct ParserWalk<'a> {
    body: &'a Body,
    prefix: &'a IntrinsicPrefix,
    /// The specialised basic blocks, by the position at their start.
    blocks: BTreeMap<ParserPosition, BlockId>,
    /// Positions whose basic blocks are still empty.
    worklist: Vec<ParserPosition>,
    parsed: ParserOutcomes,
    /// Basic blocks in loops that consume nothing of the packet.
    in_non_consuming_loops: BTreeSet<BlockId>,
    costs: ParserCosts,
}

impl Builder<'_> {
    /// Appends the parser. Where its position is unknown, or it reads prefix bits that are unknown,
    /// the packet leaves by [`exit::PUNT_FROM_START`].
    pub(super) fn specialise_parser(&mut self, body: &Body, prefix: &IntrinsicPrefix) -> ParserOutcomes {
        let parsed = ParserOutcomes {
            accepted: self.new_basic_block(),
            rejected: self.new_basic_block(),
            on_error: self.cursor,
        };
        self.declare_residual_checksums(body);
        let mut walk = ParserWalk {
            body,
            prefix,
            blocks: BTreeMap::new(),
            worklist: Vec::new(),
            parsed,
            in_non_consuming_loops: non_consuming_loops(body),
            costs: self.costs_of_parser(body),
        };
        let position = |block, consumed| ParserPosition {
            block,
            consumed,
            depths: StackDepths::default(),
        };
        let start = self.block_at(&mut walk, position(BlockId::new(0), 0));
        self.terminate(Terminator::Goto(start));
        walk.parsed.on_error = match body.on_error {
            // No operation fails within the prefix.
            Some(block) => self.block_at(&mut walk, position(block, prefix.length)),
            None => walk.parsed.rejected,
        };
        while let Some(position) = walk.worklist.pop() {
            self.parser_block(&mut walk, position);
        }
        for end in [&mut walk.parsed.accepted, &mut walk.parsed.rejected] {
            let before = std::mem::replace(end, self.new_basic_block());
            self.cursor = before;
            self.store_residual_checksums();
            self.terminate(Terminator::Goto(*end));
        }
        if body.on_error.is_none() {
            walk.parsed.on_error = walk.parsed.rejected;
        }
        walk.parsed
    }

    /// The basic block for a position. A new one is added to the worklist.
    fn block_at(&mut self, walk: &mut ParserWalk<'_>, position: ParserPosition) -> BlockId {
        if let Some(block) = walk.blocks.get(&position) {
            return *block;
        }
        let block = self.new_basic_block();
        walk.blocks.insert(position.clone(), block);
        walk.worklist.push(position);
        block
    }

    /// Fills the basic block for a position.
    fn parser_block(&mut self, walk: &mut ParserWalk<'_>, mut position: ParserPosition) {
        let source = &walk.body.blocks[position.block];
        self.cursor = walk.blocks[&position];
        let cursor = self.cursor;
        self.blocks[cursor].loc = source.loc;
        // Reads of the prefix become variables, which cannot fail.
        let is_of_prefix = position.consumed < walk.prefix.length && source.can_fail();
        if is_of_prefix || walk.in_non_consuming_loops.contains(&position.block) {
            self.mark_as_parser(cursor);
        }
        if let Some(count) = walk.costs.looped.get(&position.block) {
            self.mark_parser_blocks(cursor, *count);
        }
        for inst in &source.insts {
            if self
                .parser_inst(&inst.kind, inst.loc, &mut position, walk.prefix)
                .is_none()
            {
                self.note_punt_reason(inst.loc);
                return self.terminate(Terminator::Exit(exit::PUNT_FROM_START));
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
        self.terminate(terminator);
    }

    /// Records the first place whose packets are punted from the start.
    pub(super) fn note_punt_reason(&mut self, loc: Loc) {
        let problem = "the parser consumes bits of the intrinsic prefix, or after a residual checksum, whose number is \
                       not known or no multiple of 16";
        let program = self.arch.program();
        self.punt_reason
            .get_or_insert_with(|| NotCompiled::new(program, loc, problem));
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
            let outcome = self.counter(call, &mut position.depths, loc);
            if self.is_handled(outcome, call, loc) {
                return Some(());
            }
            if call.instance.is_none() && call.function == "port_metadata_unpack" {
                return self.unpack_port_metadata(call, position, prefix);
            }
            let outcome = self.deposit(call, position.consumed >= prefix.length, loc);
            if self.is_handled(outcome, call, loc) {
                return Some(());
            }
        }
        if position.consumed >= prefix.length {
            return self.packet_instruction(kind, loc);
        }
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => position.consumed = self.extract_prefix(*header, position.consumed, prefix)?,
            InstKind::Lookahead { dst, offset } => {
                let value = self.prefix_bits(prefix, position.consumed.checked_add(*offset)?, self.width(*dst))?;
                self.assign(*dst, Rvalue::Use(value));
            }
            InstKind::Advance {
                bits: Operand::Const(bits),
            } => {
                let end = position.consumed.checked_add(u32::try_from(bits.to_u64()?).ok()?)?;
                if end > prefix.length {
                    let rest = Bits::new(bits.width(), (end - prefix.length).into());
                    let bits = Operand::Const(rest);
                    self.push(InstKind::Advance { bits }, loc);
                }
                position.consumed = end.min(prefix.length);
            }
            InstKind::Extract { .. } | InstKind::Advance { .. } | InstKind::PacketLength { .. } => return None,
            _ => self.instruction(kind, loc),
        }
        Some(())
    }

    /// Whether a call needs no further translation. Records one that has no compiled form.
    fn is_handled(&mut self, outcome: CallOutcome, call: &Call, loc: Loc) -> bool {
        match outcome {
            CallOutcome::OtherCall => return false,
            CallOutcome::Appended => {}
            CallOutcome::NoCompiledForm => self.check(None, call, loc),
        }
        true
    }

    /// Bits of the prefix; `None` beyond its end.
    fn prefix_bits(&mut self, prefix: &IntrinsicPrefix, offset: u32, width: u32) -> Option<Operand> {
        let end = offset.checked_add(width)?;
        if end > prefix.length {
            return None;
        }
        let mut whole: Option<(Operand, u32)> = None;
        for (from, bits, operand) in &prefix.pieces {
            let (first, last) = (offset.max(*from), end.min(from + bits));
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

    /// Extracts a header from the prefix. Returns the bits consumed then; `None` beyond its end.
    fn extract_prefix(&mut self, header: HeaderId, consumed: u32, prefix: &IntrinsicPrefix) -> Option<u32> {
        let (valid, fields) = {
            let header = self.header(header);
            (header.valid, header.fields.clone())
        };
        let mut offset = consumed;
        for field in fields {
            let width = self.width(field);
            let value = self.prefix_bits(prefix, offset, width)?;
            self.assign(field, Rvalue::Use(value));
            offset += width;
        }
        self.set(Some(valid), 1);
        Some(offset)
    }

    /// `port_metadata_unpack`: consumes all port metadata, whatever it reads of it.
    fn unpack_port_metadata(
        &mut self,
        call: &Call,
        position: &mut ParserPosition,
        prefix: &IntrinsicPrefix,
    ) -> Option<()> {
        let mut offset = position.consumed;
        for &result in &call.results {
            let width = self.width(result);
            let value = self.prefix_bits(prefix, offset, width)?;
            self.assign(result, Rvalue::Use(value));
            offset += width;
        }
        let end = position.consumed + (prefix.length - HEADER_BITS);
        (end <= prefix.length).then(|| position.consumed = end)
    }
}
