//! What keeps the packets of a program on one worker: state that workers would have to share.

use weir_arch::Resource;
use weir_ir::{ArgumentValue, Body, Call, ConstValue, ExternId, InstKind, Program};
use weir_switch::Switch;

/// Why one worker must process all packets, if it must.
///
/// Counters, digests and the numbers that `random` gives are as right from any worker. What one
/// packet leaves behind for another to read is not: registers that the program writes, meters and
/// filters.
pub fn obstacle(switch: &Switch) -> Option<String> {
    let program = switch.program();
    for (id, instance) in program.externs.iter() {
        let what = match switch.state().resource(id) {
            Resource::Register(_) if is_called(program, id, |c| c.function != "read") => "register",
            Resource::Meter(..) if is_called(program, id, |_| true) => "meter",
            Resource::Lpf(_) | Resource::Wred(_) if is_called(program, id, |_| true) => "filter",
            Resource::DirectMeter(..)
                if is_called(program, id, |_| true) || program.tables.iter().any(|(_, t)| t.direct.contains(&id)) =>
            {
                "direct meter"
            }
            _ => continue,
        };
        let place = crate::stats::place(program, Some(instance.loc));
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        return Some(format!(
            "the {what} {}{place} has to be the same for all packets, and workers do not share state",
            instance.name
        ));
    }
    None
}

fn is_called(program: &Program, id: ExternId, counts: impl Fn(&Call) -> bool) -> bool {
    let methods = program.externs.iter().flat_map(|(_, e)| &e.methods);
    let mut bodies = program.blocks.iter().map(|b| &b.body).chain(methods.map(|m| &m.body));
    bodies.any(|body| calls(body).any(|call| is_about(program, call, id) && counts(call)))
}

fn calls(body: &Body) -> impl Iterator<Item = &Call> {
    let insts = body.blocks.iter().flat_map(|(_, block)| &block.insts);
    insts.filter_map(|inst| match &inst.kind {
        InstKind::Call(call) => Some(call),
        _ => None,
    })
}

/// Whether a call is one of the instance's, of one that was made of it, or is passed it.
fn is_about(program: &Program, call: &Call, id: ExternId) -> bool {
    let passed = |value: &ArgumentValue| matches!(value, ArgumentValue::Extern(e) if *e == id);
    let made_of = |instance: ExternId| {
        let arguments = &program.externs[instance].arguments;
        arguments.iter().any(|(_, value)| *value == ConstValue::Extern(id))
    };
    let of_instance = call.instance.is_some_and(|i| i == id || made_of(i));
    of_instance || call.arguments.iter().any(|a| passed(&a.value))
}
