//! Programs that hash by CRCs whose parameters the control plane sets.

use crate::error::place;
use crate::hash::CrcParameters;
use crate::state::State;
use thiserror::Error;
use weir_ir::Program;
use weir_ir::target::{CustomCrc, CustomCrcSpec};

/// How v1model and PSA name them.
pub(crate) const SPEC: CustomCrcSpec = CustomCrcSpec {
    algorithms: "HashAlgorithm",
    parameter: "algo",
    members: &[
        ("crc16_custom", 16),
        ("CRC16_CUSTOM", 16),
        ("crc32_custom", 32),
        ("CRC32_CUSTOM", 32),
    ],
};

/// Widths of custom CRCs.
pub const CUSTOM_CRC_WIDTHS: [u32; 2] = [16, 32];

/// Why a custom CRC does not take parameters.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CustomCrcError {
    /// The program as it runs does not hash by it: calls whose results nothing reads are gone.
    #[error("the program hashes by no custom CRC of {width} bits whose result is read; {}", used(.widths))]
    Unused {
        /// The width.
        width: u32,
        /// The widths that the program uses.
        widths: Vec<u32>,
    },
    /// The parameters are those of another width.
    #[error("the parameters of crc{width}_custom are those of a CRC of {width} bits, not of {found}")]
    Width {
        /// Bits of the custom CRC.
        width: u32,
        /// Bits of the parameters.
        found: u32,
    },
    /// A value has too many bits.
    #[error("the {what} of crc{width}_custom has {width} bits; {value:#x} has more")]
    TooWide {
        /// `polynomial`, `initial value` or `final exclusive or`.
        what: &'static str,
        /// Bits of the custom CRC.
        width: u32,
        /// The value.
        value: u64,
    },
}

/// What a program uses, for a message.
fn used(widths: &[u32]) -> String {
    match widths {
        [] => "it uses none".to_owned(),
        _ => {
            let names: Vec<String> = widths.iter().map(|w| format!("crc{w}_custom")).collect();
            format!("it uses {}", names.join(" and "))
        }
    }
}

impl CustomCrcError {
    /// Whether the values are within a width.
    pub(crate) fn check(width: u32, parameters: &CrcParameters) -> Result<(), Self> {
        if parameters.width != width {
            let found = parameters.width;
            return Err(CustomCrcError::Width { width, found });
        }
        let values = [
            ("polynomial", parameters.polynomial),
            ("initial value", parameters.initial),
            ("final exclusive or", parameters.xor_out),
        ];
        match values.into_iter().find(|(_, value)| value >> width != 0) {
            Some((what, value)) => Err(CustomCrcError::TooWide { what, width, value }),
            None => Ok(()),
        }
    }
}

/// Where a program hashes by a custom CRC, in its order: instances of PSA's externs and selectors,
/// calls of v1model's functions.
#[must_use]
pub fn custom_crcs(program: &Program) -> Vec<CustomCrc> {
    SPEC.uses(program)
}

/// Warnings for a program that hashes by custom CRCs without parameters: one line for each place.
#[must_use]
pub fn unset_custom_crcs(program: &Program, state: &State) -> Vec<String> {
    let unset = custom_crcs(program)
        .into_iter()
        .filter(|c| state.given_custom_crc(c.width).is_none());
    let line = |CustomCrc { width, loc }| {
        let place = place(program, loc);
        format!(
            "{place}: crc{width}_custom has the parameters of crc{width}: a test or --entries sets others by \
             `set_crc{width}_parameters crc{width}_custom POLYNOMIAL INITIAL XOR_OUT REFLECT_IN REFLECT_OUT`, \
             a controller by P4Runtime, BF Runtime or `weir ctl set crc{width}_custom`"
        )
    };
    unset.map(line).collect()
}
