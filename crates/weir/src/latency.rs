//! `weir latency`: what a program costs on a Tofino and on weir's compiled engine, from its source.

mod arguments;
pub mod counts;
mod demo;
mod explain;
mod files;
mod model;
mod plots;
mod predict;
mod profile;
mod train;

pub use arguments::Latency;

use crate::cli::Source;
use crate::output::Messages;
use anyhow::{Result, bail, ensure};
use arguments::Question;
use std::sync::Arc;
use weir_ir::Program;
use weir_latency::Features;

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

/// The program, or the exit code that says why there is none. Flags of the compiler are refused for
/// a program that is compiled already.
fn program(source: &Source, messages: &Messages) -> Result<Result<Arc<Program>, u8>> {
    let is_compiled = source.program.extension().is_some_and(|e| e == "weir");
    let (name, front_end) = (source.program.display(), &source.front_end);
    ensure!(
        !is_compiled || front_end.include.is_empty() && front_end.define.is_empty(),
        "{name} is compiled already: -I and -D go with a P4 program"
    );
    let program = crate::compile::program(source, messages)?;
    if let (true, Ok(program), Some(arch)) = (is_compiled, &program, &front_end.arch) {
        ensure!(
            program.target == *arch,
            "{name} is compiled for {}: leave --arch {arch} out",
            program.target
        );
    }
    Ok(program)
}

/// The pipe that is meant: the requested one; none if the program has only one or no pipes.
fn pipe(program: &Program, wanted: Option<&str>) -> Result<Option<String>> {
    let pipes = Features::pipes(program);
    match wanted {
        None if pipes.len() > 1 => bail!("the program has the pipes {}: choose one by --pipe", pipes.join(", ")),
        wanted => Ok(wanted.map(str::to_owned)),
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
