//! Custom CRCs of v1model and PSA in the control protocols. Neither P4Runtime nor BF Runtime
//! defines such objects: these ids and names are weir's.

/// The custom CRC of one width, as the protocols identify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomCrc {
    /// Its width in bits.
    pub width: u32,
    /// Its name in P4Info: the name of the algorithm.
    pub name: &'static str,
    /// P4Runtime's id of the extern type, within `OTHER_EXTERNS_START` and `MAX` of P4Info's
    /// prefixes.
    pub extern_type_id: u32,
    /// P4Runtime's id of its only instance; the first byte is the type, as in every id of P4Info.
    pub extern_id: u32,
    /// The table of BF Runtime.
    pub table: &'static str,
    /// BF Runtime's id of that table.
    pub table_id: u32,
}

/// The type of BF Runtime's tables.
pub const TABLE_TYPE: &str = "CustomCrc";

/// The polynomial, without its top bit and not reflected.
pub const POLYNOMIAL: &str = "polynomial";
/// The initial value of the register.
pub const INITIAL: &str = "initial";
/// The final exclusive or.
pub const XOR_OUT: &str = "xor_out";
/// Input bytes are processed least significant bit first.
pub const REFLECT_IN: &str = "reflect_in";
/// The register is reflected before the final exclusive or.
pub const REFLECT_OUT: &str = "reflect_out";

/// Every custom CRC.
pub const ALL: [CustomCrc; 2] = [
    CustomCrc {
        width: 16,
        name: "crc16_custom",
        extern_type_id: 0x81,
        extern_id: 0x8100_0001,
        table: "$hash.crc16_custom",
        table_id: 0xf000_0001,
    },
    CustomCrc {
        width: 32,
        name: "crc32_custom",
        extern_type_id: 0x82,
        extern_id: 0x8200_0001,
        table: "$hash.crc32_custom",
        table_id: 0xf000_0002,
    },
];

impl CustomCrc {
    /// The custom CRC with this width.
    #[must_use]
    pub fn of_width(width: u32) -> Option<&'static CustomCrc> {
        ALL.iter().find(|c| c.width == width)
    }

    /// The custom CRC with this id of its extern type.
    #[must_use]
    pub fn of_type(extern_type_id: u32) -> Option<&'static CustomCrc> {
        ALL.iter().find(|c| c.extern_type_id == extern_type_id)
    }
}
