//! Runs a case by both engines and compares.

use super::case::Case;
use super::compare;
use super::externs;
use super::waiting::{self, Hold};
use std::fmt;
use std::sync::Arc;
use weir_compiler::{Options, compile_source};
use weir_interp::Interpreter;
use weir_ir::{CompletionOrder, Program};
use weir_stf::{Directive, Line, RunOptions, Session};
use weir_switch::{FastError, Frame, LaneUse, Output, PacketOrder, Switch, SwitchConfig, TAILROOM, VECTOR, Verdict};

/// Egress runs that a packet may cause: enough for every sort of copy, little enough to be fast.
const WORK_LIMIT: u32 = 256;
/// What lies around packets.
const RUBBISH: u8 = 0xa7;

/// Why a case is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The front end refuses the program.
    Rejected(String),
    /// No switch runs it.
    NotLoaded(String),
    /// The test is none.
    NoTest(String),
}

/// Which way differs from the interpreter of the program as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The interpreter of the optimised program.
    Optimized,
    /// Machine code, one packet at a time.
    Single,
    /// Machine code, packets in vectors.
    Vector,
    /// The same, eight at a time wherever there is code for that.
    Lanes,
    /// The same, with tables made for very many entries.
    Large,
    /// The same, with packets that wait for externs.
    Held(Hold),
}

/// More than the tables of machine code that are made for the most.
const VERY_MANY: usize = 100_000;

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Optimized => "interpreter of the optimised program",
            Way::Single => "machine code, packet by packet",
            Way::Vector => "machine code, packets in vectors",
            Way::Lanes => "machine code, eight packets at a time",
            Way::Large => "machine code, eight packets at a time, with tables for very many entries",
            Way::Held(hold) => return write!(f, "machine code with {hold}"),
        })
    }
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Who differs.
    pub way: Way,
    /// The line of the test; 0 for what is compared at the end.
    pub line: u32,
    /// What is different: first the interpreter's.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.way, self.line, self.what)
    }
}

/// What was run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Packets that came in, each counted once however many ways run it.
    pub packets: u64,
    /// Packets that went out.
    pub outputs: u64,
    /// Lookups that hit.
    pub hits: u64,
    /// Why there is no machine code.
    pub unsupported: Option<String>,
}

/// A program ready to be run by both engines.
pub(crate) struct Built {
    reference: Switch,
    optimized: Switch,
    compiled: Result<Switch, FastError>,
    /// How packets wait for externs.
    holds: Vec<Hold>,
    /// What keeps all packets that wait in order.
    order: Option<CompletionOrder>,
}

fn config() -> SwitchConfig {
    SwitchConfig {
        work_limit: WORK_LIMIT,
        externs: externs::registry(),
        ..SwitchConfig::default()
    }
}

fn switch(program: Arc<Program>) -> Result<Switch, Trouble> {
    Switch::with_engine(Arc::new(Interpreter::new(program)), config()).map_err(|e| Trouble::NotLoaded(e.to_string()))
}

/// The program of a source text.
pub(crate) fn compile(source: &str) -> Result<Program, Trouble> {
    let compilation = compile_source("case.p4", source, &Options::default(), weir_arch::targets());
    let list = compilation.diagnostics.list();
    compilation.program.ok_or_else(|| {
        let errors = list.iter().filter(|d| d.severity == weir_syntax::Severity::Error);
        let text: Vec<String> = errors
            .take(5)
            .map(|d| weir_syntax::render::short(d, &compilation.sources))
            .collect();
        Trouble::Rejected(text.join("\n"))
    })
}

impl Built {
    /// Compiles a program.
    ///
    /// # Panics
    /// A form of the program breaks an invariant.
    pub fn new(source: &str) -> Result<Self, Trouble> {
        let mut built = Built::of(compile(source)?)?;
        built.order = waiting::order_of(source);
        Ok(built)
    }

    /// Makes a program ready.
    ///
    /// # Panics
    /// A form of the program breaks an invariant.
    pub fn of(plain: Program) -> Result<Self, Trouble> {
        if let Err(errors) = weir_ir::verify::verify(&plain) {
            panic!("the lowered program breaks an invariant: {}", errors[0]);
        }
        let mut optimized = plain.clone();
        let observes = weir_arch::observes(&optimized);
        weir_ir::passes::optimize(&mut optimized, &observes);
        if let Err(errors) = weir_ir::verify::verify(&optimized) {
            panic!("the optimised program breaks an invariant: {}", errors[0]);
        }
        let reference = switch(Arc::new(plain))?;
        let optimized = switch(Arc::new(optimized))?;
        let mut compiled = optimized.clone();
        compiled.set_packet_order(PacketOrder::Serial);
        let compiled = compiled.compile().map(|()| compiled);
        let holds = compiled.as_ref().map_or(Vec::new(), waiting::holds);
        Ok(Built {
            reference,
            optimized,
            compiled,
            holds,
            order: None,
        })
    }

    /// Why there is no machine code.
    pub fn unsupported(&self) -> Option<String> {
        self.compiled.as_ref().err().map(ToString::to_string)
    }

    /// What the machine code is like, if there is any.
    #[cfg(test)]
    pub fn machine_code(&self) -> Option<String> {
        Some(self.compiled.as_ref().ok()?.compiled()?.describe())
    }

    /// Whether packets wait in any mode of execution that it is run in.
    #[cfg(test)]
    pub fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    /// A switch that interprets the program as it is written.
    pub fn switch(&self) -> &Switch {
        &self.reference
    }

    /// Runs a test every way.
    pub fn run(&self, test: &str) -> Result<Result<Tally, Finding>, Trouble> {
        let parsed = weir_stf::parse(test).map_err(|e| Trouble::NoTest(format!("{e:?}")))?;
        let schedule = Schedule::new(&parsed.lines);
        let mut ways = vec![(Way::Optimized, self.optimized.clone())];
        if let Ok(compiled) = &self.compiled {
            let mut one_at_a_time = compiled.clone();
            one_at_a_time.set_lanes(LaneUse::Never);
            ways.push((Way::Single, one_at_a_time.clone()));
            if schedule.vectors {
                let mut eight_at_a_time = compiled.clone();
                eight_at_a_time.set_lanes(LaneUse::Always);
                let mut large = eight_at_a_time.clone();
                large.set_least_entries(VERY_MANY);
                ways.push((Way::Large, large));
                ways.push((Way::Vector, one_at_a_time));
                for hold in &self.holds {
                    let mut held = eight_at_a_time.clone();
                    hold.attach(&mut held);
                    ways.push((Way::Held(*hold), held));
                }
                ways.push((Way::Lanes, eight_at_a_time));
            }
        }
        let mut race = Race::new(self.reference.clone(), ways);
        race.order = self.order;
        for step in &schedule.steps {
            if let Err(finding) = race.step(step) {
                return Ok(Err(finding));
            }
        }
        Ok(race.end().map(|mut tally| {
            tally.unsupported = self.unsupported();
            tally
        }))
    }
}

/// Runs a case.
pub(crate) fn run(case: &Case) -> Result<Result<Tally, Finding>, Trouble> {
    Built::new(&case.source)?.run(&case.test)
}

/// What is done at once.
enum Step<'a> {
    Packets(Vec<(u32, u32, &'a [u8])>),
    Other(&'a Line),
}

struct Schedule<'a> {
    steps: Vec<Step<'a>>,
    /// Whether packets may be put together: not where queues are watched.
    vectors: bool,
}

impl<'a> Schedule<'a> {
    fn new(lines: &'a [Line]) -> Self {
        let mut steps = Vec::new();
        let mut vectors = true;
        for line in lines {
            match &line.directive {
                Directive::Packet { port, bytes } if *port < 512 => {
                    let packet = (line.number, *port, bytes.as_slice());
                    match steps.last_mut() {
                        Some(Step::Packets(packets)) if packets.len() < VECTOR => packets.push(packet),
                        _ => steps.push(Step::Packets(vec![packet])),
                    }
                }
                Directive::Packet { .. }
                | Directive::Expect(_)
                | Directive::NoPacket
                | Directive::ExpectDrop { .. }
                | Directive::CheckCounter { .. } => {}
                directive => {
                    vectors &= !matches!(
                        directive,
                        Directive::PortRate { .. } | Directive::Receive { .. } | Directive::QueueCapacity { .. }
                    );
                    steps.push(Step::Other(line));
                }
            }
        }
        Schedule { steps, vectors }
    }
}

/// All ways side by side.
struct Race {
    reference: Session,
    others: Vec<(Way, Session)>,
    order: Option<CompletionOrder>,
    packets: u64,
    outputs: u64,
}

impl Race {
    fn new(reference: Switch, others: Vec<(Way, Switch)>) -> Self {
        let session = |switch| Session::new(switch, RunOptions::default());
        Race {
            reference: session(reference),
            others: others.into_iter().map(|(w, s)| (w, session(s))).collect(),
            order: None,
            packets: 0,
            outputs: 0,
        }
    }

    fn step(&mut self, step: &Step<'_>) -> Result<(), Finding> {
        match step {
            Step::Other(line) => self.line(line),
            Step::Packets(packets) => {
                let expected: Vec<Vec<Output>> = packets
                    .iter()
                    .map(|(_, port, bytes)| inject(self.reference.switch_mut(), *port, bytes))
                    .collect();
                self.packets += packets.len() as u64;
                self.outputs += expected.iter().map(|o| o.len() as u64).sum::<u64>();
                for (way, session) in &mut self.others {
                    let switch = session.switch_mut();
                    match way {
                        Way::Vector | Way::Lanes | Way::Large => vector(*way, switch, packets, &expected)?,
                        Way::Held(_) => held(*way, self.order, switch, packets, &expected)?,
                        _ => one_by_one(*way, switch, packets, &expected)?,
                    }
                    let line = packets.last().map_or(0, |p| p.0);
                    if let Some(what) = compare::counts(self.reference.switch(), session.switch()) {
                        return Err(Finding { way: *way, line, what });
                    }
                }
                Ok(())
            }
        }
    }

    fn line(&mut self, line: &Line) -> Result<(), Finding> {
        let expected = self.reference.line(line).map_err(|f| f.to_string());
        for (way, session) in &mut self.others {
            let got = session.line(line).map_err(|f| f.to_string());
            if got != expected {
                return Err(Finding {
                    way: *way,
                    line: line.number,
                    what: format!("{expected:?} and {got:?}"),
                });
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<Tally, Finding> {
        let reference = self.reference.switch();
        for (way, session) in &self.others {
            let compare = match way {
                Way::Held(_) => compare::difference_without_order,
                _ => compare::difference,
            };
            if let Some(what) = compare(reference, session.switch()) {
                return Err(Finding {
                    way: *way,
                    line: 0,
                    what,
                });
            }
        }
        let ids = reference.program().tables.ids();
        let hits = ids.filter_map(|id| Some(reference.state().table(id)?.hits)).sum();
        Ok(Tally {
            packets: self.packets,
            outputs: self.outputs,
            hits,
            unsupported: None,
        })
    }
}

fn inject(switch: &mut Switch, port: u32, bytes: &[u8]) -> Vec<Output> {
    let now_ns = switch.now_ns();
    switch.inject(port, bytes, now_ns)
}

pub(super) fn shown(outputs: &[Output]) -> String {
    let all: Vec<String> = outputs
        .iter()
        .map(|o| {
            let hex: String = o.bytes.iter().map(|b| format!("{b:02x}")).collect();
            format!("{}:{hex}@{}", o.port, o.time_ns)
        })
        .collect();
    format!("[{}]", all.join(", "))
}

fn differ(way: Way, line: u32, expected: &[Output], got: &[Output]) -> Result<(), Finding> {
    if expected == got {
        return Ok(());
    }
    Err(Finding {
        way,
        line,
        what: format!("sent {} and {}", shown(expected), shown(got)),
    })
}

fn one_by_one(
    way: Way,
    switch: &mut Switch,
    packets: &[(u32, u32, &[u8])],
    expected: &[Vec<Output>],
) -> Result<(), Finding> {
    for ((line, port, bytes), expected) in packets.iter().zip(expected) {
        let got = inject(switch, *port, bytes);
        differ(way, *line, expected, &got)?;
    }
    Ok(())
}

/// The packets with room around them.
fn memory_of(packets: &[(u32, u32, &[u8])], headroom: usize) -> Vec<Vec<u8>> {
    let room = |(_, _, bytes): &(u32, u32, &[u8])| {
        let mut memory = vec![RUBBISH; headroom + bytes.len() + TAILROOM];
        memory[headroom..headroom + bytes.len()].copy_from_slice(bytes);
        memory
    };
    packets.iter().map(room).collect()
}

fn frames_of<'m>(memory: &'m mut [Vec<u8>], packets: &[(u32, u32, &[u8])], headroom: usize) -> Vec<Frame<'m>> {
    let frames = memory.iter_mut().zip(packets);
    frames
        .filter_map(|(memory, (_, _, bytes))| Frame::new(memory, headroom, bytes.len()))
        .collect()
}

/// What packets that wait send must be what they send one by one; in the same order, if all of them
/// made the same calls.
fn held(
    way: Way,
    order: Option<CompletionOrder>,
    switch: &mut Switch,
    packets: &[(u32, u32, &[u8])],
    expected: &[Vec<Output>],
) -> Result<(), Finding> {
    let headroom = switch.headroom();
    let mut memory = memory_of(packets, headroom);
    let mut frames = frames_of(&mut memory, packets, headroom);
    let ports: Vec<u32> = packets.iter().map(|p| p.1).collect();
    let found = waiting::forward(switch, &ports, &mut frames);
    let sources: Vec<(u32, &[u8])> = packets.iter().map(|p| (p.1, p.2)).collect();
    match waiting::difference(order, &sources, expected, &found) {
        None => Ok(()),
        Some(what) => Err(Finding {
            way,
            line: packets.last().map_or(0, |p| p.0),
            what,
        }),
    }
}

/// What a vector sends at once must be what its packets alone would send; what comes later must be
/// all the rest, in the order of arrival.
fn vector(
    way: Way,
    switch: &mut Switch,
    packets: &[(u32, u32, &[u8])],
    expected: &[Vec<Output>],
) -> Result<(), Finding> {
    let headroom = switch.headroom();
    let mut memory = memory_of(packets, headroom);
    let ports: Vec<u32> = packets.iter().map(|p| p.1).collect();
    let mut frames = frames_of(&mut memory, packets, headroom);
    let now_ns = switch.now_ns();
    let verdicts = switch.forward(&ports, &mut frames, now_ns).to_vec();
    let time_ns = switch.now_ns();
    let mut late = Vec::new();
    for (((verdict, frame), (line, ..)), expected) in verdicts.iter().zip(&frames).zip(packets).zip(expected) {
        match verdict {
            Verdict::Transmit(port) => {
                let got = Output {
                    port: *port,
                    bytes: frame.bytes().to_vec(),
                    time_ns,
                };
                differ(way, *line, expected, &[got])?;
            }
            Verdict::Copies(_) | Verdict::Gone => late.extend(expected.iter().cloned()),
        }
    }
    let got = switch.drain();
    differ(way, packets.last().map_or(0, |p| p.0), &late, &got)
}
