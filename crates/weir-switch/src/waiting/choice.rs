//! How each call is executed: at once or by the lane.

use super::Job;
use std::fmt;
use weir_arch::BoundCall;
use weir_extern_api::Outcome;
use weir_ir::{AsyncCall, CompletionOrder, Execution, Loc, WhenFull};
use weir_jit::cycles;
use weir_lanes::{Choice, CostConfig, CostModel, FullPolicy, Port, Reason};

/// How calls for which packets may wait are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExternMode {
    /// By measured cost, for each call of the program's text.
    #[default]
    Auto,
    /// At once, on the packet's thread.
    Sync,
    /// By the lane, as far as it has room.
    Async,
}

/// The choice for a call of the program's text.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// The extern.
    pub name: String,
    /// Where the call stands.
    pub loc: Loc,
    /// Whether packets may wait for it.
    pub is_async: bool,
    /// Whether it is executed by the lane at the moment.
    pub is_handed_over: bool,
    /// Why.
    pub cause: CallCause,
    /// The cause with its figures, as a sentence.
    pub reason: String,
    /// Cycles that a call costs the worker inline: a moving average, if it was measured.
    pub inline_cycles: Option<f64>,
    /// Cycles that it costs the worker to suspend and resume a packet: the same.
    pub suspension_cycles: Option<f64>,
    /// Calls that the worker executed. Only those of compiled code that may wait are counted.
    pub inline: u64,
    /// Calls that were handed over.
    pub handed_over: u64,
}

/// Why a call is executed in its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallCause {
    /// It is not marked `@async`.
    NotAsync,
    /// There is no lane: the program is interpreted, or lanes are disabled.
    NoLane,
    /// [`ExternMode::Sync`] or [`ExternMode::Async`].
    Forced,
    /// By measured cost.
    Cost(Reason),
}

impl fmt::Display for CallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallCause::NotAsync => "not-async",
            CallCause::NoLane => "no-lane",
            CallCause::Forced => "forced",
            CallCause::Cost(Reason::FewSamples) => "few-samples",
            CallCause::Cost(Reason::Cheaper) => "cheaper",
            CallCause::Cost(Reason::Hysteresis) => "hysteresis",
        })
    }
}

/// One call in 2^this is measured when it is executed at once.
const SAMPLE_BITS: u32 = 4;

/// A call of the program's text.
pub(super) struct Site {
    name: String,
    loc: Loc,
    /// The program's handling of a full lane.
    full: Option<WhenFull>,
    policy: FullPolicy,
    is_async: bool,
    /// Its packets wait in the order of their flows.
    keeps_flow: bool,
    model: CostModel,
    /// Calls that were executed in their vector, to measure some.
    calls: u32,
    /// Calls that the worker executed.
    pub inline: u64,
    /// Calls that were handed over.
    pub handed_over: u64,
}

fn policy_of(full: WhenFull) -> FullPolicy {
    match full {
        WhenFull::Inline => FullPolicy::Inline,
        WhenFull::Wait => FullPolicy::Wait,
        WhenFull::Drop => FullPolicy::Drop,
    }
}

impl Site {
    /// `full`: the policy where the program says none.
    pub fn new(call: &BoundCall, full: WhenFull) -> Self {
        let (said, order) = match call.execution {
            Execution::Async(AsyncCall { full, order, .. }) => (full, order),
            Execution::Inline | Execution::Begin(_) | Execution::Finish(_) => (None, CompletionOrder::None),
        };
        let policy = policy_of(said.unwrap_or(full));
        Site {
            name: call.name.clone(),
            loc: call.loc,
            full: said,
            policy,
            is_async: matches!(call.execution, Execution::Async(_)),
            keeps_flow: order == CompletionOrder::Flow,
            model: model(policy),
            calls: 0,
            inline: 0,
            handed_over: 0,
        }
    }

    /// Whether packets are dropped when the lane is full.
    pub fn drops(&self) -> bool {
        self.is_async && self.policy == FullPolicy::Drop
    }

    pub fn is_async(&self) -> bool {
        self.is_async
    }

    pub fn keeps_flow(&self) -> bool {
        self.keeps_flow
    }

    /// The same call, of which nothing was measured.
    pub fn again(&self) -> Self {
        Site {
            name: self.name.clone(),
            loc: self.loc,
            full: self.full,
            policy: self.policy,
            is_async: self.is_async,
            keeps_flow: self.keeps_flow,
            model: model(self.policy),
            calls: 0,
            inline: 0,
            handed_over: 0,
        }
    }

    pub fn set_full(&mut self, full: WhenFull) {
        self.policy = policy_of(self.full.unwrap_or(full));
        self.model = model(self.policy);
    }

    pub fn choose(&mut self, mode: ExternMode, lane: &Port<Box<Job>>) -> Choice {
        if !self.is_async || lane.is_closed() {
            return Choice::Inline;
        }
        match mode {
            ExternMode::Sync => Choice::Inline,
            ExternMode::Auto => self.model.choose(lane.load()),
            ExternMode::Async if lane.has_room() => Choice::HandOver,
            ExternMode::Async => match self.policy {
                FullPolicy::Inline => Choice::Inline,
                FullPolicy::Wait => Choice::Wait,
                FullPolicy::Drop => Choice::Drop,
            },
        }
    }

    /// Executes a call at once, and measures some.
    pub fn measure_inline(&mut self, execute: impl FnOnce() -> Outcome) -> Outcome {
        self.calls = self.calls.wrapping_add(1);
        if !self.is_async || !self.calls.is_multiple_of(1 << SAMPLE_BITS) {
            return execute();
        }
        let start = cycles();
        let outcome = execute();
        self.model.record_inline(cycles().wrapping_sub(start) as f64);
        outcome
    }

    /// Notes what suspending and resuming a packet cost the worker.
    pub fn measure_suspension(&mut self, cycles: f64) {
        self.model.record_suspension(cycles);
    }

    pub fn report(&self, mode: ExternMode, has_lane: bool) -> CallReport {
        let by_cost = || {
            let is_handed_over = self.model.mode() == weir_lanes::Mode::HandOver;
            (
                is_handed_over,
                CallCause::Cost(self.model.reason()),
                self.model.explain(),
            )
        };
        let (is_handed_over, cause, reason) = match (self.is_async, has_lane, mode) {
            (false, ..) => (false, CallCause::NotAsync, "it is not @async".to_owned()),
            (true, false, _) => (false, CallCause::NoLane, "there is no lane".to_owned()),
            (true, true, ExternMode::Sync) => (false, CallCause::Forced, "as requested by --async sync".to_owned()),
            (true, true, ExternMode::Async) => (true, CallCause::Forced, "as requested by --async async".to_owned()),
            (true, true, ExternMode::Auto) => by_cost(),
        };
        CallReport {
            name: self.name.clone(),
            loc: self.loc,
            is_async: self.is_async,
            is_handed_over,
            cause,
            reason,
            inline_cycles: self.model.inline_cost(),
            suspension_cycles: self.model.suspension_cost(),
            inline: self.inline,
            handed_over: self.handed_over,
        }
    }
}

fn model(full: FullPolicy) -> CostModel {
    CostModel::new(CostConfig {
        full,
        ..CostConfig::default()
    })
}
