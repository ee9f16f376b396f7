//! From a program and a file of control-plane directives to a switch.

use crate::cli::{Engine, FrontEnd, MessageFormat};
use crate::output::Messages;
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::Arc;
use weir_interp::Interpreter;
use weir_ir::Program;
use weir_switch::{LoadError, Switch, SwitchConfig};

/// The program as engines run it: without what has no effect on any packet. Traces run it as it is
/// written.
pub fn optimized(program: &Arc<Program>) -> Arc<Program> {
    let mut optimized = Program::clone(program);
    let observes = weir_arch::observes(&optimized);
    weir_ir::passes::optimize(&mut optimized, &observes);
    Arc::new(optimized)
}

/// The configuration of a switch whose programs may call the front end's externs.
pub fn config(front_end: &FrontEnd) -> SwitchConfig {
    SwitchConfig {
        externs: front_end.externs.clone(),
        ..SwitchConfig::default()
    }
}

/// A switch that runs the program, with the state that `entries` describes.
pub fn switch(
    program: Arc<Program>,
    config: SwitchConfig,
    entries: Option<&Path>,
    messages: &Messages,
) -> Result<Switch> {
    let switch = Switch::with_engine(Arc::new(Interpreter::new(program)), config)?;
    let switch = match entries {
        None => switch,
        Some(path) => {
            let text = crate::input::entries(path)?;
            configure(switch, &text, &path.display().to_string())?
        }
    };
    for warning in weir_switch::unset_custom_crcs(switch.program(), switch.state()) {
        crate::compile::warn_once(&warning, messages);
    }
    Ok(switch)
}

/// A switch that runs the program, optimised, without entries.
pub fn switch_of(program: &Arc<Program>, front_end: &FrontEnd) -> Result<Switch, LoadError> {
    Switch::with_engine(Arc::new(Interpreter::new(optimized(program))), config(front_end))
}

/// Executes what a file of entries says; formats of other tools are read, too ([`weir_entries`]).
pub fn configure(switch: Switch, text: &str, name: &str) -> Result<Switch> {
    Ok(weir_entries::configure(switch, text, name)?)
}

/// A port number that the program's metadata cannot hold would be taken for another one.
pub fn check_port(program: &Program, port: u32) -> Result<()> {
    let width = weir_arch::port_bits(program);
    if width < 32 && port >> width != 0 {
        bail!(
            "there is no port {port}: the architecture has {width} bits for a port, so 0 to {}",
            (1u32 << width) - 1
        );
    }
    Ok(())
}

/// Compiles the switch to machine code, unless the engine is the interpreter. A program that cannot
/// be compiled is interpreted, and a message says why.
pub fn compile(switch: &mut Switch, engine: Engine, format: MessageFormat, messages: &Messages) {
    if engine == Engine::Interp {
        return;
    }
    match switch.compile() {
        Ok(()) => {
            let left_out = switch.left_out().iter();
            left_out.for_each(|why| crate::compile::left_out(why, format, messages));
        }
        Err(error) => crate::compile::interpreted(&error, format, messages),
    }
}
