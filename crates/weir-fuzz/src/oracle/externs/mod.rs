//! Externs: what their instances keep, and what calls of them do.

mod tna;
mod v1;

pub(super) use v1::DROP;

use super::call::ExternArgument;
use super::machine::Machine;
use super::packet::{bytes, flatten};
use super::stop::{Eval, Stop, unknown};
use super::value::Value;
use std::collections::HashMap;
use weir_compiler::tools::{CallInfo, Signature, Ty};
use weir_stf::ActionUse;
use weir_syntax::ast::{self, Argument, Expr, Name};

/// An instance of an extern.
#[derive(Debug)]
pub(super) struct Extern<'a> {
    /// Its type.
    pub type_name: Name,
    /// What the control plane calls it.
    pub path: String,
    /// Arguments of its constructor.
    pub arguments: Vec<(Name, Value)>,
    /// Type arguments.
    pub types: Vec<Ty>,
    /// Bodies of abstract methods.
    pub bodies: HashMap<Name, &'a ast::Function>,
    /// The parser or control that it is declared in, which the bodies belong to.
    pub block: usize,
    /// Cells of a register that have been written.
    pub cells: HashMap<u64, Value>,
    /// Members of an action profile.
    pub members: HashMap<u32, ActionUse>,
    /// Groups of an action selector: their members by number, with weights.
    pub groups: HashMap<u32, Vec<(u32, u32)>>,
}

impl Extern<'_> {
    /// An argument of its constructor.
    pub fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
    }
}

/// A call of an extern.
pub(super) struct Call<'c> {
    /// The method or function.
    pub name: &'c str,
    /// What each parameter gets.
    pub arguments: Vec<ExternArgument>,
    /// What is written for each parameter.
    pub written: Vec<Option<&'c Expr>>,
    /// What the call gives if it gives something.
    pub result: Ty,
}

impl Call<'_> {
    /// The value that a parameter gets.
    pub fn value(&self, at: usize) -> Eval<Value> {
        match self.arguments.get(at).and_then(|a| a.value.clone()) {
            Some(value) => Ok(value),
            None => unknown("an argument of an extern that is left out"),
        }
    }

    /// The number that a parameter gets, in 64 bits.
    pub fn number(&self, at: usize) -> Eval<u64> {
        match self.value(at)?.small() {
            Some(number) => Ok(number),
            None => unknown("an argument of an extern that is no number"),
        }
    }

    /// The data of a parameter as bytes: bits one after another, with zeros after them.
    pub fn data(&self, at: usize) -> Eval<Vec<u8>> {
        let mut bits = Vec::new();
        flatten(&self.value(at)?, &mut bits)?;
        Ok(bytes(&bits))
    }

    /// The data of a parameter as a number in whole bytes: zeros are in front.
    pub fn data_in_front(&self, at: usize) -> Eval<Vec<u8>> {
        let mut bits = Vec::new();
        flatten(&self.value(at)?, &mut bits)?;
        let missing = (8 - bits.len() % 8) % 8;
        bits.splice(0..0, std::iter::repeat_n(false, missing));
        Ok(bytes(&bits))
    }

    /// The number as a value of the same kind as what the parameter has.
    pub fn like(&self, at: usize, number: u64) -> Eval<Value> {
        match self.value(at)? {
            Value::Bit { width, .. } => Ok(Value::bit(width, number)),
            Value::Int { width, .. } => Ok(Value::int(width, &number.into())),
            _ => unknown("a result of an extern that is no number"),
        }
    }
}

impl<'a> Machine<'a> {
    /// A call of an extern: of a method of an instance, or of a function.
    pub fn call_extern(
        &mut self,
        id: Option<usize>,
        signature: &Signature<'a>,
        arguments: &[Argument],
        info: &CallInfo,
    ) -> Eval<Value> {
        let written = info
            .arguments
            .iter()
            .map(|at| at.and_then(|at| arguments.get(at)).map(|a| &a.value));
        let call = Call {
            name: &signature.name.name,
            arguments: self.extern_arguments(&signature.params, arguments, info)?,
            written: written.collect(),
            result: signature.result,
        };
        match id {
            Some(id) => {
                let ty = self.externs[id].type_name.clone();
                match self.v1_method(&ty, id, &call)? {
                    Some(value) => Ok(value),
                    None => self.tna_method(&ty, id, &call),
                }
            }
            None => match call.name {
                "verify" => {
                    let Value::Error(error) = call.value(1)? else {
                        return unknown("an error that is none");
                    };
                    if call.value(0)?.is_true() {
                        Ok(Value::Void)
                    } else {
                        Err(Stop::Reject(error))
                    }
                }
                "static_assert" => Ok(Value::Bool(true)),
                _ => self.v1_function(&call),
            },
        }
    }

    /// Writes what a call gives for a parameter to its place.
    fn give(&mut self, call: &Call<'_>, at: usize, value: Value) -> Eval<()> {
        match call.arguments.get(at).and_then(|a| a.place.clone()) {
            Some(place) => self.store(&place, value),
            None => Ok(()),
        }
    }

    /// A cell of a register; `None`: it does not have it.
    fn cell(&mut self, register: usize, index: u64) -> Eval<Option<Value>> {
        self.marks.state = true;
        let found = &self.externs[register];
        let size = found.argument("size").and_then(Value::small).unwrap_or(0);
        if index >= size {
            return Ok(None);
        }
        if let Some(value) = found.cells.get(&index) {
            return Ok(Some(value.clone()));
        }
        if let Some(value) = found.argument("initial_value") {
            return Ok(Some(value.clone()));
        }
        match found.types.first() {
            Some(&ty) => self.zero(ty).map(Some),
            None => unknown("a register without a type"),
        }
    }
}
