//! Custom CRCs of v1model and PSA in the control protocols. Neither P4Runtime nor BF Runtime
//! defines such objects: these ids and names are weir's.
//!
//! The custom CRC of each width that a program uses is one object. Each of the program's
//! calculations by it is another one, which has parameters of its own once they are set.

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
    /// P4Runtime's id of its first instance; the first byte is the type, as in every id of P4Info.
    /// Calculations are further instances.
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

/// Numbers of calculations from here on have no ids.
const CALCULATIONS: u32 = 0x00f0_0000;

/// BF Runtime's id of the table of the first calculation.
const CALCULATION_TABLES: u32 = 0xf100_0000;

/// What names of BF Runtime's tables begin with.
pub const TABLE_PREFIX: &str = "$hash.";

/// BF Runtime's table of a calculation.
#[must_use]
pub fn calculation_table(name: &str) -> String {
    format!("{TABLE_PREFIX}{name}")
}

/// BF Runtime's id of that table.
#[must_use]
pub fn calculation_table_id(number: u32) -> Option<u32> {
    (number < CALCULATIONS).then_some(CALCULATION_TABLES + number)
}

/// The number of the calculation whose table has this id in BF Runtime.
#[must_use]
pub fn calculation_of_table(id: u32) -> Option<u32> {
    id.checked_sub(CALCULATION_TABLES)
        .filter(|number| *number < CALCULATIONS)
}

impl CustomCrc {
    /// P4Runtime's id of a calculation by this CRC.
    #[must_use]
    pub fn calculation_id(&self, number: u32) -> Option<u32> {
        (number < CALCULATIONS).then_some(self.extern_id + 1 + number)
    }

    /// The number of the calculation that has this id in P4Runtime.
    #[must_use]
    pub fn calculation_of(&self, extern_id: u32) -> Option<u32> {
        let number = extern_id.checked_sub(self.extern_id + 1);
        number.filter(|number| *number < CALCULATIONS)
    }

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
