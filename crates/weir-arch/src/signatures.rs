//! The extern declarations in an architecture's files, and the check that calls and instances of a
//! program conform to them.
//!
//! This is no P4 front end. It reads the heads of all extern declarations and ignores `#if`; a type
//! that it cannot read has any width.

mod declarations;

use crate::registry::ARCHITECTURES;
use crate::state::scalars;
use declarations::{Declarations, Direction, Parameter, Signature};
use std::collections::HashMap;
use std::sync::LazyLock;
use weir_ir::target::Target;
use weir_ir::{Argument, ArgumentValue, Call, ExternInstance, InLeaf, Operand, Program, TypeSpec, VarId};

static ALL: LazyLock<Vec<(&'static str, Signatures)>> = LazyLock::new(|| {
    let of = |target: &Target| Signatures(Declarations::read(target.files.iter().map(|(_, text)| *text)));
    ARCHITECTURES.iter().map(|a| (a.target.name, of(&a.target))).collect()
});
static NONE: LazyLock<Signatures> = LazyLock::new(|| Signatures(Declarations::default()));

/// The externs of an architecture.
#[derive(Debug)]
pub(crate) struct Signatures(Declarations);

/// Widths of the scalars that type parameters stand for; `None`: not known.
type Bound<'a> = HashMap<&'a str, Option<Vec<u32>>>;

impl Signatures {
    pub(crate) fn of(target: &Target) -> &'static Signatures {
        let found = ALL.iter().find(|(name, _)| *name == target.name);
        found.map_or(&NONE, |(_, signatures)| signatures)
    }

    /// The problem with an instance's constructor arguments.
    pub(crate) fn instance(&self, instance: &ExternInstance) -> Option<String> {
        let ty = self.0.types.get(instance.type_name.as_str())?;
        let names: Vec<&str> = instance.arguments.iter().map(|(n, _)| n.as_str()).collect();
        let constructors = ty.methods.get(instance.type_name.as_str())?;
        let fits = |s: &Signature| in_order(&s.parameters, &names).is_some();
        (!constructors.iter().any(fits)).then(|| {
            format!(
                "`{}` is no {} with the arguments {}",
                instance.name,
                instance.type_name,
                names.join(", ")
            )
        })
    }

    /// The problem with a call.
    pub(crate) fn call(&self, program: &Program, call: &Call) -> Option<String> {
        if self.0.in_macros.contains(&call.function) {
            return None;
        }
        let mut bound = Bound::new();
        let overloads = match call.instance {
            None => self.0.functions.get(call.function.as_str())?,
            Some(id) => {
                let instance = &program.externs[id];
                let ty = self.0.types.get(instance.type_name.as_str())?;
                let parameters = ty.parameters.iter().max_by_key(|p| p.len());
                bind(
                    &mut bound,
                    parameters.map_or(&[], Vec::as_slice),
                    &instance.type_arguments,
                );
                ty.methods.get(call.function.as_str())?
            }
        };
        let fits = |signature: &Signature| self.fits(program, call, signature, bound.clone());
        let good = overloads.iter().any(fits);
        (!good).then(|| {
            format!(
                "this is no call of `{}`: its arguments or results are others than those declared",
                call.function
            )
        })
    }

    fn fits<'a>(&'a self, program: &Program, call: &Call, signature: &'a Signature, mut bound: Bound<'a>) -> bool {
        if signature.is_open {
            return true;
        }
        let names: Vec<&str> = call.arguments.iter().map(|a| a.name.as_str()).collect();
        let Some(parameters) = in_order(&signature.parameters, &names) else {
            return false;
        };
        if call.type_arguments.len() != signature.type_parameters.len() {
            return false;
        }
        bind(&mut bound, &signature.type_parameters, &call.type_arguments);
        let mut good = call.arguments.iter().zip(parameters).all(|(argument, parameter)| {
            let widths = widths_of(program, argument);
            // Where a program leaves an instance's type open by `_`, each call may give a number of
            // another width.
            let is_number = parameter.direction == Direction::In && widths.as_ref().is_some_and(|w| w.len() == 1);
            let is_open = is_number
                && bound
                    .get(parameter.ty.as_str())
                    .is_some_and(|b| b.as_ref().is_some_and(|b| b.len() == 1));
            direction_fits(argument, parameter) && (is_open || self.unify(&mut bound, &parameter.ty, widths))
        });
        if !call.results.is_empty() {
            good &= self.unify(&mut bound, &signature.result, Some(vars(program, &call.results)));
        }
        good
    }

    /// Whether a value with scalars of these widths is of a type; a type parameter that is not
    /// bound yet becomes that.
    fn unify<'a>(&'a self, bound: &mut Bound<'a>, ty: &'a str, widths: Option<Vec<u32>>) -> bool {
        let Some(widths) = widths else { return true };
        if let Some(known) = bound.get(ty) {
            return known.as_ref().is_none_or(|known| *known == widths);
        }
        match self.0.width(ty) {
            Some(width) => widths == [width],
            None if ty == "void" => widths.is_empty(),
            None => !widths.is_empty(),
        }
    }
}

/// The parameters that arguments of these names are for, in order; only optional ones may have
/// none.
fn in_order<'a>(parameters: &'a [Parameter], names: &[&str]) -> Option<Vec<&'a Parameter>> {
    let mut names = names.iter().peekable();
    let mut found = Vec::new();
    for parameter in parameters {
        match names.next_if(|n| **n == parameter.name) {
            Some(_) => found.push(parameter),
            None if parameter.optional => {}
            None => return None,
        }
    }
    names.next().is_none().then_some(found)
}

fn bind<'a>(bound: &mut Bound<'a>, parameters: &'a [String], arguments: &[TypeSpec]) {
    for (name, ty) in parameters.iter().zip(arguments) {
        let widths = is_flat(ty).then(|| scalars(ty, "").into_iter().map(|(_, w)| w).collect());
        bound.insert(name, widths);
    }
}

/// Whether values of a type are the scalars that [`scalars`] says: headers have validities besides.
fn is_flat(ty: &TypeSpec) -> bool {
    match ty {
        TypeSpec::Bool | TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Error => true,
        TypeSpec::Enum(..) | TypeSpec::SerializableEnum(..) => true,
        TypeSpec::Tuple(fields) => fields.iter().all(is_flat),
        TypeSpec::Struct(_, fields) => fields.iter().all(|(_, t)| is_flat(t)),
        TypeSpec::New(_, inner, _) => is_flat(inner),
        TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::Varbit(_) | TypeSpec::String => false,
        TypeSpec::Header(..) | TypeSpec::HeaderUnion(..) | TypeSpec::Stack(..) => false,
    }
}

fn vars(program: &Program, vars: &[VarId]) -> Vec<u32> {
    vars.iter().map(|v| program.vars[*v].ty.width()).collect()
}

/// Widths of an argument's scalars; `None` where it has other parts.
fn widths_of(program: &Program, argument: &Argument) -> Option<Vec<u32>> {
    match &argument.value {
        ArgumentValue::In(leaves) => {
            let width = |leaf: &InLeaf| match leaf {
                InLeaf::Value(Operand::Var(v)) => Some(program.vars[*v].ty.width()),
                InLeaf::Value(Operand::Const(c)) => Some(c.width()),
                InLeaf::Header(_) => None,
            };
            leaves.iter().map(width).collect()
        }
        ArgumentValue::Out(all) | ArgumentValue::InOut(all) => Some(vars(program, all)),
        ArgumentValue::String(_) | ArgumentValue::Extern(_) | ArgumentValue::Packet => None,
    }
}

fn direction_fits(argument: &Argument, parameter: &Parameter) -> bool {
    let is_packet = matches!(parameter.ty.as_str(), "packet_in" | "packet_out");
    match &argument.value {
        ArgumentValue::In(_) => matches!(parameter.direction, Direction::In | Direction::None) && !is_packet,
        ArgumentValue::Out(_) => parameter.direction == Direction::Out,
        ArgumentValue::InOut(_) => parameter.direction == Direction::InOut,
        ArgumentValue::String(_) => parameter.ty == "string",
        ArgumentValue::Extern(_) => parameter.direction == Direction::None,
        ArgumentValue::Packet => is_packet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_externs_of_every_architecture_are_read() {
        for (target, type_name, method) in [
            ("v1model", "register", "read"),
            ("v1model", "counter", "count"),
            ("psa", "InternetChecksum", "get_state"),
            ("tna", "RegisterAction", "execute"),
            ("t2na", "Hash", "get"),
        ] {
            let (_, signatures) = ALL.iter().find(|(name, _)| *name == target).expect("a target");
            let ty = signatures.0.types.get(type_name).expect(type_name);
            assert!(ty.methods.contains_key(method), "{target} {type_name} {method}: {ty:?}");
            assert!(ty.methods.contains_key(type_name), "{target} {type_name}: {ty:?}");
        }
    }

    #[test]
    fn widths_are_read_from_typedefs_and_enums() {
        let (_, v1) = ALL.iter().find(|(name, _)| *name == "v1model").expect("a target");
        assert_eq!(v1.0.width("HashAlgorithm"), Some(32));
        assert_eq!(v1.0.width("bit<8>"), Some(8));
        assert_eq!(v1.0.width("bool"), Some(1));
        assert_eq!(v1.0.width("T"), None);
    }
}
