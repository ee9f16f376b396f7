//! One call of an extern.

use crate::payload::{Payload, ResizeError};
use crate::signature::{ParameterKind, PayloadAccess, Signature};
use weir_ir::Bits;

/// What becomes of the packet after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Outcome {
    /// It continues after the call.
    #[default]
    Continue,
    /// It is dropped, and counted as dropped by the extern.
    Drop,
}

/// The values of one call: parameters, results, payload.
///
/// Parameters are numbered from 0 in the order of the P4 declaration, the payload included.
/// Numbers out of range read as 0, and writes to them have no effect: [`Extern::check`] is the
/// place to refuse a declaration that does not fit.
///
/// [`Extern::check`]: crate::Extern::check
#[derive(Debug)]
pub struct Call<'a> {
    signature: &'a Signature,
    words: &'a mut [u64],
    payload: Option<Payload<'a>>,
}

impl<'a> Call<'a> {
    /// A call with the words that [`Signature`] describes.
    ///
    /// # Panics
    /// Fewer words than [`Signature::words`].
    #[must_use]
    pub fn new(signature: &'a Signature, words: &'a mut [u64], payload: Option<Payload<'a>>) -> Self {
        assert!(
            words.len() >= signature.words(),
            "a call needs all words of its signature"
        );
        Call {
            signature,
            words,
            payload,
        }
    }

    /// The declaration.
    #[must_use]
    pub fn signature(&self) -> &'a Signature {
        self.signature
    }

    /// The first scalar of a parameter: its least significant 64 bits.
    #[must_use]
    pub fn get(&self, parameter: usize) -> u64 {
        let scalar = self.signature.scalar(parameter, 0);
        scalar.map_or(0, |(_, word)| self.words[word])
    }

    /// A scalar of a parameter in its width.
    #[must_use]
    pub fn bits(&self, parameter: usize, scalar: usize) -> Option<Bits> {
        let (width, word) = self.signature.scalar(parameter, scalar)?;
        Some(Bits::from_words(width, &self.words[word..word + Bits::words_of(width)]))
    }

    /// Sets the first scalar of an `out` or `inout` parameter. Bits beyond its width are cut off.
    pub fn set(&mut self, parameter: usize, value: u64) {
        if self.is_output(parameter) {
            self.store(parameter, value);
        }
    }

    /// Sets a scalar of an `out` or `inout` parameter, truncated or extended with zeros.
    pub fn set_bits(&mut self, parameter: usize, scalar: usize, value: &Bits) {
        if self.is_output(parameter)
            && let Some((width, word)) = self.signature.scalar(parameter, scalar)
        {
            value
                .zero_extend(width)
                .to_words(&mut self.words[word..word + Bits::words_of(width)]);
        }
    }

    /// Sets the first scalar of any parameter. For the caller of an extern, and for tests.
    pub fn set_input(&mut self, parameter: usize, value: u64) {
        self.store(parameter, value);
    }

    /// Sets a scalar of the result. Bits beyond its width are cut off.
    pub fn set_result(&mut self, scalar: usize, value: u64) {
        let Some(&width) = self.signature.results().get(scalar) else {
            return;
        };
        let before: usize = self.signature.results()[..scalar]
            .iter()
            .map(|w| Bits::words_of(*w))
            .sum();
        let first = self.signature.first_result() + before;
        self.words[first] = cut(width, value);
        self.words[first + 1..first + Bits::words_of(width)].fill(0);
    }

    /// The bytes of all scalars of a parameter, one after the other, most significant byte first.
    /// Each scalar takes whole bytes. Appended to `to`.
    pub fn append_bytes(&self, parameter: usize, to: &mut Vec<u8>) {
        let mut scalar = 0;
        while let Some((width, word)) = self.signature.scalar(parameter, scalar) {
            let words = &self.words[word..word + Bits::words_of(width)];
            let bytes = width.div_ceil(8) as usize;
            for (at, word) in words.iter().enumerate().rev() {
                let used = (bytes - 8 * at).min(8);
                to.extend_from_slice(&word.to_be_bytes()[8 - used..]);
            }
            scalar += 1;
        }
    }

    /// The payload; empty if no parameter is the payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.payload.as_ref().map_or(&[], Payload::bytes)
    }

    /// The payload, to change its bytes; empty unless the declaration lets the extern write it.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let may_write = self.signature.payload() >= Some(PayloadAccess::Write);
        match &mut self.payload {
            Some(payload) if may_write => payload.bytes_mut(),
            Some(_) | None => &mut [],
        }
    }

    /// Gives the payload another length in bytes. Appended bytes are 0.
    ///
    /// # Errors
    /// There is no room, or the declaration does not let the extern resize it.
    pub fn resize_payload(&mut self, length: usize) -> Result<(), ResizeError> {
        let may_resize = self.signature.payload() == Some(PayloadAccess::Resize);
        match &mut self.payload {
            Some(payload) if may_resize => payload.resize(length),
            other => Err(ResizeError {
                requested: length,
                available: other.as_ref().map_or(0, |p| p.bytes().len()),
            }),
        }
    }

    /// The payload with its room, when the call is done.
    #[must_use]
    pub fn into_payload(self) -> Option<Payload<'a>> {
        self.payload
    }

    fn is_output(&self, parameter: usize) -> bool {
        let kind = self.signature.parameters().get(parameter).map(|p| &p.kind);
        matches!(kind, Some(ParameterKind::Values { is_output: true, .. }))
    }

    fn store(&mut self, parameter: usize, value: u64) {
        if let Some((width, word)) = self.signature.scalar(parameter, 0) {
            self.words[word] = cut(width, value);
            self.words[word + 1..word + Bits::words_of(width)].fill(0);
        }
    }
}

/// The least significant bits of a number.
fn cut(width: u32, value: u64) -> u64 {
    match width {
        0 => 0,
        1..64 => value & ((1 << width) - 1),
        64.. => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::Parameter;

    fn signature(access: PayloadAccess) -> Signature {
        Signature::new(
            vec![
                Parameter::input("a", &[12]),
                Parameter::output("b", &[8, 100]),
                Parameter::payload("p", access),
            ],
            &[1],
        )
    }

    #[test]
    fn values_are_cut_to_their_width_and_inputs_stay() {
        let signature = signature(PayloadAccess::Read);
        let mut words = [u64::MAX; 5];
        let mut call = Call::new(&signature, &mut words, None);
        call.set_input(0, 0x1fab);
        call.set(0, 7);
        assert_eq!(call.get(0), 0xfab);
        call.set(1, 0x1ff);
        call.set_bits(1, 1, &Bits::new(128, 1 << 99 | 5));
        assert_eq!(call.bits(1, 1), Some(Bits::new(100, 1 << 99 | 5)));
        call.set_result(0, 2);
        call.set(9, 1);
        assert_eq!(call.get(9), 0);
        let mut bytes = Vec::new();
        call.append_bytes(0, &mut bytes);
        assert_eq!(bytes, [0x0f, 0xab]);
        bytes.clear();
        call.append_bytes(1, &mut bytes);
        assert_eq!(bytes, [0xff, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(words, [0xfab, 0xff, 5, 1 << 35, 0]);
    }

    #[test]
    fn the_declaration_limits_what_may_be_done_to_the_payload() {
        for (access, writes, resizes) in [
            (PayloadAccess::Read, false, false),
            (PayloadAccess::Write, true, false),
            (PayloadAccess::Resize, true, true),
        ] {
            let signature = signature(access);
            let (mut words, mut memory) = ([0; 5], [1; 4]);
            let payload = Payload::new(&mut memory, 0, 2);
            let mut call = Call::new(&signature, &mut words, payload);
            assert_eq!(call.payload(), [1, 1]);
            assert_eq!(call.payload_mut().len(), if writes { 2 } else { 0 });
            assert_eq!(call.resize_payload(4).is_ok(), resizes);
            assert_eq!(call.payload().len(), if resizes { 4 } else { 2 });
        }
    }
}
