//! Filling tables by name.

use anyhow::{Context, Result, ensure};
use weir_ir::{Bits, KeyMatch, MatchKind, TableId};
use weir_switch::{Switch, Write};
use weir_table::{EntryAction, NewEntry, TableOp};

/// A key of an entry.
#[derive(Debug, Clone, Copy)]
pub enum Match {
    /// This value; of a prefix all of it, of a range only it.
    Is(u64),
    /// A prefix of this many bits.
    Prefix(u64, u32),
    /// This value but for the bits of a mask, which may be anything.
    Masked(u64, u64),
    /// From the first to the last.
    Between(u64, u64),
    /// Whatever it is.
    Any,
}

/// Makes entries of a table that do one of its actions.
pub struct Entries {
    table: TableId,
    keys: Vec<(u32, MatchKind)>,
    action: usize,
    parameters: Vec<u32>,
}

/// A table of a switch and one of its actions.
pub struct Filler<'a> {
    switch: &'a mut Switch,
    entries: Entries,
}

impl Entries {
    /// Of this table, that do this.
    pub fn new(switch: &Switch, table: &str, action: &str) -> Result<Self> {
        let id = switch.table(table)?;
        let index = switch.action(id, action)?;
        let program = switch.program();
        let spec = &program.tables[id];
        let parameters = &program.actions[spec.actions[index].action].parameters;
        Ok(Entries {
            table: id,
            keys: spec.keys.iter().map(|k| (k.width, k.match_kind)).collect(),
            action: index,
            parameters: parameters.iter().map(|p| p.width).collect(),
        })
    }

    fn action(&self, data: &[u64]) -> Result<EntryAction> {
        ensure!(data.len() == self.parameters.len(), "the action has other parameters");
        let values = self.parameters.iter().zip(data);
        Ok(EntryAction::call(
            self.action,
            values
                .map(|(width, value)| Bits::new(*width, u128::from(*value)))
                .collect(),
        ))
    }

    /// An entry, and its table; the larger priority wins.
    pub fn make(&self, priority: u32, keys: &[Match], data: &[u64]) -> Result<(TableId, NewEntry)> {
        ensure!(keys.len() == self.keys.len(), "the table has other keys");
        let matches = self
            .keys
            .iter()
            .zip(keys)
            .map(|((width, kind), key)| key.of(*width, *kind))
            .collect();
        let entry = NewEntry::new(matches, self.action(data)?).with_priority(priority);
        Ok((self.table, entry))
    }
}

impl<'a> Filler<'a> {
    /// Entries of this table that do this.
    pub fn new(switch: &'a mut Switch, table: &str, action: &str) -> Result<Self> {
        let entries = Entries::new(switch, table, action)?;
        Ok(Filler { switch, entries })
    }

    /// Adds an entry.
    pub fn add(&mut self, keys: &[Match], data: &[u64]) -> Result<()> {
        self.add_rule(0, keys, data)
    }

    /// Adds an entry with a priority; the larger wins.
    pub fn add_rule(&mut self, priority: u32, keys: &[Match], data: &[u64]) -> Result<()> {
        let (table, entry) = self.entries.make(priority, keys, data)?;
        let write = Write::Table(table, TableOp::Insert(entry));
        self.switch.write(write).context("cannot fill the table")?;
        Ok(())
    }

    /// Makes this what a miss does.
    pub fn by_default(&mut self, data: &[u64]) -> Result<()> {
        if let EntryAction::Call(call) = self.entries.action(data)? {
            self.switch
                .write(Write::Table(self.entries.table, TableOp::SetDefault(call)))?;
        }
        Ok(())
    }
}

impl Match {
    fn of(self, width: u32, kind: MatchKind) -> KeyMatch {
        let bits = |value: u64| Bits::new(width, u128::from(value));
        let (low, high, mask) = match self {
            Match::Is(value) => (bits(value), bits(value), Bits::ones(width)),
            Match::Prefix(value, length) => {
                let mask = Bits::prefix_mask(width, length);
                (bits(value).and(&mask), bits(value).or(&mask.not()), mask)
            }
            Match::Masked(value, free) => (bits(value), bits(value | free), bits(free).not()),
            Match::Between(low, high) => (bits(low), bits(high), Bits::zero(width)),
            Match::Any => (Bits::zero(width), Bits::ones(width), Bits::zero(width)),
        };
        match kind {
            MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(low),
            MatchKind::Lpm => KeyMatch::Lpm {
                value: low,
                prefix_length: mask.to_biguint().count_ones() as u32,
            },
            MatchKind::Ternary => KeyMatch::Ternary { value: low, mask },
            MatchKind::Range => KeyMatch::Range { low, high },
            MatchKind::Optional => KeyMatch::Optional((!mask.is_zero()).then_some(low)),
        }
    }
}
