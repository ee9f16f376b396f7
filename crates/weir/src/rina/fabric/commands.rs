//! Commands to a fabric that runs, one per line.

use super::Fabric;
use crate::rina::percent::Percent;
use anyhow::{Result, bail};
use serde_json::Value;
use std::fmt::Write;
use std::io::BufRead;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

/// The commands, for messages.
const COMMANDS: &str = "show, cut A B, mend A B, loss A B PERCENT, reorder A B PERCENT, kill NODE, start NODE, \
     restart NODE, picture FILE, quit";

/// The answer to a command.
pub enum Answer {
    /// A text for people.
    Text(String),
    /// The fabric has to end.
    Quit,
}

/// The lines of standard input.
pub fn lines() -> Receiver<String> {
    let (sender, lines) = channel();
    // It ends with its input, or with the process.
    let read = move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    };
    let _ = std::thread::Builder::new().name("input".to_owned()).spawn(read);
    lines
}

/// Does a command.
///
/// # Errors
/// There is no such command, node or link.
pub fn run(fabric: &mut Fabric, line: &str) -> Result<Answer> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let text = match words[..] {
        [] => String::new(),
        ["show"] => show(fabric),
        ["cut", a, b] => {
            fabric.wires(a, b)?.iter().for_each(|wire| wire.set_cut(true));
            format!("the link between {a} and {b} is cut")
        }
        ["mend", a, b] => {
            fabric.wires(a, b)?.iter().for_each(|wire| wire.set_cut(false));
            format!("the link between {a} and {b} works")
        }
        ["loss", a, b, percent] => {
            let loss = per_million("loss", percent)?;
            fabric.wires(a, b)?.iter().for_each(|wire| wire.set_loss(loss));
            format!("the link between {a} and {b} loses {percent} %")
        }
        ["reorder", a, b, percent] => {
            let reordering = per_million("reorder", percent)?;
            fabric
                .wires(a, b)?
                .iter()
                .for_each(|wire| wire.set_reordering(reordering));
            format!("{percent} % of the frames between {a} and {b} are passed by the next one")
        }
        ["kill", node] => {
            let at = fabric.node(node)?;
            fabric.kill(at);
            format!("{node} is dead")
        }
        ["start", node] => {
            let at = fabric.node(node)?;
            fabric.start_node(at)?;
            format!("{node} starts")
        }
        ["restart", node] => {
            let at = fabric.node(node)?;
            fabric.restart_ipcp(at)?;
            format!("the IPC process of {node} starts again")
        }
        ["picture", path] => {
            fabric.save_picture(Path::new(path))?;
            format!("picture: {path}")
        }
        ["quit"] => return Ok(Answer::Quit),
        _ => bail!("expected one of: {COMMANDS}; found `{line}`"),
    };
    Ok(Answer::Text(text))
}

/// A percentage as a share of a million.
fn per_million(command: &str, percent: &str) -> Result<u32> {
    let percent: Percent = percent.parse().map_err(|error| anyhow::anyhow!("{command}: {error}"))?;
    Ok(percent.per_million())
}

/// The nodes and links as a text.
fn show(fabric: &Fabric) -> String {
    let mut text = format!(
        "{:<12} {:>7} {:>10} {:>6} {:>5}\n",
        "node", "address", "neighbours", "routes", "flows"
    );
    for (at, node) in fabric.topology.nodes.iter().enumerate() {
        let status = fabric.status(at);
        let number = |name: &str| -> String {
            let value = status
                .as_ref()
                .and_then(|status| status.get(name))
                .and_then(Value::as_u64);
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        };
        let _ = writeln!(
            text,
            "{:<12} {:>7} {:>10} {:>6} {:>5}",
            node.name,
            number("address"),
            number("neighbours"),
            number("routes"),
            number("flows")
        );
    }
    for (link, wire) in fabric.topology.links.iter().zip(&fabric.wires) {
        let name = |end: usize| &fabric.topology.nodes[link[end].node].name;
        let counters = wire.counters();
        let state = if wire.is_cut() { "cut" } else { "up" };
        let _ = writeln!(
            text,
            "{} - {}: {state}, {} frames carried, {} lost",
            name(0),
            name(1),
            counters.carried,
            counters.lost
        );
    }
    text.pop();
    text
}
