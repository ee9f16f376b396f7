//! The variables of a program that the architecture reads and writes.

use crate::load::annotation_numbers;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_interp::Frame;
use weir_ir::{Bits, HeaderId, Program, VarId};

/// Fields of `standard_metadata_t`. A field the program's struct does not have is `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandardMetadata {
    pub ingress_port: Option<VarId>,
    pub egress_spec: Option<VarId>,
    pub egress_port: Option<VarId>,
    pub instance_type: Option<VarId>,
    pub packet_length: Option<VarId>,
    pub enq_timestamp: Option<VarId>,
    pub enq_qdepth: Option<VarId>,
    pub deq_timedelta: Option<VarId>,
    pub deq_qdepth: Option<VarId>,
    pub ingress_global_timestamp: Option<VarId>,
    pub egress_global_timestamp: Option<VarId>,
    pub mcast_grp: Option<VarId>,
    pub egress_rid: Option<VarId>,
    pub checksum_error: Option<VarId>,
    pub parser_error: Option<VarId>,
    pub priority: Option<VarId>,
    /// Not in v1model.p4 of p4c; programs that have added it learn the queue by it.
    pub qid: Option<VarId>,
}

impl StandardMetadata {
    pub(crate) fn new(program: &Program) -> Self {
        let var = |name| program.shared_var("standard_metadata", name);
        StandardMetadata {
            ingress_port: var("ingress_port"),
            egress_spec: var("egress_spec"),
            egress_port: var("egress_port"),
            instance_type: var("instance_type"),
            packet_length: var("packet_length"),
            enq_timestamp: var("enq_timestamp"),
            enq_qdepth: var("enq_qdepth"),
            deq_timedelta: var("deq_timedelta"),
            deq_qdepth: var("deq_qdepth"),
            ingress_global_timestamp: var("ingress_global_timestamp"),
            egress_global_timestamp: var("egress_global_timestamp"),
            mcast_grp: var("mcast_grp"),
            egress_rid: var("egress_rid"),
            checksum_error: var("checksum_error"),
            parser_error: var("parser_error"),
            priority: var("priority"),
            qid: var("qid"),
        }
    }
}

/// Sets a field the program has, modulo its width.
pub(crate) fn set(frame: &mut Frame, var: Option<VarId>, value: u64) {
    if let Some(var) = var {
        frame.set_u64(var, value);
    }
}

/// A field's value; 0 if the program does not have it.
pub(crate) fn get(frame: &Frame, var: Option<VarId>) -> u64 {
    var.map_or(0, |v| frame.get_u64(v))
}

/// Which variables belong together.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// User metadata and standard metadata: the variables that are reset between passes.
    pub metadata: Vec<VarId>,
    /// Headers of the packet.
    pub headers: Vec<HeaderId>,
    /// Variables of each `@field_list`.
    pub field_lists: BTreeMap<u64, Arc<[VarId]>>,
}

impl Groups {
    pub(crate) fn new(program: &Program) -> Self {
        let mut lists: BTreeMap<u64, Vec<VarId>> = BTreeMap::new();
        let mut metadata = Vec::new();
        for group in ["metadata", "standard_metadata"]
            .iter()
            .filter_map(|r| program.shared_group(r))
        {
            for leaf in &group.leaves {
                metadata.push(leaf.var);
                for annotation in leaf.annotations.iter().filter(|a| a.name == "field_list") {
                    for number in annotation_numbers(program, annotation) {
                        let list = lists.entry(number).or_default();
                        if !list.contains(&leaf.var) {
                            list.push(leaf.var);
                        }
                    }
                }
            }
        }
        Groups {
            metadata,
            headers: program
                .shared_group("headers")
                .map_or(Vec::new(), |g| g.headers.clone()),
            field_lists: lists.into_iter().map(|(n, vars)| (n, vars.into())).collect(),
        }
    }

    /// The variables of a field list; none for an unknown one.
    pub(crate) fn field_list(&self, index: u64) -> Arc<[VarId]> {
        self.field_lists.get(&index).cloned().unwrap_or_default()
    }

    /// Sets metadata to zero, but for these variables, which take the values they have in `from`.
    pub(crate) fn reset_metadata(&self, program: &Program, frame: &mut Frame, keep: &[VarId], from: &Frame) {
        for &var in &self.metadata {
            let zero = match program.vars[var].ty {
                weir_ir::Type::Bits(w) => Bits::zero(w),
                weir_ir::Type::Varbit(_) => Bits::zero(0),
            };
            frame.set(var, zero);
        }
        for &var in keep {
            frame.set(var, from.get(var).clone());
        }
    }

    /// Bits of all valid headers.
    pub(crate) fn header_bits(&self, program: &Program, frame: &Frame) -> i64 {
        self.headers
            .iter()
            .map(|&h| &program.headers[h])
            .filter(|h| frame.is_set(h.valid))
            .map(|h| h.fields.iter().map(|&f| i64::from(frame.get(f).width())).sum::<i64>())
            .sum()
    }
}
