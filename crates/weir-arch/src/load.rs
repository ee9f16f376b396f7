//! From a program to its state: what every architecture needs.

use crate::custom_crc::CustomCrcs;
use crate::register::RegisterArray;
use crate::state::{Resource, State, TableState, Unit, scalars};
use num_traits::ToPrimitive;
use weir_ir::{
    ActionCall, Annotation, AnnotationBody, AnnotationValue, Bits, ConstValue, ExternInstance, Program, TypeSpec,
};
use weir_table::{ActionProfile, ActionSpec, Implementation, ProfileSpec, Table, TableSpec};

/// The constructor argument with this name, or at this position.
#[must_use]
pub fn argument<'a>(instance: &'a ExternInstance, name: &str, position: usize) -> Option<&'a ConstValue> {
    instance
        .arguments
        .iter()
        .find(|(n, _)| n == name)
        .or_else(|| instance.arguments.get(position))
        .map(|(_, value)| value)
}

/// A number as a constructor argument; 0 if it is absent or no number, saturating.
#[must_use]
pub fn number(value: Option<&ConstValue>) -> u64 {
    match value {
        Some(ConstValue::Bits(bits)) => bits.to_u64_saturating(),
        Some(ConstValue::Int(int)) => int.to_u64().unwrap_or(if int.sign() == num_bigint::Sign::Minus {
            0
        } else {
            u64::MAX
        }),
        _ => 0,
    }
}

/// The member of an enum as a constructor argument; empty if it is none.
#[must_use]
pub fn member(value: Option<&ConstValue>) -> &str {
    match value {
        Some(ConstValue::Enum { member, .. }) => member,
        _ => "",
    }
}

/// The unit of a counter or meter, by the name of the member.
#[must_use]
pub fn unit(value: Option<&ConstValue>) -> Unit {
    match member(value).to_ascii_lowercase().as_str() {
        "bytes" => Unit::Bytes,
        "packets_and_bytes" => Unit::Both,
        _ => Unit::Packets,
    }
}

/// Cells per entry handle: as many as there are handles, and number 0 for the default entry.
pub const HANDLES: u64 = 1 << 32;

/// A register array whose cells have the type and start as `initial` says, or as zeros. One of
/// [`HANDLES`] has a cell for each entry of a table.
#[must_use]
pub fn register(program: &Program, ty: &TypeSpec, size: u64, initial: Option<&ConstValue>) -> Resource {
    let widths: Vec<u32> = scalars(ty, "").into_iter().map(|(_, w)| w).collect();
    let mut values = Vec::new();
    if let Some(initial) = initial {
        flatten(program, initial, &widths, &mut values);
    }
    Resource::Register(match size {
        HANDLES => RegisterArray::of_entries(widths, &values),
        _ => RegisterArray::new(widths, size, &values),
    })
}

/// The scalars of a constant, one after the other, with these widths; as many as there are widths.
fn flatten(program: &Program, value: &ConstValue, widths: &[u32], to: &mut Vec<Bits>) {
    if let ConstValue::List(parts) = value {
        parts.iter().for_each(|part| flatten(program, part, widths, to));
        return;
    }
    let Some(&width) = widths.get(to.len()) else { return };
    to.push(scalar(program, Some(value), width));
}

/// A constant as a scalar of some width; 0 if it is absent or none.
#[must_use]
pub fn scalar(program: &Program, value: Option<&ConstValue>, width: u32) -> Bits {
    match value {
        Some(ConstValue::Bits(bits)) => bits.zero_extend(width),
        Some(ConstValue::Int(int)) => Bits::from_bigint(width, int),
        Some(ConstValue::Bool(b)) => Bits::new(width, (*b).into()),
        Some(ConstValue::Enum { enum_name, member }) => {
            let value = enum_member(program, &format!("{enum_name}.{member}"))
                .or_else(|| enum_index(program, enum_name, member))
                .or_else(|| program.error_code(member).map(u64::from));
            Bits::new(width, value.unwrap_or(0).into())
        }
        _ => Bits::zero(width),
    }
}

/// The value of a member of an enum that is not serializable.
#[must_use]
pub fn enum_index(program: &Program, name: &str, member: &str) -> Option<u64> {
    let (_, found) = program.enums.iter().find(|(_, e)| e.name == name)?;
    found.members.iter().position(|m| m == member).map(|i| i as u64)
}

/// The profile's actions are those of all tables that use it, each once.
#[must_use]
pub fn profile(program: &Program, index: usize, instance: &ExternInstance, size: u64, selector: bool) -> ActionProfile {
    let mut actions: Vec<ActionSpec> = Vec::new();
    for (id, table) in program.tables.iter() {
        if table.implementation.is_some_and(|e| e.index() == index) {
            for action in TableSpec::from_program(program, id, &[]).actions {
                if !action.default_only && actions.iter().all(|a| a.id != action.id) {
                    actions.push(action);
                }
            }
        }
    }
    let max_group_size = instance
        .annotations
        .iter()
        .find(|a| a.name == "max_group_size")
        .and_then(|a| annotation_numbers(program, a).first().copied())
        .unwrap_or(0);
    let semantics = instance
        .annotations
        .iter()
        .find(|a| a.name == "selector_size_semantics");
    let counts_members = semantics.is_some_and(|a| match &a.body {
        AnnotationBody::Text { tokens, .. } => tokens.iter().any(|t| t.contains("sum_of_members")),
        _ => false,
    });
    ActionProfile::new(ProfileSpec {
        name: instance.name.clone(),
        actions,
        size,
        selector,
        max_group_size,
        counts_members,
    })
}

/// A number as P4 writes it; the width in `8w3` is of no interest.
fn literal(token: &str) -> Option<u64> {
    let digits = token.split_once(['w', 's']).map_or(token, |(_, d)| d).replace('_', "");
    match digits.get(..2) {
        Some("0x" | "0X") => u64::from_str_radix(&digits[2..], 16).ok(),
        Some("0b" | "0B") => u64::from_str_radix(&digits[2..], 2).ok(),
        _ => digits.parse().ok(),
    }
}

/// The value of `Enum.member` of a serializable enum.
fn enum_member(program: &Program, text: &str) -> Option<u64> {
    let (name, member) = text.split_once('.')?;
    let known = program.enums.iter().find(|(_, e)| e.name == name).and_then(|(_, e)| {
        let position = e.members.iter().position(|m| m == member)?;
        e.values.as_ref()?.get(position)?.to_u64()
    });
    known.or_else(|| {
        program.type_info.iter().find_map(|named| match &named.spec {
            TypeSpec::SerializableEnum(n, _, members) if n == name => {
                members.iter().find(|(m, _)| m == member)?.1.to_u64()
            }
            _ => None,
        })
    })
}

/// The numbers in an annotation's body: literals, and members of serializable enums.
pub(crate) fn annotation_numbers(program: &Program, annotation: &Annotation) -> Vec<u64> {
    match &annotation.body {
        AnnotationBody::Text { tokens, .. } => tokens
            .split(|t| t == ",")
            .map(<[String]>::concat)
            .filter_map(|item| literal(&item).or_else(|| enum_member(program, &item)))
            .collect(),
        AnnotationBody::Expressions(values) => values
            .iter()
            .filter_map(|v| match v {
                AnnotationValue::Int(i) => u64::try_from(*i).ok(),
                AnnotationValue::String(_) | AnnotationValue::Bool(_) => None,
            })
            .collect(),
        AnnotationBody::Empty | AnnotationBody::KeyValues(_) => Vec::new(),
    }
}

/// The action that a property of a table names.
fn action_property(table: &weir_ir::Table, name: &str) -> Option<ActionCall> {
    let (_, value) = table.properties.iter().find(|(n, _)| n == name)?;
    let ConstValue::List(parts) = value else { return None };
    let (action, arguments) = parts.split_first()?;
    let arguments = arguments.iter().map(|a| match a {
        ConstValue::Bits(bits) => Some(bits.clone()),
        _ => None,
    });
    Some(ActionCall {
        action: usize::try_from(number(Some(action))).ok()?,
        arguments: arguments.collect::<Option<_>>()?,
    })
}

/// The state of a program whose instances have these resources. `selectors` are the extern types
/// that are action selectors, `empty_group` is the table property that says what an empty group
/// does.
#[must_use]
pub fn state_of(
    program: &Program,
    mut resources: Vec<Resource>,
    selectors: &[&str],
    empty_group: Option<&str>,
) -> State {
    for (id, table) in program.tables.iter() {
        for direct in &table.direct {
            if let Some(Resource::Register(register)) = resources.get_mut(direct.index()) {
                register.tables.push(id);
            }
        }
    }
    let tables = program
        .tables
        .iter()
        .map(|(id, table)| {
            let spec = TableSpec::from_program(program, id, selectors);
            let profile_actions = match spec.implementation {
                Implementation::Direct => Vec::new(),
                Implementation::Profile(e) | Implementation::Selector(e) => match resources.get(e.index()) {
                    Some(Resource::Profile(profile, _)) => profile
                        .spec()
                        .actions
                        .iter()
                        .map(|a| spec.actions.iter().position(|t| t.id == a.id))
                        .collect(),
                    _ => Vec::new(),
                },
            };
            TableState {
                table: Table::new(spec),
                hits: 0,
                misses: 0,
                direct: table.direct.clone(),
                empty_group: empty_group.and_then(|name| action_property(table, name)),
                profile_actions,
            }
        })
        .collect();
    let value_sets = program
        .value_sets
        .iter()
        .map(|(_, set)| {
            let mut spec = TableSpec::new(set.name.clone()).action(ActionSpec::new("member"));
            for field in &set.fields {
                spec = spec.key(weir_table::KeySpec::new(
                    field.name.clone(),
                    field.width,
                    field.match_kind,
                ));
            }
            Table::new(TableSpec { size: set.size, ..spec })
        })
        .collect();
    let mut state = State::new(tables, resources, value_sets);
    state.custom_crcs = CustomCrcs::of(program);
    state
}
