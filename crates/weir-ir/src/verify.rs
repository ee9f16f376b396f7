//! The invariants of the IR, checked.
//!
//! 1. Every id names something.
//! 2. Widths agree: an assignment with its operation, operands with each other, keys with tables,
//!    patterns with keys, parameters with actions, matches with keys.
//! 3. Conditions, validities and `hit` have 1 bit, `action` and `entry` 32.
//! 4. A header's fields are as many and as wide as its type says, and their variables know it.
//! 5. Packet operations stand where they may: extraction in parsers, `emit` in controls.
//! 6. A parser has an `error` variable and an `on_error` block; only parsers accept and reject, only
//!    controls return.
//! 7. Slices lie within their values; switch cases are distinct.
//! 8. An entry's action may be in an entry, a default action may be a default.

use crate::program::*;
use std::collections::HashSet;
use thiserror::Error;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct VerifyError {
    /// Which block, table or item.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// Checks every invariant.
///
/// # Errors
/// All that are broken.
pub fn verify(program: &Program) -> Result<(), Vec<VerifyError>> {
    let mut verifier = Verifier {
        program,
        errors: Vec::new(),
        place: String::new(),
    };
    verifier.program();
    if verifier.errors.is_empty() {
        Ok(())
    } else {
        Err(verifier.errors)
    }
}

struct Verifier<'a> {
    program: &'a Program,
    errors: Vec<VerifyError>,
    place: String,
}

impl<'a> Verifier<'a> {
    fn error(&mut self, message: impl Into<String>) {
        // The first hundred say enough.
        if self.errors.len() < 100 {
            self.errors.push(VerifyError {
                place: self.place.clone(),
                message: message.into(),
            });
        }
    }

    fn require(&mut self, good: bool, message: impl FnOnce() -> String) {
        if !good {
            let message = message();
            self.error(message);
        }
    }

    fn at(&mut self, place: impl Into<String>) {
        self.place = place.into();
    }

    // ---------------------------------------------------------------------------------- items

    fn program(&mut self) {
        let p = self.program;
        for (id, h) in p.headers.iter() {
            self.at(format!("header h{} {}", id.index(), h.name));
            self.header(id, h);
        }
        for (id, var) in p.vars.iter() {
            if let VarKind::FieldCopy { valid } = var.kind {
                self.at(format!("var %{} {}", id.index(), var.name));
                self.width_is(valid, 1);
            }
        }
        for s in &p.shared {
            self.at(format!("shared {}", s.role));
            for leaf in &s.leaves {
                self.var(leaf.var);
            }
            for &h in &s.headers {
                self.require(p.headers.get(h).is_some(), || format!("there is no header {h:?}"));
            }
        }
        for (_, e) in p.enums.iter() {
            self.at(format!("enum {}", e.name));
            let fits = e.values.as_ref().is_none_or(|v| v.len() == e.members.len());
            self.require(fits, || "as many values as members".into());
        }
        for (id, t) in p.tables.iter() {
            self.at(format!("table t{} {}", id.index(), t.name));
            self.table(t);
        }
        for (id, x) in p.externs.iter() {
            for m in &x.methods {
                self.at(format!("extern x{} {} method {}", id.index(), x.name, m.name));
                for &v in m.parameters.iter().flat_map(|(_, v)| v).chain(&m.results) {
                    self.var(v);
                }
                self.body(&m.body, BlockKind::Control);
            }
        }
        for b in &p.blocks {
            self.at(format!("block {}", b.role));
            self.body(&b.body, b.kind);
        }
    }

    fn header(&mut self, id: HeaderId, h: &Header) {
        let p = self.program;
        self.width_is(h.valid, 1);
        let Some(ty) = p.header_types.get(h.ty) else {
            self.error("its type does not exist");
            return;
        };
        self.require(ty.fields.len() == h.fields.len(), || {
            format!("{} fields, but its type has {}", h.fields.len(), ty.fields.len())
        });
        for (i, (&v, f)) in h.fields.iter().zip(&ty.fields).enumerate() {
            let Some(var) = p.vars.get(v) else {
                self.error(format!("there is no variable {v:?}"));
                continue;
            };
            self.require(var.ty == f.ty, || {
                format!("field {} is {:?}, but its type says {:?}", f.name, var.ty, f.ty)
            });
            let kind = VarKind::Field {
                header: id,
                index: i as u32,
            };
            self.require(var.kind == kind, || {
                format!("the variable of field {} does not know it", f.name)
            });
        }
    }

    fn table(&mut self, t: &Table) {
        let p = self.program;
        for a in &t.actions {
            let Some(action) = p.actions.get(a.action) else {
                self.error(format!("there is no action {:?}", a.action));
                continue;
            };
            self.require(action.parameters.len() == a.parameters.len(), || {
                format!("action {} has other parameters", action.name)
            });
            for (&v, parameter) in a.parameters.iter().zip(&action.parameters) {
                self.width_is(v, parameter.width);
            }
            self.require(a.executes.iter().all(|x| t.direct.contains(x)), || {
                format!("action {} executes what is not direct to the table", action.name)
            });
        }
        self.action_call(t, &t.default_action);
        let table_only = t.actions.get(t.default_action.action).is_some_and(|a| a.table_only);
        self.require(!table_only, || "the default action is for entries only".into());
        for &x in t.implementation.iter().chain(&t.direct) {
            self.require(p.externs.get(x).is_some(), || {
                format!("there is no extern instance {x:?}")
            });
        }
        let keys: Vec<&Key> = t.keys.iter().filter(|k| k.match_kind != MatchKind::Selector).collect();
        for e in &t.entries {
            self.action_call(t, &e.action);
            let default_only = t.actions.get(e.action.action).is_some_and(|a| a.default_only);
            self.require(!default_only, || {
                "an entry has an action that is for the default only".into()
            });
            self.require(e.matches.len() == keys.len(), || {
                format!("an entry has {} matches for {} keys", e.matches.len(), keys.len())
            });
            for (m, k) in e.matches.iter().zip(&keys) {
                self.key_match(m, k);
            }
        }
    }

    fn key_match(&mut self, m: &KeyMatch, k: &Key) {
        let good = match m {
            KeyMatch::Exact(v) => v.width() == k.width,
            KeyMatch::Lpm { value, prefix_length } => value.width() == k.width && *prefix_length <= k.width,
            KeyMatch::Ternary { value: a, mask: b } | KeyMatch::Range { low: a, high: b } => {
                a.width() == k.width && b.width() == k.width
            }
            KeyMatch::Optional(v) => v.as_ref().is_none_or(|v| v.width() == k.width),
        };
        self.require(good, || {
            format!("a match of key {} does not have its {} bits", k.name, k.width)
        });
    }

    fn action_call(&mut self, t: &Table, call: &ActionCall) {
        let Some(a) = t.actions.get(call.action) else {
            // A table without actions has nothing to run.
            let empty = t.actions.is_empty() && call.action == 0;
            self.require(empty, || format!("there is no action {} in the table", call.action));
            return;
        };
        let widths: Vec<u32> = self
            .program
            .actions
            .get(a.action)
            .map_or(Vec::new(), |a| a.parameters.iter().map(|p| p.width).collect());
        let given: Vec<u32> = call.arguments.iter().map(crate::Bits::width).collect();
        self.require(widths == given, || {
            format!("arguments of {given:?} bits for parameters of {widths:?}")
        });
    }

    // ----------------------------------------------------------------------------------- code

    fn body(&mut self, body: &'a Body, kind: BlockKind) {
        let place = self.place.clone();
        let is_parser = kind == BlockKind::Parser;
        self.require(
            is_parser == body.error.is_some() && is_parser == body.on_error.is_some(),
            || "a parser, and only a parser, has an error variable and an on_error block".into(),
        );
        if let Some(error) = body.error {
            self.width_is(error, 32);
        }
        if let Some(block) = body.on_error {
            self.block(body, block);
        }
        self.require(!body.blocks.is_empty(), || "a body has at least one block".into());
        for (id, block) in body.blocks.iter() {
            for inst in &block.insts {
                self.place = format!("{place} b{} line {}", id.index(), inst.loc.line);
                self.inst(&inst.kind, is_parser);
            }
            self.place = format!("{place} b{} end", id.index());
            self.terminator(body, &block.terminator, is_parser);
        }
        self.place = place;
    }

    fn block(&mut self, body: &Body, id: BlockId) {
        self.require(body.blocks.get(id).is_some(), || {
            format!("there is no block b{}", id.index())
        });
    }

    fn var(&mut self, id: VarId) -> Option<Type> {
        let ty = self.program.vars.get(id).map(|v| v.ty);
        self.require(ty.is_some(), || format!("there is no variable %{}", id.index()));
        ty
    }

    fn width_is(&mut self, id: VarId, width: u32) {
        if let Some(ty) = self.var(id) {
            self.require(ty == Type::Bits(width), || {
                format!("%{} must be bits<{width}>, but is {ty:?}", id.index())
            });
        }
    }

    fn operand(&mut self, operand: &Operand) -> Option<Type> {
        match operand {
            Operand::Var(v) => self.var(*v),
            Operand::Const(c) => Some(Type::Bits(c.width())),
        }
    }

    fn operand_is(&mut self, operand: &Operand, width: u32) {
        if let Some(ty) = self.operand(operand) {
            self.require(ty == Type::Bits(width), || {
                format!("{operand:?} must have {width} bits, but is {ty:?}")
            });
        }
    }

    fn header_id(&mut self, id: HeaderId) -> Option<&'a Header> {
        let header = self.program.headers.get(id);
        self.require(header.is_some(), || format!("there is no header h{}", id.index()));
        header
    }

    fn inst(&mut self, kind: &InstKind, is_parser: bool) {
        match kind {
            InstKind::Assign { dst, value } => self.assign(*dst, value),
            InstKind::Extract { header, varbit_bits } => {
                self.require(is_parser, || "extract outside a parser".into());
                if let Some(h) = self.header_id(*header) {
                    let varbit = self.program.header_types.get(h.ty).and_then(HeaderType::varbit_field);
                    self.require(varbit.is_some() || varbit_bits.is_none(), || {
                        "a varbit length for a header without varbit".into()
                    });
                }
                if let Some(bits) = varbit_bits {
                    self.operand_is(bits, 32);
                }
            }
            InstKind::Lookahead { dst, .. } => {
                self.require(is_parser, || "lookahead outside a parser".into());
                self.var(*dst);
            }
            InstKind::Advance { bits } => {
                self.require(is_parser, || "advance outside a parser".into());
                self.operand_is(bits, 32);
            }
            InstKind::PacketLength { dst } => {
                self.require(is_parser, || "packet_length outside a parser".into());
                self.width_is(*dst, 32);
            }
            InstKind::Emit { header } => {
                self.require(!is_parser, || "emit in a parser".into());
                self.header_id(*header);
            }
            InstKind::Call(call) => self.call(call),
            InstKind::Mark(Mark::EnterAction(a)) => {
                self.require(self.program.actions.get(*a).is_some(), || {
                    format!("there is no action {a:?}")
                });
            }
            InstKind::Mark(_) => {}
        }
    }

    fn call(&mut self, call: &Call) {
        if let Some(x) = call.instance {
            let instance = self.program.externs.get(x);
            self.require(instance.is_some(), || format!("there is no extern instance {x:?}"));
            let has_closure = |x: &ExternInstance| x.methods.iter().any(|m| m.closure == call.closure);
            self.require(call.closure == 0 || instance.is_some_and(has_closure), || {
                format!("extern instance {x:?} has no closure {}", call.closure)
            });
        }
        for argument in &call.arguments {
            match &argument.value {
                ArgumentValue::In(leaves) => {
                    for leaf in leaves {
                        match leaf {
                            InLeaf::Value(o) => {
                                self.operand(o);
                            }
                            InLeaf::Header(h) => {
                                self.header_id(*h);
                            }
                        }
                    }
                }
                ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => {
                    for &v in vars {
                        self.var(v);
                    }
                }
                ArgumentValue::Extern(x) => {
                    self.require(self.program.externs.get(*x).is_some(), || {
                        format!("there is no extern instance {x:?}")
                    });
                }
                ArgumentValue::String(_) | ArgumentValue::Packet => {}
            }
        }
        for &v in &call.results {
            self.var(v);
        }
        if let Some(entry) = call.entry {
            self.width_is(entry, 32);
        }
    }

    fn assign(&mut self, dst: VarId, value: &Rvalue) {
        let Some(target) = self.var(dst) else { return };
        let types: Vec<Option<Type>> = value.operands().map(|o| self.operand(o)).collect();
        if types.iter().any(Option::is_none) {
            return;
        }
        let types: Vec<Type> = types.into_iter().flatten().collect();
        let widths: Vec<u32> = types.iter().map(|t| t.width()).collect();
        let w = target.width();
        // A varbit may also be given a constant of at most its width: its bits and their number.
        let fits_varbit =
            |o: &Operand| matches!((target, o), (Type::Varbit(max), Operand::Const(c)) if c.width() <= max);
        let good = match value {
            Rvalue::Use(a) => types[0] == target || fits_varbit(a),
            Rvalue::Unary(..) => types[0] == target,
            Rvalue::Binary(op, ..) => match op {
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::LtSigned | BinaryOp::LeSigned => {
                    w == 1 && widths[0] == widths[1]
                }
                BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => widths[0] == w,
                BinaryOp::Concat => widths[0] + widths[1] == w,
                _ => widths[0] == w && widths[1] == w,
            },
            Rvalue::Slice { hi, lo, .. } => lo <= hi && *hi < widths[0] && hi - lo + 1 == w,
            Rvalue::Insert { hi, lo, .. } => lo <= hi && *hi < w && widths[0] == w && hi - lo + 1 == widths[1],
            Rvalue::ZeroExtend(_) | Rvalue::SignExtend(_) => true,
            Rvalue::Mux { then, otherwise, .. } => {
                widths[0] == 1
                    && (types[1] == target || fits_varbit(then))
                    && (types[2] == target || fits_varbit(otherwise))
            }
            Rvalue::VarbitEq(..) => w == 1,
        };
        self.require(good, || {
            format!("%{} of {target:?} = {value:?} with operands of {types:?}", dst.index())
        });
    }

    fn terminator(&mut self, body: &Body, terminator: &'a Terminator, is_parser: bool) {
        for target in terminator.targets() {
            self.block(body, target);
        }
        match terminator {
            Terminator::Goto(_) => {}
            Terminator::Branch { condition, .. } => self.operand_is(condition, 1),
            Terminator::Switch { value, cases, .. } => {
                let ty = self.operand(value);
                let mut seen = HashSet::new();
                for (case, _) in cases {
                    self.require(ty.is_none_or(|t| t.width() == case.width()), || {
                        format!("case {case:?} has not the width of the value")
                    });
                    self.require(seen.insert(case), || format!("case {case:?} stands twice"));
                }
            }
            Terminator::Select { keys, cases, .. } => self.select(keys, cases, is_parser),
            Terminator::Lookup(l) => self.lookup(l),
            Terminator::Accept | Terminator::Reject => {
                self.require(is_parser, || "a control cannot accept or reject".into())
            }
            Terminator::Return => self.require(!is_parser, || "a parser cannot return".into()),
            Terminator::Exit(_) => self.error("only a pipeline has exits"),
        }
    }

    fn select(&mut self, keys: &[Operand], cases: &[SelectCase], is_parser: bool) {
        self.require(is_parser, || "select outside a parser".into());
        let widths: Vec<u32> = keys.iter().filter_map(|k| self.operand(k)).map(Type::width).collect();
        for case in cases {
            let mut at = 0;
            for pattern in &case.patterns {
                let width = widths.get(at).copied();
                let check = |s: &mut Self, o: &Operand| {
                    if let Some(w) = width {
                        s.operand_is(o, w);
                    }
                };
                match pattern {
                    Pattern::Any => {}
                    Pattern::Exact(a) => check(self, a),
                    Pattern::Mask(a, b) | Pattern::Range(a, b, _) => {
                        check(self, a);
                        check(self, b);
                    }
                    Pattern::ValueSet(v) => {
                        let Some(set) = self.program.value_sets.get(*v) else {
                            self.error(format!("there is no value set v{}", v.index()));
                            continue;
                        };
                        at += set.fields.len().saturating_sub(1);
                    }
                }
                at += 1;
            }
            self.require(at == keys.len(), || {
                format!("a case with patterns for {at} of {} keys", keys.len())
            });
        }
    }

    fn lookup(&mut self, l: &Lookup) {
        self.width_is(l.hit, 1);
        self.width_is(l.action, 32);
        self.width_is(l.entry, 32);
        let Some(table) = self.program.tables.get(l.table) else {
            self.error(format!("there is no table t{}", l.table.index()));
            return;
        };
        self.require(table.keys.len() == l.keys.len(), || {
            format!("{} keys, but the table has {}", l.keys.len(), table.keys.len())
        });
        for (key, k) in l.keys.iter().zip(&table.keys) {
            self.operand_is(key, k.width);
        }
    }
}
