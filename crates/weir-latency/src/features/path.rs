//! Paths as features: their states, and names that stay the same.

use super::Place;
use super::control::Controls;
use super::facts::Initial;
use super::parser::{Variant, Visit, Walked};
use super::tables::TableFeatures;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use weir_ir::{Loc, Program};

/// A parser and the paths through it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParserFeatures {
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub place: Place,
    /// Number of its states, those of sub-parsers included.
    pub states: u32,
    /// Number of paths that accept, as a floating-point number: it may be beyond any integer.
    pub accepting: f64,
    /// Some paths were merged, so that one listed path stands for several.
    pub is_merged: bool,
    /// Paths enter more states than are followed: more than 256, or fewer in a parser with very
    /// many paths. They are not among those listed.
    pub is_cut_off: bool,
    /// The paths, those that extract most first.
    pub paths: Vec<ParserPath>,
}

/// A path, or several that cost the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParserPath {
    /// Names of its headers with slashes between them, as `--path` takes it.
    pub name: String,
    /// Paths that it stands for.
    pub count: f64,
    /// The states that are entered, in order. Of merged paths those of the costliest.
    pub states: Vec<State>,
    /// States that extract, without the one that extracts Ethernet (`n` of the paper's model). On a
    /// path without Ethernet the first that extracts is left out.
    pub extracting_states: u32,
    /// The most bytes that are extracted, without the 14 of Ethernet.
    pub header_bytes: u32,
    /// The least, where merged paths or variable-length headers make a difference.
    pub least_header_bytes: u32,
    /// The most bytes of the packet that headers take, Ethernet and skipped bytes included.
    pub parsed_bytes: u32,
    /// The least, where variable-length headers or merged paths make a difference.
    pub least_parsed_bytes: u32,
    /// Reads ahead of the cursor.
    pub lookaheads: u32,
    /// States that select.
    pub selects: u32,
    /// Index into [`super::Features::controls`].
    pub control: usize,
}

/// A state on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// The packet's headers that it extracts.
    pub headers: Vec<String>,
    /// The most bytes that it extracts; intrinsic metadata are not counted.
    pub bytes: u32,
    /// Bytes that it extracts at least.
    pub least_bytes: u32,
    /// Bytes of metadata in front of the packet that it extracts: intrinsic and port metadata.
    pub metadata_bytes: u32,
    /// Bytes that it reads ahead.
    pub lookahead_bytes: u32,
    /// It moves the cursor without extracting.
    pub advances: bool,
    /// Bytes of the packet that it skips in this way, as far as that is known.
    pub advanced_bytes: u32,
    /// Number of keys that it selects by.
    pub select_keys: u32,
    /// Windows of 32 bytes of the packet that it looks at: a Tofino's parser sees one per cycle.
    pub windows: u32,
}

impl ParserPath {
    /// Whether no model can tell them apart: equal headers, costs and control.
    fn costs_like(&self, other: &ParserPath) -> bool {
        let numbers = |p: &ParserPath| {
            let metadata: u32 = p.states.iter().map(|s| s.metadata_bytes).sum();
            [
                p.extracting_states,
                p.header_bytes,
                p.least_header_bytes,
                p.parsed_bytes,
                p.least_parsed_bytes,
                p.lookaheads,
                p.selects,
                metadata,
            ]
        };
        self.control == other.control && numbers(self) == numbers(other) && self.name == other.name
    }

    /// Its headers with slashes between them: the name without what tells it from other paths of
    /// the same headers.
    #[must_use]
    pub fn headers(&self) -> &str {
        headers_of(&self.name)
    }
}

/// The headers of a path of this name.
#[must_use]
pub(crate) fn headers_of(name: &str) -> &str {
    name.split_once('#').map_or(name, |(headers, _)| headers)
}

impl Walked<'_> {
    /// The paths, with the controls that they lead to.
    pub(super) fn finish(
        self,
        program: &Program,
        initial: &Initial,
        controls: &mut Controls<'_>,
        tables: &[TableFeatures],
    ) -> ParserFeatures {
        let mut paths: Vec<ParserPath> = Vec::with_capacity(self.accepted.len());
        for variant in &self.accepted {
            let control = controls.reached_with(initial, &variant.facts);
            let path = self.path(program, variant, control);
            match paths.iter_mut().find(|p| p.costs_like(&path)) {
                Some(same) => same.count += path.count,
                None => paths.push(path),
            }
        }
        let key = |p: &ParserPath| (p.extracting_states, p.header_bytes);
        paths.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name)));
        name_apart(&mut paths, &|path| {
            let reached = controls.control(path.control).tables();
            reached.into_iter().map(|at| tables[at].name.clone()).collect()
        });
        let is_state = |block: &&weir_ir::BasicBlock| block.state.is_some();
        ParserFeatures {
            name: self.name.to_owned(),
            place: Place::of(program, self.loc),
            states: self.body.blocks.iter().map(|(_, b)| b).filter(is_state).count() as u32,
            accepting: self.accepted.iter().map(|v| v.count).sum(),
            is_merged: self.is_merged,
            is_cut_off: self.is_cut_off,
            paths,
        }
    }

    fn path(&self, program: &Program, variant: &Variant, control: usize) -> ParserPath {
        let mut visits = Vec::new();
        let mut link = variant.link;
        while let Some(at) = link {
            visits.push(&self.links[at].visit);
            link = self.links[at].before;
        }
        visits.reverse();
        let states: Vec<State> = visits.into_iter().map(|v| self.state(program, v)).collect();
        let costs = &variant.costs;
        ParserPath {
            name: path_name(&states),
            count: variant.count,
            states,
            extracting_states: costs.extracting,
            header_bytes: costs.bytes,
            least_header_bytes: costs.least_bytes,
            parsed_bytes: costs.parsed,
            least_parsed_bytes: costs.least_parsed,
            lookaheads: costs.lookaheads,
            selects: costs.selects,
            control,
        }
    }

    fn state(&self, program: &Program, visit: &Visit) -> State {
        let block = visit.block.map(|id| &self.body.blocks[id]);
        let headers = visit.headers.iter().map(|h| program.headers[*h].name.clone());
        let bits = visit.bits + visit.metadata_bits;
        State {
            name: block.and_then(|b| b.state.clone()).unwrap_or_default(),
            place: block.map_or_else(Place::default, |b| Place::of(program, block_loc(b))),
            headers: headers.collect(),
            bytes: visit.bits.div_ceil(8),
            least_bytes: visit.least_bits / 8,
            metadata_bytes: visit.metadata_bits.div_ceil(8),
            lookahead_bytes: visit.lookahead_bits.div_ceil(8),
            advances: visit.advances,
            advanced_bytes: visit.advanced_bits.div_ceil(8),
            select_keys: visit.select_keys,
            windows: (bits.max(visit.lookahead_bits)).div_ceil(256).max(1),
        }
    }
}

/// Where a state begins: its first instruction, else what it ends with.
fn block_loc(block: &weir_ir::BasicBlock) -> Loc {
    block.insts.first().map_or(block.loc, |inst| inst.loc)
}

/// Headers without the name of the struct around them, with slashes between them.
fn path_name(states: &[State]) -> String {
    let headers = states.iter().flat_map(|s| &s.headers);
    let own = headers.map(|h| h.split_once('.').map_or(h.as_str(), |(_, own)| own));
    let name = own.collect::<Vec<_>>().join("/");
    if name.is_empty() {
        "(no header)".to_owned()
    } else {
        name
    }
}

/// Paths of the same headers get a number of what tells them apart: how they are parsed, else also
/// which tables they reach. It is a hash, so that a name does not depend on other paths.
fn name_apart(paths: &mut [ParserPath], tables: &dyn Fn(&ParserPath) -> Vec<String>) {
    let parsing = |p: &ParserPath| {
        format!(
            "{} {} {} {} {} {}",
            p.extracting_states, p.header_bytes, p.parsed_bytes, p.least_parsed_bytes, p.lookaheads, p.selects
        )
    };
    let mut by_headers: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, path) in paths.iter().enumerate() {
        by_headers.entry(path.name.clone()).or_default().push(at);
    }
    for (headers, same) in by_headers.into_iter().filter(|(_, same)| same.len() > 1) {
        let mut marks: Vec<String> = same.iter().map(|at| mark(&parsing(&paths[*at]))).collect();
        let shared: Vec<bool> = marks
            .iter()
            .map(|m| marks.iter().filter(|other| *other == m).count() > 1)
            .collect();
        for (i, at) in same.iter().enumerate().filter(|(i, _)| shared[*i]) {
            let path = &paths[*at];
            marks[i] = mark(&format!("{} {}", parsing(path), tables(path).join(" ")));
        }
        let mut seen: HashMap<String, u32> = HashMap::new();
        for (mark, at) in marks.into_iter().zip(same) {
            let times = seen.entry(mark.clone()).or_default();
            *times += 1;
            let number = if *times > 1 { format!("-{times}") } else { String::new() };
            paths[at].name = format!("{headers}#{mark}{number}");
        }
    }
}

/// Four hexadecimal digits of a text.
fn mark(text: &str) -> String {
    format!("{:04x}", crate::model::fnv(text.bytes()) & 0xffff)
}
