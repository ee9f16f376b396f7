//! Records what happened to packets as a tree.

use crate::runtime::{ArgValue, InValue, LookupDetail, LookupOutcome, Outcome};
use crate::trace::{Event, PacketTag, Tracer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_ir::{
    Argument, ArgumentValue, Bits, Call, Display, HeaderId, KeyMatch, Loc, Program, TableId, VarId, VarKind,
};

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file as the compiler was given it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// A value and what it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The value as people want to see it.
    pub value: String,
}

/// The entry a lookup hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryInfo {
    /// Its handle.
    pub handle: u32,
    /// Its match, one text per matched key.
    pub matches: Vec<String>,
    /// Its priority; the larger wins.
    pub priority: u32,
}

/// An argument of an extern call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExternArgument {
    /// The parameter.
    pub name: String,
    /// The value before the call.
    pub before: String,
    /// The value after it, where the extern may write it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the fields are those of `Event`, as text")]
pub enum NodeKind {
    /// A packet: received, cloned, …
    Packet { what: String },
    /// A block of the program.
    Block { role: String, name: String },
    /// A parser state.
    State { name: String },
    /// A header taken from the packet.
    Extract {
        header: String,
        bits: usize,
        fields: Vec<NamedValue>,
    },
    /// A packet operation failed.
    ParserError { error: String },
    /// Bits read ahead.
    Lookahead { value: String },
    /// Bits skipped.
    Advance { bits: u64 },
    /// A `select`.
    Select {
        keys: Vec<String>,
        case: Option<usize>,
        cases: usize,
    },
    /// A condition.
    Branch { taken: bool },
    /// A `switch`.
    Switch { value: String, case: Option<usize> },
    /// A table.
    Table {
        table: String,
        keys: Vec<NamedValue>,
        hit: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<EntryInfo>,
        action: String,
        arguments: Vec<NamedValue>,
        /// Why there was no hit, or where the action came from.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The body of an action.
    Action { name: String },
    /// The body of a sub-parser, sub-control or function.
    Body { name: String },
    /// An extern call.
    Extern {
        name: String,
        arguments: Vec<ExternArgument>,
        results: Vec<String>,
        aborted: bool,
    },
    /// A variable changed.
    Set { variable: String, old: String, new: String },
    /// A header became valid or invalid.
    Header { header: String, valid: bool },
    /// A header written to the packet.
    Emit { header: String, bits: usize },
    /// How a parser ended.
    ParserEnd { accepted: bool, error: String },
    /// A body was stopped.
    Stopped { reason: String },
    /// Something the architecture did.
    Note { text: String },
    /// The end of the packet's way.
    Fate { text: String, dropped: bool },
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceNode {
    /// What happened.
    #[serde(flatten)]
    pub event: NodeKind,
    /// Where in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The same place for those who have the program.
    #[serde(skip)]
    pub loc: Loc,
    /// What happened within it, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<TraceNode>,
}

/// A node while recording.
#[derive(Debug, Clone)]
struct Slot {
    event: NodeKind,
    loc: Loc,
    parent: Option<usize>,
    children: Vec<usize>,
}

/// Events that a [`TraceTree`] records; further ones are left out.
pub const MAX_NODES: usize = 20_000;

/// A [`Tracer`] that records everything, up to [`MAX_NODES`] events.
#[derive(Debug, Clone)]
pub struct TraceTree {
    program: Arc<Program>,
    slots: Vec<Slot>,
    roots: Vec<usize>,
    /// Where the next node goes.
    current: Option<usize>,
    writes: BTreeMap<VarId, Loc>,
}

impl TraceTree {
    /// An empty record of a program's packets.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        TraceTree {
            program,
            slots: Vec::new(),
            roots: Vec::new(),
            current: None,
            writes: BTreeMap::new(),
        }
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The trees recorded so far: one per received packet.
    #[must_use]
    pub fn nodes(&self) -> Vec<TraceNode> {
        self.roots.iter().map(|&root| self.node(root)).collect()
    }

    /// The subtree at `root`. Built without recursion over the depth of user input: children are
    /// finished before their parents, since a child's slot always comes after its parent's.
    fn node(&self, root: usize) -> TraceNode {
        let mut built: BTreeMap<usize, TraceNode> = BTreeMap::new();
        for index in (root..self.slots.len()).rev() {
            let slot = &self.slots[index];
            let node = TraceNode {
                event: slot.event.clone(),
                place: self.place(slot.loc),
                loc: slot.loc,
                children: slot.children.iter().filter_map(|c| built.remove(c)).collect(),
            };
            built.insert(index, node);
        }
        built.remove(&root).unwrap_or_else(|| TraceNode {
            event: NodeKind::Note {
                text: "nothing recorded".to_owned(),
            },
            place: None,
            loc: Loc::default(),
            children: Vec::new(),
        })
    }

    fn place(&self, loc: Loc) -> Option<Place> {
        let file = self.program.files.get(loc.file as usize)?.clone();
        (loc.line > 0).then_some(Place {
            file,
            line: loc.line,
            column: loc.column,
        })
    }

    fn add(&mut self, event: NodeKind, loc: Loc) -> usize {
        // What became of a packet is told however long its way was.
        let is_end = matches!(event, NodeKind::Fate { .. } | NodeKind::Stopped { .. });
        if self.slots.len() > MAX_NODES && !(is_end && self.slots.len() < 2 * MAX_NODES) {
            return self.current.unwrap_or(0);
        }
        if self.slots.len() == MAX_NODES && !is_end {
            let text = format!("the trace ends here, after {MAX_NODES} events");
            return self.push(NodeKind::Note { text }, loc);
        }
        self.push(event, loc)
    }

    fn push(&mut self, event: NodeKind, loc: Loc) -> usize {
        let index = self.slots.len();
        self.slots.push(Slot {
            event,
            loc,
            parent: self.current,
            children: Vec::new(),
        });
        match self.current {
            Some(parent) => self.slots[parent].children.push(index),
            None => self.roots.push(index),
        }
        index
    }

    fn open(&mut self, event: NodeKind, loc: Loc) {
        self.current = Some(self.add(event, loc));
    }

    /// Goes up until a node of the wanted kind is left; stays where there is none.
    fn close(&mut self, wanted: impl Fn(&NodeKind) -> bool) {
        let mut at = self.current;
        while let Some(index) = at {
            at = self.slots[index].parent;
            if wanted(&self.slots[index].event) {
                self.current = at;
                return;
            }
            if matches!(
                self.slots[index].event,
                NodeKind::Block { .. } | NodeKind::Packet { .. }
            ) {
                return;
            }
        }
    }

    fn value(&self, var: VarId, value: &Bits) -> String {
        display_value(&self.program, self.program.vars[var].display, value)
    }

    fn error(&self, code: u32) -> String {
        display_value(&self.program, Display::Error, &Bits::new(32, code.into()))
    }

    fn write(&mut self, var: VarId, old: &Bits, new: &Bits, loc: Loc) {
        self.writes.insert(var, loc);
        if old == new {
            return;
        }
        let event = match self.program.vars[var].kind {
            VarKind::Temporary | VarKind::FieldCopy { .. } => return,
            VarKind::Valid { header } => NodeKind::Header {
                header: self.header(header),
                valid: !new.is_zero(),
            },
            _ => NodeKind::Set {
                variable: self.program.vars[var].name.clone(),
                old: self.value(var, old),
                new: self.value(var, new),
            },
        };
        self.add(event, loc);
    }

    fn header(&self, header: HeaderId) -> String {
        self.program.headers[header].name.clone()
    }

    fn lookup(&mut self, table: TableId, keys: &[Bits], outcome: &LookupOutcome, detail: &LookupDetail, loc: Loc) {
        let description = &self.program.tables[table];
        let keys = description
            .keys
            .iter()
            .zip(keys)
            .map(|(k, v)| NamedValue {
                name: k.name.clone(),
                value: display_value(&self.program, k.display, v),
            })
            .collect();
        let action = description
            .actions
            .get(outcome.action)
            .map(|a| &self.program.actions[a.action]);
        let arguments = action.map_or(Vec::new(), |a| {
            a.parameters
                .iter()
                .zip(outcome.arguments.iter())
                .map(|(p, v)| NamedValue {
                    name: p.name.clone(),
                    value: display_value(&self.program, p.display, v),
                })
                .collect()
        });
        let entry = detail.matched.as_ref().map(|(matches, priority)| EntryInfo {
            handle: outcome.entry,
            matches: matches.iter().map(match_text).collect(),
            priority: *priority,
        });
        let note = if outcome.hit {
            detail.member.clone()
        } else {
            Some(miss_text(detail))
        };
        let event = NodeKind::Table {
            table: description.name.clone(),
            keys,
            hit: outcome.hit,
            entry,
            action: action.map_or_else(|| "?".to_owned(), |a| a.name.clone()),
            arguments,
            note,
        };
        self.add(event, loc);
    }

    fn call(
        &mut self,
        call: &Call,
        before: &[ArgValue],
        after: &[ArgValue],
        results: &[Bits],
        aborted: bool,
        loc: Loc,
    ) {
        let name = match call.instance {
            Some(instance) => format!("{}.{}", self.program.externs[instance].name, call.function),
            None => call.function.clone(),
        };
        let arguments = call
            .arguments
            .iter()
            .zip(before.iter().zip(after))
            .map(|(argument, (before, after))| self.extern_argument(argument, before, after))
            .collect();
        let results = call
            .results
            .iter()
            .zip(results)
            .map(|(&var, value)| self.value(var, value))
            .collect();
        self.add(
            NodeKind::Extern {
                name,
                arguments,
                results,
                aborted,
            },
            loc,
        );
    }

    fn extern_argument(&self, argument: &Argument, before: &ArgValue, after: &ArgValue) -> ExternArgument {
        let text = |value: &ArgValue| match (value, &argument.value) {
            (ArgValue::In(values), _) => values.iter().map(in_text).collect::<Vec<_>>().join(", "),
            (ArgValue::Out(values), ArgumentValue::Out(vars) | ArgumentValue::InOut(vars)) => vars
                .iter()
                .zip(values)
                .map(|(&var, v)| self.value(var, v))
                .collect::<Vec<_>>()
                .join(", "),
            (_, ArgumentValue::String(text)) => format!("{text:?}"),
            (_, ArgumentValue::Extern(instance)) => self.program.externs[*instance].name.clone(),
            _ => "packet".to_owned(),
        };
        let after = matches!(after, ArgValue::Out(_)).then(|| text(after));
        ExternArgument {
            name: argument.name.clone(),
            before: text(before),
            after,
        }
    }

    fn leave_block(&mut self, outcome: Outcome, loc: Loc) {
        let event = match outcome {
            Outcome::Accept => Some(NodeKind::ParserEnd {
                accepted: true,
                error: self.error(0),
            }),
            Outcome::Reject(code) => Some(NodeKind::ParserEnd {
                accepted: false,
                error: self.error(code),
            }),
            Outcome::Abort(reason) => Some(NodeKind::Stopped {
                reason: format!("{reason:?}"),
            }),
            Outcome::Return => None,
        };
        while let Some(index) = self.current {
            match self.slots[index].event {
                NodeKind::Block { .. } => break,
                NodeKind::Packet { .. } => return,
                _ => self.current = self.slots[index].parent,
            }
        }
        if let Some(event) = event {
            self.add(event, loc);
        }
        self.close(|e| matches!(e, NodeKind::Block { .. }));
    }
}

impl Tracer for TraceTree {
    fn event(&mut self, event: &Event<'_>, loc: Loc) {
        match event {
            Event::BlockEnter { block } => {
                let (role, name) = self
                    .program
                    .blocks
                    .get(*block)
                    .map_or_else(Default::default, |b| (b.role.clone(), b.name.clone()));
                self.open(NodeKind::Block { role, name }, loc);
            }
            Event::BlockLeave { outcome } => self.leave_block(*outcome, loc),
            Event::State { name } => {
                self.close(|e| matches!(e, NodeKind::State { .. }));
                self.open(
                    NodeKind::State {
                        name: (*name).to_owned(),
                    },
                    loc,
                );
            }
            Event::Extract { header, bits, frame } => {
                let instance = &self.program.headers[*header];
                let names = &self.program.header_types[instance.ty].fields;
                let fields = names
                    .iter()
                    .zip(&instance.fields)
                    .map(|(f, &v)| NamedValue {
                        name: f.name.clone(),
                        value: self.value(v, frame.get(v)),
                    })
                    .collect();
                self.add(
                    NodeKind::Extract {
                        header: instance.name.clone(),
                        bits: *bits,
                        fields,
                    },
                    loc,
                );
            }
            Event::Lookup {
                table,
                keys,
                outcome,
                detail,
            } => self.lookup(*table, keys, outcome, detail, loc),
            Event::EnterAction { action } => {
                let name = self.program.actions[*action].name.clone();
                self.open(NodeKind::Action { name }, loc);
            }
            Event::Enter { name } => self.open(
                NodeKind::Body {
                    name: (*name).to_owned(),
                },
                loc,
            ),
            Event::Leave => self.close(|e| matches!(e, NodeKind::Action { .. } | NodeKind::Body { .. })),
            Event::Call {
                call,
                before,
                after,
                results,
                aborted,
            } => {
                self.call(call, before, after, results, *aborted, loc);
            }
            Event::Write { var, old, new } => self.write(*var, old, new, loc),
            other => {
                if let Some(kind) = self.simple(other) {
                    self.add(kind, loc);
                }
            }
        }
    }

    fn begin_packet(&mut self, parent: PacketTag, what: &str) -> PacketTag {
        self.current = (parent != PacketTag::NONE).then(|| parent.0 as usize - 1);
        self.open(NodeKind::Packet { what: what.to_owned() }, Loc::default());
        PacketTag(self.slots.len() as u32)
    }

    fn resume_packet(&mut self, packet: PacketTag) {
        self.current = (packet.0 as usize).checked_sub(1).filter(|&i| i < self.slots.len());
    }

    fn last_write(&self, var: VarId) -> Option<Loc> {
        self.writes.get(&var).copied().filter(|l| l.line > 0)
    }
}

impl TraceTree {
    /// Events that become one node without children.
    fn simple(&self, event: &Event<'_>) -> Option<NodeKind> {
        Some(match event {
            Event::ParserError { error } => NodeKind::ParserError {
                error: self.error(*error),
            },
            Event::Lookahead { value } => NodeKind::Lookahead { value: hex(value) },
            Event::Advance { bits } => NodeKind::Advance { bits: *bits },
            Event::Select { keys, case, cases } => NodeKind::Select {
                keys: keys.iter().map(hex).collect(),
                case: *case,
                cases: *cases,
            },
            Event::Branch { taken } => NodeKind::Branch { taken: *taken },
            Event::Switch { value, case } => NodeKind::Switch {
                value: hex(value),
                case: *case,
            },
            Event::Emit { header, bits } => NodeKind::Emit {
                header: self.header(*header),
                bits: *bits,
            },
            Event::Note { text } => NodeKind::Note {
                text: (*text).to_owned(),
            },
            Event::Fate { text, dropped } => NodeKind::Fate {
                text: (*text).to_owned(),
                dropped: *dropped,
            },
            _ => return None,
        })
    }
}

fn miss_text(detail: &LookupDetail) -> String {
    let count = match detail.entries {
        0 => "the table is empty".to_owned(),
        1 => "the one entry does not match".to_owned(),
        n => format!("none of {n} entries matches"),
    };
    match &detail.nearest {
        Some((handle, keys)) => format!(
            "{count}; the nearest is entry {handle}, it differs in {}",
            keys.join(", ")
        ),
        None => count,
    }
}

fn hex(value: &Bits) -> String {
    let digits = value.width().div_ceil(4) as usize;
    format!("0x{value:0digits$x}")
}

fn in_text(value: &InValue) -> String {
    match value {
        InValue::Scalar(bits) => hex(bits),
        InValue::Header { valid: true, fields } => {
            format!("{{{}}}", fields.iter().map(hex).collect::<Vec<_>>().join(", "))
        }
        InValue::Header { valid: false, .. } => "{invalid}".to_owned(),
    }
}

/// A match as people write it.
pub(crate) fn match_text(m: &KeyMatch) -> String {
    match m {
        KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => hex(value),
        KeyMatch::Optional(None) => "*".to_owned(),
        KeyMatch::Lpm { value, prefix_length } => format!("{}/{prefix_length}", hex(value)),
        KeyMatch::Ternary { value, mask } => format!("{} &&& {}", hex(value), hex(mask)),
        KeyMatch::Range { low, high } => format!("{}..{}", hex(low), hex(high)),
    }
}

/// A value as people want to see it: members of enums and errors by name, numbers of 16 bits and
/// more in hexadecimal with leading zeros, smaller ones in decimal.
#[must_use]
pub fn display_value(program: &Program, display: Display, value: &Bits) -> String {
    let member = |names: &[String]| {
        let name = value.to_u64().and_then(|v| names.get(usize::try_from(v).ok()?));
        name.cloned().unwrap_or_else(|| value.to_string())
    };
    match display {
        Display::Bool => (!value.is_zero()).to_string(),
        Display::Signed => value.to_signed_bigint().to_string(),
        Display::Error => member(&program.errors),
        Display::Enum(id) => match program.enums.get(id) {
            Some(e) => match &e.values {
                Some(values) => values
                    .iter()
                    .position(|v| v.to_biguint() == value.to_biguint())
                    .and_then(|i| e.members.get(i).cloned())
                    .unwrap_or_else(|| hex(value)),
                None => member(&e.members),
            },
            None => hex(value),
        },
        Display::Unsigned if value.width() < 16 => value.to_string(),
        Display::Unsigned => hex(value),
    }
}
