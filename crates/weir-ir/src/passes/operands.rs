//! The operands that passes may replace by others of the same value, in one place for all of them.

use crate::arena::Arena;
use crate::program::*;

/// Where an operand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// Where only its value matters.
    Alone,
    /// Among the arguments of a call.
    InCall,
}

/// Offers `replace` every operand of an instruction but those that an architecture wants to know by
/// name; returns whether it replaced any.
pub(super) fn replace_in_inst(
    kind: &mut InstKind,
    vars: &Arena<Var>,
    mut replace: impl FnMut(&mut Operand, Stands) -> bool,
) -> bool {
    let mut changed = false;
    match kind {
        InstKind::Assign { value, .. } => {
            for operand in value.operands_mut() {
                changed |= replace(operand, Stands::Alone);
            }
        }
        InstKind::Extract {
            varbit_bits: Some(o), ..
        }
        | InstKind::Advance { bits: o } => changed |= replace(o, Stands::Alone),
        InstKind::Call(call) => {
            let mut arguments = std::mem::take(&mut call.arguments);
            for argument in &mut arguments {
                if let ArgumentValue::In(leaves) = &mut argument.value {
                    for leaf in leaves {
                        if let InLeaf::Value(o) = leaf
                            && !is_named(call, o, vars)
                        {
                            changed |= replace(o, Stands::InCall);
                        }
                    }
                }
            }
            call.arguments = arguments;
        }
        InstKind::Extract { varbit_bits: None, .. }
        | InstKind::Lookahead { .. }
        | InstKind::PacketLength { .. }
        | InstKind::Emit { .. }
        | InstKind::Mark(_) => {}
    }
    changed
}

/// Offers `replace` every operand of a terminator; returns whether it replaced any.
pub(super) fn replace_in_terminator(
    terminator: &mut Terminator,
    mut replace: impl FnMut(&mut Operand) -> bool,
) -> bool {
    let mut changed = false;
    match terminator {
        Terminator::Branch { condition: o, .. } | Terminator::Switch { value: o, .. } => changed |= replace(o),
        Terminator::Select { keys, cases, .. } => {
            for key in keys {
                changed |= replace(key);
            }
            for pattern in cases.iter_mut().flat_map(|c| &mut c.patterns) {
                match pattern {
                    Pattern::Exact(a) => changed |= replace(a),
                    Pattern::Mask(a, b) | Pattern::Range(a, b, _) => {
                        changed |= replace(a);
                        changed |= replace(b);
                    }
                    Pattern::Any | Pattern::ValueSet(_) => {}
                }
            }
        }
        Terminator::Lookup(l) => {
            for key in &mut l.keys {
                changed |= replace(key);
            }
        }
        Terminator::Goto(_)
        | Terminator::Accept
        | Terminator::Reject
        | Terminator::Return
        | Terminator::Exit(_)
        | Terminator::Suspend(_) => {}
    }
    changed
}

/// Whether an architecture may want to know which variable stands in a call, and not only its
/// value: externs that keep values for a copy of the packet are given them so.
fn is_named(call: &Call, operand: &Operand, vars: &Arena<Var>) -> bool {
    let Operand::Var(var) = operand else { return false };
    let keeps = matches!(vars[*var].kind, VarKind::Shared | VarKind::Field { .. });
    keeps && call.instance.is_none() && !call.is_pure
}
