//! From the calls of a program to what an architecture does for them, and the engines that run its
//! programmable blocks.

use crate::bound::{BoundCall, BoundExterns};
use crate::driver::Env;
use crate::error::{LoadError, place};
use crate::state::State;
use std::sync::Arc;
use weir_interp::{
    Abort, CallSites, Event, Executable, Interpreter, MethodEngine, Outcome, PacketState, Runtime, Tracer,
};
use weir_ir::{Call, Loc, Program};

/// The externs of an architecture.
pub struct Vocabulary<'a> {
    /// The name of the target in messages.
    pub target: &'static str,
    /// Its extern types.
    pub types: &'static [&'static str],
    /// The registered externs that the program uses.
    pub registered: &'a BoundExterns,
}

impl Vocabulary<'_> {
    /// The operation of each call of a program, by site. `op` maps calls of the architecture's own
    /// externs, `from_registered` those of registered ones.
    ///
    /// # Errors
    /// Everything that neither has.
    pub fn resolve<O>(
        &self,
        program: &Program,
        sites: &CallSites,
        op: impl Fn(&Call) -> Option<O>,
        from_registered: impl Fn(Arc<BoundCall>) -> O,
    ) -> Result<Vec<O>, Vec<LoadError>> {
        let (mut ops, mut errors) = (Vec::new(), Vec::new());
        for (_, instance) in program.externs.iter() {
            let name = instance.type_name.as_str();
            if !self.types.contains(&name) && !self.registered.has_type(name) {
                errors.push(LoadError::UnknownExtern {
                    what: format!("type `{name}` (of `{}`)", instance.name),
                    place: place(program, instance.loc),
                    target: self.target,
                });
            }
        }
        for (_, _, call, loc) in sites.iter(program) {
            match self.call(program, call, loc, &op, &from_registered) {
                Ok(op) => ops.push(op),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(ops) } else { Err(errors) }
    }

    /// The same, without registered externs.
    ///
    /// # Errors
    /// Everything that `op` does not know.
    pub fn resolve_own<O>(
        &self,
        program: &Program,
        sites: &CallSites,
        op: impl Fn(&Call) -> Option<O>,
    ) -> Result<Vec<O>, Vec<LoadError>> {
        let none = Vocabulary {
            registered: &BoundExterns::default(),
            ..*self
        };
        let found = none.resolve(program, sites, |call| op(call).map(Some), |_| None)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The operation of one call.
    ///
    /// # Errors
    /// The extern is unknown.
    pub fn call<O>(
        &self,
        program: &Program,
        call: &Call,
        loc: Loc,
        op: impl Fn(&Call) -> Option<O>,
        from_registered: impl Fn(Arc<BoundCall>) -> O,
    ) -> Result<O, LoadError> {
        let type_name = call.instance.map(|i| program.externs[i].type_name.as_str());
        let known = op(call).or_else(|| self.registered.find(call, loc).cloned().map(from_registered));
        known.ok_or_else(|| {
            let what = match type_name {
                Some(name) => format!("method `{name}.{}`", call.function),
                None => format!("function `{}` with {} arguments", call.function, call.arguments.len()),
            };
            LoadError::UnknownExtern {
                what,
                place: place(program, loc),
                target: self.target,
            }
        })
    }
}

/// Runs the programmable blocks of a program: by the engine it was loaded for, or by the
/// interpreter if a trace observes.
pub struct Engines {
    engine: Arc<dyn Executable>,
    interpreter: Interpreter,
}

impl Engines {
    /// For the program of an engine.
    #[must_use]
    pub fn new(engine: Arc<dyn Executable>) -> Self {
        Engines {
            interpreter: Interpreter::new(Arc::clone(engine.program())),
            engine,
        }
    }

    /// The numbers of the program's calls.
    #[must_use]
    pub fn sites(&self) -> &CallSites {
        self.interpreter.sites()
    }

    /// Does something with what runs the methods of a program.
    pub fn with_methods<R>(&self, action: impl FnOnce(&mut dyn MethodEngine) -> R) -> R {
        self.interpreter.with_methods(action)
    }

    /// Runs a programmable block, by its index in [`Program::blocks`], served by `runtime`.
    pub fn run(
        &self,
        block: usize,
        packet: &mut PacketState,
        tracer: &mut dyn Tracer,
        runtime: &mut dyn Runtime,
    ) -> Outcome {
        if tracer.enabled() {
            self.interpreter.run_traced(block, packet, runtime, tracer)
        } else {
            self.engine.run(block, packet, runtime)
        }
    }
}

/// The error that a parser ended with, which is counted; 0 for none.
///
/// # Errors
/// The packet is dropped, for this reason.
pub fn parser_error(outcome: Outcome, state: &mut State) -> Result<u32, Abort> {
    match outcome {
        Outcome::Abort(reason) => Err(reason),
        Outcome::Reject(error) if error != 0 => {
            *state.parser_errors.entry(error).or_default() += 1;
            Ok(error)
        }
        Outcome::Reject(_) | Outcome::Accept | Outcome::Return => Ok(0),
    }
}

/// The index in [`Program::blocks`] of the programmable block with a role.
///
/// # Errors
/// It has none.
pub fn block_with_role(program: &Program, role: &'static str, target: &'static str) -> Result<usize, LoadError> {
    let index = program.blocks.iter().position(|b| b.role == role);
    index.ok_or(LoadError::MissingBlock { role, target })
}

/// Reports an event of the packet to the observer, if any.
pub fn note(env: &mut Env<'_>, text: &str) {
    if env.tracer.enabled() {
        env.tracer.event(&Event::Note { text }, Loc::default());
    }
}
