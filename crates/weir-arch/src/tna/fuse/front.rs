//! The ingress parser without what stands in front of packets: compiled code is given the packet alone.

use super::{Builder, exit};
use crate::weave::{Weave, constant};
use std::collections::BTreeMap;
use weir_ir::{Bits, BlockId, Body, HeaderId, InstKind, Loc, Operand, Rvalue, Terminator, VarId};

/// Bits of the intrinsic header.
const HEADER: u32 = 64;

/// What is in front of a packet, as far as code may read it: where from, how many bits, and what.
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
    /// The intrinsic header of a packet that came in at a port, and the port's metadata, which no code may read.
    pub(super) fn new(port: VarId, now_ns: VarId, port_metadata: usize) -> Self {
        Front {
            pieces: vec![
                // Not resubmitted, and zeros up to the port.
                (0, 1, constant(1, 0)),
                (1, 1, constant(1, 0)),
                (2, 2, constant(2, 0)),
                (4, 3, constant(3, 0)),
                (7, 9, Operand::Var(port)),
                (16, 48, Operand::Var(now_ns)),
            ],
            length: HEADER + port_metadata as u32 * 8,
        }
    }

    fn read(&self, at: u32, width: u32) -> Option<Operand> {
        let piece = self.pieces.iter().find(|(from, bits, _)| (*from, *bits) == (at, width));
        piece.map(|(_, _, operand)| operand.clone())
    }
}

/// The parser in the making: its basic blocks by how many bits in front of the packet were taken before them.
struct Walk<'a> {
    body: &'a Body,
    front: &'a Front,
    made: BTreeMap<(BlockId, u32), BlockId>,
    waiting: Vec<(BlockId, u32)>,
    parsed: Parsed,
}

impl Builder<'_> {
    /// Appends the parser. Where it reads what only the control plane knows, or at no known place, it leaves by the exit for
    /// what cannot be followed.
    pub(super) fn parser(&mut self, body: &Body, front: &Front) -> Parsed {
        let parsed = Parsed {
            accepted: self.block(),
            rejected: self.block(),
            on_error: self.at,
        };
        let mut walk = Walk {
            body,
            front,
            made: BTreeMap::new(),
            waiting: Vec::new(),
            parsed,
        };
        let start = self.point(&mut walk, BlockId::new(0), 0);
        self.end(Terminator::Goto(start));
        walk.parsed.on_error = match body.on_error {
            // Nothing fails in front of the packet.
            Some(block) => self.point(&mut walk, block, front.length),
            None => walk.parsed.rejected,
        };
        while let Some((block, taken)) = walk.waiting.pop() {
            self.parser_block(&mut walk, block, taken);
        }
        walk.parsed
    }

    fn point(&mut self, walk: &mut Walk<'_>, block: BlockId, taken: u32) -> BlockId {
        if let Some(made) = walk.made.get(&(block, taken)) {
            return *made;
        }
        let made = self.block();
        walk.made.insert((block, taken), made);
        walk.waiting.push((block, taken));
        made
    }

    fn parser_block(&mut self, walk: &mut Walk<'_>, block: BlockId, mut taken: u32) {
        let source = &walk.body.blocks[block];
        self.at = walk.made[&(block, taken)];
        let at = self.at;
        self.blocks[at].loc = source.loc;
        for inst in &source.insts {
            match self.parser_inst(&inst.kind, inst.loc, taken, walk.front) {
                Some(after) => taken = after,
                None => return self.end(Terminator::Exit(exit::RESTART)),
            }
        }
        let terminator = match &source.terminator {
            Terminator::Accept | Terminator::Return => Terminator::Goto(walk.parsed.accepted),
            Terminator::Reject => Terminator::Goto(walk.parsed.rejected),
            other => {
                let mut other = other.clone();
                other.map_targets(|b| self.point(walk, b, taken));
                other
            }
        };
        self.end(terminator);
    }

    /// Appends an instruction; gives how many bits in front of the packet are taken then.
    fn parser_inst(&mut self, kind: &InstKind, loc: Loc, taken: u32, front: &Front) -> Option<u32> {
        if taken >= front.length {
            self.instruction(kind, loc);
            return Some(taken);
        }
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => self.extract_front(*header, taken, front),
            InstKind::Lookahead { dst, offset } => {
                let value = front.read(taken + offset, self.width(*dst))?;
                self.assign(*dst, Rvalue::Use(value));
                Some(taken)
            }
            InstKind::Advance {
                bits: Operand::Const(bits),
            } => {
                let end = taken.checked_add(u32::try_from(bits.to_u64()?).ok()?)?;
                if end > front.length {
                    let rest = Bits::new(bits.width(), (end - front.length).into());
                    let bits = Operand::Const(rest);
                    self.push(InstKind::Advance { bits }, loc);
                }
                Some(end.min(front.length))
            }
            InstKind::Extract { .. } | InstKind::Advance { .. } | InstKind::PacketLength { .. } => None,
            _ => {
                self.instruction(kind, loc);
                Some(taken)
            }
        }
    }

    fn extract_front(&mut self, header: HeaderId, taken: u32, front: &Front) -> Option<u32> {
        let (valid, fields) = {
            let header = self.header(header);
            (header.valid, header.fields.clone())
        };
        let mut at = taken;
        for field in fields {
            let width = self.width(field);
            let value = front.read(at, width)?;
            self.assign(field, Rvalue::Use(value));
            at += width;
        }
        self.set(Some(valid), 1);
        Some(at)
    }
}
