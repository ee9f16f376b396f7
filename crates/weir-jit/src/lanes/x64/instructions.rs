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

/// A vector instruction: its opcode, and the fields that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lanes) struct Vector {
    pub(super) map: Map,
    pub(super) prefix: Prefix,
    pub(super) wide: bool,
    pub(super) opcode: u8,
}

pub(super) const fn vector(map: Map, prefix: Prefix, wide: bool, opcode: u8) -> Vector {
    Vector {
        map,
        prefix,
        wide,
        opcode,
    }
}

pub(super) const fn v0f(opcode: u8) -> Vector {
    vector(Map::M0f, Prefix::P66, true, opcode)
}

pub(super) const fn v0f38(opcode: u8) -> Vector {
    vector(Map::M0f38, Prefix::P66, true, opcode)
}

pub(super) const fn v0f3a(opcode: u8) -> Vector {
    vector(Map::M0f3a, Prefix::P66, true, opcode)
}

// Names are the manual's. Three operands, unless said otherwise.
pub(in crate::lanes) const VPADDQ: Vector = v0f(0xd4);
pub(in crate::lanes) const VPSUBQ: Vector = v0f(0xfb);
pub(in crate::lanes) const VPMULLQ: Vector = v0f38(0x40);
pub(in crate::lanes) const VPANDQ: Vector = v0f(0xdb);
pub(in crate::lanes) const VPANDNQ: Vector = v0f(0xdf);
pub(in crate::lanes) const VPORQ: Vector = v0f(0xeb);
pub(in crate::lanes) const VPXORQ: Vector = v0f(0xef);
pub(in crate::lanes) const VPMAXUQ: Vector = v0f38(0x3f);
pub(in crate::lanes) const VPMINUQ: Vector = v0f38(0x3b);
pub(in crate::lanes) const VPSLLVQ: Vector = v0f38(0x47);
pub(in crate::lanes) const VPSRLVQ: Vector = v0f38(0x45);
pub(in crate::lanes) const VPSRAVQ: Vector = v0f38(0x46);
pub(in crate::lanes) const VPROLVQ: Vector = v0f38(0x15);
pub(in crate::lanes) const VPROLVD: Vector = vector(Map::M0f38, Prefix::P66, false, 0x15);
pub(in crate::lanes) const VPSHUFB: Vector = vector(Map::M0f38, Prefix::P66, false, 0x00);
pub(in crate::lanes) const VPUNPCKLQDQ: Vector = v0f(0x6c);
pub(in crate::lanes) const VPUNPCKHQDQ: Vector = v0f(0x6d);
pub(in crate::lanes) const VPBLENDMQ: Vector = v0f38(0x64);
/// Two operands.
pub(in crate::lanes) const VPOPCNTQ: Vector = v0f38(0x55);
/// Two operands.
pub(in crate::lanes) const VPLZCNTQ: Vector = v0f38(0x44);
/// Two operands; the second is broadcast.
pub(in crate::lanes) const VPBROADCASTQ: Vector = v0f38(0x59);
/// Two operands, a register first.
pub(in crate::lanes) const VMOVDQU64: Vector = vector(Map::M0f, Prefix::Pf3, true, 0x6f);
/// Two operands, memory first.
pub(in crate::lanes) const VMOVDQU64_STORE: Vector = vector(Map::M0f, Prefix::Pf3, true, 0x7f);
/// With an immediate byte.
pub(in crate::lanes) const VPSHRDQ: Vector = v0f3a(0x73);
/// With an immediate byte.
pub(in crate::lanes) const VINSERTI64X2: Vector = v0f3a(0x38);
/// With an immediate byte; registers only.
pub(in crate::lanes) const VINSERTI64X4: Vector = v0f3a(0x3a);
/// With an immediate byte; two operands, memory or register first.
pub(in crate::lanes) const VEXTRACTI64X2: Vector = v0f3a(0x39);
/// With an immediate byte; two operands, registers only, destination last.
pub(in crate::lanes) const VEXTRACTI64X4: Vector = v0f3a(0x3b);
/// Into a mask register; with an immediate byte.
pub(in crate::lanes) const VPCMPUQ: Vector = v0f3a(0x1e);
/// Into a mask register; with an immediate byte.
pub(in crate::lanes) const VPCMPQ: Vector = v0f3a(0x1f);
/// Into a mask register.
pub(in crate::lanes) const VPTESTMQ: Vector = v0f38(0x27);
/// Into a mask register.
pub(in crate::lanes) const VPTESTNMQ: Vector = vector(Map::M0f38, Prefix::Pf3, true, 0x27);
/// Memory first, of eight bytes.
pub(in crate::lanes) const VMOVQ_STORE: Vector = v0f(0xd6);
/// Memory first, of eight bytes: the upper half of the lowest 16.
pub(in crate::lanes) const VMOVHPS_STORE: Vector = vector(Map::M0f, Prefix::None, false, 0x17);
/// Memory first, of four bytes; with an immediate byte.
pub(in crate::lanes) const VPEXTRD: Vector = vector(Map::M0f3a, Prefix::P66, false, 0x16);
/// Memory first, of two bytes; with an immediate byte.
pub(in crate::lanes) const VPEXTRW: Vector = vector(Map::M0f3a, Prefix::P66, false, 0x15);
/// Memory first, of one byte; with an immediate byte.
pub(in crate::lanes) const VPEXTRB: Vector = vector(Map::M0f3a, Prefix::P66, false, 0x14);
/// A general register first.
pub(super) const VMOVQ_TO: Vector = v0f(0x7e);
/// A general register first; with an immediate byte.
pub(super) const VPEXTRQ: Vector = v0f3a(0x16);
pub(super) const VPGATHERQQ: Vector = v0f38(0x91);

/// A shift by a constant: the opcode, and its extension in place of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lanes) struct ShiftBy {
    pub(super) vector: Vector,
    pub(super) extension: u8,
}

pub(in crate::lanes) const VPSLLQ: ShiftBy = ShiftBy {
    vector: v0f(0x73),
    extension: 6,
};
pub(in crate::lanes) const VPSRLQ: ShiftBy = ShiftBy {
    vector: v0f(0x73),
    extension: 2,
};
pub(in crate::lanes) const VPSRAQ: ShiftBy = ShiftBy {
    vector: v0f(0x72),
    extension: 4,
};
pub(in crate::lanes) const VPROLQ: ShiftBy = ShiftBy {
    vector: v0f(0x72),
    extension: 1,
};
pub(in crate::lanes) const VPROLD: ShiftBy = ShiftBy {
    vector: vector(Map::M0f, Prefix::P66, false, 0x72),
    extension: 1,
};
