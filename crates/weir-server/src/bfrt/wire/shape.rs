//! Shapes: the bytes that plain updates share when they differ only in their values.

use super::PlainUpdate;
use smallvec::SmallVec;
use std::ops::Range;
use weir_proto::bfrt_proto::update::Type;

/// A plain update and the offsets of its values. An update of the same length that has the same
/// bytes everywhere else has the same meaning with other values: tags, lengths and ids are all
/// among the compared bytes.
pub(super) struct Shape {
    sample: Box<[u8]>,
    /// The ranges of the values, in the order of [`PlainUpdate`].
    values: Box<[Range<usize>]>,
    /// All other ranges, ascending.
    rest: Box<[Range<usize>]>,
    ty: Type,
    table: usize,
    action: Option<usize>,
    prefixes: SmallVec<[u32; 2]>,
}

impl Shape {
    /// The shape of an update that was read as `plain`.
    pub fn of(update: &[u8], plain: &PlainUpdate<'_>) -> Shape {
        let begin = update.as_ptr().addr();
        let place = |value: &&[u8]| {
            let start = value.as_ptr().addr() - begin;
            start..start + value.len()
        };
        let values: Box<[Range<usize>]> = plain.values.iter().map(place).collect();
        let mut in_order: Vec<&Range<usize>> = values.iter().collect();
        in_order.sort_by_key(|value| value.start);
        let starts = std::iter::once(0).chain(in_order.iter().map(|value| value.end));
        let ends = in_order.iter().map(|value| value.start).chain([update.len()]);
        Shape {
            rest: starts.zip(ends).map(|(start, end)| start..end).collect(),
            sample: update.into(),
            values,
            ty: plain.ty,
            table: plain.table,
            action: plain.action,
            prefixes: plain.prefixes.clone(),
        }
    }

    /// Reads an update, if it has this shape.
    pub fn read<'a>(&self, update: &'a [u8]) -> Option<PlainUpdate<'a>> {
        let is_same = |range: &Range<usize>| update[range.clone()] == self.sample[range.clone()];
        let is_alike = update.len() == self.sample.len() && self.rest.iter().all(is_same);
        is_alike.then(|| PlainUpdate {
            ty: self.ty,
            table: self.table,
            action: self.action,
            prefixes: self.prefixes.clone(),
            values: self.values.iter().map(|range| &update[range.clone()]).collect(),
        })
    }
}
