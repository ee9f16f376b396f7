//! Encodings of vector instructions, from the Intel manual.

/// Opcode tables ("mmm").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Map {
    M0f = 1,
    M0f38 = 2,
    M0f3a = 3,
}

/// Mandatory prefixes ("pp").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    None = 0,
    P66 = 1,
    Pf3 = 2,
    Pf2 = 3,
}

/// A vector instruction: its opcode, and the EVEX fields that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lanes) struct VectorInstruction {
    pub(super) map: Map,
    pub(super) prefix: Prefix,
    /// "W": elements of 64 bits, for most instructions.
    pub(super) wide: bool,
    pub(super) opcode: u8,
}

/// A vector instruction with these fields.
pub(super) const fn vector(map: Map, prefix: Prefix, wide: bool, opcode: u8) -> VectorInstruction {
    VectorInstruction {
        map,
        prefix,
        wide,
        opcode,
    }
}

/// An instruction of map 0F with prefix 66, on 64-bit elements.
pub(super) const fn v0f(opcode: u8) -> VectorInstruction {
    vector(Map::M0f, Prefix::P66, true, opcode)
}

/// The same of map 0F38.
pub(super) const fn v0f38(opcode: u8) -> VectorInstruction {
    vector(Map::M0f38, Prefix::P66, true, opcode)
}

/// The same of map 0F3A.
pub(super) const fn v0f3a(opcode: u8) -> VectorInstruction {
    vector(Map::M0f3a, Prefix::P66, true, opcode)
}

// Names are the manual's. Three operands, unless said otherwise.
pub(in crate::lanes) const VPADDQ: VectorInstruction = v0f(0xd4);
pub(in crate::lanes) const VPSUBQ: VectorInstruction = v0f(0xfb);
pub(in crate::lanes) const VPMULLQ: VectorInstruction = v0f38(0x40);
pub(in crate::lanes) const VPANDQ: VectorInstruction = v0f(0xdb);
pub(in crate::lanes) const VPANDNQ: VectorInstruction = v0f(0xdf);
pub(in crate::lanes) const VPORQ: VectorInstruction = v0f(0xeb);
pub(in crate::lanes) const VPXORQ: VectorInstruction = v0f(0xef);
pub(in crate::lanes) const VPMAXUQ: VectorInstruction = v0f38(0x3f);
pub(in crate::lanes) const VPMINUQ: VectorInstruction = v0f38(0x3b);
pub(in crate::lanes) const VPSLLVQ: VectorInstruction = v0f38(0x47);
pub(in crate::lanes) const VPSRLVQ: VectorInstruction = v0f38(0x45);
pub(in crate::lanes) const VPSRAVQ: VectorInstruction = v0f38(0x46);
pub(in crate::lanes) const VPROLVQ: VectorInstruction = v0f38(0x15);
pub(in crate::lanes) const VPROLVD: VectorInstruction = vector(Map::M0f38, Prefix::P66, false, 0x15);
pub(in crate::lanes) const VPSHUFB: VectorInstruction = vector(Map::M0f38, Prefix::P66, false, 0x00);
pub(in crate::lanes) const VPUNPCKLQDQ: VectorInstruction = v0f(0x6c);
pub(in crate::lanes) const VPUNPCKHQDQ: VectorInstruction = v0f(0x6d);
pub(in crate::lanes) const VPBLENDMQ: VectorInstruction = v0f38(0x64);
/// Two operands.
pub(in crate::lanes) const VPOPCNTQ: VectorInstruction = v0f38(0x55);
/// Two operands.
pub(in crate::lanes) const VPLZCNTQ: VectorInstruction = v0f38(0x44);
/// Two operands; the second is broadcast.
pub(in crate::lanes) const VPBROADCASTQ: VectorInstruction = v0f38(0x59);
/// Two operands, a register first.
pub(in crate::lanes) const VMOVDQU64: VectorInstruction = vector(Map::M0f, Prefix::Pf3, true, 0x6f);
/// Two operands, memory first.
pub(in crate::lanes) const VMOVDQU64_STORE: VectorInstruction = vector(Map::M0f, Prefix::Pf3, true, 0x7f);
/// With an immediate byte.
pub(in crate::lanes) const VPSHRDQ: VectorInstruction = v0f3a(0x73);
/// With an immediate byte.
pub(in crate::lanes) const VINSERTI64X2: VectorInstruction = v0f3a(0x38);
/// With an immediate byte; registers only.
pub(in crate::lanes) const VINSERTI64X4: VectorInstruction = v0f3a(0x3a);
/// With an immediate byte; two operands, memory or register first.
pub(in crate::lanes) const VEXTRACTI64X2: VectorInstruction = v0f3a(0x39);
/// With an immediate byte; two operands, registers only, destination last.
pub(in crate::lanes) const VEXTRACTI64X4: VectorInstruction = v0f3a(0x3b);
/// Into a mask register; with an immediate byte.
pub(in crate::lanes) const VPCMPUQ: VectorInstruction = v0f3a(0x1e);
/// Into a mask register; with an immediate byte.
pub(in crate::lanes) const VPCMPQ: VectorInstruction = v0f3a(0x1f);
/// Into a mask register.
pub(in crate::lanes) const VPTESTMQ: VectorInstruction = v0f38(0x27);
/// Into a mask register.
pub(in crate::lanes) const VPTESTNMQ: VectorInstruction = vector(Map::M0f38, Prefix::Pf3, true, 0x27);
/// Memory first, of eight bytes.
pub(in crate::lanes) const VMOVQ_STORE: VectorInstruction = v0f(0xd6);
/// Memory first, of eight bytes: the upper half of the lowest 16.
pub(in crate::lanes) const VMOVHPS_STORE: VectorInstruction = vector(Map::M0f, Prefix::None, false, 0x17);
/// Memory first, of four bytes; with an immediate byte.
pub(in crate::lanes) const VPEXTRD: VectorInstruction = vector(Map::M0f3a, Prefix::P66, false, 0x16);
/// Memory first, of two bytes; with an immediate byte.
pub(in crate::lanes) const VPEXTRW: VectorInstruction = vector(Map::M0f3a, Prefix::P66, false, 0x15);
/// Memory first, of one byte; with an immediate byte.
pub(in crate::lanes) const VPEXTRB: VectorInstruction = vector(Map::M0f3a, Prefix::P66, false, 0x14);
/// A general register first.
pub(super) const VMOVQ_TO_GPR: VectorInstruction = v0f(0x7e);
/// A general register first; with an immediate byte.
pub(super) const VPEXTRQ: VectorInstruction = v0f3a(0x16);
pub(super) const VPGATHERQQ: VectorInstruction = v0f38(0x91);

/// A shift by an immediate: the instruction, and its opcode extension in "ModRM.reg".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lanes) struct ShiftInstruction {
    pub(super) vector: VectorInstruction,
    pub(super) extension: u8,
}

pub(in crate::lanes) const VPSLLQ: ShiftInstruction = ShiftInstruction {
    vector: v0f(0x73),
    extension: 6,
};
pub(in crate::lanes) const VPSRLQ: ShiftInstruction = ShiftInstruction {
    vector: v0f(0x73),
    extension: 2,
};
pub(in crate::lanes) const VPSRAQ: ShiftInstruction = ShiftInstruction {
    vector: v0f(0x72),
    extension: 4,
};
pub(in crate::lanes) const VPROLQ: ShiftInstruction = ShiftInstruction {
    vector: v0f(0x72),
    extension: 1,
};
pub(in crate::lanes) const VPROLD: ShiftInstruction = ShiftInstruction {
    vector: vector(Map::M0f, Prefix::P66, false, 0x72),
    extension: 1,
};
