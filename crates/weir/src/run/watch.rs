//! `weir run --watch`: what the switch does now, drawn over and over.

use super::report::{About, Report};
use crate::extern_rows;
use crate::output::Outlet;
use crate::stats::{Snapshot, StageRow};
use anyhow::{Result, bail};
use std::collections::VecDeque;
use std::fmt::Write;
use std::io::IsTerminal;
use weir_switch::StageCount;

/// Messages that stay on the screen.
const MESSAGES: usize = 3;
/// Columns and rows of a terminal that does not tell.
const USUAL: (u16, u16) = (80, 24);

/// A picture on the terminal, which is as it was before when this is dropped.
pub struct Watch {
    previous: Option<(f64, Report)>,
    messages: VecDeque<String>,
    screen: Outlet,
}

impl Watch {
    /// Takes the terminal.
    pub fn new(screen: &Outlet) -> Result<Self> {
        if !std::io::stdout().is_terminal() {
            bail!("--watch draws on a terminal, and the output is none; --stats-interval 1s writes the same as text");
        }
        // Another screen, no cursor.
        screen.write("\x1b[?1049h\x1b[?25l".to_owned());
        Ok(Watch {
            previous: None,
            messages: VecDeque::new(),
            screen: screen.clone(),
        })
    }

    /// Has a message shown with the next picture.
    pub fn say(&mut self, message: &str) {
        self.messages.extend(message.lines().map(str::to_string));
        while self.messages.len() > MESSAGES {
            self.messages.pop_front();
        }
    }

    /// Draws what has happened since the last time.
    pub fn draw(&mut self, report: Report, about: About) {
        let (columns, rows) = terminal_size::terminal_size().map_or(USUAL, |(width, height)| (width.0, height.0));
        let text = picture(self.previous.as_ref(), &report, about);
        let mut screen = String::from("\x1b[H");
        let mut left = usize::from(rows).saturating_sub(1);
        let messages = self.messages.iter().map(String::as_str);
        for line in text.lines().chain(messages).take_while(|_| {
            left = left.saturating_sub(1);
            left > 0
        }) {
            // A line that is too long ends at the edge, and the rest of a shorter one is blank.
            let line: String = line.chars().take(columns.into()).collect();
            let _ = write!(screen, "{line}\x1b[K\r\n");
        }
        screen.push_str("\x1b[J");
        self.screen.write(screen);
        self.previous = Some((about.seconds, report));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Pictures that still wait are of no use any more.
        self.screen.replace("\x1b[?25h\x1b[?1049l".to_owned());
        self.screen.finish();
    }
}

/// A number of things per second: three digits and their unit.
fn rate(per_second: f64) -> String {
    match per_second {
        n if n >= 1e9 => format!("{:.2}G", n / 1e9),
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e3 => format!("{:.2}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// The screen.
fn picture(previous: Option<&(f64, Report)>, report: &Report, about: About) -> String {
    let nothing = Report::default();
    let (since, before) = previous.map_or((0.0, &nothing), |(seconds, report)| (*seconds, report));
    let seconds = (about.seconds - since).max(1e-9);
    let per_second = |now: u64, before: u64| rate(now.saturating_sub(before) as f64 / seconds);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "weir run  {:.0} s  engine {}  workers {}  reloads {}  (Ctrl-C stops)\n",
        about.seconds,
        about.engine,
        report.workers.len(),
        about.reloads
    );
    let _ = writeln!(
        out,
        "port     rx pkt/s   rx bit/s   tx pkt/s   tx bit/s       lost  device"
    );
    for end in &report.ends {
        let stats = |r: &Report| r.counts.ports.get(&end.port).copied().unwrap_or_default();
        let (now, then) = (stats(report), stats(before));
        let lost = end.counters.receive_dropped + end.counters.send_dropped + end.refused;
        let _ = writeln!(
            out,
            "{:<6}{:>11}{:>11}{:>11}{:>11}{lost:>11}  {}",
            end.port,
            per_second(now.rx.packets, then.rx.packets),
            per_second(now.rx.bytes * 8, then.rx.bytes * 8),
            per_second(now.tx.packets, then.tx.packets),
            per_second(now.tx.bytes * 8, then.tx.bytes * 8),
            end.device
        );
    }
    tables(&mut out, &before.counts, &report.counts, &per_second);
    drops(&mut out, &before.counts, &report.counts, &per_second);
    for q in report.counts.queues.values() {
        let _ = writeln!(
            out,
            "queue of port {}, priority {}: {} of {}, at most {}, {} refused",
            q.port, q.priority, q.depth, q.capacity, q.highest, q.refused
        );
    }
    out.push_str(&extern_rows::text(&report.counts.externs));
    stages(&mut out, &before.counts.stages, &report.counts.stages);
    out
}

fn tables(out: &mut String, before: &Snapshot, now: &Snapshot, per_second: &dyn Fn(u64, u64) -> String) {
    if now.tables.is_empty() {
        return;
    }
    let width = now.tables.iter().map(|t| t.name.len()).max().unwrap_or(0).max(5) + 2;
    let _ = writeln!(out, "\n{:<width$}   entries     hits/s   misses/s", "table");
    for (i, table) in now.tables.iter().enumerate() {
        let then = before.tables.get(i);
        let _ = writeln!(
            out,
            "{:<width$}{:>10}{:>11}{:>11}",
            table.name,
            table.entries,
            per_second(table.hits, then.map_or(0, |t| t.hits)),
            per_second(table.misses, then.map_or(0, |t| t.misses))
        );
    }
}

fn drops(out: &mut String, before: &Snapshot, now: &Snapshot, per_second: &dyn Fn(u64, u64) -> String) {
    if now.drops.is_empty() {
        return;
    }
    let _ = writeln!(out, "\ndropped because of         now/s        all  where");
    for (reason, place, packets) in &now.drops {
        let then = before.drops.iter().find(|d| d.0 == *reason && d.1 == *place);
        let now = per_second(*packets, then.map_or(0, |d| d.2));
        let _ = writeln!(out, "{reason:<22}{now:>10}{packets:>11}  {place}");
    }
}

fn stages(out: &mut String, before: &[StageRow], now: &[StageRow]) {
    if now.is_empty() {
        return;
    }
    let width = now.iter().map(|s| s.name.len()).max().unwrap_or(0).max(5) + 2;
    let _ = writeln!(out, "\n{:<width$}  lookup cycles  code cycles  (per packet)", "stage");
    let none = StageCount::default();
    for (i, stage) in now.iter().enumerate() {
        let (lookup, segment) = before.get(i).map_or((none, none), |s| (s.lookup, s.segment));
        let per = |now: StageCount, then: StageCount| {
            let packets = now.packets.saturating_sub(then.packets).max(1);
            now.cycles.saturating_sub(then.cycles) as f64 / packets as f64
        };
        let _ = writeln!(
            out,
            "{:<width$}{:>15.1}{:>13.1}",
            stage.name,
            per(stage.lookup, lookup),
            per(stage.segment, segment)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extern_rows::ExternRow;
    use weir_switch::PortStats;

    fn report(packets: u64) -> Report {
        let mut stats = PortStats::default();
        (stats.rx.packets, stats.rx.bytes) = (packets, packets * 125);
        let mut report = Report::default();
        report.counts.ports.insert(1, stats);
        report.counts.add_drops("ingress-drop", "", packets);
        report.ends.push(super::super::report::EndReport {
            port: 1,
            device: "null".to_string(),
            counters: Default::default(),
            refused: 0,
            failure: None,
        });
        report
    }

    #[test]
    fn the_picture_shows_what_happened_since_the_last() {
        let about = About {
            seconds: 3.0,
            engine: "jit",
            reloads: 0,
            is_final: false,
        };
        let text = picture(Some(&(1.0, report(1000))), &report(3_001_000), about);
        assert!(text.contains("1.50M") && text.contains("1.50G"), "{text}");
        assert!(text.contains("ingress-drop") && text.contains("3001000"), "{text}");
    }

    #[test]
    fn the_picture_shows_calls_of_externs() {
        let about = About {
            seconds: 3.0,
            engine: "jit",
            reloads: 0,
            is_final: false,
        };
        let mut now = report(10);
        now.counts.externs.push(ExternRow {
            worker: 0,
            place: "l2.p4:80".to_owned(),
            call: weir_switch::CallReport {
                name: "busy_cycles".to_owned(),
                loc: Default::default(),
                is_async: true,
                is_handed_over: false,
                cause: weir_switch::CallCause::NoLane,
                reason: "there is no lane".to_owned(),
                inline_cycles: Some(612.0),
                suspension_cycles: None,
                inline: 77,
                handed_over: 0,
            },
        });
        let text = picture(None, &now, about);
        for part in [
            "@async call",
            "busy_cycles",
            "inline",
            "612",
            "l2.p4:80",
            "no-lane: there is no lane",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn rates_have_three_digits_and_a_unit() {
        assert_eq!([7.0, 1500.0, 2.5e6, 3e9].map(rate), ["7", "1.50k", "2.50M", "3.00G"]);
    }
}
