//! Where the lines of a lab come from: a terminal, with editing, history and completion, or a
//! script.

use super::commands::RESERVED;
use super::topology::Topology;
use crate::prompt::{Prompt, word_start};
use anyhow::{Context, Result};
use std::io::BufRead;

const PROMPT: &str = "weir> ";

/// The source of lines.
pub enum Input {
    /// Typed at a terminal.
    Typed(Box<Prompt>),
    /// Of a script.
    Script(Box<dyn BufRead>),
}

impl Input {
    /// The terminal, where commands and the names of a lab's nodes are completed.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn terminal(topology: &Topology) -> Result<Self> {
        let hosts = topology.hosts.iter().map(|host| host.name.clone());
        let switches = topology.switches.iter().map(|switch| switch.name.clone());
        let nodes: Vec<String> = hosts.chain(switches).collect();
        let prompt = Prompt::new(PROMPT, move |before| candidates(&nodes, before))?;
        Ok(Input::Typed(Box::new(prompt)))
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn line(&mut self) -> Result<Option<String>> {
        match self {
            Input::Typed(prompt) => prompt.line(),
            Input::Script(lines) => {
                let mut line = String::new();
                let read = lines.read_line(&mut line).context("the input")?;
                Ok((read > 0).then_some(line))
            }
        }
    }

    /// Waits until Enter is pressed, or for the next line of a script.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn enter(&mut self) -> Result<()> {
        let mut line = String::new();
        match self {
            Input::Typed(_) => std::io::stdin().lock().read_line(&mut line),
            Input::Script(lines) => lines.read_line(&mut line),
        }
        .context("the input")?;
        Ok(())
    }
}

/// What the last word of a line may become: a node, or as the first word a command.
fn candidates(nodes: &[String], before: &str) -> Vec<String> {
    let start = word_start(before);
    let is_first = before[..start].trim().is_empty();
    let commands = RESERVED.iter().filter(|_| is_first).map(|name| (*name).to_owned());
    let mut found: Vec<String> = nodes.iter().cloned().chain(commands).collect();
    found.retain(|name| name.starts_with(&before[start..]));
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_first_and_nodes_anywhere() {
        let nodes = ["h1", "h2", "s1"].map(str::to_owned);
        assert_eq!(candidates(&nodes, "h"), ["h1", "h2", "help"]);
        assert_eq!(candidates(&nodes, "h1 ping h"), ["h1", "h2"]);
        assert_eq!(candidates(&nodes, "trace\u{a0}s"), ["s1"]);
        assert_eq!(candidates(&nodes, "é"), [] as [&str; 0]);
    }
}
