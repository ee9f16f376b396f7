//! Programs that hash by CRCs whose parameters the control plane sets.

use crate::error::place;
use crate::hash::{CrcParameters, CustomPair};
use crate::state::State;
use thiserror::Error;
use weir_ir::Program;
use weir_ir::target::{Calculation, CustomCrc, CustomCrcSpec, calculation_name};

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
    // The order in which p4c names them for bmv2.
    functions: &[
        &["hash"],
        &["update_checksum", "update_checksum_with_payload"],
        &["verify_checksum", "verify_checksum_with_payload"],
    ],
};

/// Widths of custom CRCs.
pub const CUSTOM_CRC_WIDTHS: [u32; 2] = [16, 32];

/// What parameters of a custom CRC are set for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CrcScope {
    /// Everything that hashes by the custom CRC of 16 or of 32 bits and has no parameters of its
    /// own.
    Width(u32),
    /// One calculation ([`weir_ir::target::Calculation`]), by its number.
    Calculation(u32),
}

/// A calculation by a custom CRC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CustomCalculation {
    /// Its number.
    pub number: u32,
    /// Bits of the CRC.
    pub width: u32,
    given: Option<CrcParameters>,
    in_effect: CustomPair,
}

/// The custom CRCs of a program, and the parameters that they were given.
#[derive(Debug, Clone)]
pub(crate) struct CustomCrcs {
    /// The widths that the program uses, in ascending order.
    widths: Vec<u32>,
    /// In ascending order of their numbers.
    calculations: Vec<CustomCalculation>,
    /// Of 32 and of 16 bits.
    given: (Option<CrcParameters>, Option<CrcParameters>),
    in_effect: CustomPair,
}

impl Default for CustomCrcs {
    fn default() -> Self {
        CustomCrcs {
            widths: Vec::new(),
            calculations: Vec::new(),
            given: (None, None),
            in_effect: CustomPair::DEFAULT,
        }
    }
}

impl CustomCrcs {
    pub(crate) fn of(program: &Program) -> Self {
        let custom = |calculation: Calculation<'_>| {
            Some(CustomCalculation {
                number: calculation.number,
                width: calculation.custom_width?,
                given: None,
                in_effect: CustomPair::DEFAULT,
            })
        };
        CustomCrcs {
            widths: SPEC.widths(program),
            calculations: SPEC.calculations(program).into_iter().filter_map(custom).collect(),
            ..Self::default()
        }
    }

    /// The parameters by which a calculation hashes, or whatever is none.
    pub(crate) fn in_effect(&self, calculation: Option<u32>) -> &CustomPair {
        let own = calculation.and_then(|number| self.calculation(number).ok());
        own.map_or(&self.in_effect, |at| &self.calculations[at].in_effect)
    }

    fn calculation(&self, number: u32) -> Result<usize, usize> {
        self.calculations.binary_search_by_key(&number, |c| c.number)
    }

    fn width(&self, scope: CrcScope) -> Result<u32, CustomCrcError> {
        match scope {
            CrcScope::Width(width) if self.widths.contains(&width) => Ok(width),
            CrcScope::Width(width) => Err(CustomCrcError::Unused {
                width,
                widths: self.widths.clone(),
            }),
            CrcScope::Calculation(number) => match self.calculation(number) {
                Ok(at) => Ok(self.calculations[at].width),
                Err(_) => Err(CustomCrcError::NoCalculation {
                    name: calculation_name(number),
                    bits: String::new(),
                    known: self.calculations.iter().map(|c| calculation_name(c.number)).collect(),
                }),
            },
        }
    }

    fn given(&mut self, scope: CrcScope) -> Option<&mut Option<CrcParameters>> {
        match scope {
            CrcScope::Width(16) => Some(&mut self.given.1),
            CrcScope::Width(_) => Some(&mut self.given.0),
            CrcScope::Calculation(number) => {
                let at = self.calculation(number).ok()?;
                Some(&mut self.calculations[at].given)
            }
        }
    }

    fn set(
        &mut self,
        scope: CrcScope,
        parameters: Option<CrcParameters>,
    ) -> Result<Option<CrcParameters>, CustomCrcError> {
        let width = self.width(scope)?;
        if let Some(parameters) = &parameters {
            CustomCrcError::check(width, parameters)?;
        }
        let was = self.given(scope).and_then(|given| std::mem::replace(given, parameters));
        self.in_effect = CustomPair {
            crc32: self.given.0.unwrap_or(CrcParameters::CRC32),
            crc16: self.given.1.unwrap_or(CrcParameters::CRC16),
        };
        for calculation in &mut self.calculations {
            calculation.in_effect = self.in_effect;
            if let Some(own) = calculation.given {
                calculation.in_effect.set(calculation.width, own);
            }
        }
        Ok(was)
    }
}

impl State {
    /// The parameters in effect of the custom CRC of 16 or of 32 bits: those that were given, else
    /// those of CRC-16/ARC and of zlib's CRC-32.
    #[must_use]
    pub fn custom_crc(&self, width: u32) -> CrcParameters {
        self.custom_crcs.in_effect.of(width)
    }

    /// The parameters in effect; `None` where the program does not hash so.
    #[must_use]
    pub fn crc(&self, scope: CrcScope) -> Option<CrcParameters> {
        let width = self.custom_crcs.width(scope).ok()?;
        Some(match scope {
            CrcScope::Width(width) => self.custom_crc(width),
            CrcScope::Calculation(number) => self.custom_crcs.in_effect(Some(number)).of(width),
        })
    }

    /// The parameters that the custom CRC of 16 or of 32 bits was given, if it was.
    #[must_use]
    pub fn given_custom_crc(&self, width: u32) -> Option<CrcParameters> {
        let (of_32, of_16) = self.custom_crcs.given;
        if width == 16 { of_16 } else { of_32 }
    }

    /// The parameters that control planes read: those in effect of a width, and those of a
    /// calculation that has its own.
    #[must_use]
    pub fn readable_crc(&self, scope: CrcScope) -> Option<CrcParameters> {
        match scope {
            CrcScope::Width(_) => self.crc(scope),
            CrcScope::Calculation(number) => self.given_calculation(number),
        }
    }

    /// The parameters that a calculation was given for itself, if it was.
    #[must_use]
    pub fn given_calculation(&self, number: u32) -> Option<CrcParameters> {
        let at = self.custom_crcs.calculation(number).ok()?;
        self.custom_crcs.calculations[at].given
    }

    /// Widths of the custom CRCs that the program uses, in ascending order.
    #[must_use]
    pub fn custom_crcs(&self) -> &[u32] {
        &self.custom_crcs.widths
    }

    /// The program's calculations by custom CRCs, in ascending order of their numbers.
    #[must_use]
    pub fn custom_calculations(&self) -> &[CustomCalculation] {
        &self.custom_crcs.calculations
    }

    /// What a name stands for among everything that hashes by CRCs of a width: `crc32_custom` for
    /// all of it, `calc_1` for a calculation.
    ///
    /// # Errors
    /// The program has no such; the error lists those that it has.
    pub fn crc_named(&self, width: u32, name: &str) -> Result<CrcScope, CustomCrcError> {
        if name == format!("crc{width}_custom") {
            let scope = CrcScope::Width(width);
            return self.custom_crcs.width(scope).map(|_| scope);
        }
        let of_width = self.custom_calculations().iter().filter(|c| c.width == width);
        let named = of_width.map(|c| (calculation_name(c.number), c.number));
        match named.clone().find(|(known, _)| known == name) {
            Some((_, number)) => Ok(CrcScope::Calculation(number)),
            None => Err(CustomCrcError::NoCalculation {
                name: name.to_owned(),
                bits: format!(" of {width} bits"),
                known: named.map(|(known, _)| known).collect(),
            }),
        }
    }

    /// Sets parameters in place of those there were; `None`: a width has those at first, and a
    /// calculation those of its width. Returns what had been given.
    ///
    /// # Errors
    /// The program does not hash so, or a value has more bits.
    pub fn set_custom_crc(
        &mut self,
        scope: CrcScope,
        parameters: Option<CrcParameters>,
    ) -> Result<Option<CrcParameters>, CustomCrcError> {
        self.custom_crcs.set(scope, parameters)
    }
}

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
    /// The program has no such calculation by a custom CRC.
    #[error("the program has no calculation `{name}` by a custom CRC{bits} whose result is read; {}", has(.known))]
    NoCalculation {
        /// The name.
        name: String,
        /// Which CRCs were meant: ` of 32 bits`, or empty for all.
        bits: String,
        /// The names of those that there are.
        known: Vec<String>,
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

/// The calculations of a program, for a message.
fn has(known: &[String]) -> String {
    match known {
        [] => "it has none".to_owned(),
        _ => format!("it has {}", known.join(", ")),
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

/// The calculations of a program, by custom CRCs and by others.
#[must_use]
pub fn calculations(program: &Program) -> Vec<Calculation<'_>> {
    SPEC.calculations(program)
}

/// Warnings for a program that hashes by custom CRCs without parameters: one line for each place.
#[must_use]
pub fn unset_custom_crcs(program: &Program, state: &State) -> Vec<String> {
    let unset = custom_crcs(program)
        .into_iter()
        .filter(|c| state.given_custom_crc(c.width).is_none())
        .filter(|c| c.calculation.and_then(|n| state.given_calculation(n)).is_none());
    let line = |CustomCrc { width, loc, .. }| {
        let place = place(program, loc);
        format!(
            "{place}: crc{width}_custom has the parameters of crc{width}: a test or --entries sets others by \
             `set_crc{width}_parameters crc{width}_custom POLYNOMIAL INITIAL XOR_OUT REFLECT_IN REFLECT_OUT`, \
             a controller by P4Runtime, BF Runtime or `weir ctl set crc{width}_custom`"
        )
    };
    unset.map(line).collect()
}
