//! `weir trace`: why did my packet do this?

use crate::cli::Trace;
use crate::compile::Loaded;
use crate::lines::Lines;
use crate::output::Messages;
use crate::{load, packets};
use anyhow::{Result, bail};
use std::io::Write;

pub use weir_show::render;

/// Shows what one packet meets.
pub fn trace(arguments: &Trace, messages: &Messages) -> Result<u8> {
    let packet = packets::one(&arguments.packet, arguments.number)?;
    let Loaded { program, lines } = match crate::compile::runnable(&arguments.source, messages)? {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    load::check_port(&program, arguments.port)?;
    let entries = arguments.entries.as_deref();
    let mut switch = load::switch(program, load::config(&arguments.source.front_end), entries, messages)?;
    let colors = arguments.color.is_on();
    let mut out = crate::output::stdout();
    if arguments.all {
        return all(&mut out, arguments, &switch, &packet, (&lines, colors));
    }
    let (sent, tree) = switch.inject_traced(arguments.port, &packet, 0);
    if arguments.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({ "trace": tree.nodes(), "sent": sent_json(&sent) })
        )?;
    } else {
        write!(out, "{}", render(&tree, &lines, colors))?;
        for line in fates(&sent) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(0)
}

fn sent_json(sent: &[weir_switch::Output]) -> Vec<serde_json::Value> {
    sent.iter()
        .map(|o| serde_json::json!({ "port": o.port, "bytes": packets::hex(&o.bytes) }))
        .collect()
}

fn fates(sent: &[weir_switch::Output]) -> Vec<String> {
    if sent.is_empty() {
        return vec!["nothing was sent".to_string()];
    }
    sent.iter()
        .map(|o| format!("sent at port {}: {}", o.port, packets::hex(&o.bytes)))
        .collect()
}

/// Every outcome of what the program leaves to chance, as forks of one tree.
fn all(
    out: &mut impl Write,
    arguments: &Trace,
    switch: &weir_switch::Switch,
    packet: &[u8],
    (lines, colors): (&Lines, bool),
) -> Result<u8> {
    if arguments.limit == 0 {
        bail!("--limit must be at least 1");
    }
    let runs = switch.trace_all(arguments.port, packet, 0, arguments.limit);
    if arguments.json {
        let forks: Vec<_> = runs
            .runs
            .iter()
            .map(|(choices, (sent, tree))| {
                let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
                serde_json::json!({ "choices": choices, "trace": tree.nodes(), "sent": sent_json(sent) })
            })
            .collect();
        writeln!(
            out,
            "{}",
            serde_json::json!({ "complete": runs.complete, "outcomes": forks })
        )?;
        return Ok(0);
    }
    // What all runs begin with is shown once.
    let texts: Vec<Vec<String>> = runs
        .runs
        .iter()
        .map(|(_, (sent, tree))| {
            render(tree, lines, colors)
                .lines()
                .map(str::to_string)
                .chain(fates(sent))
                .collect()
        })
        .collect();
    let common = texts.iter().skip(1).fold(texts.first().map_or(0, Vec::len), |n, t| {
        texts[0].iter().zip(t).take(n).take_while(|(a, b)| a == b).count()
    });
    for line in texts.first().map_or(&[][..], |t| &t[..common]) {
        writeln!(out, "{line}")?;
    }
    let count = texts.len();
    for (i, ((choices, _), text)) in runs.runs.iter().zip(&texts).enumerate() {
        if count > 1 {
            let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
            writeln!(out, "── outcome {} of {count}: {}", i + 1, choices.join(", "))?;
        }
        for line in &text[common..] {
            writeln!(out, "{line}")?;
        }
    }
    if !runs.complete {
        writeln!(out, "there are more outcomes than were followed; raise --limit")?;
    }
    Ok(0)
}
