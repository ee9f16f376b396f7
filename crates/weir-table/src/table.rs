//! The control plane's match-action table: operations, their validation, and a log of changes for
//! the copies of the table.

use crate::batch::Undo;
use crate::check;
use crate::entries::Entries;
use crate::entry::{Entry, EntryAction, EntryHandle, EntryRef, NewEntry, Note};
use crate::error::TableError;
use crate::index::Index;
use crate::spec::TableSpec;
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};

/// A match-action table.
///
/// Which entry wins: with only exact keys there is one; with one LPM key besides exact keys the
/// longest prefix; else the larger priority, then the larger sum of prefix lengths, then the older
/// entry.
#[derive(Debug, Clone)]
pub struct Table {
    spec: Arc<TableSpec>,
    entries: Entries,
    index: Index,
    default: ActionCall,
    /// The controller's metadata and note for the default action.
    default_note: (u64, Note),
    next_sequence: u64,
    /// Changes since the last [`Table::take_changes`]; `None` before the first.
    changes: Option<Vec<TableChange>>,
}

/// A change of a table, for those that keep a copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableChange {
    /// Changes were not recorded one by one: copy all entries and the default action.
    Reload,
    /// An entry was inserted, or its action changed.
    Put(EntryHandle),
    /// An entry was removed.
    Removed(Box<Entry>),
    /// The default action changed.
    Default,
}

/// The most changes that are recorded one by one, in small tables. In larger tables it is half the
/// number of entries; copying all entries is cheaper then.
const MAX_CHANGES: usize = 4096;

impl Table {
    /// The table with the program's entries and default action. Program entries that contradict the
    /// spec are left out: the compiler does not produce such entries, and a lookup could not use
    /// them.
    #[must_use]
    pub fn new(spec: TableSpec) -> Self {
        let index = Index::new(&spec);
        let spec = Arc::new(spec);
        let mut table = Table {
            index,
            entries: Entries::default(),
            default: spec.default_action.clone(),
            default_note: (0, None),
            next_sequence: 0,
            changes: None,
            spec: Arc::clone(&spec),
        };
        for entry in &spec.initial {
            let new = NewEntry::new(entry.matches.clone(), EntryAction::Call(entry.action.clone()))
                .with_priority(entry.priority);
            if table.check_new(&new, true).is_ok() {
                let _ = table.add(new, entry.is_const || spec.const_entries, 0);
            }
        }
        table
    }

    /// The fixed properties of the table.
    #[must_use]
    pub fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    // ------------------------------------------------------------------------------ data plane

    /// The entry that wins for these values: one per key of the table in order, selector keys
    /// included (they are ignored). `None`: a miss, also for a wrong number of values.
    #[must_use]
    pub fn lookup(&self, keys: &[Bits]) -> Option<&Entry> {
        if keys.len() != self.spec.keys.len() || keys.is_empty() {
            return None;
        }
        let matched: Vec<&Bits> = self
            .spec
            .keys
            .iter()
            .zip(keys)
            .filter(|(k, _)| k.kind != MatchKind::Selector)
            .map(|(_, v)| v)
            .collect();
        let handle = self.index.lookup(&matched, &self.entries)?;
        self.entries.get(handle)
    }

    /// Records a hit of an entry at `now_ns` on the switch's clock. Unknown handles are ignored.
    pub fn touch(&mut self, handle: EntryHandle, now_ns: u64) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.last_hit_ns = entry.last_hit_ns.max(now_ns);
        }
    }

    /// Entries that have a time-out and were not hit for that long, in the order of
    /// [`Table::entries`].
    pub fn idle(&self, now_ns: u64) -> impl Iterator<Item = &Entry> {
        self.entries()
            .filter(move |e| e.idle_timeout_ns > 0 && now_ns.saturating_sub(e.last_hit_ns) >= e.idle_timeout_ns)
    }

    /// The action of a miss.
    #[must_use]
    pub fn default_action(&self) -> &ActionCall {
        &self.default
    }

    // --------------------------------------------------------------------------- control plane

    /// Adds an entry.
    ///
    /// # Errors
    /// The request contradicts the table's keys or actions, the table is const or full, or an entry
    /// with the same match and priority exists.
    pub fn insert(&mut self, entry: NewEntry) -> Result<EntryHandle, TableError> {
        self.insert_at(entry, 0)
    }

    /// Adds an entry whose idle time begins at `now_ns`. Errors as [`Table::insert`].
    pub fn insert_at(&mut self, entry: NewEntry, now_ns: u64) -> Result<EntryHandle, TableError> {
        self.check_new(&entry, false)?;
        self.add(entry, false, now_ns)
    }

    /// Gives an entry another action, metadata and time-out. Its handle stays.
    ///
    /// # Errors
    /// No such entry, it is const, or the action does not fit the table.
    pub fn modify(
        &mut self,
        which: &EntryRef,
        action: EntryAction,
        metadata: u64,
        idle_timeout_ns: u64,
    ) -> Result<EntryHandle, TableError> {
        check::entry_action(&self.spec, &action)?;
        let handle = self.resolve_mutable(which)?;
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.action = action;
            entry.metadata = metadata;
            entry.idle_timeout_ns = idle_timeout_ns;
        }
        self.record_change(TableChange::Put(handle));
        Ok(handle)
    }

    /// Gives an entry another note. Unknown handles are ignored.
    pub fn annotate(&mut self, handle: EntryHandle, note: Note) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.note = note;
        }
    }

    /// Removes an entry and returns it.
    ///
    /// # Errors
    /// No such entry, or it is const.
    pub fn delete(&mut self, which: &EntryRef) -> Result<Entry, TableError> {
        let handle = self.resolve_mutable(which)?;
        self.take(handle).ok_or_else(|| self.not_found(which))
    }

    /// Removes all entries but const ones.
    ///
    /// # Errors
    /// The table is const.
    pub fn clear(&mut self) -> Result<Vec<Entry>, TableError> {
        self.check_not_const()?;
        let handles: Vec<EntryHandle> = self.entries().filter(|e| !e.is_const).map(|e| e.handle).collect();
        Ok(handles.into_iter().filter_map(|h| self.take(h)).collect())
    }

    /// Replaces the default action; returns the previous one.
    ///
    /// # Errors
    /// The default action is const, or the action does not fit the table.
    pub fn set_default(&mut self, action: ActionCall) -> Result<ActionCall, TableError> {
        check::default_action(&self.spec, &action)?;
        self.record_change(TableChange::Default);
        Ok(std::mem::replace(&mut self.default, action))
    }

    /// Restores the program's default action; returns the previous one.
    pub fn reset_default(&mut self) -> ActionCall {
        self.record_change(TableChange::Default);
        std::mem::replace(&mut self.default, self.spec.default_action.clone())
    }

    /// The controller's metadata and note for the default action; initially 0 and none.
    #[must_use]
    pub fn default_note(&self) -> &(u64, Note) {
        &self.default_note
    }

    /// Replaces the metadata and note of the default action; returns the previous ones.
    pub fn annotate_default(&mut self, metadata: u64, note: Note) -> (u64, Note) {
        std::mem::replace(&mut self.default_note, (metadata, note))
    }

    /// The entry.
    ///
    /// # Errors
    /// No such entry, or the match does not fit the table.
    pub fn get(&self, which: &EntryRef) -> Result<&Entry, TableError> {
        let handle = self.resolve(which)?;
        self.entries.get(handle).ok_or_else(|| self.not_found(which))
    }

    /// The entry with this handle.
    #[must_use]
    pub fn entry(&self, handle: EntryHandle) -> Option<&Entry> {
        self.entries.get(handle)
    }

    /// One more than the largest handle that was ever used.
    #[must_use]
    pub fn handle_limit(&self) -> u64 {
        self.entries.handle_limit()
    }

    /// All entries in the order of their handles. That is the order of insertion, except for
    /// [reused handles](Table::reuse_handles).
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entries from this index on ([`Entry::place`]), in the order of [`Table::entries`].
    pub fn entries_from(&self, place: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter_from(place)
    }

    /// A port came up or went down: members of one-shot sets that watch it can be chosen, or not.
    pub fn port_changed(&mut self, port: u32, is_down: bool) {
        let sets = self.entries.iter_mut().filter_map(|e| match &mut e.action {
            EntryAction::OneShot(set) => Some(set),
            _ => None,
        });
        for member in sets.flatten().filter(|m| m.watch.is_some_and(|w| w.port == port)) {
            member.is_down = is_down;
        }
    }

    /// All entries, the oldest first. Inserted in this order into an empty table, they have the
    /// same precedence as here.
    #[must_use]
    pub fn entries_by_age(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries().collect();
        entries.sort_unstable_by_key(|e| e.sequence);
        entries
    }

    /// The entries that match a filter, in the order of [`Table::entries`]. Per match key the
    /// filter has the required match, or `None` for any.
    pub fn entries_where<'a>(&'a self, filter: &'a [Option<KeyMatch>]) -> impl Iterator<Item = &'a Entry> {
        self.entries().filter(move |e| {
            filter
                .iter()
                .zip(&e.matches)
                .all(|(required, m)| required.as_ref().is_none_or(|w| w == m))
        })
    }

    /// The changes since the last call, in order. The first call returns [`TableChange::Reload`].
    pub fn take_changes(&mut self) -> Vec<TableChange> {
        match &mut self.changes {
            Some(changes) => std::mem::take(changes),
            None => {
                self.changes = Some(Vec::new());
                vec![TableChange::Reload]
            }
        }
    }

    /// Whether [`Table::take_changes`] has changes to return.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.changes.as_ref().is_none_or(|c| !c.is_empty())
    }

    /// Allows the reuse of the handles of removed entries. Until this call they are reserved: the
    /// rollback of a batch restores entries under their old handles.
    pub fn reuse_handles(&mut self) {
        self.entries.reuse();
    }

    /// Makes the next [`Table::take_changes`] return [`TableChange::Reload`].
    pub fn forget_changes(&mut self) {
        self.changes = None;
    }

    // ---------------------------------------------------------------------------------- inside

    fn record_change(&mut self, change: TableChange) {
        if let Some(changes) = &mut self.changes {
            if changes.len() >= MAX_CHANGES.max(self.entries.len() / 2) {
                *changes = vec![TableChange::Reload];
            } else if changes.first() != Some(&TableChange::Reload) {
                changes.push(change);
            }
        }
    }

    fn check_not_const(&self) -> Result<(), TableError> {
        if self.spec.const_entries {
            return Err(TableError::Const {
                table: self.spec.name.clone(),
                what: "the set of entries",
            });
        }
        Ok(())
    }

    /// Whether the entry can be added. `program`: it comes from the source, not from a controller.
    fn check_new(&self, entry: &NewEntry, program: bool) -> Result<(), TableError> {
        check::matches(&self.spec, &entry.matches, if program { 0 } else { entry.priority })?;
        if !program {
            check::entry_action(&self.spec, &entry.action)?;
            self.check_not_const()?;
        }
        if let Some(handle) = self.same(&entry.matches, entry.priority) {
            return Err(TableError::AlreadyExists {
                table: self.spec.name.clone(),
                handle: handle.get(),
            });
        }
        if self.entries.len() as u64 >= self.spec.size {
            return Err(self.full());
        }
        Ok(())
    }

    fn full(&self) -> TableError {
        TableError::Full {
            table: self.spec.name.clone(),
            size: self.spec.size,
        }
    }

    fn add(&mut self, new: NewEntry, is_const: bool, now_ns: u64) -> Result<EntryHandle, TableError> {
        let handle = self.entries.fresh_handle().ok_or_else(|| self.full())?;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.put(Entry {
            handle,
            matches: new.matches,
            priority: new.priority,
            action: new.action,
            metadata: new.metadata,
            note: new.note,
            idle_timeout_ns: new.idle_timeout_ns,
            last_hit_ns: now_ns,
            is_const,
            sequence,
        });
        Ok(handle)
    }

    /// Adds an entry to all structures.
    fn put(&mut self, entry: Entry) {
        self.index.insert(&entry);
        self.record_change(TableChange::Put(entry.handle));
        self.entries.put(entry);
    }

    /// The entry with this match and priority.
    fn same(&self, matches: &[KeyMatch], priority: u32) -> Option<EntryHandle> {
        self.index.find(matches, priority, &self.entries)
    }

    /// Removes an entry from all structures.
    fn take(&mut self, handle: EntryHandle) -> Option<Entry> {
        let entry = self.entries.take(handle)?;
        self.index.remove(&entry);
        if self.changes.is_some() {
            self.record_change(TableChange::Removed(Box::new(entry.clone())));
        }
        Some(entry)
    }

    fn not_found(&self, which: &EntryRef) -> TableError {
        let what = match which {
            EntryRef::Handle(handle) => format!("with handle {}", handle.get()),
            EntryRef::Key { priority: 0, .. } => "with this match".to_owned(),
            EntryRef::Key { priority, .. } => format!("with this match and priority {priority}"),
        };
        TableError::NotFound {
            table: self.spec.name.clone(),
            what,
        }
    }

    fn resolve(&self, which: &EntryRef) -> Result<EntryHandle, TableError> {
        match which {
            EntryRef::Handle(handle) => Some(*handle).filter(|h| self.entries.get(*h).is_some()),
            EntryRef::Key { matches, priority } => {
                check::matches(&self.spec, matches, 0)?;
                self.same(matches, *priority)
            }
        }
        .ok_or_else(|| self.not_found(which))
    }

    fn resolve_mutable(&self, which: &EntryRef) -> Result<EntryHandle, TableError> {
        self.check_not_const()?;
        let handle = self.resolve(which)?;
        if self.entries.get(handle).is_some_and(|e| e.is_const) {
            return Err(TableError::Const {
                table: self.spec.name.clone(),
                what: "this entry",
            });
        }
        Ok(handle)
    }

    /// Reverts an operation. Undo records must be given in the reverse order of the operations.
    pub fn revert(&mut self, undo: Undo) {
        match undo {
            Undo::Insert(handle) => {
                self.take(handle);
            }
            Undo::Restore(entries) => {
                // Restored in the reverse order of removal.
                for entry in entries.into_iter().rev() {
                    self.take(entry.handle);
                    self.index.insert(&entry);
                    self.record_change(TableChange::Put(entry.handle));
                    self.entries.put_back(entry);
                }
            }
            Undo::DefaultNote(metadata, note) => self.default_note = (metadata, note),
            Undo::Default(action) => {
                self.default = action;
                self.record_change(TableChange::Default);
            }
        }
    }
}
