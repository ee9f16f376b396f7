//! The operations that code leaves to the runtime: extern calls, operations on values wider than a
//! register, and counts that are reported at the end of a vector.
//!
//! [`Sites`] numbers them, and lays out the argument area and the tally area that they use. It
//! relies on the order in which [`crate::codegen`] stores arguments, and executes nothing:
//! [`crate::run::calls`] does.

use crate::analysis::{Analysis, VarInfo};
use crate::layout::VECTOR;
use std::ops::Range;
use weir_interp::{ArgValue, InValue};
use weir_ir::pipeline::CallKind;
use weir_ir::{ArgumentValue, Bits, InLeaf, InstKind, Operand, Program, Rvalue, ValueSetId, VarId};

/// An operation on values wider than a register, which the runtime evaluates.
#[derive(Debug, Clone)]
pub(crate) struct WideOp {
    /// The variable of the result; `None`: the result is narrow and returned.
    pub dst: Option<VarId>,
    pub value: Rvalue,
    /// Bits of the result.
    pub width: u32,
}

/// Packets that a call counts, reported at the end of the vector. The mask of the slots is the
/// tally word with this tally's number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    /// The number of the counter ([`CallKind::Count`]).
    pub counter: usize,
    /// The index, if it is constant.
    pub index: Option<u64>,
    /// Otherwise, in the tally area, the first word of the row with the index of each slot.
    pub row: usize,
}

/// The type of a scalar in the argument area or in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// In bits; of a varbit, the most.
    pub width: u32,
    pub varbit: bool,
}

impl Scalar {
    /// The words that it takes: of a varbit, length and address.
    pub fn words(self) -> usize {
        if self.varbit { 2 } else { Bits::words_of(self.width) }
    }

    /// The value in these words.
    ///
    /// # Safety
    /// Those of a varbit are its length in bits and, unless that is 0, the address of that many
    /// bits.
    pub unsafe fn read(self, words: &[u64]) -> Bits {
        if !self.varbit {
            return Bits::from_words(self.width, words);
        }
        let bits = u32::try_from(words[0]).unwrap_or(0).min(self.width);
        if bits == 0 {
            return Bits::zero(0);
        }
        // SAFETY: the caller guarantees that words 0 and 1 are length and address of valid bytes;
        // `bits` is no more than that length.
        let bytes = unsafe { std::slice::from_raw_parts(words[1] as *const u8, bits as usize / 8) };
        Bits::from_bytes(bits, bytes)
    }

    /// Writes a value into words. Bits beyond the width, which a host may return, are cut off.
    /// Varbits are never written: such calls are not compiled.
    pub fn write(self, words: &mut [u64], value: &Bits) {
        debug_assert!(!self.varbit);
        if self.varbit {
            return;
        }
        let words = &mut words[..self.words()];
        value.to_words(words);
        if let (Some(last), rest @ 1..) = (words.last_mut(), self.width % u64::BITS) {
            *last &= (1 << rest) - 1;
        } else if self.width == 0 {
            words.fill(0);
        }
    }
}

impl From<VarInfo> for Scalar {
    fn from(info: VarInfo) -> Self {
        Scalar {
            width: info.width,
            varbit: info.varbit,
        }
    }
}

/// An argument of a call, by its direction. It takes words in the argument area.
#[derive(Debug, Clone)]
enum Argument {
    In(Vec<InputLeaf>),
    Out(Vec<Scalar>),
    /// A compile-time value, which takes none.
    Static,
}

/// A part of an input argument.
#[derive(Debug, Clone)]
enum InputLeaf {
    Scalar(Scalar),
    /// A word with the header's validity, and its fields.
    Header(Vec<Scalar>),
}

impl InputLeaf {
    /// Words in the argument area.
    fn words(&self) -> usize {
        match self {
            InputLeaf::Scalar(scalar) => scalar.words(),
            InputLeaf::Header(fields) => 1 + fields.iter().map(|f| f.words()).sum::<usize>(),
        }
    }
}

/// The layout of a call in the argument area. The first two words are the parser's cursor and the
/// handle of the table entry; then come the fields of this struct, in their order.
#[derive(Debug, Clone)]
pub(crate) struct CallSite {
    arguments: Vec<Argument>,
    results: Vec<Scalar>,
    /// Further variables that the call reads, and those that it writes.
    reads: Vec<(VarId, Scalar)>,
    writes: Vec<(VarId, Scalar)>,
    /// Words of the arguments and results.
    words: usize,
}

/// The arguments of an extern call, as the host sees them.
#[derive(Debug, Clone, Default)]
pub struct CallArguments {
    /// One per argument of the call. The host's values in [`ArgValue::Out`] are written back, in
    /// the width that they had.
    pub arguments: Vec<ArgValue>,
    /// One per scalar of the result, zero on entry.
    pub results: Vec<Bits>,
    /// Handle of the table entry that the call belongs to; 0 if none.
    pub entry: u32,
    /// Bits of the packet that the parser has extracted or skipped so far.
    pub cursor: usize,
    /// Further variables that the call reads.
    pub reads: Vec<(VarId, Bits)>,
    /// Further variables that the call writes, with their values before.
    pub writes: Vec<(VarId, Bits)>,
}

impl CallSite {
    /// Reads the arguments from the area.
    ///
    /// # Safety
    /// Code filled the area for this call, and the packet is still there.
    pub unsafe fn read(&self, area: &[u64]) -> CallArguments {
        let mut word_index = 2;
        let mut next = |scalar: Scalar| {
            // SAFETY: code puts varbits there as `Scalar::read` requires.
            let value = unsafe { scalar.read(&area[word_index..]) };
            word_index += scalar.words();
            value
        };
        let one_bit = Scalar {
            width: 1,
            varbit: false,
        };
        let arguments = self
            .arguments
            .iter()
            .map(|a| match a {
                Argument::In(leaves) => ArgValue::In(
                    leaves
                        .iter()
                        .map(|leaf| match leaf {
                            InputLeaf::Scalar(s) => InValue::Scalar(next(*s)),
                            InputLeaf::Header(fields) => InValue::Header {
                                valid: !next(one_bit).is_zero(),
                                fields: fields.iter().map(|f| next(*f)).collect(),
                            },
                        })
                        .collect(),
                ),
                Argument::Out(scalars) => ArgValue::Out(scalars.iter().map(|s| next(*s)).collect()),
                Argument::Static => ArgValue::Static,
            })
            .collect();
        for s in &self.results {
            next(*s);
        }
        let results = self
            .results
            .iter()
            .map(|s| Bits::zero(if s.varbit { 0 } else { s.width }))
            .collect();
        CallArguments {
            arguments,
            results,
            entry: area[1] as u32,
            cursor: area[0] as usize,
            reads: self.reads.iter().map(|(v, s)| (*v, next(*s))).collect(),
            writes: self.writes.iter().map(|(v, s)| (*v, next(*s))).collect(),
        }
    }

    fn new(
        arguments: Vec<Argument>,
        results: Vec<Scalar>,
        reads: Vec<(VarId, Scalar)>,
        writes: Vec<(VarId, Scalar)>,
    ) -> Self {
        let words_of = |argument: &Argument| match argument {
            Argument::In(leaves) => leaves.iter().map(InputLeaf::words).sum(),
            Argument::Out(scalars) => scalars.iter().map(|s| s.words()).sum(),
            Argument::Static => 0,
        };
        let words = arguments.iter().map(words_of).sum::<usize>() + results.iter().map(|s| s.words()).sum::<usize>();
        CallSite {
            arguments,
            results,
            reads,
            writes,
            words,
        }
    }

    /// Words of the arguments and results.
    pub fn extern_words(&self) -> usize {
        self.words
    }

    /// Cuts off the bits of outputs beyond their widths. Code relies on that.
    pub fn cut_outputs(&self, words: &mut [u64]) {
        let mut word_index = 0;
        let mut cut = |word_index: &mut usize, scalar: &Scalar| {
            *word_index += scalar.words();
            match scalar.width % u64::BITS {
                0 if scalar.width == 0 => words[*word_index - 1] = 0,
                0 => {}
                rest => words[*word_index - 1] &= (1 << rest) - 1,
            }
        };
        for argument in &self.arguments {
            match argument {
                Argument::In(leaves) => word_index += leaves.iter().map(InputLeaf::words).sum::<usize>(),
                Argument::Out(scalars) => scalars.iter().for_each(|s| cut(&mut word_index, s)),
                Argument::Static => {}
            }
        }
        self.results.iter().for_each(|s| cut(&mut word_index, s));
    }

    /// Writes the host's outputs to the area. Missing values are written as 0 and take their words,
    /// so that the offsets do not move. Code relies on each value having no more bits than its
    /// variable.
    pub fn write(&self, call: &CallArguments, area: &mut [u64]) {
        let mut word_index = 2;
        let mut put = |word_index: &mut usize, scalar: &Scalar, value: Option<&Bits>| {
            match value {
                Some(value) => scalar.write(&mut area[*word_index..], value),
                None => scalar.write(&mut area[*word_index..], &Bits::zero(scalar.width)),
            }
            *word_index += scalar.words();
        };
        for (number, argument) in self.arguments.iter().enumerate() {
            match argument {
                Argument::In(leaves) => word_index += leaves.iter().map(InputLeaf::words).sum::<usize>(),
                Argument::Out(scalars) => {
                    let values = match call.arguments.get(number) {
                        Some(ArgValue::Out(values)) => values.as_slice(),
                        _ => &[],
                    };
                    for (i, scalar) in scalars.iter().enumerate() {
                        put(&mut word_index, scalar, values.get(i));
                    }
                }
                Argument::Static => {}
            }
        }
        for (i, scalar) in self.results.iter().enumerate() {
            put(&mut word_index, scalar, call.results.get(i));
        }
        word_index += self.reads.iter().map(|(_, s)| s.words()).sum::<usize>();
        for (i, (_, scalar)) in self.writes.iter().enumerate() {
            put(&mut word_index, scalar, call.writes.get(i).map(|(_, value)| value));
        }
    }
}

/// The layout of the value sets that code tests inline: those of one narrow field. Each has a bit
/// per value, in one array for all sets.
#[derive(Debug, Default)]
pub(crate) struct ValueSetMembers {
    /// By set: its words in the array. `None`: code calls the host.
    words_by_set: Vec<Option<Range<usize>>>,
}

/// The greatest width of such a field.
const MAX_FIELD_BITS: u32 = 16;

impl ValueSetMembers {
    fn new(program: &Program) -> Self {
        let mut next = 0;
        let sets = program.value_sets.iter();
        let words = sets.map(|(_, set)| match set.fields.as_slice() {
            [field] if field.width <= MAX_FIELD_BITS => {
                let first = next;
                next += (1_usize << field.width).div_ceil(VECTOR);
                Some(first..next)
            }
            _ => None,
        });
        ValueSetMembers {
            words_by_set: words.collect(),
        }
    }

    /// The words of all sets.
    pub fn word_count(&self) -> usize {
        self.words_by_set.iter().flatten().last().map_or(0, |words| words.end)
    }

    /// The words of a set.
    pub fn words_of(&self, set: ValueSetId) -> Option<Range<usize>> {
        self.words_by_set.get(set.index())?.clone()
    }

    /// The first word of a set: that of value 0.
    pub fn first_word(&self, set: ValueSetId) -> Option<usize> {
        self.words_of(set).map(|words| words.start)
    }
}

/// An array of the host whose cells code reads and writes directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellArray {
    /// The number by which the host knows it.
    pub array: usize,
    /// Words of a cell.
    pub stride: usize,
    /// The words that code may access: the array has at least as many.
    pub words: usize,
}

/// The arrays whose cells calls read or write without the host.
fn directly_accessed_arrays(calls: &[CallKind]) -> Vec<CellArray> {
    let mut arrays = Vec::<CellArray>::new();
    for kind in calls {
        let (CallKind::ReadCell { array, flat, .. } | CallKind::WriteCell { array, flat, .. }) = kind else {
            continue;
        };
        let Some(flat) = flat else { continue };
        let Ok(words) = usize::try_from(flat.words()) else {
            continue;
        };
        match arrays.iter_mut().find(|existing| existing.array == *array) {
            Some(existing) => existing.words = existing.words.max(words),
            None => arrays.push(CellArray {
                array: *array,
                stride: flat.stride as usize,
                words,
            }),
        }
    }
    arrays
}

/// All operations that code leaves to the runtime, by number.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub wide_ops: Vec<WideOp>,
    /// In the order of [`weir_ir::pipeline::Pipeline::calls`].
    pub calls: Vec<CallSite>,
    /// The value sets that code tests inline.
    pub members: ValueSetMembers,
    /// Arrays whose cells code reads and writes directly.
    pub arrays: Vec<CellArray>,
    pub tallies: Vec<Tally>,
    /// By call: its tally, if it counts at the end of the vector.
    pub tally_of_call: Vec<Option<usize>>,
    /// Words of the tally area: the masks of tallies, then executed masks, then rows of indexes.
    pub tally_words: usize,
    /// Words of the argument area.
    pub argument_words: usize,
}

impl Sites {
    /// Collects the calls of a pipeline. `executed_masks`: the number of executed masks of hoisted
    /// lookups. Wide operations are added by code generation.
    pub fn new(analysis: &Analysis<'_>, executed_masks: usize) -> Self {
        let scalar_of = |v: VarId| Scalar::from(analysis.vars[v.index()]);
        let scalar_of_operand = |o: &Operand| match o {
            Operand::Var(v) => scalar_of(*v),
            Operand::Const(c) => Scalar {
                width: c.width(),
                varbit: false,
            },
        };
        let (mut calls, mut tallies, mut tally_of_call) = (Vec::new(), Vec::<Tally>::new(), Vec::new());
        let mut row_words = 0;
        for (id, block) in analysis.pipeline.body.blocks.iter() {
            for inst in &block.insts {
                let InstKind::Call(call) = &inst.kind else { continue };
                let mut tally = None;
                // In a loop a packet may count several times, so it counts at once.
                if let (CallKind::Count(counter), Some(index), false) = (
                    &analysis.pipeline.calls[calls.len()],
                    call.input(0),
                    analysis.repeated[id.index()],
                ) {
                    tally = Some(tallies.len());
                    tallies.push(Tally {
                        counter: *counter,
                        index: match index {
                            Operand::Const(c) => Some(c.to_u64_saturating()),
                            Operand::Var(_) => None,
                        },
                        row: row_words,
                    });
                    if matches!(index, Operand::Var(_)) {
                        row_words += VECTOR;
                    }
                }
                tally_of_call.push(tally);
                let arguments = call
                    .arguments
                    .iter()
                    .map(|a| match &a.value {
                        ArgumentValue::In(leaves) => Argument::In(
                            leaves
                                .iter()
                                .map(|l| match l {
                                    InLeaf::Value(o) => InputLeaf::Scalar(scalar_of_operand(o)),
                                    InLeaf::Header(h) => {
                                        let fields = &analysis.program().headers[*h].fields;
                                        InputLeaf::Header(fields.iter().map(|&f| scalar_of(f)).collect())
                                    }
                                })
                                .collect(),
                        ),
                        ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => {
                            Argument::Out(vars.iter().map(|&v| scalar_of(v)).collect())
                        }
                        _ => Argument::Static,
                    })
                    .collect();
                let (reads, writes) = match &analysis.pipeline.calls[calls.len()] {
                    CallKind::Host { reads, writes, .. } => (reads.as_slice(), writes.as_slice()),
                    _ => (&[][..], &[][..]),
                };
                calls.push(CallSite::new(
                    arguments,
                    call.results.iter().map(|&v| scalar_of(v)).collect(),
                    reads.iter().map(|&v| (v, scalar_of(v))).collect(),
                    writes.iter().map(|&v| (v, scalar_of(v))).collect(),
                ));
            }
        }
        // Masks come first, then rows.
        let masks = tallies.len() + executed_masks;
        tallies.iter_mut().for_each(|t| t.row += masks);
        Sites {
            tallies,
            tally_of_call,
            arrays: directly_accessed_arrays(&analysis.pipeline.calls),
            tally_words: masks + row_words,
            wide_ops: Vec::new(),
            members: ValueSetMembers::new(analysis.program()),
            calls,
            argument_words: 8,
        }
    }

    /// The word of an executed mask in the tally area.
    pub fn executed_mask(&self, number: usize) -> usize {
        self.tallies.len() + number
    }

    /// Adds an operation, and returns its number.
    pub fn add_wide_op(&mut self, op: WideOp) -> usize {
        self.reserve_arguments(op.value.operands().count());
        self.wide_ops.push(op);
        self.wide_ops.len() - 1
    }

    /// Makes room for this many words in the argument area.
    pub fn reserve_arguments(&mut self, words: usize) {
        self.argument_words = self.argument_words.max(words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Scalar = Scalar {
        width: 9,
        varbit: false,
    };
    const WIDE: Scalar = Scalar {
        width: 64,
        varbit: false,
    };

    #[test]
    fn outputs_are_cut_to_the_width_of_their_variable() {
        let site = CallSite::new(
            vec![
                Argument::Out(vec![NARROW, WIDE]),
                Argument::In(vec![InputLeaf::Scalar(WIDE)]),
            ],
            vec![NARROW, WIDE],
            Vec::new(),
            vec![(VarId::new(0), NARROW), (VarId::new(1), WIDE)],
        );
        let ones = || Bits::ones(64);
        let whole = CallArguments {
            arguments: vec![ArgValue::Out(vec![ones(), ones()]), ArgValue::Static],
            results: vec![ones(), ones()],
            writes: vec![(VarId::new(0), ones()), (VarId::new(1), ones())],
            ..CallArguments::default()
        };
        let mut some = vec![whole.clone(), CallArguments::default()];
        for less in [0, 1] {
            let mut call = whole.clone();
            call.arguments = vec![ArgValue::Out(vec![ones(); less])];
            call.results.truncate(less);
            call.writes.truncate(less);
            some.push(call);
            some.push(CallArguments {
                arguments: vec![ArgValue::Static; less],
                ..whole.clone()
            });
        }
        for call in some {
            // Left there by another call.
            let mut area = [u64::MAX; 9];
            site.write(&call, &mut area);
            for narrow in [2, 5, 7] {
                assert!(area[narrow] < 1 << 9, "{call:?}: {area:x?}");
            }
        }
    }
}
