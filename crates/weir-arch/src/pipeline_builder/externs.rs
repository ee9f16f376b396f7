//! Calls of registered externs in a fused body.
//!
//! A call for which a packet may wait is two calls: the first hands its inputs over, the second
//! gets its outputs. Between them is a basic block where the packet suspends if it must
//! wait.

use super::PipelineBuilder;
use crate::bound::BoundCall;
use weir_ir::{Argument, ArgumentValue, Bits, Call, Execution, InLeaf, InstKind, Loc, Operand, Terminator, VarId};

impl PipelineBuilder {
    /// Appends a call of a registered extern.
    pub(crate) fn registered_call(&mut self, bound: &BoundCall, call: &Call, loc: Loc) {
        if !bound.may_wait() {
            return self.push(InstKind::Call(call.clone()), loc);
        }
        let waits = self.temporary(1);
        let begin = Call {
            arguments: call.arguments.iter().map(|a| self.input_of(a)).collect(),
            results: vec![waits],
            execution: Execution::Begin(bound.number),
            ..call.clone()
        };
        self.push(InstKind::Call(begin), loc);
        let (suspended, done) = (self.new_basic_block(), self.new_basic_block());
        self.terminate(Terminator::Branch {
            condition: Operand::Var(waits),
            then: suspended,
            otherwise: done,
        });
        self.cursor = suspended;
        self.terminate(Terminator::Suspend(done));
        self.cursor = done;
        let finish = Call {
            arguments: call.arguments.iter().filter_map(output_of).collect(),
            execution: Execution::Finish(bound.number),
            ..call.clone()
        };
        self.push(InstKind::Call(finish), loc);
    }

    /// The argument as it is before the call.
    fn input_of(&self, argument: &Argument) -> Argument {
        let values = |vars: &[VarId], value: &dyn Fn(VarId) -> Operand| {
            ArgumentValue::In(vars.iter().map(|v| InLeaf::Value(value(*v))).collect())
        };
        let value = match &argument.value {
            ArgumentValue::Out(vars) => values(vars, &|v| Operand::Const(Bits::zero(self.width(v)))),
            ArgumentValue::InOut(vars) => values(vars, &Operand::Var),
            ArgumentValue::In(_) | ArgumentValue::String(_) | ArgumentValue::Extern(_) | ArgumentValue::Packet => {
                argument.value.clone()
            }
        };
        Argument {
            name: argument.name.clone(),
            value,
        }
    }
}

/// The argument, if the call writes it.
fn output_of(argument: &Argument) -> Option<Argument> {
    let (ArgumentValue::Out(vars) | ArgumentValue::InOut(vars)) = &argument.value else {
        return None;
    };
    Some(Argument {
        name: argument.name.clone(),
        value: ArgumentValue::Out(vars.clone()),
    })
}
