//! The choice between execution on the worker and hand-over to a lane.

use crate::policy::FullPolicy;
use std::fmt;

/// Where calls of an extern are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// On the worker, within the program.
    Inline,
    /// On a lane, while the worker processes other packets.
    HandOver,
}

impl Mode {
    fn other(self) -> Mode {
        match self {
            Mode::Inline => Mode::HandOver,
            Mode::HandOver => Mode::Inline,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Inline => "inline",
            Mode::HandOver => "hand over",
        })
    }
}

/// What to do with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Execute it on the worker.
    Inline,
    /// Hand it over; the lane has room.
    HandOver,
    /// Hand it over as soon as the lane has room.
    Wait,
    /// Drop the packet.
    Drop,
}

/// Constants of a [`CostModel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostConfig {
    /// What happens if the lane is full.
    pub full: FullPolicy,
    /// Samples of both modes before they are compared.
    pub minimum_samples: u32,
    /// By how many percent the other mode has to be cheaper before it is taken.
    pub hysteresis: u32,
    /// The other mode gets one call out of this many, to keep its average fresh.
    pub sample_one_in: u32,
    /// Consecutive calls per sample of the other mode. Hand-over is cheap in batches, so a single
    /// call would overstate its cost.
    pub sample_run: u32,
}

impl Default for CostConfig {
    fn default() -> Self {
        CostConfig {
            full: FullPolicy::default(),
            minimum_samples: 64,
            hysteresis: 20,
            sample_one_in: 1024,
            sample_run: 32,
        }
    }
}

/// An exponential moving average with weight 1/16; the plain mean of its first 16 samples.
#[derive(Debug, Clone, Copy, Default)]
struct Average {
    value: f64,
    samples: u32,
}

impl Average {
    const WINDOW: u32 = 16;

    #[inline]
    fn add(&mut self, sample: f64) {
        self.samples = self.samples.saturating_add(1);
        let difference = sample - self.value;
        self.value += if self.samples >= Self::WINDOW {
            difference * (1.0 / Self::WINDOW as f64)
        } else {
            difference / f64::from(self.samples)
        };
    }
}

/// Chooses where calls of one extern are executed, from what they cost the worker.
///
/// Hand-over costs the suspension of a packet and its resumption, inline execution the extern
/// itself. The cheaper one is the mode, with hysteresis. One call in a thousand runs in the other
/// mode, so that both averages stay fresh. Before both have enough samples, calls are executed
/// inline first, then handed over; so an extern that blocks is better handed over without a model.
///
/// All costs are in the caller's unit, such as cycles. A caller need not record every call.
///
/// # Example
///
/// ```
/// use weir_lanes::{Choice, CostConfig, CostModel};
///
/// let mut model = CostModel::new(CostConfig { minimum_samples: 1, ..CostConfig::default() });
/// assert_eq!(model.choose(0.0), Choice::Inline);
/// model.record_inline(900.0);
/// assert_eq!(model.choose(0.0), Choice::HandOver);
/// model.record_suspension(30.0);
/// assert_eq!(model.choose(0.1), Choice::HandOver);
/// assert!(model.explain().starts_with("hand over: a call costs 900 inline and 30 for"));
/// ```
#[derive(Debug, Clone)]
pub struct CostModel {
    config: CostConfig,
    mode: Mode,
    /// How much more the present mode may cost than the other one.
    margin: f64,
    /// Calls until the other mode is sampled, or until the run of samples ends.
    countdown: u64,
    is_sampling: bool,
    inline: Average,
    suspension: Average,
    service: Average,
    load: Average,
}

/// Why a [`CostModel`] has its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// One of the modes was not measured often enough. Calls are inline, but for the samples.
    FewSamples,
    /// The mode costs less than the other one.
    Cheaper,
    /// The other mode costs less, but not by enough to change.
    Hysteresis,
}

impl CostModel {
    /// A model without samples.
    #[must_use]
    pub fn new(config: CostConfig) -> Self {
        let mut model = CostModel {
            config,
            mode: Mode::Inline,
            margin: 1.0 + f64::from(config.hysteresis) / 100.0,
            countdown: 0,
            is_sampling: false,
            inline: Average::default(),
            suspension: Average::default(),
            service: Average::default(),
            load: Average::default(),
        };
        model.countdown = model.pause();
        model
    }

    /// Records what a call cost that was executed inline.
    #[inline]
    pub fn record_inline(&mut self, cost: f64) {
        self.inline.add(cost);
        self.compare();
    }

    /// Records what it cost the worker to suspend a packet, submit its job, collect it, and resume
    /// the packet.
    #[inline]
    pub fn record_suspension(&mut self, cost: f64) {
        self.suspension.add(cost);
        self.compare();
    }

    /// Records how long the lane takes for a job. It is reported, and not used for decisions.
    #[inline]
    pub fn record_service(&mut self, cost: f64) {
        self.service.add(cost);
    }

    /// Decides on the next call. `load` is that of the [port](crate::Port::load): 1 means full.
    #[inline]
    pub fn choose(&mut self, load: f64) -> Choice {
        self.load.add(load);
        let mode = self.next_mode();
        match mode {
            Mode::Inline => Choice::Inline,
            Mode::HandOver if load < 1.0 => Choice::HandOver,
            // A sample is not worth a packet.
            Mode::HandOver if self.mode == Mode::Inline => Choice::Inline,
            Mode::HandOver => match self.config.full {
                FullPolicy::Inline => Choice::Inline,
                FullPolicy::Wait => Choice::Wait,
                FullPolicy::Drop => Choice::Drop,
            },
        }
    }

    /// The mode of most calls at present.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why the mode is as it is.
    #[must_use]
    pub fn reason(&self) -> Reason {
        let (inline, suspension) = (self.inline.value, self.suspension.value);
        match self.mode {
            _ if !self.is_informed() => Reason::FewSamples,
            Mode::Inline if suspension < inline => Reason::Hysteresis,
            Mode::HandOver if suspension >= inline => Reason::Hysteresis,
            Mode::Inline | Mode::HandOver => Reason::Cheaper,
        }
    }

    /// What a call costs the worker inline, as far as it was measured.
    #[must_use]
    pub fn inline_cost(&self) -> Option<f64> {
        (self.inline.samples > 0).then_some(self.inline.value)
    }

    /// What it costs the worker to suspend and resume a packet, as far as it was measured.
    #[must_use]
    pub fn suspension_cost(&self) -> Option<f64> {
        (self.suspension.samples > 0).then_some(self.suspension.value)
    }

    /// The mode with its figures and the reason, as a sentence.
    #[must_use]
    pub fn explain(&self) -> String {
        if !self.is_informed() {
            return format!(
                "inline: too few samples to compare ({} inline, {} handed over, {} needed of each)",
                self.inline.samples, self.suspension.samples, self.config.minimum_samples
            );
        }
        let (inline, suspension) = (self.inline.value, self.suspension.value);
        let hysteresis = self.config.hysteresis;
        let reason = match self.mode {
            Mode::Inline if suspension < inline => format!("less, but not by {hysteresis} %"),
            Mode::Inline => "not less".to_owned(),
            Mode::HandOver if suspension < inline => "less".to_owned(),
            Mode::HandOver => format!("not less, but inline is not cheaper by {hysteresis} %"),
        };
        let service = match self.service.samples {
            0 => String::new(),
            _ => format!(", where it takes {:.0},", self.service.value),
        };
        format!(
            "{}: a call costs {inline:.0} inline and {suspension:.0} for suspension and resumption, which is {reason}; \
             the lane{service} is {:.0} % full, and its policy when full is `{}`",
            self.mode,
            self.load.value * 100.0,
            self.config.full,
        )
    }

    fn is_informed(&self) -> bool {
        self.inline.samples.min(self.suspension.samples) >= self.config.minimum_samples
    }

    /// The mode of the next call: that of most calls, or the other one to sample it.
    #[inline]
    fn next_mode(&mut self) -> Mode {
        if !self.is_informed() {
            return match self.inline.samples < self.config.minimum_samples {
                true => Mode::Inline,
                false => Mode::HandOver,
            };
        }
        self.countdown = self.countdown.saturating_sub(1);
        if self.countdown == 0 {
            self.is_sampling = !self.is_sampling;
            self.countdown = if self.is_sampling { self.run() } else { self.pause() };
        }
        match self.is_sampling {
            true => self.mode.other(),
            false => self.mode,
        }
    }

    /// Calls per run of samples.
    fn run(&self) -> u64 {
        u64::from(self.config.sample_run.max(1))
    }

    /// Calls between two runs of samples.
    fn pause(&self) -> u64 {
        self.run() * u64::from(self.config.sample_one_in.max(2) - 1)
    }

    fn compare(&mut self) {
        if !self.is_informed() {
            return;
        }
        let (present, alternative) = match self.mode {
            Mode::Inline => (self.inline.value, self.suspension.value),
            Mode::HandOver => (self.suspension.value, self.inline.value),
        };
        if alternative * self.margin < present {
            self.mode = self.mode.other();
            self.is_sampling = false;
            self.countdown = self.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(full: FullPolicy) -> CostConfig {
        CostConfig {
            full,
            minimum_samples: 4,
            ..CostConfig::default()
        }
    }

    /// A model that knows these costs.
    fn informed(full: FullPolicy, inline: f64, suspension: f64) -> CostModel {
        let mut model = CostModel::new(config(full));
        for _ in 0..100 {
            model.record_inline(inline);
            model.record_suspension(suspension);
        }
        model
    }

    #[test]
    fn both_modes_are_sampled_before_they_are_compared() {
        let mut model = CostModel::new(config(FullPolicy::Inline));
        for _ in 0..4 {
            assert_eq!(model.choose(0.0), Choice::Inline);
            model.record_inline(500.0);
        }
        for _ in 0..4 {
            assert_eq!(model.mode(), Mode::Inline);
            assert_eq!(model.choose(0.0), Choice::HandOver);
            model.record_suspension(20.0);
        }
        assert_eq!(model.mode(), Mode::HandOver);
    }

    #[test]
    fn the_cheaper_mode_is_chosen() {
        assert_eq!(informed(FullPolicy::Inline, 500.0, 20.0).choose(0.5), Choice::HandOver);
        assert_eq!(informed(FullPolicy::Inline, 10.0, 20.0).choose(0.5), Choice::Inline);
    }

    #[test]
    fn the_mode_changes_only_by_more_than_the_hysteresis() {
        let mut model = informed(FullPolicy::Inline, 100.0, 110.0);
        assert_eq!(model.mode(), Mode::Inline);
        let record = |model: &mut CostModel, cost| (0..200).for_each(|_| model.record_suspension(cost));
        record(&mut model, 90.0);
        assert_eq!(model.mode(), Mode::Inline, "not cheaper by a fifth");
        record(&mut model, 80.0);
        assert_eq!(model.mode(), Mode::HandOver);
        record(&mut model, 110.0);
        assert_eq!(model.mode(), Mode::HandOver, "inline is not cheaper by a fifth");
        record(&mut model, 130.0);
        assert_eq!(model.mode(), Mode::Inline);
    }

    #[test]
    fn a_full_lane_is_left_to_the_policy() {
        for (full, choice) in [
            (FullPolicy::Inline, Choice::Inline),
            (FullPolicy::Wait, Choice::Wait),
            (FullPolicy::Drop, Choice::Drop),
        ] {
            assert_eq!(informed(full, 500.0, 20.0).choose(1.0), choice);
            assert_eq!(informed(full, 10.0, 20.0).choose(1.0), Choice::Inline);
        }
    }

    #[test]
    fn one_call_in_a_thousand_samples_the_other_mode() {
        const CALLS: usize = 1024 * 32 * 4;
        for (inline, most) in [(500.0, Choice::HandOver), (10.0, Choice::Inline)] {
            let mut model = informed(FullPolicy::Drop, inline, 20.0);
            let others = (0..CALLS).filter(|_| model.choose(0.1) != most).count();
            assert_eq!(others, CALLS / 1024);
        }
    }

    #[test]
    fn no_packet_is_lost_to_a_sample() {
        let mut model = informed(FullPolicy::Drop, 10.0, 20.0);
        assert!((0..100_000).all(|_| model.choose(1.0) == Choice::Inline));
    }

    #[test]
    fn the_choice_is_explained_with_its_figures() {
        let mut model = CostModel::new(config(FullPolicy::Wait));
        assert_eq!(
            model.explain(),
            "inline: too few samples to compare (0 inline, 0 handed over, 4 needed of each)"
        );
        model = informed(FullPolicy::Wait, 500.0, 20.0);
        model.record_service(550.0);
        model.choose(0.25);
        assert_eq!(
            model.explain(),
            "hand over: a call costs 500 inline and 20 for suspension and resumption, which is less; \
             the lane, where it takes 550, is 25 % full, and its policy when full is `wait`"
        );
        assert!(
            informed(FullPolicy::Wait, 21.0, 20.0)
                .explain()
                .contains("which is less, but not by 20 %")
        );
    }
}
