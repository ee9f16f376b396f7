//! How the calls of `@async` externs are executed, for people and for machines.

use crate::stats::place;
use serde_json::{Value, json};
use std::fmt::Write;
use weir_switch::{CallReport, Switch};

/// A call in the program's text, as one worker executes it. Each worker measures and chooses on its
/// own.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternRow {
    /// The worker.
    pub worker: usize,
    /// Where the call stands.
    pub place: String,
    /// How it is executed, and why.
    pub call: CallReport,
}

impl ExternRow {
    /// The calls of a switch for which packets may wait.
    pub fn of(switch: &Switch) -> Vec<ExternRow> {
        let calls = switch.extern_calls().filter(|call| call.is_async);
        let rows = calls.map(|call| ExternRow {
            worker: 0,
            place: place(switch.program(), Some(call.loc)),
            call,
        });
        rows.collect()
    }

    /// The mode of most calls at the moment.
    pub fn mode(&self) -> &'static str {
        match self.call.is_handed_over {
            true => "handed-over",
            false => "inline",
        }
    }

    /// As JSON. A cost that was not measured is null.
    pub fn json(&self) -> Value {
        let call = &self.call;
        json!({
            "call": call.name,
            "place": self.place,
            "worker": self.worker,
            "mode": self.mode(),
            "cause": call.cause.to_string(),
            "reason": call.reason,
            "inline_cycles": call.inline_cycles,
            "suspension_cycles": call.suspension_cycles,
            "inline": call.inline,
            "handed_over": call.handed_over,
        })
    }
}

/// Rows as a table of text; nothing where there are none.
pub fn text(rows: &[ExternRow]) -> String {
    let mut out = String::new();
    if rows.is_empty() {
        return out;
    }
    let width = rows.iter().map(|r| r.call.name.len()).max().unwrap_or(0).max(12) + 2;
    let _ = writeln!(
        out,
        "\n{:<width$}worker  execution         inline  handed over  inline cycles  suspension  where",
        "@async call"
    );
    for row in rows {
        let call = &row.call;
        let cycles = |cost: Option<f64>| cost.map_or_else(|| "-".to_owned(), |c| format!("{c:.0}"));
        let _ = writeln!(
            out,
            "{:<width$}{:>6}  {:<11}{:>13}{:>13}{:>15}{:>12}  {}",
            call.name,
            row.worker,
            row.mode(),
            call.inline,
            call.handed_over,
            cycles(call.inline_cycles),
            cycles(call.suspension_cycles),
            row.place
        );
        let _ = writeln!(out, "  {}: {}", call.cause, call.reason);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_switch::CallCause;

    #[test]
    fn a_row_has_the_mode_the_costs_and_the_reason() {
        let row = ExternRow {
            worker: 1,
            place: "l2.p4:80".to_owned(),
            call: CallReport {
                name: "busy_cycles".to_owned(),
                loc: Default::default(),
                is_async: true,
                is_handed_over: true,
                cause: CallCause::Forced,
                reason: "as requested by --async async".to_owned(),
                inline_cycles: None,
                suspension_cycles: Some(61.4),
                inline: 3,
                handed_over: 900,
            },
        };
        let value = row.json();
        assert_eq!(
            (&value["mode"], &value["cause"]),
            (&json!("handed-over"), &json!("forced"))
        );
        assert_eq!(
            (&value["inline_cycles"], &value["suspension_cycles"]),
            (&Value::Null, &json!(61.4))
        );
        let shown = text(&[row]);
        for part in [
            "busy_cycles",
            "handed-over",
            " 900 ",
            " - ",
            " 61 ",
            "l2.p4:80",
            "forced: as requested",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(text(&[]), "");
    }
}
