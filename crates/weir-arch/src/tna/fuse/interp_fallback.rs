//! Register actions that do more than read and write one cell: outlined calls, which the
//! interpreter runs for compiled code.
//!
//! The call passes the variables that the action's methods read, and takes back those that they
//! write. An action that accesses other state than its own register is refused: such a call could
//! not be kept in order by one state number.

use super::super::driver::Tna;
use super::super::externs::{self, ExternOp};
use super::super::registers::RegisterCall;
use super::super::runtime::TnaRuntime;
use super::{Builder, calls, exit};
use crate::driver::Env;
use crate::fused::{FusedArguments, NO_CALL};
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_interp::{ArgValue, CallContext, CallEffect, InValue, PacketState, SiteId};
use weir_ir::passes::{read_by, written};
use weir_ir::pipeline::CallKind;
use weir_ir::{Argument, ArgumentValue, Body, Call, ExternId, InLeaf, InstKind, Loc, Operand, Program, Type, VarId};

/// The function of calls that run such an action. Three arguments follow those of the action: its
/// index in `Builder::fallbacks`, the variables that it reads, and those that it writes.
pub(super) const FALLBACK: &str = "$action";

/// An action that the interpreter runs.
#[derive(Debug, Clone)]
pub(crate) struct InterpFallback {
    /// The action, with its register and cell.
    action: Arc<RegisterCall>,
    /// Variables that the action only reads.
    reads: Vec<VarId>,
    /// Variables that the action writes, and may read.
    writes: Vec<VarId>,
}

/// The variables and state that an action's methods access.
#[derive(Default)]
struct Accesses {
    /// Variables that the methods read.
    reads: BTreeSet<VarId>,
    /// Variables that the methods write.
    writes: BTreeSet<VarId>,
    /// Whether they access state other than the action's register.
    accesses_other_state: bool,
}

impl Accesses {
    /// Adds the methods of an action; `None` if they contain a call that cannot be outlined.
    fn action(&mut self, program: &Program, action: &RegisterCall, register: ExternId) -> Option<()> {
        // No action executes itself, nor one that would execute it.
        self.accesses_other_state |= action.register != register;
        for method in action.methods() {
            self.body(program, &program.externs[action.action].methods[method].body, register)?;
        }
        Some(())
    }

    /// Adds one method's body.
    fn body(&mut self, program: &Program, body: &Body, register: ExternId) -> Option<()> {
        read_by(program, body, &mut |v| {
            self.reads.insert(v);
        });
        for inst in body.blocks.iter().flat_map(|(_, b)| &b.insts) {
            written(&inst.kind, &program.headers, &mut |v| {
                self.writes.insert(v);
            });
            let InstKind::Call(call) = &inst.kind else { continue };
            match externs::own(program, call, inst.loc).ok()?? {
                ExternOp::Register(inner) => self.action(program, &inner, register)?,
                ExternOp::Address | ExternOp::PartsExtremum(_) => {}
                // A parameter is not written by packets.
                ExternOp::Read { id, .. } if program.externs[id].type_name == "RegisterParam" => {}
                op => {
                    let state = calls::host_call_kind(&op)?.state();
                    self.accesses_other_state |= state.is_some_and(|state| state != register.index() as u32);
                }
            }
        }
        Some(())
    }
}

impl Builder<'_> {
    /// Appends a call by which the interpreter runs an action.
    pub(super) fn interp_fallback(&mut self, action: &Arc<RegisterCall>, call: &Call, loc: Loc) -> Option<()> {
        let program = Arc::clone(self.arch.program());
        let mut accesses = Accesses::default();
        accesses.action(&program, action, action.register)?;
        if accesses.accesses_other_state {
            self.refuse(
                loc,
                "a register action that uses another register has no compiled form here",
            );
            return None;
        }
        let reads: Vec<VarId> = accesses.reads.difference(&accesses.writes).copied().collect();
        let writes: Vec<VarId> = accesses.writes.into_iter().collect();
        let is_passable = |var: &VarId| matches!(program.vars[*var].ty, Type::Bits(_));
        if !reads.iter().chain(&writes).all(is_passable) {
            return None;
        }
        let number = crate::pipeline_builder::constant(32, self.fallbacks.len() as u64);
        self.fallbacks.push(Arc::new(InterpFallback {
            action: Arc::clone(action),
            reads: reads.clone(),
            writes: writes.clone(),
        }));
        let passed = |value| Argument {
            name: "data".to_owned(),
            value,
        };
        let leaf = |var: VarId| InLeaf::Value(Operand::Var(var));
        let mut outlined = call.clone();
        outlined.instance = Some(action.register);
        FALLBACK.clone_into(&mut outlined.function);
        outlined.arguments.extend([
            passed(ArgumentValue::In(vec![InLeaf::Value(number)])),
            passed(ArgumentValue::In(reads.into_iter().map(leaf).collect())),
            passed(ArgumentValue::InOut(writes)),
        ]);
        let outlined = InstKind::Call(outlined);
        let outlined = match self.is_in_egress {
            true => self.emitted.renaming.inst(&outlined),
            false => outlined,
        };
        self.push(outlined, loc);
        Some(())
    }
}

/// The action that a call runs, and the kind of the call for the JIT.
pub(super) fn fallback_of(fallbacks: &[Arc<InterpFallback>], call: &Call) -> Option<(Arc<InterpFallback>, CallKind)> {
    let number = call.constant_input(call.arguments.len().checked_sub(3)?)?;
    let fallback = fallbacks.get(usize::try_from(number).ok()?)?;
    let kind = CallKind::Host {
        reads: Vec::new(),
        writes: Vec::new(),
        state: Some(fallback.action.register.index() as u32),
        abort: Some(exit::INSTRUCTION_BUDGET_DROP),
    };
    Some((Arc::clone(fallback), kind))
}

impl InterpFallback {
    /// Runs the action. Returns whether the packet continues.
    pub(crate) fn perform(&self, arch: &Tna, env: &mut Env<'_>, bytes: u64, call: FusedArguments<'_>) -> bool {
        let Some(pipe) = arch.first_pipe() else { return true };
        let mut packet = PacketState::new(arch.program(), Vec::new());
        // Its own arguments, and the fallback's index, which the action does not read.
        let Some(own) = call.arguments.len().checked_sub(2) else {
            return true;
        };
        let (arguments, captured) = call.arguments.split_at_mut(own);
        if let [ArgValue::In(reads), ArgValue::Out(writes)] = captured {
            for (var, value) in self.reads.iter().zip(reads) {
                if let InValue::Scalar(value) = value {
                    packet.frame.set(*var, value.clone());
                }
            }
            for (var, value) in self.writes.iter().zip(writes) {
                packet.frame.set(*var, value.clone());
            }
        }
        let (service, _) = env.service(bytes);
        let mut runtime = TnaRuntime::new(arch, &pipe.ingress, service);
        let effect = arch.with_methods(|engine| {
            runtime.register(
                &self.action,
                &mut CallContext {
                    site: SiteId::default(),
                    call: &NO_CALL,
                    loc: Loc::default(),
                    args: arguments,
                    results: call.results,
                    entry: call.entry,
                    packet: &mut packet,
                    engine,
                },
            )
        });
        if let [_, ArgValue::Out(writes)] = captured {
            for (var, value) in self.writes.iter().zip(writes) {
                *value = packet.frame.get(*var).clone();
            }
        }
        effect == CallEffect::Continue
    }
}
