//! The ingress parser without what stands in front of packets: compiled code is given the packet
//! alone.

use super::counters::Depths;
use super::{Builder, exit};
use crate::error::NotCompiled;
use crate::weave::{Weave, constant};
use std::collections::BTreeMap;
use weir_ir::{BinaryOp, Bits, BlockId, Body, Call, HeaderId, InstKind, Loc, Operand, Rvalue, Terminator, VarId};

/// Bits of the intrinsic header.
const HEADER: u32 = 64;

/// Bits of the words that the port's metadata is given in.
const WORD: u32 = 64;

/// What is in front of a packet: where from, how many bits, and what.
#[derive(Debug, Clone)]
pub(super) struct Front {
    pieces: Vec<(u32, u32, Operand)>,
    /// Bits in all.
    length: u32,
}

/// Where the parser's ways end.
pub(super) struct Parsed {
    pub accepted: BlockId,
    pub rejected: BlockId,
    pub on_error: BlockId,
}

impl Front {
    /// Consecutive pieces, each with its width in bits.
    pub(super) fn of(pieces: Vec<(u32, Operand)>) -> Self {
        let mut front = Front {
            pieces: Vec::new(),
            length: 0,
        };
        for (width, operand) in pieces {
            front.pieces.push((front.length, width, operand));
            front.length += width;
        }
        front
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
        Front {
            pieces,
            length: HEADER + port_metadata.len() as u32 * WORD,
        }
    }
}

/// How far a parser is: its block, how many bits in front of the packet were taken, and how deep
/// the stacks of its counters are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    block: BlockId,
    taken: u32,
    depths: Depths,
}

/// The parser in the making: its basic blocks by how far it is before them.
struct Walk<'a> {
    body: &'a Body,
    front: &'a Front,
    made: BTreeMap<Place, BlockId>,
    waiting: Vec<Place>,
    parsed: Parsed,
    counts: bool,
}

impl Builder<'_> {
    /// Appends the parser. Where it reads what only the control plane knows, or at no known place,
    /// it leaves by the exit for what cannot be followed.
    pub(super) fn parser(&mut self, body: &Body, front: &Front) -> Parsed {
        let parsed = Parsed {
            accepted: self.block(),
            rejected: self.block(),
            on_error: self.at,
        };
        self.find_deposits(body);
        let mut walk = Walk {
            body,
            front,
            made: BTreeMap::new(),
            waiting: Vec::new(),
            parsed,
            counts: self.counts(body),
        };
        let place = |block, taken| Place {
            block,
            taken,
            depths: Depths::default(),
        };
        let start = self.point(&mut walk, place(BlockId::new(0), 0));
        self.end(Terminator::Goto(start));
        walk.parsed.on_error = match body.on_error {
            // Nothing fails in front of the packet.
            Some(block) => self.point(&mut walk, place(block, front.length)),
            None => walk.parsed.rejected,
        };
        while let Some(place) = walk.waiting.pop() {
            self.parser_block(&mut walk, place);
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

    fn point(&mut self, walk: &mut Walk<'_>, place: Place) -> BlockId {
        if let Some(made) = walk.made.get(&place) {
            return *made;
        }
        let made = self.block();
        walk.made.insert(place.clone(), made);
        walk.waiting.push(place);
        made
    }

    fn parser_block(&mut self, walk: &mut Walk<'_>, mut place: Place) {
        let source = &walk.body.blocks[place.block];
        self.at = walk.made[&place];
        let at = self.at;
        self.blocks[at].loc = source.loc;
        if walk.counts {
            // Who runs a loop that takes nothing must see that it is a parser's.
            self.blocks[at].state.clone_from(&source.state);
        }
        for inst in &source.insts {
            if self.parser_inst(&inst.kind, inst.loc, &mut place, walk.front).is_none() {
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
                    let place = Place { block, ..place.clone() };
                    self.point(walk, place)
                });
                other
            }
        };
        self.end(terminator);
    }

    /// Notes where the parser cannot be followed.
    pub(super) fn note_lost(&mut self, loc: Loc) {
        let problem =
            "the parser takes something, from in front of the packet or of a residual checksum, that is not known";
        let program = self.arch.program();
        self.lost.get_or_insert_with(|| NotCompiled::new(program, loc, problem));
    }

    /// Appends an instruction, after which the parser is further; `None` where that cannot be
    /// known.
    fn parser_inst(&mut self, kind: &InstKind, loc: Loc, place: &mut Place, front: &Front) -> Option<()> {
        if let InstKind::Call(call) = kind {
            if let Some(done) = self.counter(call, &mut place.depths, loc) {
                self.check(done, call, loc);
                return Some(());
            }
            if call.instance.is_none() && call.function == "port_metadata_unpack" {
                return self.unpack(call, place, front);
            }
            if let Some(done) = self.deposit(call, place.taken >= front.length, loc) {
                self.check(done, call, loc);
                return Some(());
            }
        }
        if place.taken >= front.length {
            return self.packet_inst(kind, loc);
        }
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => place.taken = self.extract_front(*header, place.taken, front)?,
            InstKind::Lookahead { dst, offset } => {
                let value = self.front_bits(front, place.taken.checked_add(*offset)?, self.width(*dst))?;
                self.assign(*dst, Rvalue::Use(value));
            }
            InstKind::Advance {
                bits: Operand::Const(bits),
            } => {
                let end = place.taken.checked_add(u32::try_from(bits.to_u64()?).ok()?)?;
                if end > front.length {
                    let rest = Bits::new(bits.width(), (end - front.length).into());
                    let bits = Operand::Const(rest);
                    self.push(InstKind::Advance { bits }, loc);
                }
                place.taken = end.min(front.length);
            }
            InstKind::Extract { .. } | InstKind::Advance { .. } | InstKind::PacketLength { .. } => return None,
            _ => self.instruction(kind, loc),
        }
        Some(())
    }

    /// Bits of what is in front.
    fn front_bits(&mut self, front: &Front, at: u32, width: u32) -> Option<Operand> {
        let end = at.checked_add(width)?;
        if end > front.length {
            return None;
        }
        let mut whole: Option<(Operand, u32)> = None;
        for (from, bits, operand) in &front.pieces {
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

    fn extract_front(&mut self, header: HeaderId, taken: u32, front: &Front) -> Option<u32> {
        let (valid, fields) = {
            let header = self.header(header);
            (header.valid, header.fields.clone())
        };
        let mut at = taken;
        for field in fields {
            let width = self.width(field);
            let value = self.front_bits(front, at, width)?;
            self.assign(field, Rvalue::Use(value));
            at += width;
        }
        self.set(Some(valid), 1);
        Some(at)
    }

    /// `port_metadata_unpack`: goes on behind the metadata, whatever is read of it.
    fn unpack(&mut self, call: &Call, place: &mut Place, front: &Front) -> Option<()> {
        let mut at = place.taken;
        for &result in &call.results {
            let width = self.width(result);
            let value = self.front_bits(front, at, width)?;
            self.assign(result, Rvalue::Use(value));
            at += width;
        }
        let end = place.taken + (front.length - HEADER);
        (end <= front.length).then(|| place.taken = end)
    }
}
