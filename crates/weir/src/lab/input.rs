//! Where the lines of a lab come from: a terminal, with editing, history and completion, or a
//! script.

use super::commands::RESERVED;
use super::topology::Topology;
use anyhow::{Context, Result};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Editor, Helper};
use std::io::BufRead;

const PROMPT: &str = "weir> ";

/// The source of lines.
pub enum Input {
    /// Typed at a terminal.
    Typed(Box<Editor<Names, MemHistory>>),
    /// Of a script.
    Script(Box<dyn BufRead>),
}

impl Input {
    /// The terminal, where the names of a lab's nodes are completed.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn terminal(topology: &Topology) -> Result<Self> {
        let config = rustyline::Config::builder()
            .completion_type(rustyline::CompletionType::List)
            .auto_add_history(true)
            .build();
        let editor = Editor::with_history(config, MemHistory::new());
        let mut editor: Editor<Names, MemHistory> = editor.context("the terminal cannot be used")?;
        editor.set_helper(Some(Names::of(topology)));
        Ok(Input::Typed(Box::new(editor)))
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn line(&mut self) -> Result<Option<String>> {
        match self {
            Input::Typed(editor) => loop {
                match editor.readline(PROMPT) {
                    Ok(line) => return Ok(Some(line)),
                    // Ctrl-C ends a line, Ctrl-D the lab.
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(error) => return Err(error).context("the terminal cannot be read"),
                }
            },
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

/// Completes commands and the names of nodes.
pub struct Names(Vec<String>);

impl Names {
    fn of(topology: &Topology) -> Self {
        let hosts = topology.hosts.iter().map(|host| host.name.clone());
        let switches = topology.switches.iter().map(|switch| switch.name.clone());
        Names(hosts.chain(switches).collect())
    }

    /// What the last word of a line may become.
    fn candidates(&self, before: &str) -> Vec<String> {
        let start = word_start(before);
        let is_first = before[..start].trim().is_empty();
        let commands = RESERVED.iter().filter(|_| is_first).map(|name| (*name).to_owned());
        let mut found: Vec<String> = self.0.iter().cloned().chain(commands).collect();
        found.retain(|name| name.starts_with(&before[start..]));
        found.sort_unstable();
        found
    }
}

/// Where the last word of a line begins.
fn word_start(before: &str) -> usize {
    let blank = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
    blank.map_or(0, |(at, c)| at + c.len_utf8())
}

impl Helper for Names {}
impl Highlighter for Names {}
impl Validator for Names {}
impl Hinter for Names {
    type Hint = String;
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        Ok((word_start(before), self.candidates(before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_first_and_nodes_anywhere() {
        let names = Names(["h1", "h2", "s1"].map(str::to_owned).to_vec());
        assert_eq!(names.candidates("h"), ["h1", "h2", "help"]);
        assert_eq!(names.candidates("h1 ping h"), ["h1", "h2"]);
        assert_eq!(names.candidates("trace\u{a0}s"), ["s1"]);
        assert_eq!(names.candidates("é"), [] as [&str; 0]);
    }
}
