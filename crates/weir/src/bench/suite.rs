//! The bundled programs against the bars that we set ourselves.

use super::case::Case;
use super::fill::{Entries, Match};
use super::measure::{Measured, Plan, measure, median, ratio};
use super::rig::{PACKETS_PER_INSERT, Rig, Side};
use super::workers;
use super::workload::Mix;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write as _;
use weir_compiler::NoThread;

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bar {
    /// So many times what the other takes, at most.
    Times(f64),
    /// So many times as fast as the other, at least.
    Faster(f64),
    /// So many cycles per packet, at most.
    Cycles(f64),
    /// So many ms to compile, at most.
    CompileMs(f64),
    /// So many times the packets of one worker, at least.
    Speedup(f64),
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Bar::Times(most) | Bar::Cycles(most) | Bar::CompileMs(most) => value <= most,
            Bar::Faster(least) | Bar::Speedup(least) => value >= least,
        }
    }

    /// A value in its unit.
    fn show(self, value: f64) -> String {
        match self {
            Bar::Times(_) | Bar::Speedup(_) => format!("{value:.2}x"),
            Bar::Faster(_) => format!("{value:.0}x"),
            Bar::Cycles(_) => format!("{value:.0} cycles"),
            Bar::CompileMs(_) => format!("{value:.1} ms"),
        }
    }

    /// The bar itself.
    fn text(self) -> String {
        match self {
            Bar::Times(v) | Bar::Cycles(v) | Bar::CompileMs(v) => format!("<= {}", self.show(v)),
            Bar::Faster(v) | Bar::Speedup(v) => format!(">= {}", self.show(v)),
        }
    }
}

/// A program with tables: name, entries, mix.
type Loaded = (&'static str, usize, Mix);

/// A figure of the suite.
struct Row {
    engine: Loaded,
    pool: usize,
    /// What it is compared with: the same or another program, and who runs it.
    other: Option<(Loaded, Side)>,
    bar: Bar,
    /// The bar is meant for this pool, not only shown.
    counts: bool,
}

/// What a row gave.
struct Outcome {
    name: String,
    cycles: Option<f64>,
    other: Option<(String, f64)>,
    value: Result<f64, String>,
    bar: Bar,
    counts: bool,
}

const PLAIN: Mix = Mix {
    misses: 0,
    actions: false,
    extra: false,
    efcp: false,
};
const EFCP: Mix = Mix { efcp: true, ..PLAIN };
const SMALL: usize = 4096;
const LARGE: usize = 65_536;

/// All rows but those that have no packets of their own.
fn rows() -> Vec<Row> {
    let l2: Loaded = ("l2_switch", 1000, PLAIN);
    let router: Loaded = ("ipv4_router", 1000, PLAIN);
    let exact: Loaded = ("acl_firewall", 10_000, PLAIN);
    let ternary: Loaded = ("acl_firewall_ternary", 1000, PLAIN);
    let int: Loaded = ("int_md", 1000, PLAIN);
    let efcp: Loaded = ("rina_router", 1000, EFCP);
    let mut rows = Vec::new();
    for pool in [SMALL, LARGE] {
        let mut add = |engine: Loaded, other: Option<(Loaded, Side)>, bar: Bar, counts: bool| {
            rows.push(Row {
                engine,
                pool,
                other,
                bar,
                counts,
            });
        };
        let small = pool == SMALL;
        add(l2, Some((l2, Side::Baseline)), Bar::Times(1.5), small);
        add(router, Some((router, Side::Baseline)), Bar::Times(1.5), small);
        if !small {
            let (l2, router) = (("l2_switch", 1_000_000, PLAIN), ("ipv4_router", 900_000, PLAIN));
            add(l2, Some((l2, Side::Baseline)), Bar::Times(1.5), true);
            add(router, Some((router, Side::Baseline)), Bar::Times(1.5), true);
        }
        let by_hand = ("l2_switch", 10_000, PLAIN);
        add(exact, Some((by_hand, Side::Baseline)), Bar::Times(2.5), small);
        add(ternary, None, Bar::Cycles(400.0), small);
        add(int, Some((router, Side::Jit)), Bar::Times(2.5), small);
        add(efcp, Some((router, Side::Jit)), Bar::Times(2.5), small);
        let ipv4 = ("rina_router", 1000, PLAIN);
        add(efcp, Some((ipv4, Side::Jit)), Bar::Times(1.1), small);
        if small {
            for program in [l2, router, exact, ternary, int, efcp] {
                add(program, Some((program, Side::Interp)), Bar::Faster(30.0), true);
            }
        } else {
            let plain: Loaded = ("mixes", 1000, PLAIN);
            for mix in [
                Mix { misses: 50, ..PLAIN },
                Mix { actions: true, ..PLAIN },
                Mix { extra: true, ..PLAIN },
                Mix {
                    misses: 50,
                    actions: true,
                    extra: true,
                    efcp: false,
                },
            ] {
                // The last is all of them at once, which nobody asked for.
                let counts = !(mix.actions && mix.extra);
                add(("mixes", 1000, mix), Some((plain, Side::Jit)), Bar::Times(2.0), counts);
            }
        }
    }
    rows
}

impl Row {
    fn case(&self, (name, entries, mix): Loaded) -> Result<Case> {
        Ok(Case::bundled(name, entries, mix)?.with_pool(self.pool))
    }

    fn describe(&self, (name, entries, mix): Loaded) -> String {
        let mix = if mix == PLAIN { String::new() } else { format!(" {mix}") };
        format!("{name}{mix}, {entries} entries")
    }

    fn name(&self) -> String {
        format!("{}, {} packets", self.describe(self.engine), self.pool)
    }

    fn run(&self, plan: Plan, vector: usize) -> Outcome {
        let mut outcome = Outcome {
            name: self.name(),
            cycles: None,
            other: None,
            value: Err(String::new()),
            bar: self.bar,
            counts: self.counts,
        };
        outcome.value = self.measure(plan, vector, &mut outcome).map_err(|e| format!("{e:#}"));
        outcome
    }

    fn measure(&self, plan: Plan, vector: usize, outcome: &mut Outcome) -> Result<f64> {
        let rig = |loaded: Loaded, sides: &[Side]| -> Result<Rig> {
            let mut case = self.case(loaded)?;
            case.vector = vector;
            let mut rig = case.rig(sides)?;
            rig.check(sides)?;
            Ok(rig)
        };
        let (mut rigs, who) = match self.other {
            None => (vec![rig(self.engine, &[Side::Jit])?], vec![(0, Side::Jit)]),
            Some((other, side)) if other == self.engine => {
                let sides = [Side::Jit, side];
                (vec![rig(other, &sides)?], vec![(0, Side::Jit), (0, side)])
            }
            Some((other, side)) => {
                // By hand needs nothing compiled, but what is compiled must agree with it.
                let sides = if side == Side::Jit {
                    vec![side]
                } else {
                    vec![Side::Jit, side]
                };
                let rigs = vec![rig(self.engine, &[Side::Jit])?, rig(other, &sides)?];
                (rigs, vec![(0, Side::Jit), (1, side)])
            }
        };
        let (measured, _) = measure(&mut rigs, &who, plan);
        let cycles = measured.first().map_or(0.0, |m| m.median());
        outcome.cycles = Some(cycles);
        let Some(((other, side), second)) = self.other.zip(measured.get(1)) else {
            return Ok(cycles);
        };
        let name = if other == self.engine {
            String::new()
        } else {
            format!(" of {}", self.describe(other))
        };
        outcome.other = Some((format!("{}{name}", side.name()), second.median()));
        let ratio = ratio(&measured[0].runs, &second.runs);
        Ok(if matches!(self.bar, Bar::Faster(_)) {
            1.0 / ratio
        } else {
            ratio
        })
    }
}

/// Runs everything, with progress on stderr: all but the workers on the last of the processors that
/// this process may use, as others have more to do with the first. What cannot be measured is said
/// in its row.
///
/// # Errors
/// The system starts no thread.
pub fn run(plan: Plan, vector: usize) -> Result<Suite> {
    let rows = rows();
    let total = rows.len() + 3;
    let alone = || {
        // Where that cannot be had, figures are only a little less steady.
        if let Some(&last) = weir_io::cores().last() {
            let _ = weir_io::pin_to_core(last);
        }
        let mut outcomes = Vec::with_capacity(total);
        for (i, row) in rows.iter().enumerate() {
            crate::output::message(format!("[{}/{total}] {}", i + 1, row.name()));
            outcomes.push(row.run(plan, vector));
        }
        crate::output::message(format!("[{}/{total}] inserting while forwarding", total - 2));
        outcomes.push(inserting(plan, vector));
        crate::output::message(format!("[{}/{total}] compiling ipv4_router", total - 1));
        outcomes.push(compiling());
        outcomes
    };
    let mut outcomes = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("alone".to_owned())
            .spawn_scoped(scope, alone);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(outcomes)) => Ok(outcomes),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(NoThread::new("measuring", &error)),
        }
    })?;
    crate::output::message(format!("[{total}/{total}] two workers"));
    outcomes.push(two_workers(plan));
    Ok(Suite { outcomes })
}

/// Has [`Side::Inserting`] of l2_switch insert stations that are not there.
fn insert_stations(rig: &mut Rig) -> Result<()> {
    let entries = Entries::new(&rig.switch, "source_macs", "known")?;
    let mut number = 0;
    rig.new_entries = Some(Box::new(move || {
        number += 1;
        // Addresses that no workload makes: locally administered, counted up.
        entries.make(0, &[Match::Is(0x0afe_0000_0000 + number)], &[1])
    }));
    Ok(())
}

/// Forwarding while entries are inserted into a large table, against forwarding alone.
fn inserting(plan: Plan, vector: usize) -> Outcome {
    // What is to be told apart is less than one run differs from the next: with twice as many runs
    // the ratio came out anywhere from 0.99 to 1.06 on a busy host.
    let plan = Plan {
        runs: plan.runs * 8,
        ..plan
    };
    let measured = || -> Result<(Vec<Measured>, bool)> {
        let mut case = Case::bundled("l2_switch", 1_000_000, PLAIN)?.with_pool(LARGE);
        case.vector = vector;
        let mut rig = case.rig(&[Side::Jit])?;
        rig.check(&[Side::Jit])?;
        insert_stations(&mut rig)?;
        let mut rigs = [rig];
        let (measured, _) = measure(&mut rigs, &[(0, Side::Inserting), (0, Side::Jit)], plan);
        let all = rigs[0].inserted > 0 && rigs[0].refused == 0;
        Ok((measured, all))
    };
    let mut outcome = Outcome {
        name: format!("l2_switch, 1000000 entries, {LARGE} packets, an insert every {PACKETS_PER_INSERT}"),
        cycles: None,
        other: None,
        value: Err(String::new()),
        bar: Bar::Times(1.05),
        counts: true,
    };
    outcome.value = match measured() {
        Ok((_, false)) => Err("not all entries were inserted".to_owned()),
        Ok((measured, true)) => {
            outcome.cycles = Some(measured[0].median());
            outcome.other = Some(("jit".to_owned(), measured[1].median()));
            Ok(ratio(&measured[0].runs, &measured[1].runs))
        }
        Err(error) => Err(format!("{error:#}")),
    };
    outcome
}

fn compiling() -> Outcome {
    let times = Case::bundled("ipv4_router", 2, PLAIN).and_then(|case| case.compile_times(11));
    Outcome {
        name: "ipv4_router, compiling it".to_owned(),
        cycles: None,
        other: None,
        value: times.map(|t| median(&t)).map_err(|e| format!("{e:#}")),
        bar: Bar::CompileMs(30.0),
        counts: true,
    }
}

fn two_workers(plan: Plan) -> Outcome {
    let together = Case::bundled("ipv4_router", 1000, PLAIN).and_then(|c| workers::measure(&c, Side::Jit, 2, plan));
    Outcome {
        name: "ipv4_router, 1000 entries, two workers".to_owned(),
        cycles: None,
        other: None,
        value: together.map(|(t, _)| t.speedup()).map_err(|e| format!("{e:#}")),
        bar: Bar::Speedup(1.8),
        counts: true,
    }
}

/// What everything gave.
pub struct Suite {
    outcomes: Vec<Outcome>,
}

impl Outcome {
    /// Whether it holds; `None` where the bar is not meant for it.
    fn passed(&self) -> Option<bool> {
        self.counts
            .then(|| self.value.as_ref().is_ok_and(|v| self.bar.holds(*v)))
    }

    fn verdict(&self) -> &'static str {
        match self.passed() {
            None => "-",
            Some(true) => "pass",
            Some(false) => "FAIL",
        }
    }
}

impl Suite {
    /// How many bars do not hold.
    pub fn failures(&self) -> usize {
        self.outcomes.iter().filter(|o| o.passed() == Some(false)).count()
    }

    /// As a table.
    pub fn text(&self) -> String {
        let width = self.outcomes.iter().map(|o| o.name.len()).max().unwrap_or(0);
        let mut text = format!(
            "{:width$} {:>9} {:>9} {:>11} {:>14}         compared with\n",
            "", "cycles", "other", "value", "bar"
        );
        for o in &self.outcomes {
            let cycles = |c: Option<f64>| c.map_or(String::new(), |c| format!("{c:.1}"));
            let value = o.value.as_ref().map_or("not measured".to_owned(), |v| o.bar.show(*v));
            let bar = if o.counts { o.bar.text() } else { String::new() };
            let _ = writeln!(
                text,
                "{:width$} {:>9} {:>9} {value:>11} {bar:>14}  {:4}   {}",
                o.name,
                cycles(o.cycles),
                cycles(o.other.as_ref().map(|o| o.1)),
                o.verdict(),
                match (&o.value, &o.other) {
                    (Err(why), _) => why.as_str(),
                    (_, Some((name, _))) => name.as_str(),
                    _ => "",
                }
            );
        }
        let held = self.outcomes.iter().filter(|o| o.counts).count();
        let _ = writeln!(text, "{} of {held} bars hold", held - self.failures());
        text.push_str(
            "Cycles and other are medians of their runs; a value is the median of what each run is to the one beside it, and may differ from what both medians give.\n",
        );
        text
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let rows = self.outcomes.iter().map(|o| {
            json!({
                "name": o.name,
                "cycles_per_packet": o.cycles,
                "compared_with": o.other.as_ref().map(|o| &o.0),
                "other_cycles_per_packet": o.other.as_ref().map(|o| o.1),
                "value": o.value.as_ref().ok(),
                "error": o.value.as_ref().err(),
                "bar": o.counts.then(|| o.bar.text()),
                "passed": o.passed(),
            })
        });
        json!({ "rows": rows.collect::<Vec<_>>(), "failed": self.failures() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_switch::Write;
    use weir_table::TableOp;

    #[test]
    fn bars_hold_on_their_side() {
        assert!(Bar::Times(1.5).holds(1.5) && !Bar::Times(1.5).holds(1.51));
        assert!(Bar::Faster(30.0).holds(30.0) && !Bar::Speedup(1.8).holds(1.79));
        assert_eq!(
            (Bar::Faster(30.0).text(), Bar::CompileMs(30.0).text()),
            (">= 30x".into(), "<= 30.0 ms".into())
        );
    }

    #[test]
    fn entries_that_are_inserted_are_new_and_gone_after_the_round() -> Result<()> {
        let mut rig = Case::bundled("l2_switch", 1000, PLAIN)?
            .with_pool(SMALL)
            .rig(&[Side::Jit])?;
        insert_stations(&mut rig)?;
        let table = rig.switch.table("source_macs")?;
        let before = rig.switch.table_state(table)?.table.len();
        for round in 1..=2 {
            rig.round(Side::Inserting);
            let per_round = (SMALL / PACKETS_PER_INSERT) as u64;
            assert_eq!((rig.inserted, rig.refused), (round * per_round, 0));
            assert_eq!(rig.switch.table_state(table)?.table.len(), before);
        }
        // What is there already is refused, and that is seen.
        let entries = Entries::new(&rig.switch, "source_macs", "known")?;
        let (table, entry) = entries.make(0, &[Match::Is(77)], &[1])?;
        rig.switch.write(Write::Table(table, TableOp::Insert(entry)))?;
        rig.new_entries = Some(Box::new(move || entries.make(0, &[Match::Is(77)], &[1])));
        let inserted = rig.inserted;
        rig.round(Side::Inserting);
        assert_eq!((rig.inserted, rig.refused), (inserted, 4));
        Ok(())
    }

    #[test]
    fn a_row_that_cannot_be_measured_fails_and_says_why() {
        let outcome = |value, counts| Outcome {
            name: "x".to_owned(),
            cycles: Some(30.0),
            other: Some(("ceiling".to_owned(), 20.0)),
            value,
            bar: Bar::Times(1.5),
            counts,
        };
        let suite = Suite {
            outcomes: vec![
                outcome(Ok(1.5), true),
                outcome(Err("why".to_owned()), true),
                outcome(Ok(3.0), false),
            ],
        };
        assert_eq!(suite.failures(), 1);
        let text = suite.text();
        assert!(text.contains("why") && text.contains("1 of 2 bars hold"), "{text}");
        assert_eq!(suite.json()["failed"], 1);
    }

    #[test]
    fn every_row_names_a_program_that_can_be_filled_so() {
        for row in rows() {
            for (name, entries, mix) in [Some(row.engine), row.other.map(|o| o.0)].into_iter().flatten() {
                super::super::workload::check(name, entries, mix).unwrap();
            }
        }
    }
}
