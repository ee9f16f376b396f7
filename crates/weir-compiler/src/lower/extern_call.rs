//! Calls of externs: what they are given, and what they give back.

use super::call::{Arguments, CopyOut, Passed};
use super::value::{Object, Place, Val};
use super::{Lowerer, boolean, constant};
use crate::check::{CallInfo, Signature};
use crate::types::{Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use weir_ir::{Argument, ArgumentValue, Call, HeaderId, InLeaf, InstKind, Operand, VarId, VarKind};
use weir_syntax::ast::{self, Direction, Expr};

impl<'a> Lowerer<'a, '_> {
    pub(super) fn call_extern(
        &mut self,
        expr: &'a Expr,
        instance: Option<weir_ir::ExternId>,
        signature: &Signature<'a>,
        map: &FxHashMap<Ty, Ty>,
        arguments: &'a [ast::Argument],
        info: &CallInfo,
    ) -> Val {
        let given: Vec<Ty> = info.type_arguments.iter().map(|&t| self.concrete(t)).collect();
        let before = self.substitution.clone();
        self.substitution.extend(map.iter().map(|(&a, &b)| (a, b)));
        self.substitution
            .extend(signature.parameters.iter().copied().zip(given.iter().copied()));
        let passed = self.pass(&signature.params, arguments, info);
        if instance.is_none() && self.expand(signature, &passed.passed) {
            self.substitution = before;
            return Val::Void;
        }
        let symmetric = match instance {
            Some(id) => self.symmetric_pairs(id, expr.span),
            None => Vec::new(),
        };
        let (ir_arguments, mut given_headers, back) = self.extern_arguments(signature, passed, &symmetric);
        let result_type = self.concrete(signature.result);
        let result_place =
            (result_type != Types::VOID).then(|| self.allocate("result", result_type, VarKind::Temporary));
        let result = result_place.as_ref().and_then(Place::scalars);
        let (results, result_headers) = result.unwrap_or_default();
        given_headers.extend(result_headers);
        let type_arguments = given.iter().map(|&t| self.type_spec(t)).collect();
        let entry = instance.and_then(|id| self.entry_of(id));
        let mut closure = 0;
        if let Some(id) = instance {
            self.note_direct_call(id, expr.span, entry.is_some());
            closure = self.closure(id);
            self.closures_of_members(id, expr.span);
        }
        for argument in &ir_arguments {
            if let ArgumentValue::Extern(given) = argument.value {
                self.closure_of_argument(given, expr.span);
            }
        }
        let has_payload = ir_arguments.iter().any(|a| match a.value {
            ArgumentValue::Extern(given) => self.program.externs[given].type_name.starts_with("payload_"),
            _ => false,
        });
        let execution = self.execution(signature.annotations, has_payload);
        let has = |name: &str| signature.annotations.iter().any(|a| &*a.name.name == name);
        let is_pure = has("pure") || has("noSideEffects");
        let function = &*signature.name.name;
        let custom_crcs = self.target.control.custom_crcs;
        let is_calculation = instance.is_none() && custom_crcs.is_some_and(|spec| spec.is_calculation(function));
        self.emit(InstKind::Call(Call {
            instance,
            function: function.to_owned(),
            type_arguments,
            arguments: ir_arguments,
            results,
            entry,
            closure,
            is_pure,
            // The parser numbers expressions in the order of the text; numbers from 0 on follow
            // when all calls are known.
            calculation: is_calculation.then_some(expr.id.0),
            execution,
        }));
        self.substitution = before;
        // A header that an extern gives is valid.
        for header in given_headers {
            let valid = self.program.headers[header].valid;
            self.set(valid, boolean(true));
        }
        self.copy_back(&back);
        match result_place {
            Some(place) => self.read(&place),
            None => Val::Void,
        }
    }

    /// The arguments of a call of an extern, the headers that it gives, and what is copied out
    /// after it. The extern
    /// writes into the arguments themselves, unless they are no plain variables or several of them
    /// overlap.
    fn extern_arguments(
        &mut self,
        signature: &Signature<'a>,
        arguments: Arguments,
        symmetric: &[super::symmetric::Pair],
    ) -> (Vec<Argument>, Vec<HeaderId>, Vec<CopyOut>) {
        let Arguments { passed, positions } = arguments;
        let overlapping = self.overlaps(&passed);
        let mut made = Vec::new();
        let mut headers = Vec::new();
        let mut back = Vec::new();
        for (i, (param, passed)) in signature.params.iter().zip(passed).enumerate() {
            let ty = self.concrete(param.ty);
            let is_out = param.direction == Direction::Out;
            let (place, initial) = match passed {
                Passed::Omitted => continue,
                Passed::In(value) => {
                    let value = self.in_argument(value, ty);
                    let value = self.in_canonical_order(value, symmetric);
                    made.push(Argument {
                        name: param.name.name.to_string(),
                        value,
                    });
                    continue;
                }
                Passed::Saved(place, initial) => (place, Some(initial)),
                Passed::Out(place) => (place, None),
            };
            let plain = Some(&place).filter(|p| {
                let is_shared = self.place_vars(p).is_some_and(|vars| self.is_in_union(&vars));
                initial.is_none() && !overlapping[i] && !is_shared
            });
            let (vars, given) = match plain.and_then(Place::scalars) {
                Some(scalars) => scalars,
                None => {
                    let kind = match self.validity_around(&place) {
                        Some(valid) => VarKind::FieldCopy { valid },
                        None => VarKind::Temporary,
                    };
                    let scratch = self.allocate(&param.name.name, ty, kind);
                    let initial = match initial {
                        Some(initial) => initial,
                        None if is_out => self.zero(ty),
                        None => self.read(&place),
                    };
                    self.write(&scratch, &initial);
                    let scalars = scratch.scalars().unwrap_or_default();
                    back.push(CopyOut {
                        argument: place,
                        parameter: scratch,
                        position: positions[i],
                    });
                    scalars
                }
            };
            let value = if is_out {
                headers.extend(given);
                ArgumentValue::Out(vars)
            } else {
                ArgumentValue::InOut(vars)
            };
            made.push(Argument {
                name: param.name.name.to_string(),
                value,
            });
        }
        back.sort_by_key(|b| b.position);
        (made, headers, back)
    }

    /// Whether the header is valid that a place is a field of, or a part of a field, as a variable;
    /// `None`: it is in none, or in an element of a stack that is known at run time only.
    fn validity_around(&self, place: &Place) -> Option<VarId> {
        match place {
            Place::Var(var) => match self.program.vars[*var].kind {
                VarKind::Field { header, .. } => Some(self.program.headers[header].valid),
                _ => None,
            },
            Place::Slice { base, .. } | Place::MovingSlice { base, .. } => self.validity_around(base),
            // Which header it is, only the packet knows.
            Place::Dynamic { .. }
            | Place::Struct(_)
            | Place::Header { .. }
            | Place::Stack { .. }
            | Place::Union(_)
            | Place::Nowhere(_) => None,
        }
    }

    /// Whether some of the variables say that a member of a header union is valid: writing them
    /// changes others.
    fn is_in_union(&self, vars: &[VarId]) -> bool {
        let is_member = |v: &VarId| match self.program.vars[*v].kind {
            VarKind::Valid { header } => self.union_members.contains_key(&header),
            _ => false,
        };
        vars.iter().any(is_member)
    }

    fn in_argument(&mut self, value: Val, ty: Ty) -> ArgumentValue {
        match value {
            Val::Object(Object::Packet) => ArgumentValue::Packet,
            Val::Object(Object::Extern(id)) => ArgumentValue::Extern(id),
            Val::String(s) => ArgumentValue::String(s.to_string()),
            value => {
                let mut leaves = Vec::new();
                self.in_leaves(&value, ty, &mut leaves);
                ArgumentValue::In(leaves)
            }
        }
    }

    fn in_leaves(&mut self, value: &Val, ty: Ty, to: &mut Vec<InLeaf>) {
        match value {
            Val::Scalar(operand) => to.push(InLeaf::Value(operand.clone())),
            Val::Int(v) => to.push(InLeaf::Value(Operand::Const(weir_ir::Bits::from_bigint(64, v)))),
            Val::Header { source: Some(id), .. } => to.push(InLeaf::Header(*id)),
            Val::Header { source: None, .. } => {
                // A value without an instance gets one, so that the extern sees its validity.
                let scratch = self.allocate("argument", ty, VarKind::Temporary);
                self.write(&scratch, value);
                if let Place::Header { id, .. } = scratch {
                    to.push(InLeaf::Header(id));
                }
            }
            Val::Struct(parts) | Val::Union(parts) => {
                let types = self.component_types(ty);
                for (i, (_, part)) in parts.iter().enumerate() {
                    let part_type = types.get(i).copied().unwrap_or(match self.kind(ty) {
                        TyKind::List(element) => element,
                        _ => Types::UNKNOWN,
                    });
                    self.in_leaves(part, part_type, to);
                }
            }
            Val::Stack { elements, .. } => {
                let element = match self.kind(ty) {
                    TyKind::Stack(element, _) => element,
                    _ => Types::UNKNOWN,
                };
                for part in elements.iter() {
                    self.in_leaves(part, element, to);
                }
            }
            _ => {}
        }
    }

    /// Externs that the target describes as assignments.
    fn expand(&mut self, signature: &Signature<'a>, passed: &[Passed]) -> bool {
        let Some(expansion) = self
            .target
            .expansions
            .iter()
            .find(|e| e.function == &*signature.name.name)
        else {
            return false;
        };
        let mut writes = Vec::new();
        for (parameter, path, value) in expansion.assignments {
            let Some(i) = signature.params.iter().position(|p| &*p.name.name == *parameter) else {
                return false;
            };
            let Some(Passed::Out(place)) = passed.get(i) else {
                return false;
            };
            let mut place = place.clone();
            for part in path.split('.') {
                let Some(next) = place.member(part, None) else {
                    return false;
                };
                place = next;
            }
            writes.push((place, *value));
        }
        for (place, value) in writes {
            if let Val::Scalar(old) = self.read(&place) {
                let width = self.width_of(&old);
                self.write(&place, &Val::Scalar(constant(width, u128::from(value))));
            }
        }
        true
    }
}
