//! Packets that wait for externs, beside packets whose calls are executed at once.
#![allow(clippy::vec_box, reason = "jobs move between lists as pointers")]

use super::run::shown;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use weir_arch::Resource;
use weir_ir::{CompletionOrder, Execution, WhenFull};
use weir_lanes::{Device, LaneConfig, LaneOptions, Port, Service};
use weir_switch::{ExternMode, ExternOptions, Frame, Job, JobService, Output, Switch, Verdict};

/// How a program says that all of its packets make the same calls: the order follows.
pub(crate) const IN_ORDER: &str = "// All packets wait, in the order of a ";

/// The order that a program says all of its packets keep.
pub(super) fn order_of(source: &str) -> Option<CompletionOrder> {
    match source.lines().find_map(|line| line.strip_prefix(IN_ORDER))? {
        "flow" => Some(CompletionOrder::Flow),
        "port" => Some(CompletionOrder::Port),
        _ => None,
    }
}

/// How packets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hold {
    mode: ExternMode,
    full: WhenFull,
    depth: usize,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hold { mode, full, depth } = self;
        write!(f, "a lane for {depth} packets ({mode:?}; when full {full:?})")
    }
}

/// Enough for all packets of a vector and their copies.
const DEEP: usize = 4096;

/// The modes in which packets of a program may wait, if none can observe their order.
pub(super) fn holds(switch: &Switch) -> Vec<Hold> {
    let program = switch.program();
    let has_state = program.externs.ids().any(|id| {
        matches!(
            switch.state().resource(id),
            Resource::Register(_) | Resource::Meter(..) | Resource::DirectMeter(..)
        )
    });
    if has_state || !switch.has_async_calls() {
        return Vec::new();
    }
    // Which packets are dropped when the lane is full is unspecified.
    let drops = program.blocks.iter().any(|block| {
        let mut calls = block
            .body
            .blocks
            .iter()
            .flat_map(|(_, b)| b.insts.iter().filter_map(|i| i.kind.call()));
        calls.any(|call| matches!(call.execution, Execution::Async(a) if a.full == Some(WhenFull::Drop)))
    });
    let all = [
        (ExternMode::Sync, WhenFull::Inline, 16),
        (ExternMode::Async, WhenFull::Inline, 16),
        (ExternMode::Async, WhenFull::Wait, 4),
        (ExternMode::Async, WhenFull::Drop, DEEP),
        (ExternMode::Auto, WhenFull::Inline, 64),
    ];
    all.into_iter()
        .map(|(mode, full, depth)| Hold {
            mode,
            full,
            depth: if drops { DEEP } else { depth },
        })
        .collect()
}

/// Executes jobs when it is polled, in any order, a few at a time.
struct Shuffling {
    taken: Vec<Box<Job>>,
    random: crate::rng::Rng,
}

impl Device<Box<Job>> for Shuffling {
    fn submit(&mut self, jobs: &mut Vec<Box<Job>>) {
        self.taken.append(jobs);
    }

    fn poll(&mut self, done: &mut Vec<Box<Job>>) {
        for _ in 0..self.taken.len().min(7) {
            let at = self.random.below(self.taken.len());
            done.push(self.taken.swap_remove(at));
        }
        JobService.process(done);
    }
}

impl Hold {
    /// Gives a switch a lane.
    ///
    /// # Panics
    /// The lane is misconfigured.
    pub fn attach(self, switch: &mut Switch) {
        let config = LaneConfig::new(LaneOptions {
            name: "fuzz".into(),
            depth: self.depth,
            batch: self.depth.min(16),
            threads: 1,
            // Nothing stops here, however slow the machine is.
            time_limit: Duration::from_secs(3600),
        });
        let config = config.unwrap_or_else(|error| panic!("a lane is refused: {error}"));
        let device = Shuffling {
            taken: Vec::new(),
            random: crate::rng::Rng::new(9),
        };
        let options = ExternOptions {
            mode: self.mode,
            full: self.full,
            depth: self.depth,
        };
        switch.attach_lane(Port::to_device(&config, Box::new(device)), None, options);
    }
}

/// What was sent, and whether every call was made by all packets.
#[derive(Debug)]
pub(super) struct Found {
    outputs: Vec<Output>,
    is_uniform: bool,
}

/// Calls so far of those for which packets may wait, by site.
fn calls(switch: &Switch) -> Vec<u64> {
    let sites = switch.extern_calls().filter(|site| site.is_async);
    sites.map(|site| site.inline + site.handed_over).collect()
}

/// Has a switch forward frames, in two vectors so that some meet others that wait, and waits for
/// all of them.
pub(super) fn forward(switch: &mut Switch, ports: &[u32], frames: &mut [Frame<'_>]) -> Found {
    let before = calls(switch);
    let (count, part) = (frames.len() as u64, 1 + frames.len() * 2 / 3);
    let mut outputs = Vec::new();
    for (ports, frames) in ports.chunks(part).zip(frames.chunks_mut(part)) {
        forward_vector(switch, ports, frames, &mut outputs);
    }
    switch.settle_externs();
    outputs.extend(switch.drain());
    let is_uniform = calls(switch)
        .iter()
        .zip(&before)
        .all(|(now, before)| now - before == count);
    Found { outputs, is_uniform }
}

fn forward_vector(switch: &mut Switch, ports: &[u32], frames: &mut [Frame<'_>], outputs: &mut Vec<Output>) {
    let now_ns = switch.now_ns();
    let verdicts = switch.forward(ports, frames, now_ns).to_vec();
    let mut more = switch.advance(now_ns).into_iter();
    for (verdict, frame) in verdicts.into_iter().zip(&*frames) {
        match verdict {
            Verdict::Transmit(port) => outputs.push(Output {
                port,
                bytes: frame.bytes().to_vec(),
                time_ns: now_ns,
            }),
            Verdict::Copies(count) => outputs.extend(more.by_ref().take(count as usize)),
            Verdict::Gone => {}
        }
    }
    outputs.extend(more);
}

/// A port and the bytes of a packet.
type Sent<'a> = (u32, &'a [u8]);

fn sent(output: &Output) -> Sent<'_> {
    (output.port, &output.bytes)
}

/// The packets that keep an order among each other; `None`: nothing is known of this one.
fn key(order: CompletionOrder, (port, bytes): Sent<'_>) -> Option<Vec<u8>> {
    match order {
        CompletionOrder::Port => Some(port.to_be_bytes().to_vec()),
        CompletionOrder::Flow => match bytes.get(..14) {
            // What looks like IP, or a tag, has a longer key.
            Some(head) => {
                (!matches!(head[12..], [8, 0] | [0x86, 0xdd] | [0x81, 0] | [0x88, 0xa8])).then(|| head.to_vec())
            }
            None => Some(bytes.to_vec()),
        },
        CompletionOrder::None => None,
    }
}

/// What was sent wrongly. `sources`: what came in, and where; `expected`: what each of them sends.
pub(super) fn difference(
    order: Option<CompletionOrder>,
    sources: &[Sent<'_>],
    expected: &[Vec<Output>],
    found: &Found,
) -> Option<String> {
    let mut all: Vec<&Output> = expected.iter().flatten().collect();
    let mut got: Vec<&Output> = found.outputs.iter().collect();
    all.sort_by_key(|output| sent(output));
    got.sort_by_key(|output| sent(output));
    if !all.iter().map(|o| sent(o)).eq(got.iter().map(|o| sent(o))) {
        let cloned = |list: &[&Output]| list.iter().map(|o| (*o).clone()).collect::<Vec<_>>();
        return Some(format!("sent {} and {}", shown(&cloned(&all)), shown(&cloned(&got))));
    }
    let order = order.filter(|_| found.is_uniform)?;
    // By what is sent: the packets of which order send it.
    let mut senders: BTreeMap<Sent<'_>, Vec<Option<Vec<u8>>>> = BTreeMap::new();
    for (source, outputs) in sources.iter().zip(expected) {
        for output in outputs {
            senders.entry(sent(output)).or_default().push(key(order, *source));
        }
    }
    let mut wanted: BTreeMap<&[u8], Vec<Sent<'_>>> = BTreeMap::new();
    let mut kept = wanted.clone();
    for (outputs, by_key) in [
        (expected.iter().flatten().collect::<Vec<_>>(), &mut wanted),
        (found.outputs.iter().collect(), &mut kept),
    ] {
        for output in outputs {
            let keys = senders.get(&sent(output)).map_or(&[][..], Vec::as_slice);
            if let [Some(first), rest @ ..] = keys
                && rest.iter().all(|key| key.as_ref() == Some(first))
            {
                by_key.entry(first).or_default().push(sent(output));
            }
        }
    }
    let (wanted, kept) = (wanted.into_iter(), kept.into_iter());
    let (wanted, kept) = wanted.zip(kept).find(|(wanted, kept)| wanted != kept)?;
    Some(format!("order {:02x?} and {:02x?}", wanted, kept))
}
