//! Templates: entries of one shape, encoded once; afterwards only numbers are replaced.
//!
//! A controller that writes the same kind of entry a million times would spend its time on
//! encoding. A template is the encoded message; writing an entry copies some ninety bytes and
//! stores a few numbers.

use super::Operation;
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::{MatchKind, Protocol, Table};
use crate::value::{Match, Value};
use crate::wire::{Writer, long};
use std::sync::Arc;

/// The meaning of a cell of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    /// The value of an exact key.
    Exact,
    /// The value of a prefix; the next cell is its length.
    Prefix,
    /// The length of a prefix.
    PrefixLength,
    /// A value under a mask; the next cell is the mask.
    Masked,
    /// A mask.
    Mask,
    /// The smallest value of a range; the next cell is the largest.
    Low,
    /// The largest value of a range.
    High,
    /// The value of an optional key.
    Optional,
    /// The priority.
    Priority,
    /// A parameter of the action.
    Param,
}

/// A cell: a number that is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Its meaning.
    pub kind: CellKind,
    /// Index of the key or parameter.
    pub place: usize,
    /// Its width in bits.
    pub width: u32,
    offset: usize,
}

/// An update of an entry with given table, operation and action, but without numbers.
///
/// Its [cells](Template::cells) are, in this order: those of each key (one for exact and optional
/// keys, two for others), the priority if the table has one, and the parameters of the action.
#[derive(Debug, Clone)]
pub struct Template {
    table: Arc<Table>,
    operation: Operation,
    action: Option<usize>,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

impl Template {
    /// A template for entries of a table with an action; without an action for operations that need
    /// none, such as deleting.
    ///
    /// # Errors
    /// The table has no such action, or is not match-action; a key or parameter has more than 128
    /// bits or is no number; P4Runtime has no such operation.
    pub fn new(table: &Arc<Table>, operation: Operation, action: Option<&str>) -> Result<Template, Error> {
        let action = action.map(|name| table.action(name)).transpose()?;
        let params = action.and_then(|a| table.actions.get(a)).map_or(&[][..], |a| &a.params);
        let refuse = |why: &str| Err(Error::Unsupported(format!("{}: {why}", table.name)));
        let is_small = |width: Option<u32>| width.is_some_and(|w| (1..=128).contains(&w));
        if !table.kind.is_match() {
            return refuse("templates are for tables that match");
        }
        if !table.keys.iter().all(|k| is_small(k.ty.width()))
            || !params.iter().all(|p| is_small(p.ty.width()) && !p.is_list)
        {
            return refuse("templates are for numbers of at most 128 bits");
        }
        let mut template = Template {
            table: Arc::clone(table),
            operation,
            action,
            cells: Vec::new(),
            bytes: Vec::new(),
        };
        let mut writer = Writer::default();
        match table.protocol {
            Protocol::P4Runtime => template.p4runtime(&mut writer)?,
            Protocol::BfRuntime => template.bf_runtime(&mut writer)?,
        }
        for (cell, offset) in template.cells.iter_mut().zip(&writer.slots) {
            cell.offset = *offset;
        }
        template.bytes = writer.out;
        Ok(template)
    }

    /// The table.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The cells, in order.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Bytes of an update.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether an update has no bytes: never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn cell(&mut self, kind: CellKind, place: usize, width: u32) {
        self.cells.push(Cell {
            kind,
            place,
            width,
            offset: 0,
        });
    }

    /// Cells of a key, and the field numbers of the match and, for prefixes, of the length.
    fn key_cells(&mut self, kind: MatchKind, place: usize, width: u32) {
        match kind {
            MatchKind::Exact => self.cell(CellKind::Exact, place, width),
            MatchKind::Optional => self.cell(CellKind::Optional, place, width),
            MatchKind::Lpm => {
                self.cell(CellKind::Prefix, place, width);
                self.cell(CellKind::PrefixLength, place, 32);
            }
            MatchKind::Ternary => {
                self.cell(CellKind::Masked, place, width);
                self.cell(CellKind::Mask, place, width);
            }
            MatchKind::Range => {
                self.cell(CellKind::Low, place, width);
                self.cell(CellKind::High, place, width);
            }
        }
    }

    fn p4runtime(&mut self, writer: &mut Writer) -> Result<(), Error> {
        let number = super::p4rt::type_of(self.operation)
            .ok_or_else(|| Error::Unsupported(format!("P4Runtime cannot {} entries", self.operation.name())))?;
        let table = Arc::clone(&self.table);
        writer.varint(1, number);
        writer.message(2, |w| {
            w.message(2, |w| {
                w.varint(1, u64::from(table.id));
                for (place, key) in table.keys.iter().enumerate() {
                    let width = key.ty.width().unwrap_or(0);
                    self.key_cells(key.kind, place, width);
                    w.message(2, |w| {
                        w.varint(1, u64::from(key.id));
                        key_slots(w, key.kind, width, [2, 3, 4, 6, 7])
                    })?;
                }
                if table.priority.is_some() {
                    self.cell(CellKind::Priority, 0, 31);
                    w.long_varint(4, 0);
                }
                let Some(action) = self.action.and_then(|a| table.actions.get(a)) else {
                    return Ok(());
                };
                w.message(3, |w| {
                    w.message(1, |w| {
                        w.varint(1, u64::from(action.id));
                        for (place, param) in action.params.iter().enumerate() {
                            let width = param.ty.width().unwrap_or(0);
                            self.cell(CellKind::Param, place, width);
                            w.message::<Error>(4, |w| {
                                w.varint(2, u64::from(param.id));
                                w.bytes_slot(3, width.div_ceil(8) as usize);
                                Ok(())
                            })?;
                        }
                        Ok(())
                    })
                })
            })
        })
    }

    fn bf_runtime(&mut self, writer: &mut Writer) -> Result<(), Error> {
        let table = Arc::clone(&self.table);
        writer.varint(1, super::bfrt::type_of(self.operation));
        writer.message(2, |w| {
            w.message(1, |w| {
                w.varint(1, u64::from(table.id));
                w.message(2, |w| {
                    for (place, key) in table.keys.iter().enumerate() {
                        let width = key.ty.width().unwrap_or(0);
                        self.key_cells(key.kind, place, width);
                        w.message(1, |w| {
                            w.varint(1, u64::from(key.id));
                            key_slots(w, key.kind, width, [2, 3, 4, 5, 6])
                        })?;
                    }
                    if let Some(id) = table.priority {
                        self.cell(CellKind::Priority, 0, 32);
                        w.message(1, |w| {
                            w.varint(1, u64::from(id));
                            key_slots(w, MatchKind::Exact, 32, [2, 3, 4, 5, 6])
                        })?;
                    }
                    Ok::<_, Error>(())
                })?;
                let Some(action) = self.action.and_then(|a| table.actions.get(a)) else {
                    return Ok(());
                };
                w.message(3, |w| {
                    w.varint(1, u64::from(action.id));
                    for (place, param) in action.params.iter().enumerate() {
                        let width = param.ty.width().unwrap_or(0);
                        self.cell(CellKind::Param, place, width);
                        w.message::<Error>(2, |w| {
                            w.varint(1, u64::from(param.id));
                            w.bytes_slot(2, width.div_ceil(8) as usize);
                            Ok(())
                        })?;
                    }
                    Ok(())
                })
            })
        })
    }

    /// Appends the update with these numbers. Returns `false` and appends nothing if the template
    /// cannot express it; [`Template::entry`] can.
    ///
    /// # Errors
    /// The count of numbers is not that of the cells, or one does not fit.
    pub(crate) fn append(&self, numbers: &[u128], out: &mut Vec<u8>) -> Result<bool, Error> {
        if numbers.len() != self.cells.len() {
            return Err(Error::Value {
                table: self.table.name.clone(),
                field: "numbers".to_owned(),
                reason: format!("there are {} cells, not {}", self.cells.len(), numbers.len()),
            });
        }
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let message = &mut out[start..];
        let is_p4runtime = self.table.is_p4runtime();
        for (i, (cell, number)) in self.cells.iter().zip(numbers).enumerate() {
            let mut number = *number;
            if cell.width < 128 && number >> cell.width != 0 {
                out.truncate(start);
                return Err(self.too_wide(cell, number));
            }
            let length = cell.width.div_ceil(8) as usize;
            match cell.kind {
                CellKind::PrefixLength => {
                    message[cell.offset..cell.offset + 5].copy_from_slice(&long(number as u32));
                    continue;
                }
                CellKind::Priority if is_p4runtime => {
                    message[cell.offset..cell.offset + 5].copy_from_slice(&long(number as u32));
                    continue;
                }
                CellKind::Prefix => {
                    let prefix_len = numbers[i + 1];
                    if prefix_len > u128::from(cell.width) {
                        out.truncate(start);
                        return Err(self.too_wide(&self.cells[i + 1], prefix_len));
                    }
                    if prefix_len == 0 {
                        if is_p4runtime {
                            out.truncate(start);
                            return Ok(false);
                        }
                        number = 0;
                    } else {
                        let rest = cell.width - prefix_len as u32;
                        number = number >> rest << rest;
                    }
                }
                CellKind::Masked => {
                    let mask = numbers[i + 1];
                    if mask == 0 && is_p4runtime {
                        out.truncate(start);
                        return Ok(false);
                    }
                    number &= mask;
                }
                // P4Runtime omits a match of anything.
                CellKind::Low if is_p4runtime && number == 0 && numbers[i + 1] == u128::MAX >> (128 - cell.width) => {
                    out.truncate(start);
                    return Ok(false);
                }
                _ => {}
            }
            let bytes = number.to_be_bytes();
            message[cell.offset..cell.offset + length].copy_from_slice(&bytes[16 - length..]);
        }
        Ok(true)
    }

    fn too_wide(&self, cell: &Cell, number: u128) -> Error {
        let name = match cell.kind {
            CellKind::Priority => "priority",
            CellKind::Param => {
                let action = self.action.and_then(|a| self.table.actions.get(a));
                let param = action.and_then(|a| a.params.get(cell.place));
                param.map_or("", |p| &p.name)
            }
            _ => self.table.keys.get(cell.place).map_or("", |k| &k.name),
        };
        let reason = match cell.kind {
            CellKind::PrefixLength => format!("a prefix of {number} bits is longer than the key"),
            _ => format!("{number:#x} has more than {} bits", cell.width),
        };
        Error::Value {
            table: self.table.name.clone(),
            field: name.to_owned(),
            reason,
        }
    }

    /// The entry with these numbers, one per cell.
    #[must_use]
    pub fn entry(&self, numbers: &[u128]) -> Entry {
        let mut entry = Entry::of(&self.table);
        entry.action = self.action;
        let value = |i: usize| Value::Bits(numbers.get(i).copied().unwrap_or(0));
        for (i, cell) in self.cells.iter().enumerate() {
            let to = match cell.kind {
                CellKind::Exact | CellKind::Optional => Match::Exact(value(i)),
                CellKind::Prefix => Match::Lpm {
                    value: value(i),
                    prefix_len: u32::try_from(value(i + 1).as_u128().unwrap_or(0)).unwrap_or(u32::MAX),
                },
                CellKind::Masked => Match::Ternary {
                    value: value(i),
                    mask: value(i + 1),
                },
                CellKind::Low => Match::Range {
                    low: value(i),
                    high: value(i + 1),
                },
                CellKind::PrefixLength | CellKind::Mask | CellKind::High => continue,
                CellKind::Priority => {
                    entry.priority = u32::try_from(value(i).as_u128().unwrap_or(0)).unwrap_or(u32::MAX);
                    continue;
                }
                CellKind::Param => {
                    entry.data.push((crate::entry::Place::Param(cell.place), value(i)));
                    continue;
                }
            };
            entry.keys[cell.place] = to;
        }
        entry
    }
}

/// The match of a key with slots for numbers. `fields`: field numbers of the match types exact,
/// ternary, LPM, range and optional.
fn key_slots(w: &mut Writer, kind: MatchKind, width: u32, fields: [u32; 5]) -> Result<(), Error> {
    let length = width.div_ceil(8) as usize;
    let [exact, ternary, lpm, range, optional] = fields;
    let is_bf_runtime = range == 5;
    let field = match kind {
        MatchKind::Exact => exact,
        MatchKind::Ternary => ternary,
        MatchKind::Lpm => lpm,
        MatchKind::Range => range,
        MatchKind::Optional => optional,
    };
    w.message(field, |w| {
        w.bytes_slot(1, length);
        match kind {
            MatchKind::Lpm => w.long_varint(2, 0),
            MatchKind::Ternary | MatchKind::Range => w.bytes_slot(2, length),
            MatchKind::Optional if is_bf_runtime => w.varint(2, 1),
            MatchKind::Exact | MatchKind::Optional => {}
        }
        Ok(())
    })
}
