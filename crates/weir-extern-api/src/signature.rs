//! What a P4 declaration says of an extern's parameters.

use weir_ir::Bits;

/// What an extern may do with the payload: the bytes of the packet that its parser has not
/// extracted.
///
/// In P4, the type of the parameter says it: `payload_read`, `payload_write` or `payload_resize`
/// of `weir/externs.p4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PayloadAccess {
    /// It reads the bytes.
    Read,
    /// It changes bytes, and keeps their number.
    Write,
    /// It may also append or remove bytes.
    Resize,
}

impl PayloadAccess {
    /// The P4 type of such a parameter.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            PayloadAccess::Read => "payload_read",
            PayloadAccess::Write => "payload_write",
            PayloadAccess::Resize => "payload_resize",
        }
    }

    /// The access that parameters of a P4 type have.
    #[must_use]
    pub fn of_type(name: &str) -> Option<Self> {
        let all = [PayloadAccess::Read, PayloadAccess::Write, PayloadAccess::Resize];
        all.into_iter().find(|access| access.type_name() == name)
    }
}

/// What is passed in a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterKind {
    /// Values: the widths in bits of its scalars, in order. A header is its validity (1 bit) and
    /// then its fields. The words of the scalars begin at `first_word` of [`Call`](crate::Call).
    Values {
        /// The call reads them.
        is_input: bool,
        /// The call writes them.
        is_output: bool,
        /// Bits of each scalar.
        widths: Vec<u32>,
        /// Index of the first word of the first scalar.
        first_word: usize,
    },
    /// The payload.
    Payload(PayloadAccess),
    /// A string literal.
    Text(String),
}

/// A parameter of an extern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the P4 declaration.
    pub name: String,
    /// What is passed in it.
    pub kind: ParameterKind,
}

impl Parameter {
    fn values(name: &str, widths: &[u32], is_input: bool, is_output: bool) -> Self {
        Parameter {
            name: name.to_owned(),
            kind: ParameterKind::Values {
                is_input,
                is_output,
                widths: widths.to_vec(),
                first_word: 0,
            },
        }
    }

    /// An `in` parameter with scalars of these widths in bits.
    #[must_use]
    pub fn input(name: &str, widths: &[u32]) -> Self {
        Parameter::values(name, widths, true, false)
    }

    /// An `out` parameter with scalars of these widths in bits.
    #[must_use]
    pub fn output(name: &str, widths: &[u32]) -> Self {
        Parameter::values(name, widths, false, true)
    }

    /// An `inout` parameter with scalars of these widths in bits.
    #[must_use]
    pub fn in_out(name: &str, widths: &[u32]) -> Self {
        Parameter::values(name, widths, true, true)
    }

    /// The payload.
    #[must_use]
    pub fn payload(name: &str, access: PayloadAccess) -> Self {
        Parameter {
            name: name.to_owned(),
            kind: ParameterKind::Payload(access),
        }
    }

    /// A string literal.
    #[must_use]
    pub fn text(name: &str, value: &str) -> Self {
        Parameter {
            name: name.to_owned(),
            kind: ParameterKind::Text(value.to_owned()),
        }
    }
}

/// The parameters and results of a call, and where their words are.
///
/// Each scalar takes whole 64-bit words, the least significant first. Scalars follow each other in
/// the order of the declaration; the results are last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    parameters: Vec<Parameter>,
    results: Vec<u32>,
    first_result: usize,
    words: usize,
}

impl Signature {
    /// For these parameters, and results with scalars of these widths in bits.
    #[must_use]
    pub fn new(mut parameters: Vec<Parameter>, results: &[u32]) -> Self {
        let mut words = 0;
        for parameter in &mut parameters {
            if let ParameterKind::Values { widths, first_word, .. } = &mut parameter.kind {
                *first_word = words;
                words += widths.iter().map(|w| Bits::words_of(*w)).sum::<usize>();
            }
        }
        Signature {
            parameters,
            results: results.to_vec(),
            first_result: words,
            words: words + results.iter().map(|w| Bits::words_of(*w)).sum::<usize>(),
        }
    }

    /// The parameters in the order of the declaration.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Bits of each scalar of the result.
    #[must_use]
    pub fn results(&self) -> &[u32] {
        &self.results
    }

    /// Index of the first word of the results.
    #[must_use]
    pub fn first_result(&self) -> usize {
        self.first_result
    }

    /// Words of all scalars together.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The access to the payload; `None`: no parameter is the payload. The strongest, if several
    /// are.
    #[must_use]
    pub fn payload(&self) -> Option<PayloadAccess> {
        let access = self.parameters.iter().filter_map(|p| match p.kind {
            ParameterKind::Payload(access) => Some(access),
            ParameterKind::Values { .. } | ParameterKind::Text(_) => None,
        });
        access.max()
    }

    /// Width in bits and first word of scalar `scalar` of a parameter.
    #[must_use]
    pub fn scalar(&self, parameter: usize, scalar: usize) -> Option<(u32, usize)> {
        match &self.parameters.get(parameter)?.kind {
            ParameterKind::Values { widths, first_word, .. } => {
                let before: usize = widths.get(..scalar)?.iter().map(|w| Bits::words_of(*w)).sum();
                Some((*widths.get(scalar)?, first_word + before))
            }
            ParameterKind::Payload(_) | ParameterKind::Text(_) => None,
        }
    }

    /// The string literal of a parameter.
    #[must_use]
    pub fn text(&self, parameter: usize) -> Option<&str> {
        match &self.parameters.get(parameter)?.kind {
            ParameterKind::Text(text) => Some(text),
            ParameterKind::Values { .. } | ParameterKind::Payload(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_take_whole_words_in_the_order_of_the_declaration() {
        let signature = Signature::new(
            vec![
                Parameter::input("a", &[1, 130]),
                Parameter::payload("p", PayloadAccess::Write),
                Parameter::output("b", &[64]),
            ],
            &[8],
        );
        assert_eq!(signature.scalar(0, 0), Some((1, 0)));
        assert_eq!(signature.scalar(0, 1), Some((130, 1)));
        assert_eq!(signature.scalar(0, 2), None);
        assert_eq!(signature.scalar(1, 0), None);
        assert_eq!(signature.scalar(2, 0), Some((64, 4)));
        assert_eq!((signature.first_result(), signature.words()), (5, 6));
        assert_eq!(signature.payload(), Some(PayloadAccess::Write));
    }

    #[test]
    fn types_and_accesses_correspond() {
        for access in [PayloadAccess::Read, PayloadAccess::Write, PayloadAccess::Resize] {
            assert_eq!(PayloadAccess::of_type(access.type_name()), Some(access));
        }
        assert_eq!(PayloadAccess::of_type("payload"), None);
    }
}
