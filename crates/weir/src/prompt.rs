//! A prompt at a terminal: line editing, history, and completion of the last word.

use anyhow::{Context, Result};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{Editor, Helper};

/// What the last word of the text before the cursor may become.
type Candidates = Box<dyn Fn(&str) -> Vec<String>>;

/// A prompt.
pub struct Prompt {
    text: &'static str,
    editor: Editor<Completion, MemHistory>,
}

impl Prompt {
    /// A prompt that shows `text`.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn new(text: &'static str, candidates: impl Fn(&str) -> Vec<String> + 'static) -> Result<Self> {
        let config = rustyline::Config::builder()
            .completion_type(rustyline::CompletionType::List)
            .auto_add_history(true)
            .build();
        let mut editor = Editor::with_history(config, MemHistory::new()).context("the terminal cannot be used")?;
        editor.set_helper(Some(Completion(Box::new(candidates))));
        Ok(Prompt { text, editor })
    }

    /// The next line; `None` at Ctrl-D. Ctrl-C discards a line.
    ///
    /// # Errors
    /// The terminal cannot be read.
    pub fn line(&mut self) -> Result<Option<String>> {
        loop {
            match self.editor.readline(self.text) {
                Ok(line) => return Ok(Some(line)),
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => return Ok(None),
                Err(error) => return Err(error).context("the terminal cannot be read"),
            }
        }
    }
}

/// Where the last word of a line begins.
pub fn word_start(before: &str) -> usize {
    let blank = before.char_indices().rev().find(|(_, c)| c.is_whitespace());
    blank.map_or(0, |(at, c)| at + c.len_utf8())
}

struct Completion(Candidates);

impl Helper for Completion {}
impl Highlighter for Completion {}
impl Validator for Completion {}
impl Hinter for Completion {
    type Hint = String;
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        Ok((word_start(before), (self.0)(before)))
    }
}
