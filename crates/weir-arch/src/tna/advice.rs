//! Warnings about program features that a Tofino does not support. weir runs such programs all the
//! same; the warnings are for authors who target a chip.
//!
//! Only rules are looked at that hold wherever a compiler would put things: stages, memories and
//! containers are none of weir's business. Like such a compiler, they know of branches and not of
//! conditions: two accesses under `if`s of which only one can hold are two.

use super::registers;
use crate::registry::Advice;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{
    BinaryOp, Block, BlockId, Body, ExternId, ExternInstance, InstKind, Loc, MatchKind, Method, Operand, Program,
    Rvalue, Table, TableId, Terminator, VarId,
};

/// Bits of all keys that a table without and with a mask can compare.
const EXACT_BITS: u32 = 1024;
const MASKED_BITS: u32 = 528;
/// Bits that a resubmitted packet of the first chip brings along.
const RESUBMIT_BITS: u32 = 64;

/// The warnings about a program for Tofino 1, or for Tofino 2.
pub(crate) fn advice(program: &Program, is_second: bool) -> Vec<Advice> {
    let mut found = Found::default();
    let mut by_gress: BTreeMap<ExternId, (bool, Loc)> = BTreeMap::new();
    for block in &program.blocks {
        arithmetic(&block.body, &mut found);
        misplaced(program, block, &mut found);
        let Some(is_egress) = gress(block) else { continue };
        loops(&block.body, &mut found);
        twice(program, &block.body, &mut found);
        for (id, loc) in all_accesses(program, &block.body) {
            let (first, _) = *by_gress.entry(id).or_insert((is_egress, loc));
            if first != is_egress {
                let name = &program.externs[id].name;
                let text =
                    format!("`{name}` is used in ingress and in egress: state belongs to one of them on a Tofino");
                found.add(
                    "tofino-both-gresses",
                    text,
                    loc,
                    "use two, and have ingress tell egress in a bridged header",
                );
            }
        }
    }
    for (_, instance) in program.externs.iter() {
        instance_rules(program, instance, is_second, &mut found);
    }
    for (_, table) in program.tables.iter() {
        keys(table, &mut found);
    }
    if !is_second {
        resubmissions(program, &mut found);
    }
    found.list
}

/// The advice found, each once.
#[derive(Default)]
struct Found {
    list: Vec<Advice>,
    seen: BTreeSet<(&'static str, u32, u32, u32)>,
}

impl Found {
    fn add(&mut self, code: &'static str, message: String, loc: Loc, help: &'static str) {
        if self.seen.insert((code, loc.file, loc.line, loc.column)) {
            self.list.push(Advice {
                code,
                message,
                help,
                loc,
            });
        }
    }
}

/// Whether a programmable block is the control of egress; `None`: it is the control of no gress.
fn gress(block: &Block) -> Option<bool> {
    match block.role.split_once('.')?.1 {
        "ingress" => Some(false),
        "egress" => Some(true),
        _ => None,
    }
}

/// The programmable blocks in which hardware has an extern, as roles name them without the gress.
fn home(type_name: &str) -> Option<&'static [&'static str]> {
    Some(match type_name {
        "Mirror" => &["deparser"],
        "Resubmit" | "Digest" | "Pktgen" => &["ingress_deparser"],
        "ParserCounter" | "ParserPriority" => &["parser"],
        "Checksum" => &["parser", "deparser"],
        "Register" | "Counter" | "Meter" | "Lpf" | "Wred" | "Hash" | "Random" => &["control"],
        name if name.contains("Action") || name.starts_with("Direct") => &["control"],
        _ => return None,
    })
}

/// Externs that are used where hardware does not have them.
fn misplaced(program: &Program, block: &Block, found: &mut Found) {
    let role = block.role.split_once('.').map_or("", |(_, role)| role);
    // Parsers of a gress are numbered where there are several.
    let role = role.trim_end_matches(|c: char| c.is_ascii_digit());
    if role.is_empty() {
        return;
    }
    let kind = match role.rsplit_once('_') {
        Some((_, kind @ ("parser" | "deparser"))) => kind,
        _ => "control",
    };
    for inst in block.body.blocks.iter().flat_map(|(_, b)| &b.insts) {
        let InstKind::Call(call) = &inst.kind else { continue };
        let Some(instance) = call.instance.and_then(|id| program.externs.get(id)) else {
            continue;
        };
        let Some(home) = home(&instance.type_name).filter(|home| !home.contains(&kind) && !home.contains(&role)) else {
            continue;
        };
        let text = format!(
            "`{}` is a {}, which a Tofino has in the {} only, and this is the {}",
            instance.name,
            instance.type_name,
            home.join(" or the ").replace('_', " "),
            role.replace('_', " "),
        );
        found.add(
            "tofino-block",
            text,
            inst.loc,
            "weir does there what it can: a mirror or resubmission has no effect outside of a deparser",
        );
    }
}

// ------------------------------------------------------------------------------------ accesses

/// The array that a call of an extern comes to, if hardware reaches it once per packet.
fn accessed(program: &Program, id: ExternId, method: &str) -> Option<ExternId> {
    let instance = &program.externs[id];
    match (instance.type_name.as_str(), method) {
        ("Register", "read" | "write" | "clear") | ("Counter", "count") | ("Meter" | "Lpf" | "Wred", "execute") => {
            Some(id)
        }
        (name, "execute" | "execute_log" | "enqueue" | "dequeue" | "push" | "pop" | "sweep")
            if name.contains("Action") =>
        {
            let register = registers::register_of(instance)?;
            let is_array = program.externs[register].type_name == "Register";
            is_array.then_some(register)
        }
        _ => None,
    }
}

fn accesses<'a>(program: &'a Program, body: &'a Body, block: BlockId) -> impl Iterator<Item = (ExternId, Loc)> + 'a {
    body.blocks[block].insts.iter().filter_map(|inst| match &inst.kind {
        InstKind::Call(call) => Some((accessed(program, call.instance?, &call.function)?, inst.loc)),
        _ => None,
    })
}

fn all_accesses<'a>(program: &'a Program, body: &'a Body) -> impl Iterator<Item = (ExternId, Loc)> + 'a {
    body.blocks.iter().flat_map(move |(id, _)| accesses(program, body, id))
}

/// What a packet may have accessed before a basic block.
#[derive(Clone, Default, PartialEq)]
struct Past {
    arrays: BTreeSet<ExternId>,
    tables: BTreeSet<TableId>,
}

fn twice(program: &Program, body: &Body, found: &mut Found) {
    let mut pasts: BTreeMap<usize, Past> = BTreeMap::new();
    let start = BlockId::new(0);
    let mut work = vec![(start, Past::default())];
    while let Some((id, past)) = work.pop() {
        // A basic block before which nothing was accessed is new all the same.
        let is_first = !pasts.contains_key(&id.index());
        let known = pasts.entry(id.index()).or_default();
        let before = known.clone();
        known.arrays.extend(past.arrays);
        known.tables.extend(past.tables);
        if *known == before && !is_first {
            continue;
        }
        let mut now = known.clone();
        now.arrays.extend(accesses(program, body, id).map(|(array, _)| array));
        let terminator = &body.blocks[id].terminator;
        if let Terminator::Lookup(lookup) = terminator {
            now.tables.insert(lookup.table);
        }
        for target in terminator.targets() {
            let is_new = pasts
                .get(&target.index())
                .is_none_or(|known| !known.arrays.is_superset(&now.arrays) || !known.tables.is_superset(&now.tables));
            if is_new {
                work.push((target, now.clone()));
            }
        }
    }
    for (id, block) in body.blocks.iter() {
        let Some(past) = pasts.get(&id.index()) else { continue };
        let mut arrays = past.arrays.clone();
        for (array, loc) in accesses(program, body, id) {
            if !arrays.insert(array) {
                let instance = &program.externs[array];
                let text = format!(
                    "a packet may come to the {} `{}` twice: on a Tofino it can once",
                    instance.type_name, instance.name
                );
                let help = "do everything in one access, or keep two arrays";
                found.add("tofino-access-twice", text, loc, help);
            }
        }
        if let Terminator::Lookup(lookup) = &block.terminator
            && past.tables.contains(&lookup.table)
        {
            let text = format!(
                "a packet may be looked up in `{}` twice: on a Tofino a table is in one place, and packets do not come back",
                program.tables[lookup.table].name
            );
            found.add(
                "tofino-table-twice",
                text,
                block.loc,
                "use two tables, or recirculate the packet",
            );
        }
    }
}

/// Back edges.
fn loops(body: &Body, found: &mut Found) {
    for (id, block) in body.blocks.iter() {
        let (mut seen, mut work) = (BTreeSet::new(), block.terminator.targets());
        while let Some(target) = work.pop() {
            if target == id {
                let text = "a control with a loop: on a Tofino packets pass each stage once".to_owned();
                found.add(
                    "tofino-loop",
                    text,
                    block.loc,
                    "write the passes one after the other, or recirculate the packet",
                );
                return;
            }
            if seen.insert(target.index()) {
                work.extend(body.blocks[target].terminator.targets());
            }
        }
    }
}

// ---------------------------------------------------------------------------------- arithmetic

fn is_power_of_two(operand: &Operand) -> bool {
    matches!(operand, Operand::Const(value) if value.to_u64().is_some_and(u64::is_power_of_two))
}

fn arithmetic(body: &Body, found: &mut Found) {
    for (_, block) in body.blocks.iter() {
        for inst in &block.insts {
            let InstKind::Assign {
                value: Rvalue::Binary(op, a, b),
                ..
            } = &inst.kind
            else {
                continue;
            };
            let (what, help) = match op {
                BinaryOp::Div | BinaryOp::Mod if !is_power_of_two(b) => (
                    "divides by a number that is no constant power of two",
                    "take a shift, or a `MathUnit` in a register action",
                ),
                BinaryOp::Mul if !is_power_of_two(a) && !is_power_of_two(b) => (
                    "multiplies by a number that is no constant power of two",
                    "add shifted values, or take a `MathUnit` in a register action",
                ),
                BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned if matches!(b, Operand::Var(_)) => (
                    "shifts by a number that is no constant",
                    "choose among constants by a table",
                ),
                _ => continue,
            };
            let text = format!("this {what}: a Tofino's units cannot");
            found.add("tofino-arithmetic", text, inst.loc, help);
        }
    }
}

// ----------------------------------------------------------------------------------- instances

fn instance_rules(program: &Program, instance: &ExternInstance, is_second: bool, found: &mut Found) {
    let name = &instance.name;
    if matches!(instance.type_name.as_str(), "Register" | "DirectRegister") {
        let widths = registers::widths(instance);
        let fits = match widths.as_slice() {
            [width] => [1, 8, 16, 32, 64].contains(width),
            [a, b] => a == b && [8, 16, 32].contains(a) || is_second && a == b && *a == 64,
            _ => false,
        };
        if !fits {
            let text = format!(
                "the cells of `{name}` have {widths:?} bits: a Tofino's have 1, 8, 16, 32 or 64, or twice 8, 16 or 32"
            );
            let help = "take the next larger width, or several registers";
            found.add("tofino-register-width", text, instance.loc, help);
        }
    }
    let limit = if is_second { 4 } else { 2 };
    // The bodies of other closures are the same source text.
    for method in instance.methods.iter().filter(|m| m.closure == 0) {
        arithmetic(&method.body, found);
        let comparisons = comparisons(method);
        if instance.type_name.contains("RegisterAction") && comparisons > limit {
            let text = format!("`{name}` compares {comparisons} times: a Tofino's stateful unit can {limit} times");
            let help = "compare what does not depend on the cell before, and give the action the result";
            found.add("tofino-comparisons", text, instance.loc, help);
        }
        if let Some(loc) = call_within(program, instance, method) {
            let text = format!(
                "an extern is called within `{name}`: a Tofino's stateful unit can only read parameters and use its own"
            );
            found.add(
                "tofino-nested-call",
                text,
                loc,
                "call it before, and keep the result in a variable",
            );
        }
    }
}

/// Comparisons of what depends on the cell.
fn comparisons(method: &Method) -> usize {
    let cell = method.parameters.first().map_or(&[][..], |(_, vars)| vars.as_slice());
    let mut depends: BTreeSet<VarId> = cell.iter().copied().collect();
    let is_dependent = |depends: &BTreeSet<VarId>, o: &Operand| matches!(o, Operand::Var(v) if depends.contains(v));
    let assignments = || method.body.blocks.iter().flat_map(|(_, b)| &b.insts);
    loop {
        let before = depends.len();
        for inst in assignments() {
            if let InstKind::Assign { dst, value } = &inst.kind
                && !matches!(value, Rvalue::Binary(op, ..) if is_comparison(*op))
                && value.operands().any(|o| is_dependent(&depends, o))
            {
                depends.insert(*dst);
            }
        }
        if depends.len() == before {
            break;
        }
    }
    let mut distinct: Vec<(&BinaryOp, &Operand, &Operand)> = Vec::new();
    for inst in assignments() {
        if let InstKind::Assign {
            value: Rvalue::Binary(op, a, b),
            ..
        } = &inst.kind
            && is_comparison(*op)
            && (is_dependent(&depends, a) || is_dependent(&depends, b))
            && !distinct.contains(&(op, a, b))
        {
            distinct.push((op, a, b));
        }
    }
    distinct.len()
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Le, LeSigned, Lt, LtSigned, Ne};
    matches!(op, Eq | Ne | Lt | Le | LtSigned | LeSigned)
}

/// A call of something that is not part of a stateful unit.
fn call_within(program: &Program, owner: &ExternInstance, method: &Method) -> Option<Loc> {
    let insts = method.body.blocks.iter().flat_map(|(_, b)| &b.insts);
    let mut calls = insts.filter_map(|inst| match &inst.kind {
        InstKind::Call(call) => Some((&program.externs[call.instance?], inst.loc)),
        _ => None,
    });
    let own = |instance: &ExternInstance| {
        matches!(instance.type_name.as_str(), "RegisterParam" | "MathUnit") || std::ptr::eq(instance, owner)
    };
    calls.find(|(instance, _)| !own(instance)).map(|(_, loc)| loc)
}

// -------------------------------------------------------------------------------------- others

fn keys(table: &Table, found: &mut Found) {
    let compared = || table.keys.iter().filter(|k| k.match_kind != MatchKind::Selector);
    let is_masked = compared().any(|k| k.match_kind != MatchKind::Exact);
    let (bits, most) = (
        compared().map(|k| k.width).sum::<u32>(),
        if is_masked { MASKED_BITS } else { EXACT_BITS },
    );
    if bits > most {
        let text = format!(
            "the keys of `{}` have {bits} bits: a Tofino compares {most} in such a table",
            table.name
        );
        found.add(
            "tofino-key-width",
            text,
            table.loc,
            "look a part up first, and match on a number for it",
        );
    }
}

/// The metadata of resubmitted packets.
fn resubmissions(program: &Program, found: &mut Found) {
    for (_, block) in program.blocks.iter().flat_map(|b| b.body.blocks.iter()) {
        for inst in &block.insts {
            let InstKind::Call(call) = &inst.kind else { continue };
            let is_resubmit = call
                .instance
                .is_some_and(|id| program.externs[id].type_name == "Resubmit");
            let leaves = call.inputs(0).iter().map(|leaf| match leaf {
                weir_ir::InLeaf::Value(Operand::Var(v)) => program.vars[*v].ty.width(),
                weir_ir::InLeaf::Value(Operand::Const(value)) => value.width(),
                weir_ir::InLeaf::Header(h) => {
                    let fields = program.headers[*h].fields.iter();
                    fields.map(|f| program.vars[*f].ty.width()).sum()
                }
            });
            let bits: u32 = if is_resubmit { leaves.sum() } else { 0 };
            if bits > RESUBMIT_BITS {
                let text = format!(
                    "a resubmitted packet brings along {RESUBMIT_BITS} bits, these are {bits}: the rest is lost"
                );
                found.add(
                    "tofino-resubmit-size",
                    text,
                    inst.loc,
                    "keep the rest in the packet, or recirculate it",
                );
            }
        }
    }
}
