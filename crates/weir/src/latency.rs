//! `weir latency`: what a program costs on a Tofino and on weir's compiled engine, from its source.

mod arguments;
pub mod counts;
mod demo;
mod explain;
mod model;
mod plots;
mod predict;
mod profile;
mod train;

pub use arguments::Latency;

use crate::cli::Source;
use crate::output::Messages;
use anyhow::Result;
use arguments::Question;

/// Answers.
pub fn latency(arguments: Latency, messages: &Messages) -> Result<u8> {
    match arguments.question {
        Question::Predict(arguments) => predict::predict(&arguments, messages),
        Question::Explain(arguments) => explain::explain(&arguments, messages),
        Question::Models(arguments) => model::models(&arguments),
        Question::Fit(arguments) => train::fit(&arguments),
        Question::Evaluate(arguments) => train::evaluate(&arguments),
        Question::Profile(arguments) => profile::profile(&arguments),
        Question::Demo(arguments) => demo::demo(&arguments),
    }
}

impl Latency {
    /// The program that it compiles, if it does.
    pub fn source(&mut self) -> Option<&mut Source> {
        match &mut self.question {
            Question::Predict(arguments) => Some(&mut arguments.source),
            Question::Explain(arguments) => Some(&mut arguments.source),
            Question::Models(_)
            | Question::Fit(_)
            | Question::Evaluate(_)
            | Question::Profile(_)
            | Question::Demo(_) => None,
        }
    }
}
