//! The metadata stack of a packet: hops, the newest first.

use super::metadata::{self, Format, Metadata};
use crate::error::{Expected, Reason, WireError};
use crate::hop::Hop;

/// The bit of the checksum complement.
const COMPLEMENT: u16 = 0x0001;

/// Which items a hop's record has, and their order; fixed for all hops of a packet.
#[derive(Clone, Copy)]
pub struct HopLayout {
    format: Format,
    bitmap: u16,
    /// Words of the items of `bitmap`.
    baseline: u8,
    /// Words of a record: the baseline, and domain-specific metadata.
    words: u8,
}

impl std::fmt::Debug for HopLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HopLayout")
            .field("bitmap", &format_args!("{:#06x}", self.bitmap))
            .field("words", &self.words)
            .finish()
    }
}

/// How a node of INT 1.0 lays out the fields whose size implementations disagree about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum V1Profile {
    /// By HopML: as specified if its sum fits, else the one of the other profiles whose sum does.
    /// One timestamp of 64 bits with level 2 ports of 16 bits has the specified sum, so that these
    /// nodes need [`V1Profile::Fields`].
    #[default]
    Detect,
    /// These sizes.
    Fields {
        /// Timestamps have 64 bits; 32 as specified.
        wide_timestamps: bool,
        /// Level 2 interface ids have 16 bits; 32 as specified.
        short_l2_ports: bool,
    },
}

impl V1Profile {
    /// The sizes of the specification.
    pub const SPECIFIED: Self = V1Profile::Fields {
        wide_timestamps: false,
        short_l2_ports: false,
    };

    fn candidates(self) -> impl Iterator<Item = Format> {
        let (all, one) = match self {
            V1Profile::Detect => (&[(false, false), (true, true), (true, false), (false, true)][..], None),
            V1Profile::Fields {
                wide_timestamps,
                short_l2_ports,
            } => (&[][..], Some((wide_timestamps, short_l2_ports))),
        };
        let both = all.iter().copied().chain(one);
        both.map(|(wide_timestamps, short_l2_ports)| Format::V1 {
            wide_timestamps,
            short_l2_ports,
        })
    }
}

impl HopLayout {
    /// Words of a record of the lab format.
    pub const LAB_WORDS: u8 = 5;

    /// The layout of INT 2.x. Words beyond those of the bitmap are domain-specific metadata.
    ///
    /// `None` if `words` (HopML, in words of 4 bytes) is less than the bitmap needs.
    #[must_use]
    #[inline]
    pub fn v2(bitmap: u16, words: u8) -> Option<Self> {
        let baseline = Self::words_of_v2(bitmap);
        (words >= baseline).then_some(HopLayout {
            format: Format::V2,
            bitmap,
            baseline,
            words,
        })
    }

    /// Words of 4 bytes that an instruction bitmap of INT 2.x needs.
    #[must_use]
    #[inline]
    pub fn words_of_v2(bitmap: u16) -> u8 {
        // Bits 4 to 6 stand for two words.
        (bitmap.count_ones() + (bitmap & 0x0e00).count_ones()) as u8
    }

    /// The layout of INT 1.0; `None` if no layout of the profile has this number of words.
    #[must_use]
    pub fn v1(bitmap: u16, words: u8, profile: V1Profile) -> Option<Self> {
        let mut candidates = profile.candidates();
        let format = candidates.find(|format| metadata::words(*format, bitmap) == words)?;
        Some(Self::exact(format, bitmap, words))
    }

    /// The layout of INT 0.x, with timestamps of 32 bits, or of 64 if the number of words says so.
    #[must_use]
    pub fn v0(bitmap: u16, words: u8) -> Option<Self> {
        let mut candidates = [false, true]
            .map(|wide_timestamps| Format::V0 { wide_timestamps })
            .into_iter();
        let format = candidates.find(|format| metadata::words(*format, bitmap) == words)?;
        Some(Self::exact(format, bitmap, words))
    }

    /// The layout of INT 1.0 with the sizes of the specification.
    #[must_use]
    pub fn specified_v1(bitmap: u16) -> Self {
        Self::of_format(
            Format::V1 {
                wide_timestamps: false,
                short_l2_ports: false,
            },
            bitmap,
        )
    }

    /// The layout of INT 0.x with the sizes of the specification.
    #[must_use]
    pub fn specified_v0(bitmap: u16) -> Self {
        Self::of_format(Format::V0 { wide_timestamps: false }, bitmap)
    }

    fn of_format(format: Format, bitmap: u16) -> Self {
        Self::exact(format, bitmap, metadata::words(format, bitmap))
    }

    /// The layout of the lab format.
    #[must_use]
    pub fn lab() -> Self {
        Self::exact(Format::Lab, 0x8000, Self::LAB_WORDS)
    }

    const fn exact(format: Format, bitmap: u16, words: u8) -> Self {
        HopLayout {
            format,
            bitmap,
            baseline: words,
            words,
        }
    }

    /// Words of 4 bytes that a hop adds (HopML).
    #[must_use]
    pub const fn words(self) -> u8 {
        self.words
    }

    /// Bytes that a hop adds.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.words as usize * 4
    }

    /// Bytes of a hop's domain-specific metadata.
    #[must_use]
    pub const fn domain_bytes(self) -> usize {
        (self.words as usize).saturating_sub(self.baseline as usize) * 4
    }

    fn has_complement(self) -> bool {
        self.bitmap & COMPLEMENT != 0 && self.format.has_complement()
    }

    /// Appends the record of a hop. Values that the hop does not have are all ones.
    ///
    /// `domain` is cut, or filled with ones, to [`HopLayout::domain_bytes`]. `complement` counts
    /// only if the bitmap has bit 15 of INT 1.0 or 2.x.
    pub fn write(self, hop: &Hop, domain: &[u8], complement: Option<u32>, out: &mut Vec<u8>) {
        self.write_of_size(hop, domain, self.domain_bytes(), complement, out);
    }

    /// The record of a source, which has more domain-specific metadata (source-only) than others.
    fn write_of_size(self, hop: &Hop, domain: &[u8], domain_bytes: usize, complement: Option<u32>, out: &mut Vec<u8>) {
        let metadata = Metadata {
            hop: *hop,
            drop_reason: None,
        };
        let bitmap = if self.has_complement() {
            self.bitmap & !COMPLEMENT
        } else {
            self.bitmap
        };
        metadata::encode(self.format, bitmap, &metadata, out);
        let end = out.len() + domain_bytes;
        out.extend(domain.iter().take(domain_bytes));
        out.resize(end, 0xff);
        if self.has_complement() {
            out.extend(complement.unwrap_or(u32::MAX).to_be_bytes());
        }
    }

    /// Appends the record of a source that adds source-only metadata: `domain` in full, which is
    /// longer than [`HopLayout::domain_bytes`].
    pub fn write_source(self, hop: &Hop, domain: &[u8], complement: Option<u32>, out: &mut Vec<u8>) {
        self.write_of_size(hop, domain, domain.len().max(self.domain_bytes()), complement, out);
    }
}

/// The record of one hop on the wire.
#[derive(Debug, Clone, Copy)]
pub struct HopView<'a> {
    bytes: &'a [u8],
    layout: HopLayout,
}

impl<'a> HopView<'a> {
    /// The values of the record.
    #[must_use]
    #[inline(always)]
    pub fn hop(self) -> Hop {
        // The complement is not part of a hop and may be after domain-specific metadata.
        metadata::decode_hop(self.layout.format, self.layout.bitmap & !COMPLEMENT, self.bytes)
    }

    /// The domain-specific metadata; that of a source has its source-only part at the end.
    #[must_use]
    pub fn domain_metadata(self) -> &'a [u8] {
        let complement = if self.layout.has_complement() { 4 } else { 0 };
        let start = usize::from(self.layout.baseline) * 4 - complement;
        let end = self.bytes.len().saturating_sub(complement);
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// The checksum complement; `None` if the record has none, or the node updated the checksum of
    /// the transport header instead (all ones).
    #[must_use]
    pub fn checksum_complement(self) -> Option<u32> {
        let last = self.bytes.last_chunk().filter(|_| self.layout.has_complement())?;
        let value = u32::from_be_bytes(*last);
        (value != u32::MAX).then_some(value)
    }

    /// The bytes of the record.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

/// The metadata that the source of a packet adds beyond those of other hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceOnly {
    /// None.
    None,
    /// What is left of the stack after whole hops.
    Remainder,
    /// This many bytes.
    Bytes(usize),
}

/// The metadata stack of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    bytes: &'a [u8],
    layout: HopLayout,
    /// Hops that the headers announce.
    total: u16,
    /// Hops whose records are complete.
    captured: u16,
    /// Bytes that the record of the source has in addition.
    source_only: u16,
}

impl<'a> Stack<'a> {
    /// A stack of no hops.
    pub const EMPTY: Stack<'static> = Stack {
        bytes: &[],
        layout: HopLayout::exact(Format::V2, 0, 0),
        total: 0,
        captured: 0,
        source_only: 0,
    };

    /// A stack of `length` bytes of which `bytes` are there (reports truncate packets).
    ///
    /// `offset` is that of the stack, for errors.
    ///
    /// # Errors
    /// Source-only metadata without a hop, or a length that is no multiple of that of a hop without
    /// them.
    pub(crate) fn new(
        layout: HopLayout,
        bytes: &'a [u8],
        length: usize,
        source_only: SourceOnly,
        offset: usize,
    ) -> Result<Self, WireError> {
        let hop = layout.bytes();
        let remainder = match source_only {
            SourceOnly::None => 0,
            SourceOnly::Remainder => length.checked_rem(hop).unwrap_or(0),
            SourceOnly::Bytes(bytes) => bytes.min(length),
        };
        let of_hops = length - remainder;
        let total = of_hops.checked_div(hop).unwrap_or(0);
        if total * hop != of_hops || (total == 0 && remainder != 0) {
            let expected = Expected::MultipleOf(hop as u32);
            return Err(WireError::new(
                Reason::StackLength,
                "INT metadata stack",
                offset,
                expected,
                of_hops as u32,
            ));
        }
        let bytes = bytes.get(..length).unwrap_or(bytes);
        let captured = if bytes.len() == length {
            total
        } else {
            // The last record may be longer than the others.
            bytes.len().checked_div(hop).unwrap_or(0).min(total.saturating_sub(1))
        };
        Ok(Stack {
            bytes,
            layout,
            total: total as u16,
            captured: captured as u16,
            source_only: remainder as u16,
        })
    }

    /// The layout of a hop.
    #[must_use]
    pub fn layout(&self) -> HopLayout {
        self.layout
    }

    /// The number of hops whose records are there.
    #[must_use]
    pub fn len(&self) -> usize {
        self.captured.into()
    }

    /// Whether no record is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.captured == 0
    }

    /// The number of hops by the headers; more than [`Stack::len`] if the packet was truncated. The
    /// oldest hops are missing then.
    #[must_use]
    pub fn announced(&self) -> usize {
        self.total.into()
    }

    /// A hop, 0 being the newest.
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<HopView<'a>> {
        if index >= self.len() {
            return None;
        }
        let size = self.layout.bytes();
        let start = index * size;
        let is_source = index + 1 == self.announced();
        let extra = if is_source { self.source_only.into() } else { 0 };
        let bytes = self.bytes.get(start..start + size + extra)?;
        Some(HopView {
            bytes,
            layout: self.layout,
        })
    }

    /// The hops in the order of the wire, the newest first; `rev()` gives source to sink.
    pub fn newest_first(self) -> impl DoubleEndedIterator<Item = HopView<'a>> + ExactSizeIterator {
        // `get` has every index below `len`.
        let empty = HopView {
            bytes: &[],
            layout: self.layout,
        };
        (0..self.len()).map(move |index| self.get(index).unwrap_or(empty))
    }
}

#[cfg(test)]
mod tests {
    use super::{HopLayout, V1Profile};
    use crate::hop::TimestampWidth;

    /// The width of timestamps and the size of level 2 ports that are found for 0x8e00: node id,
    /// both timestamps, level 2 ports.
    fn sizes(words: u8, profile: V1Profile) -> Option<(TimestampWidth, u32)> {
        let layout = HopLayout::v1(0x8e00, words, profile)?;
        let mut bytes: Vec<u8> = (0..layout.bytes() as u8).collect();
        bytes[4] = 0;
        let hop = super::HopView { bytes: &bytes, layout }.hop();
        let width = hop.ingress_timestamp?.width;
        Some((width, hop.l2_egress_port?))
    }

    #[test]
    fn sizes_of_int_1_are_detected_by_the_words_of_a_hop() {
        use TimestampWidth::{Bits32, Bits64};
        let sizes = |words| sizes(words, V1Profile::Detect);
        assert_eq!(sizes(5), Some((Bits32, 0x1011_1213)));
        assert_eq!(sizes(4), Some((Bits32, 0x0e0f)));
        assert_eq!(sizes(7), Some((Bits64, 0x1819_1a1b)));
        assert_eq!(sizes(6), Some((Bits64, 0x1617)));
        assert_eq!(sizes(8), None);
    }

    #[test]
    fn fixed_sizes_are_not_detected() {
        let fields = |wide_timestamps, short_l2_ports| V1Profile::Fields {
            wide_timestamps,
            short_l2_ports,
        };
        for (profile, words) in [
            (V1Profile::SPECIFIED, 5),
            (fields(false, true), 4),
            (fields(true, false), 7),
            (fields(true, true), 6),
        ] {
            let fitting = (0..32).filter(|words| sizes(*words, profile).is_some());
            assert_eq!(fitting.collect::<Vec<_>>(), [words]);
        }
    }

    #[test]
    fn one_wide_timestamp_with_short_ports_has_the_specified_sum() {
        let short = V1Profile::Fields {
            wide_timestamps: true,
            short_l2_ports: true,
        };
        let width = |profile| {
            let layout = HopLayout::v1(0x8a00, 4, profile).unwrap();
            let hop = super::HopView {
                bytes: &[0; 16],
                layout,
            }
            .hop();
            hop.ingress_timestamp.unwrap().width
        };
        assert_eq!(width(V1Profile::Detect), TimestampWidth::Bits32);
        assert_eq!(width(short), TimestampWidth::Bits64);
    }
}
