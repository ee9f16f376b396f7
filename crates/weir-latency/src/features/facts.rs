//! Known values of variables along a path.

use std::collections::BTreeMap;
use weir_ir::{Bits, Operand, Program, Rvalue, Type, VarId, VarKind, eval};

/// What is known of variables when control is at some place. A variable that is not among the
/// changes has its initial value, as far as that is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Facts {
    changed: BTreeMap<VarId, Option<u64>>,
}

/// Values that variables have when a packet arrives.
pub(super) struct Initial {
    values: Vec<Option<u64>>,
}

impl Initial {
    /// Headers are invalid, stacks are empty, and locals and user metadata are zero. What the
    /// architecture sets (intrinsic metadata) is unknown.
    pub(super) fn of(program: &Program) -> Self {
        let mut values: Vec<Option<u64>> = program.vars.iter().map(|(_, var)| initial_of(&var.kind)).collect();
        for group in &program.shared {
            let is_users = is_user_metadata(&group.role);
            for leaf in &group.leaves {
                if is_users || leaf.path.ends_with("$next$") {
                    values[leaf.var.index()] = Some(0);
                }
            }
        }
        Initial { values }
    }

    fn get(&self, var: VarId) -> Option<u64> {
        self.values.get(var.index()).copied().flatten()
    }
}

fn initial_of(kind: &VarKind) -> Option<u64> {
    match kind {
        VarKind::Valid { .. } | VarKind::Local | VarKind::Temporary | VarKind::FieldCopy { .. } => Some(0),
        VarKind::Shared | VarKind::Field { .. } | VarKind::ActionParameter => None,
    }
}

/// Whether a shared group is metadata that the program declares, by the names that architectures
/// give their groups.
fn is_user_metadata(role: &str) -> bool {
    let own = role.rsplit('.').next().unwrap_or(role);
    own.ends_with("metadata") && !own.contains("intrinsic") && !own.contains("standard")
}

impl Facts {
    /// The value of a variable, if it is known.
    pub(super) fn get(&self, initial: &Initial, var: VarId) -> Option<u64> {
        self.changed.get(&var).copied().unwrap_or_else(|| initial.get(var))
    }

    /// Sets a variable, or forgets its value.
    pub(super) fn set(&mut self, initial: &Initial, var: VarId, value: Option<u64>) {
        if initial.get(var) == value {
            self.changed.remove(&var);
        } else {
            self.changed.insert(var, value);
        }
    }

    /// What both know.
    pub(super) fn meet(&self, initial: &Initial, other: &Facts) -> Facts {
        let mut met = Facts::default();
        for var in self.changed.keys().chain(other.changed.keys()) {
            let (a, b) = (self.get(initial, *var), other.get(initial, *var));
            met.set(initial, *var, if a == b { a } else { None });
        }
        met
    }

    /// Forgets that variables differ from their initial values where nothing reads them any more.
    pub(super) fn retain(&mut self, mut is_live: impl FnMut(VarId) -> bool) {
        self.changed.retain(|var, _| is_live(*var));
    }

    /// The value of an operand of at most 64 bits, if it is known.
    pub(super) fn operand(&self, initial: &Initial, operand: &Operand) -> Option<u64> {
        match operand {
            Operand::Const(value) => value.to_u64(),
            Operand::Var(var) => self.get(initial, *var),
        }
    }

    /// The value of an expression, if it is known and fits 64 bits.
    pub(super) fn rvalue(&self, initial: &Initial, program: &Program, dst: VarId, value: &Rvalue) -> Option<u64> {
        let Type::Bits(width @ 1..=64) = program.vars[dst].ty else {
            return None;
        };
        let mut is_known = true;
        for operand in value.operands() {
            is_known &= self.bits(initial, program, operand).is_some();
        }
        if !is_known {
            return None;
        }
        eval::rvalue(value, width, |operand| {
            self.bits(initial, program, operand).unwrap_or_else(|| Bits::zero(1))
        })
        .to_u64()
    }

    fn bits(&self, initial: &Initial, program: &Program, operand: &Operand) -> Option<Bits> {
        match operand {
            Operand::Const(value) => Some(value.clone()),
            Operand::Var(var) => match program.vars[*var].ty {
                Type::Bits(width) => Some(Bits::new(width, self.get(initial, *var)?.into())),
                Type::Varbit(_) => None,
            },
        }
    }
}
