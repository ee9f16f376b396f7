//! The table.

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
    /// What the controller has given the default action: metadata and note.
    default_note: (u64, Note),
    next_sequence: u64,
    /// What changed since somebody asked; `None`: nobody has asked.
    changes: Option<Vec<Change>>,
}

/// What changed about a table, for whoever keeps a copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// There is no telling: take all entries and the default action anew.
    Everything,
    /// An entry was inserted, or its action changed.
    Put(EntryHandle),
    /// An entry was taken out.
    Taken(Box<Entry>),
    /// What a miss does.
    Default,
}

/// Changes that are remembered one by one, in small tables; in larger ones half as many as there are entries. To take all entries
/// anew is less work then.
const MAX_CHANGES: usize = 4096;

impl Table {
    /// The table with the program's entries and default action. Program entries that contradict the
    /// spec are left out: the compiler does not make such, and a lookup could not use them.
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

    /// What does not change about it.
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
    /// included (they are not looked at). `None`: a miss, also for a wrong number of values.
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

    /// Notes that an entry was hit at `now_ns` on the switch's clock. Unknown handles are ignored.
    pub fn touch(&mut self, handle: EntryHandle, now_ns: u64) {
        if let Some(entry) = self.entries.get_mut(handle) {
            entry.last_hit_ns = entry.last_hit_ns.max(now_ns);
        }
    }

    /// Entries that have a time-out and were not hit for that long, in the order of [`Table::entries`].
    pub fn idle(&self, now_ns: u64) -> impl Iterator<Item = &Entry> {
        self.entries()
            .filter(move |e| e.idle_timeout_ns > 0 && now_ns.saturating_sub(e.last_hit_ns) >= e.idle_timeout_ns)
    }

    /// What a miss does.
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
        self.note(Change::Put(handle));
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

    /// Changes what a miss does; returns what it did.
    ///
    /// # Errors
    /// The default action is const, or the action does not fit the table.
    pub fn set_default(&mut self, action: ActionCall) -> Result<ActionCall, TableError> {
        check::default_action(&self.spec, &action)?;
        self.note(Change::Default);
        Ok(std::mem::replace(&mut self.default, action))
    }

    /// Makes a miss do again what the program says; returns what it did.
    pub fn reset_default(&mut self) -> ActionCall {
        self.note(Change::Default);
        std::mem::replace(&mut self.default, self.spec.default_action.clone())
    }

    /// What the controller has given the default action: metadata and note; 0 and none at first.
    #[must_use]
    pub fn default_note(&self) -> &(u64, Note) {
        &self.default_note
    }

    /// Gives the default action other metadata and another note; returns what it had.
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

    /// The number above all handles that entries have or had.
    #[must_use]
    pub fn handle_limit(&self) -> u64 {
        self.entries.handle_limit()
    }

    /// All entries in the order of their handles: that of insertion, but for handles that were [given
    /// again](Table::reuse_handles).
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entries from this place on ([`Entry::place`]), in the order of [`Table::entries`].
    pub fn entries_from(&self, place: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter_from(place)
    }

    /// A port came up or went down: actions of entries' own that watch it take part in the choice or do not.
    pub fn port_changed(&mut self, port: u32, is_down: bool) {
        let sets = self.entries.iter_mut().filter_map(|e| match &mut e.action {
            EntryAction::OneShot(set) => Some(set),
            _ => None,
        });
        for member in sets.flatten().filter(|m| m.watch.is_some_and(|w| w.port == port)) {
            member.is_down = is_down;
        }
    }

    /// All entries, the oldest first: inserted in this order into an empty table, each wins and loses as it does here.
    #[must_use]
    pub fn entries_by_age(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries().collect();
        entries.sort_unstable_by_key(|e| e.sequence);
        entries
    }

    /// The entries that fit a filter, in the order of [`Table::entries`]: per matched key `None` for any or
    /// the match to be equal to.
    pub fn entries_where<'a>(&'a self, filter: &'a [Option<KeyMatch>]) -> impl Iterator<Item = &'a Entry> {
        self.entries().filter(move |e| {
            filter
                .iter()
                .zip(&e.matches)
                .all(|(wanted, m)| wanted.as_ref().is_none_or(|w| w == m))
        })
    }

    /// What changed since the last call, in order; the first call says [`Change::Everything`].
    pub fn take_changes(&mut self) -> Vec<Change> {
        match &mut self.changes {
            Some(changes) => std::mem::take(changes),
            None => {
                self.changes = Some(Vec::new());
                vec![Change::Everything]
            }
        }
    }

    /// Whether [`Table::take_changes`] has something to tell.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.changes.as_ref().is_none_or(|c| !c.is_empty())
    }

    /// Handles of entries that are gone may be given to new ones from now on. Until somebody says so they are not: a batch that
    /// is taken back gives entries their old handles.
    pub fn reuse_handles(&mut self) {
        self.entries.reuse();
    }

    /// The next [`Table::take_changes`] says [`Change::Everything`].
    pub fn forget_changes(&mut self) {
        self.changes = None;
    }

    // ---------------------------------------------------------------------------------- inside

    fn note(&mut self, change: Change) {
        if let Some(changes) = &mut self.changes {
            if changes.len() >= MAX_CHANGES.max(self.entries.len() / 2) {
                *changes = vec![Change::Everything];
            } else if changes.first() != Some(&Change::Everything) {
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

    /// Puts an entry in all structures.
    fn put(&mut self, entry: Entry) {
        self.index.insert(&entry);
        self.note(Change::Put(entry.handle));
        self.entries.put(entry);
    }

    /// The entry with this match and priority.
    fn same(&self, matches: &[KeyMatch], priority: u32) -> Option<EntryHandle> {
        self.index.find(matches, priority, &self.entries)
    }

    /// Takes an entry out of all structures.
    fn take(&mut self, handle: EntryHandle) -> Option<Entry> {
        let entry = self.entries.take(handle)?;
        self.index.remove(&entry);
        if self.changes.is_some() {
            self.note(Change::Taken(Box::new(entry.clone())));
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

    /// Takes a change back. Undo records must be given in the reverse order of their changes.
    pub fn revert(&mut self, undo: Undo) {
        match undo {
            Undo::Insert(handle) => {
                self.take(handle);
            }
            Undo::Restore(entries) => {
                // The last to go is the first to come back.
                for entry in entries.into_iter().rev() {
                    self.take(entry.handle);
                    self.index.insert(&entry);
                    self.note(Change::Put(entry.handle));
                    self.entries.put_back(entry);
                }
            }
            Undo::DefaultNote(metadata, note) => self.default_note = (metadata, note),
            Undo::Default(action) => {
                self.default = action;
                self.note(Change::Default);
            }
        }
    }
}
