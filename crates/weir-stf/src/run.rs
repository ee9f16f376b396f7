//! Running a test.

use crate::ast::{Alternative, Directive, Line, RateUnit, Test};
use crate::check::Expectations;
use crate::control::{Control, Refusal};
use crate::generator::GeneratorDirective;
use crate::parse::parse;
use crate::report::{Failure, Report};
use crate::scan::ParseError;
use std::sync::Arc;
use thiserror::Error;
use weir_interp::TraceTree;
use weir_ir::Program;
use weir_switch::{Defaults, DropReason, LoadError, Output, PortRate, Switch};

/// Packets that generators may make while a test waits: what comes of all of them is kept.
const MAX_GENERATED: usize = 100_000;

/// A test could not be run at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// Lines that are no directives.
    #[error("the test does not parse: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Parse(Vec<ParseError>),
    /// The program cannot be run.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// How to run a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// Record what happens to each packet.
    pub trace: bool,
}

/// Runs a test on a switch that interprets the program.
///
/// # Errors
/// The test does not parse, or the program cannot be run. Unmet expectations are in the report.
pub fn run(program: Arc<Program>, text: &str, options: &RunOptions) -> Result<Report, RunError> {
    run_on(Switch::new(program)?, text, options)
}

/// Runs a test on a switch.
///
/// # Errors
/// The test does not parse.
pub fn run_on(switch: Switch, text: &str, options: &RunOptions) -> Result<Report, RunError> {
    let test = parse(text).map_err(RunError::Parse)?;
    let mut runner = Session::new(switch, *options);
    runner.run(&test);
    let switch = &runner.control.switch;
    runner.report.warnings = weir_switch::unset_custom_crcs(switch.program(), switch.state());
    Ok(runner.report)
}

/// Executes the control-plane directives of a text: fills tables, sets sessions, configures rates.
/// The failures list those that could not be executed, `packet` and expectations among them.
///
/// # Errors
/// Every line that is no directive.
pub fn configure(switch: Switch, text: &str) -> Result<(Switch, Vec<Failure>), Vec<ParseError>> {
    let test = parse(text)?;
    let mut runner = Session::new(switch, RunOptions::default());
    let mut failures = Vec::new();
    for line in &test.lines {
        let done = match &line.directive {
            Directive::Packet { .. }
            | Directive::Receive { .. }
            | Directive::Drain
            | Directive::Expect(_)
            | Directive::NoPacket
            | Directive::ExpectDrop { .. }
            | Directive::ExpectDigest { .. } => Err(Failure::new(
                line.number,
                "a directive of the control plane",
                "one about packets",
            )),
            // Whoever has entries done begins with a clock of its own.
            Directive::Now { .. } => Err(Failure::new(
                line.number,
                "a directive of the control plane",
                "`now`, which only tests have",
            )),
            _ => runner.line(line),
        };
        failures.extend(done.err());
    }
    Ok((runner.control.switch, failures))
}

/// A switch that takes directives one by one, for whoever wants to do something else in between.
pub struct Session {
    control: Control,
    options: RunOptions,
    report: Report,
    expectations: Expectations,
    /// How many packets had gone out before the last `packet`.
    outputs_before: usize,
    /// Drops that an `expect_drop` has accounted for.
    drops_seen: Vec<DropReason>,
}

impl Session {
    /// A session on a switch.
    #[must_use]
    pub fn new(switch: Switch, options: RunOptions) -> Self {
        Session {
            control: Control::new(switch),
            options,
            report: Report::default(),
            expectations: Expectations::default(),
            outputs_before: 0,
            drops_seen: Vec::new(),
        }
    }

    /// The switch.
    #[must_use]
    pub fn switch(&self) -> &Switch {
        &self.control.switch
    }

    /// The switch, to be used directly. What it sends in the meantime belongs to no expectation.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.control.switch
    }

    fn run(&mut self, test: &Test) {
        for line in &test.lines {
            if let Err(failure) = self.line(line) {
                self.report.failures.push(failure);
            }
        }
        let late = self.control.switch.drain();
        self.report.outputs.extend(late);
        self.report.checks += self.expectations.expected.len();
        let failures = self.expectations.check(&self.report.outputs);
        self.report.failures.extend(failures);
        self.report
            .failures
            .sort_by_key(|f| if f.line == 0 { u32::MAX } else { f.line });
    }

    /// A port that the program's metadata cannot hold would be taken for another one.
    fn check_port(&self, line: u32, port: u32) -> Result<(), Failure> {
        let width = self.control.switch.port_bits();
        if width < 32 && port >> width != 0 {
            let most = (1u32 << width) - 1;
            return Err(Failure::new(line, format!("a port from 0 to {most}"), port.to_string()));
        }
        Ok(())
    }

    /// Does what a line says.
    ///
    /// # Errors
    /// It cannot be done, or what it checks at once is not so. Packets are compared with what is
    /// expected when a whole test was run ([`run_on`]).
    pub fn line(&mut self, line: &Line) -> Result<(), Failure> {
        let refused = |refusal: Refusal| Failure::new(line.number, refusal.expected, refusal.got);
        for port in line.directive.ports() {
            self.check_port(line.number, port)?;
        }
        match &line.directive {
            Directive::Packet { port, bytes } => self.packet(line.number, *port, bytes, true),
            Directive::Receive { port, bytes } => self.packet(line.number, *port, bytes, false),
            Directive::Drain => {
                let out = self.control.switch.drain();
                self.report.outputs.extend(out);
            }
            Directive::Expect(alternatives) => {
                self.expectations
                    .named
                    .extend(alternatives.iter().filter_map(|a| match a {
                        Alternative::Packet(port, _) => Some(*port),
                        Alternative::Drop => None,
                    }));
                self.expectations.expected.push((line.number, alternatives.clone()));
            }
            Directive::NoPacket => {
                self.report.checks += 1;
                let got = self.report.outputs.len() - self.outputs_before;
                if got > 0 {
                    return Err(Failure::new(line.number, "no packet", format!("{got}")));
                }
            }
            Directive::ExpectDrop { reason } => {
                self.report.checks += 1;
                self.expect_drop(line.number, reason)?;
            }
            Directive::Now { by_ns } => {
                let time = self.control.switch.now_ns().saturating_add(*by_ns);
                let switch = &mut self.control.switch;
                switch.limit_generation(MAX_GENERATED);
                let out = switch.advance(time);
                let is_more = switch.next_departure().is_some_and(|next| next <= time);
                self.report.outputs.extend(out);
                if is_more {
                    let expected = format!("at most {MAX_GENERATED} generated packets in this time");
                    return Err(Failure::new(line.number, expected, "more".to_owned()));
                }
            }
            Directive::Port { port, up } => self.control.switch.set_port(*port, *up),
            Directive::PortRate { port, unit, rate } => {
                let rate = match unit {
                    RateUnit::Packets => PortRate {
                        packets_per_second: Some(*rate),
                        ..PortRate::default()
                    },
                    RateUnit::Bits => PortRate {
                        bits_per_second: Some(*rate),
                        ..PortRate::default()
                    },
                };
                self.control.switch.set_port_rate(*port, rate);
            }
            Directive::QueueCapacity { port, packets } => {
                let packets = usize::try_from(*packets).unwrap_or(usize::MAX);
                self.control.switch.set_queue_capacity(*port, packets);
            }
            other => {
                let checks = matches!(
                    other,
                    Directive::ExpectDigest { .. }
                        | Directive::Generator(GeneratorDirective::Check { .. })
                        | Directive::CheckCounter { check: Some(_), .. }
                        | Directive::RegisterRead { check: Some(_), .. }
                );
                self.report.checks += usize::from(checks);
                if let Some(note) = self.control.directive(other).map_err(refused)? {
                    self.report.notes.push((line.number, note));
                }
            }
        }
        Ok(())
    }

    fn packet(&mut self, line: u32, port: u32, bytes: &[u8], drain: bool) {
        self.expectations.named.insert(port);
        self.report.packets += 1;
        self.outputs_before = self.report.outputs.len();
        let switch = &mut self.control.switch;
        let now_ns = switch.now_ns();
        let mut tree = self.options.trace.then(|| TraceTree::new(Arc::clone(switch.program())));
        let out: Vec<Output> = match (&mut tree, drain) {
            (Some(tree), true) => switch.inject_with(port, bytes, now_ns, &mut Defaults, tree),
            (Some(tree), false) => {
                switch.receive_with(port, bytes, now_ns, &mut Defaults, tree);
                Vec::new()
            }
            (None, true) => switch.inject(port, bytes, now_ns),
            (None, false) => {
                switch.receive(port, bytes, now_ns);
                Vec::new()
            }
        };
        self.report.outputs.extend(out);
        self.report.traces.extend(tree.map(|t| (line, t)));
    }

    fn expect_drop(&mut self, line: u32, name: &str) -> Result<(), Failure> {
        let Some(reason) = DropReason::from_name(name) else {
            let known: Vec<_> = DropReason::ALL.iter().map(|r| r.name()).collect();
            return Err(Failure::new(line, format!("one of {}", known.join(", ")), name));
        };
        let seen = self.drops_seen.iter().filter(|r| **r == reason).count() as u64;
        if self.control.switch.dropped(reason) > seen {
            self.drops_seen.push(reason);
            return Ok(());
        }
        let drops: Vec<_> = self
            .control
            .switch
            .drops()
            .map(|d| format!("{} {}", d.packets, d.reason))
            .collect();
        let got = if drops.is_empty() {
            "no drops".to_owned()
        } else {
            format!("in all {}", drops.join(", "))
        };
        Err(Failure::new(line, format!("one more drop with reason {name}"), got))
    }
}
