//! The invariants of the IR, checked.
//!
//! 1. Every id names something.
//! 2. Widths agree: an assignment with its operation, operands with each other, keys with tables,
//!    patterns with keys, parameters with actions, matches with keys.
//! 3. Conditions, validities and `hit` have 1 bit, `action` and `entry` 32.
//! 4. A header's fields are as many and as wide as its type says, and their variables know it.
//! 5. Packet operations stand where they may: extraction in parsers, `emit` in controls.
//! 6. A parser has an `error` variable and an `on_error` block; only parsers accept and reject,
//!    only controls return.
//! 7. Slices lie within their values; switch cases are distinct.
//! 8. An entry's action may be in an entry, a default action may be a default; a match is of its
//!    key's kind, and has no bits that it does not compare.
//! 9. A variable has one owner: a field or validity its header, a shared variable its group, the
//!    data of an action one table. All others stand in one block only.
//! 10. A varbit is copied, extracted, compared and passed to calls, nothing else.
//! 11. A method neither looks up nor emits, and does not call itself.
//! 12. The first error is `NoError`; those that packet operations fail with are there.
//! 13. A lookup writes four different things; a place is in a file that the program names.
//!
//! Of saved programs also:
//!
//! 14. The data of an action are read only where a lookup has chosen it.
//! 15. A parser's `error` is a local variable.
//! 16. A shared variable is in a group, and with a header all its fields but padding. The members
//!     of a group that are fields are named as in the header's type.
//! 17. A lookup writes `hit`, `action` and `entry` to local variables.

mod action_data;
mod errors;
mod methods;
mod owners;
mod tables;

pub use owners::used_by_block;

use crate::parse::MAX_WIDTH;
use crate::program::*;
use std::collections::HashSet;
use thiserror::Error;

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {message}")]
pub struct VerifyError {
    /// Which block, table or item.
    pub place: String,
    /// The violation.
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
        failures: program.errors.iter().map(String::as_str).collect(),
    };
    verifier.program();
    if verifier.errors.is_empty() {
        verifier.owners();
    }
    match verifier.errors.is_empty() {
        true => Ok(()),
        false => Err(verifier.errors),
    }
}

/// As [`verify`], for a program that no compiler has made in this process: no method of it calls
/// itself either. Where one does in a program that was compiled, the architecture says so, with the
/// place.
///
/// # Errors
/// All rules that are broken.
pub fn verify_saved(program: &Program) -> Result<(), Vec<VerifyError>> {
    verify(program)?;
    let mut verifier = Verifier {
        program,
        errors: Vec::new(),
        place: String::new(),
        failures: HashSet::new(),
    };
    verifier.recursion();
    verifier.action_data();
    verifier.saved();
    match verifier.errors.is_empty() {
        true => Ok(()),
        false => Err(verifier.errors),
    }
}

struct Verifier<'a> {
    program: &'a Program,
    errors: Vec<VerifyError>,
    place: String,
    /// Members of `error`.
    failures: HashSet<&'a str>,
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
        self.at("errors");
        let none = p.errors.first().is_none_or(|e| e == "NoError");
        self.require(none, || "the first error is not `NoError`".into());
        self.require(self.failures.len() == p.errors.len(), || "an error stands twice".into());
        for (id, v) in p.vars.iter() {
            self.at(format!("variable %{} {}", id.index(), v.name));
            self.display(v.display, || "it".into());
        }
        let mut names = HashSet::new();
        for (_, t) in p.header_types.iter() {
            self.at(format!("header type {}", t.name));
            self.require(names.insert(&t.name), || "there are two of this name".into());
            self.header_type(t);
        }
        for (id, h) in p.headers.iter() {
            self.at(format!("header h{} {}", id.index(), h.name));
            self.header(id, h);
        }
        for t in &p.type_info {
            self.at(format!("type {}", t.name));
            self.type_spec(&t.spec);
        }
        for s in &p.shared {
            self.at(format!("shared {}", s.role));
            self.type_spec(&s.ty);
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
        for (_, a) in p.actions.iter() {
            self.at(format!("action {}", a.name));
            self.loc(a.loc);
            for parameter in &a.parameters {
                self.display(parameter.display, || format!("parameter {}", parameter.name));
            }
        }
        for (id, t) in p.tables.iter() {
            self.at(format!("table t{} {}", id.index(), t.name));
            self.loc(t.loc);
            self.table(t);
        }
        for (_, v) in p.value_sets.iter() {
            self.at(format!("value set {}", v.name));
            self.loc(v.loc);
            self.keys(&v.fields);
        }
        for (id, x) in p.externs.iter() {
            self.at(format!("extern x{} {}", id.index(), x.name));
            self.loc(x.loc);
            x.type_arguments.iter().for_each(|t| self.type_spec(t));
            for m in &x.methods {
                self.at(format!("extern x{} {} method {}", id.index(), x.name, m.name));
                self.method(m);
            }
        }
        for b in &p.blocks {
            self.at(format!("block {}", b.role));
            self.loc(b.loc);
            self.body(&b.body, b.kind);
        }
    }

    fn header_type(&mut self, t: &HeaderType) {
        for f in &t.fields {
            self.display(f.display, || format!("field {}", f.name));
        }
        let bits: u64 = t.fields.iter().map(|f| u64::from(f.ty.width())).sum();
        self.require(bits <= u64::from(MAX_WIDTH), || {
            format!("it has more than {MAX_WIDTH} bits")
        });
    }

    fn type_spec(&mut self, ty: &TypeSpec) {
        let bits = ty.widest_size();
        self.require(bits <= u64::from(MAX_WIDTH), || {
            format!("a type has more than {MAX_WIDTH} bits or parts")
        });
    }

    fn display(&mut self, display: Display, what: impl FnOnce() -> String) {
        if let Display::Enum(id) = display {
            self.require(self.program.enums.get(id).is_some(), || {
                format!("{} is shown as enum e{}, which is not there", what(), id.index())
            });
        }
    }

    fn extern_id(&mut self, id: ExternId) {
        self.require(self.program.externs.get(id).is_some(), || {
            format!("there is no extern instance x{}", id.index())
        });
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
            self.errors_end(body, block);
        }
        self.require(!body.blocks.is_empty(), || "a body has at least one block".into());
        for (id, block) in body.blocks.iter() {
            for inst in &block.insts {
                self.place = format!("{place} b{} line {}", id.index(), inst.loc.line);
                self.loc(inst.loc);
                self.inst(&inst.kind, is_parser);
            }
            self.place = format!("{place} b{} end", id.index());
            self.loc(block.loc);
            self.terminator(body, &block.terminator, is_parser);
        }
        self.place = place;
    }

    fn loc(&mut self, loc: Loc) {
        let good = loc.line == 0 || (loc.file as usize) < self.program.files.len();
        self.require(good, || {
            format!("its place is in file {}, which is not there", loc.file)
        });
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
                self.can_fail_with(&["PacketTooShort"]);
                if varbit_bits.is_some() {
                    self.can_fail_with(&["HeaderTooShort", "ParserInvalidArgument"]);
                }
                if let Some(ty) = self
                    .header_id(*header)
                    .and_then(|h| self.program.header_types.get(h.ty))
                {
                    let is_varbit = |f: &&HeaderField| matches!(f.ty, Type::Varbit(_));
                    let varbits = ty.fields.iter().filter(is_varbit).count();
                    self.require(varbits == usize::from(varbit_bits.is_some()), || {
                        format!("a header with {varbits} varbits, but {varbit_bits:?} as length of one")
                    });
                }
                if let Some(bits) = varbit_bits {
                    self.operand_is(bits, 32);
                }
            }
            InstKind::Lookahead { dst, offset } => {
                self.require(is_parser, || "lookahead outside a parser".into());
                self.can_fail_with(&["PacketTooShort"]);
                let ty = self.var(*dst);
                self.require(ty.is_none_or(|t| matches!(t, Type::Bits(_))), || {
                    format!("%{} cannot be looked ahead, as it is {ty:?}", dst.index())
                });
                self.require(*offset <= MAX_WIDTH, || format!("{offset} is too far ahead"));
            }
            InstKind::Advance { bits } => {
                self.require(is_parser, || "advance outside a parser".into());
                self.can_fail_with(&["PacketTooShort"]);
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
            InstKind::Mark(Mark::ParserBlocks(_)) => self.require(false, || "a mark of a pipeline".into()),
            InstKind::Mark(Mark::Enter(_) | Mark::Leave) => {}
        }
    }

    fn can_fail_with(&mut self, errors: &[&str]) {
        for error in errors {
            self.require(self.failures.contains(error), || {
                format!("there is no error `{error}`, which this fails with")
            });
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
        call.type_arguments.iter().for_each(|t| self.type_spec(t));
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
                ArgumentValue::Extern(x) => self.extern_id(*x),
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
        let is_bits = |t: &Type| matches!(t, Type::Bits(_));
        let may_be_varbit = match value {
            Rvalue::Use(_) | Rvalue::Mux { .. } => true,
            Rvalue::VarbitEq(..) => is_bits(&target),
            Rvalue::Unary(..)
            | Rvalue::Binary(..)
            | Rvalue::Slice { .. }
            | Rvalue::Insert { .. }
            | Rvalue::ZeroExtend(_)
            | Rvalue::SignExtend(_) => is_bits(&target) && types.iter().all(is_bits),
        };
        let good = may_be_varbit
            && match value {
                Rvalue::Use(a) => types[0] == target || fits_varbit(a),
                Rvalue::Unary(..) => types[0] == target,
                Rvalue::Binary(op, ..) => match op {
                    BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::LtSigned
                    | BinaryOp::LeSigned => w == 1 && widths[0] == widths[1],
                    BinaryOp::Shl | BinaryOp::Shr | BinaryOp::ShrSigned => widths[0] == w,
                    BinaryOp::Concat => widths[0] + widths[1] == w,
                    _ => widths[0] == w && widths[1] == w,
                },
                Rvalue::Slice { hi, lo, .. } => lo <= hi && *hi < widths[0] && hi - lo + 1 == w,
                Rvalue::Insert { hi, lo, .. } => lo <= hi && *hi < w && widths[0] == w && hi - lo + 1 == widths[1],
                Rvalue::ZeroExtend(_) | Rvalue::SignExtend(_) => true,
                Rvalue::Mux { then, otherwise, .. } => {
                    types[0] == Type::Bits(1)
                        && (types[1] == target || fits_varbit(then))
                        && (types[2] == target || fits_varbit(otherwise))
                }
                Rvalue::VarbitEq(a, b) => {
                    let is_varbit = |o: &Operand, t: Type| matches!(o, Operand::Const(_)) || !is_bits(&t);
                    w == 1 && is_varbit(a, types[0]) && is_varbit(b, types[1])
                }
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
                    self.require(ty.is_none_or(|t| t == Type::Bits(case.width())), || {
                        format!("case {case:?} has not the width of the value")
                    });
                    self.require(seen.insert(case), || format!("case {case:?} stands twice"));
                }
            }
            Terminator::Select { keys, cases, .. } => self.select(keys, cases, is_parser),
            Terminator::Lookup(l) => {
                self.require(!is_parser, || "a lookup in a parser".into());
                self.lookup(l);
            }
            Terminator::Accept | Terminator::Reject => {
                self.require(is_parser, || "a control cannot accept or reject".into())
            }
            Terminator::Return => self.require(!is_parser, || "a parser cannot return".into()),
            Terminator::Exit(_) => self.error("only a pipeline has exits"),
            Terminator::Suspend(_) => self.error("only a pipeline has packets that wait for externs"),
        }
    }

    fn select(&mut self, keys: &[Operand], cases: &[SelectCase], is_parser: bool) {
        self.require(is_parser, || "select outside a parser".into());
        let types: Vec<Option<Type>> = keys.iter().map(|k| self.operand(k)).collect();
        self.require(types.iter().flatten().all(|t| matches!(t, Type::Bits(_))), || {
            "a varbit cannot be selected by".into()
        });
        let widths: Vec<u32> = types.iter().map(|t| t.map_or(0, Type::width)).collect();
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
                        let fields: Vec<u32> = set.fields.iter().map(|f| f.width).collect();
                        let here = widths.get(at..at + fields.len());
                        self.require(here == Some(&fields), || {
                            format!(
                                "value set v{} has fields of {fields:?} bits for keys of {here:?}",
                                v.index()
                            )
                        });
                        at += fields.len();
                        continue;
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
        self.require(l.action != l.entry, || {
            "the action and the entry are one variable".into()
        });
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
