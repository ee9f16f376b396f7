//! v1model as simple_switch runs it.

mod driver;
mod externs;
mod fields;
mod fuse;
mod runtime;
mod target;

use crate::registry::{Observer, Registration};
use std::collections::HashSet;
use weir_ir::passes::read_by;
use weir_ir::{InstKind, Program, Type, VarId};

pub use driver::V1Model;
pub(crate) use runtime::Marks;

/// How everyone else finds it.
pub(crate) const REGISTRATION: Registration = Registration {
    target: target::TARGET,
    ingress_port: ("standard_metadata", "ingress_port"),
    observes,
    // Its devices are software.
    advise: |_| Vec::new(),
    load: |engine, externs| Ok(Box::new(V1Model::new(engine, externs)?)),
};

/// The validity variables that calls read.
fn validity_reads(program: &Program) -> impl Iterator<Item = VarId> + '_ {
    let bodies = program.blocks.iter().map(|block| &block.body);
    let insts = bodies
        .flat_map(|body| body.blocks.iter())
        .flat_map(|(_, block)| &block.insts);
    insts.filter_map(|inst| match &inst.kind {
        InstKind::Call(call) if call.instance.is_none() => externs::validity_read(program, call),
        _ => None,
    })
}

/// The variables that v1model's driver reads: intrinsic metadata; fields that a field list keeps
/// for a copy of the packet; the validity of headers with checksums; and, if the program reads the
/// packet's length, the variables on which that depends.
pub(crate) fn observes(program: &Program) -> Observer {
    let length = program.shared_var("standard_metadata", "packet_length");
    let mut length_is_read = false;
    // Before egress the length is that of the packet as it came.
    let is_after_ingress = |role: &str| !matches!(role, "parser" | "verify_checksum" | "ingress");
    for block in program.blocks.iter().filter(|b| is_after_ingress(&b.role)) {
        read_by(program, &block.body, &mut |v| length_is_read |= Some(v) == length);
    }
    let mut besides: HashSet<VarId> = validity_reads(program).collect();
    if length_is_read {
        besides.extend(measured(program));
    }
    Box::new(move |role, leaf| {
        let is_user_data = matches!(role, "headers" | "metadata");
        !is_user_data || besides.contains(&leaf.var) || leaf.annotations.iter().any(|a| a.name == "field_list")
    })
}

/// The variables on which the length of headers depends: their validity, and their varbits.
fn measured(program: &Program) -> impl Iterator<Item = VarId> + '_ {
    program.headers.iter().flat_map(|(_, header)| {
        let fields = header.fields.iter().copied();
        let varbits = fields.filter(|f| matches!(program.vars[*f].ty, Type::Varbit(_)));
        varbits.chain([header.valid])
    })
}
