//! The IR as text. [`crate::parse::parse`] reads it back.
//!
//! One item per line. Things are numbered by kind: `%3` a variable, `h3` a header, `t3` a table,
//! `x3` an extern instance, `a3` an action, `v3` a value set, `e3` an enum, `y3` a header type,
//! `b3` a basic block. After a variable's number its name stands for people, `%3:hdr.ipv4.ttl`;
//! only the number counts. `@12:5` after an instruction is its line and column, `@1/12:5` in file
//! 1.

use crate::bits::Bits;
use crate::program::*;
use std::fmt::{self, Write};

/// The whole program as text.
#[must_use]
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = Printer::new(program, &mut out).program();
    out
}

/// The same without files, lines and columns: equal for two programs that differ in nothing that
/// packets or control planes could tell, such as comments.
#[must_use]
pub fn print_without_places(program: &Program) -> String {
    let mut out = String::new();
    let mut printer = Printer::new(program, &mut out);
    printer.places = false;
    let _ = printer.program();
    out
}

/// One body as text, e.g. for a message about it.
#[must_use]
pub fn print_body(program: &Program, body: &Body) -> String {
    let mut out = String::new();
    let _ = Printer::new(program, &mut out).body(body);
    out
}

/// A string in quotes, with escapes that the parser undoes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

struct Printer<'a> {
    program: &'a Program,
    out: &'a mut String,
    places: bool,
}

impl<'a> Printer<'a> {
    fn new(program: &'a Program, out: &'a mut String) -> Self {
        let places = true;
        Printer { program, out, places }
    }
}

fn bits(value: &Bits) -> String {
    format!("{}w{:#x}", value.width(), value)
}

fn type_text(ty: Type) -> String {
    match ty {
        Type::Bits(w) => format!("bits<{w}>"),
        Type::Varbit(w) => format!("varbit<{w}>"),
    }
}

fn display_text(display: Display) -> String {
    match display {
        Display::Unsigned => "unsigned".into(),
        Display::Signed => "signed".into(),
        Display::Bool => "bool".into(),
        Display::Error => "error".into(),
        Display::Enum(id) => format!("e{}", id.index()),
    }
}

pub(crate) fn binary_name(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "div",
        BinaryOp::Mod => "mod",
        BinaryOp::AddSat => "add_sat",
        BinaryOp::SubSat => "sub_sat",
        BinaryOp::AddSatSigned => "add_sat_signed",
        BinaryOp::SubSatSigned => "sub_sat_signed",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
        BinaryOp::Shl => "shl",
        BinaryOp::Shr => "shr",
        BinaryOp::ShrSigned => "shr_signed",
        BinaryOp::Eq => "eq",
        BinaryOp::Ne => "ne",
        BinaryOp::Lt => "lt",
        BinaryOp::Le => "le",
        BinaryOp::LtSigned => "lt_signed",
        BinaryOp::LeSigned => "le_signed",
        BinaryOp::Concat => "concat",
    }
}

/// Every binary operator, for the parser.
pub(crate) const BINARY_OPS: &[BinaryOp] = &[
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::AddSat,
    BinaryOp::SubSat,
    BinaryOp::AddSatSigned,
    BinaryOp::SubSatSigned,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::ShrSigned,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::LtSigned,
    BinaryOp::LeSigned,
    BinaryOp::Concat,
];

impl Printer<'_> {
    fn var(&self, id: VarId) -> String {
        let name = self.program.vars.get(id).map_or("", |v| v.name.as_str());
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "._$[]".contains(c)) {
            format!("%{}", id.index())
        } else {
            format!("%{}:{name}", id.index())
        }
    }

    fn vars(&self, ids: &[VarId]) -> String {
        ids.iter().map(|&v| self.var(v)).collect::<Vec<_>>().join(", ")
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Var(v) => self.var(*v),
            Operand::Const(c) => bits(c),
        }
    }

    fn loc(&self, loc: Loc) -> String {
        match (loc.line, loc.file) {
            _ if !self.places => String::new(),
            (0, _) => String::new(),
            (_, 0) => format!(" @{}:{}", loc.line, loc.column),
            (_, file) => format!(" @{file}/{}:{}", loc.line, loc.column),
        }
    }

    fn program(&mut self) -> fmt::Result {
        let p = self.program;
        writeln!(self.out, "weir 2 target {}", quoted(&p.target))?;
        for pipeline in &p.pipelines {
            writeln!(self.out, "pipeline {}", quoted(pipeline))?;
        }
        for file in p.files.iter().filter(|_| self.places) {
            writeln!(self.out, "file {}", quoted(file))?;
        }
        for error in &p.errors {
            writeln!(self.out, "error {}", quoted(error))?;
        }
        for (_, e) in p.enums.iter() {
            write!(self.out, "enum {} {{", quoted(&e.name))?;
            for (i, member) in e.members.iter().enumerate() {
                write!(self.out, " {}", quoted(member))?;
                if let Some(values) = &e.values {
                    write!(self.out, " = {}", bits(&values[i]))?;
                }
            }
            writeln!(self.out, " }}")?;
        }
        for (_, t) in p.header_types.iter() {
            write!(self.out, "header_type {} {{", quoted(&t.name))?;
            for f in &t.fields {
                write!(
                    self.out,
                    " {} : {} {}",
                    quoted(&f.name),
                    type_text(f.ty),
                    display_text(f.display)
                )?;
                self.control(&f.control)?;
                self.annotations(&f.annotations)?;
            }
            write!(self.out, " }}")?;
            self.annotations(&t.annotations)?;
            writeln!(self.out)?;
        }
        for (id, v) in p.vars.iter() {
            let kind = match v.kind {
                VarKind::Shared => "shared".into(),
                VarKind::Local => "local".into(),
                VarKind::Temporary => "temporary".into(),
                VarKind::FieldCopy { valid } => format!("field_copy {}", valid.index()),
                VarKind::Field { header, index } => format!("field h{} {index}", header.index()),
                VarKind::Valid { header } => format!("valid h{}", header.index()),
                VarKind::ActionParameter => "action_parameter".into(),
            };
            writeln!(
                self.out,
                "var %{} {} : {} {} {kind}",
                id.index(),
                quoted(&v.name),
                type_text(v.ty),
                display_text(v.display)
            )?;
        }
        for (id, h) in p.headers.iter() {
            writeln!(
                self.out,
                "header h{} {} : y{} valid {} fields ({})",
                id.index(),
                quoted(&h.name),
                h.ty.index(),
                self.var(h.valid),
                self.vars(&h.fields)
            )?;
        }
        for s in &p.shared {
            self.shared(s)?;
        }
        for (_, s) in p.value_sets.iter() {
            write!(self.out, "value_set {} size {} (", quoted(&s.name), s.size)?;
            self.keys(&s.fields)?;
            write!(self.out, ")")?;
            self.annotations(&s.annotations)?;
            writeln!(self.out, "{}", self.loc(s.loc))?;
        }
        for (_, a) in p.actions.iter() {
            self.action(a)?;
        }
        for (_, x) in p.externs.iter() {
            self.extern_instance(x)?;
        }
        for (_, t) in p.tables.iter() {
            self.table(t)?;
        }
        for named in &p.type_info {
            write!(self.out, "type {} = {}", quoted(&named.name), type_spec(&named.spec))?;
            self.annotations(&named.annotations)?;
            writeln!(self.out)?;
        }
        write!(self.out, "main")?;
        self.annotations(&p.annotations)?;
        writeln!(self.out)?;
        for b in &p.blocks {
            let kind = match b.kind {
                BlockKind::Parser => "parser",
                BlockKind::Control => "control",
            };
            writeln!(
                self.out,
                "block {} {kind} {}{} {{",
                quoted(&b.role),
                quoted(&b.name),
                self.loc(b.loc)
            )?;
            self.body(&b.body)?;
            writeln!(self.out, "}}")?;
        }
        Ok(())
    }

    fn shared(&mut self, s: &Shared) -> fmt::Result {
        let headers: Vec<String> = s.headers.iter().map(|h| format!("h{}", h.index())).collect();
        writeln!(
            self.out,
            "shared {} {} : {} headers ({}) {{",
            quoted(&s.role),
            quoted(&s.name),
            type_spec(&s.ty),
            headers.join(", ")
        )?;
        for leaf in &s.leaves {
            write!(self.out, "  {} {}", self.var(leaf.var), quoted(&leaf.path))?;
            self.annotations(&leaf.annotations)?;
            writeln!(self.out)?;
        }
        writeln!(self.out, "}}")
    }

    fn annotations(&mut self, list: &[Annotation]) -> fmt::Result {
        for a in list {
            write!(self.out, " #{}", quoted(&a.name))?;
            match &a.body {
                AnnotationBody::Empty => {}
                AnnotationBody::Text { text, tokens } => {
                    let tokens: Vec<String> = tokens.iter().map(|t| quoted(t)).collect();
                    write!(self.out, "({} : {})", quoted(text), tokens.join(" "))?;
                }
                AnnotationBody::Expressions(values) => {
                    let values: Vec<String> = values.iter().map(annotation_value).collect();
                    write!(self.out, "[{}]", values.join(" "))?;
                }
                AnnotationBody::KeyValues(pairs) => {
                    let pairs: Vec<String> = pairs
                        .iter()
                        .map(|(k, v)| format!("{} = {}", quoted(k), annotation_value(v)))
                        .collect();
                    write!(self.out, "{{{}}}", pairs.join(" "))?;
                }
            }
            write!(self.out, "{}", self.loc(a.loc))?;
        }
        Ok(())
    }

    fn control(&mut self, control: &ControlType) -> fmt::Result {
        if let Some(name) = &control.type_name {
            write!(self.out, " type {}", quoted(name))?;
        }
        if let Some(t) = &control.translation {
            let width = t.sdn_width.map_or("string".to_string(), |w| w.to_string());
            write!(self.out, " translation {} {width}", quoted(&t.uri))?;
            if !t.mappings.is_empty() {
                let mappings = t
                    .mappings
                    .iter()
                    .map(|(text, value)| format!("{} {}", quoted(text), bits(value)));
                write!(self.out, " mapped ({})", mappings.collect::<Vec<_>>().join(" "))?;
            }
        }
        Ok(())
    }

    fn keys(&mut self, keys: &[Key]) -> fmt::Result {
        for key in keys {
            write!(
                self.out,
                " {} : {} {}{} {}",
                quoted(&key.name),
                key.width,
                key.match_kind.name(),
                key.own_kind
                    .iter()
                    .map(|k| format!(" {}", quoted(k)))
                    .collect::<String>(),
                display_text(key.display)
            )?;
            self.control(&key.control)?;
            self.annotations(&key.annotations)?;
            write!(self.out, "{}", self.loc(key.loc))?;
        }
        Ok(())
    }

    fn action(&mut self, a: &Action) -> fmt::Result {
        write!(self.out, "action {} (", quoted(&a.name))?;
        for p in &a.parameters {
            write!(
                self.out,
                " {} : {} {}",
                quoted(&p.name),
                p.width,
                display_text(p.display)
            )?;
            self.control(&p.control)?;
            self.annotations(&p.annotations)?;
        }
        write!(self.out, ")")?;
        self.annotations(&a.annotations)?;
        writeln!(self.out, "{}", self.loc(a.loc))
    }

    fn extern_instance(&mut self, x: &ExternInstance) -> fmt::Result {
        let types: Vec<String> = x.type_arguments.iter().map(type_spec).collect();
        let arguments: Vec<String> = x
            .arguments
            .iter()
            .map(|(n, v)| format!("{} = {}", quoted(n), const_value(v)))
            .collect();
        write!(
            self.out,
            "extern {} {}<{}>({})",
            quoted(&x.name),
            quoted(&x.type_name),
            types.join(" "),
            arguments.join(" ")
        )?;
        self.annotations(&x.annotations)?;
        writeln!(self.out, "{} {{", self.loc(x.loc))?;
        for m in &x.methods {
            let parameters: Vec<String> = m
                .parameters
                .iter()
                .map(|(n, v)| format!("{} ({})", quoted(n), self.vars(v)))
                .collect();
            let closure = closure(m.closure);
            writeln!(
                self.out,
                "  method {}{closure} ({}) results ({}) {{",
                quoted(&m.name),
                parameters.join(" "),
                self.vars(&m.results)
            )?;
            self.body(&m.body)?;
            writeln!(self.out, "  }}")?;
        }
        writeln!(self.out, "}}")
    }

    fn table(&mut self, t: &Table) -> fmt::Result {
        write!(self.out, "table {}", quoted(&t.name))?;
        self.annotations(&t.annotations)?;
        writeln!(self.out, "{} {{", self.loc(t.loc))?;
        write!(self.out, "  key (")?;
        self.keys(&t.keys)?;
        writeln!(self.out, ")")?;
        for a in &t.actions {
            let scope = match (a.default_only, a.table_only) {
                (true, _) => " default_only",
                (_, true) => " table_only",
                _ => "",
            };
            write!(
                self.out,
                "  action a{} ({}){scope}",
                a.action.index(),
                self.vars(&a.parameters)
            )?;
            for x in &a.executes {
                write!(self.out, " executes x{}", x.index())?;
            }
            self.annotations(&a.annotations)?;
            writeln!(self.out)?;
        }
        let constant = if t.const_default { "const " } else { "" };
        writeln!(self.out, "  {constant}default {}", action_call(&t.default_action))?;
        if let Some(size) = t.size {
            writeln!(self.out, "  size {size}")?;
        }
        if let Some(x) = t.implementation {
            writeln!(self.out, "  implementation x{}", x.index())?;
        }
        for x in &t.direct {
            writeln!(self.out, "  direct x{}", x.index())?;
        }
        if t.idle_timeout {
            writeln!(self.out, "  idle_timeout")?;
        }
        for (name, value) in &t.properties {
            writeln!(self.out, "  property {} = {}", quoted(name), const_value(value))?;
        }
        if t.const_entries {
            writeln!(self.out, "  const_entries")?;
        }
        for e in &t.entries {
            let matches: Vec<String> = e.matches.iter().map(key_match).collect();
            let constant = if e.is_const { "const " } else { "" };
            write!(
                self.out,
                "  {constant}entry {} ({}) {}",
                e.priority,
                matches.join(", "),
                action_call(&e.action)
            )?;
            self.annotations(&e.annotations)?;
            writeln!(self.out, "{}", self.loc(e.loc))?;
        }
        writeln!(self.out, "}}")
    }

    fn body(&mut self, body: &Body) -> fmt::Result {
        if let Some(error) = body.error {
            writeln!(self.out, "  error {}", self.var(error))?;
        }
        if let Some(block) = body.on_error {
            writeln!(self.out, "  on_error b{}", block.index())?;
        }
        for (id, block) in body.blocks.iter() {
            match &block.state {
                Some(state) => writeln!(self.out, "  b{} state {}:", id.index(), quoted(state))?,
                None => writeln!(self.out, "  b{}:", id.index())?,
            }
            for inst in &block.insts {
                let text = self.inst(&inst.kind);
                writeln!(self.out, "    {text}{}", self.loc(inst.loc))?;
            }
            let text = self.terminator(&block.terminator);
            writeln!(self.out, "    {text}{}", self.loc(block.loc))?;
        }
        Ok(())
    }

    fn inst(&self, kind: &InstKind) -> String {
        match kind {
            InstKind::Assign { dst, value } => format!("{} = {}", self.var(*dst), self.rvalue(value)),
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => format!("extract h{}", header.index()),
            InstKind::Extract {
                header,
                varbit_bits: Some(bits),
            } => format!("extract h{} varbit {}", header.index(), self.operand(bits)),
            InstKind::Lookahead { dst, offset } => format!("lookahead {} {offset}", self.var(*dst)),
            InstKind::Advance { bits } => format!("advance {}", self.operand(bits)),
            InstKind::PacketLength { dst } => format!("packet_length {}", self.var(*dst)),
            InstKind::Emit { header } => format!("emit h{}", header.index()),
            InstKind::Call(call) => self.call(call),
            InstKind::Mark(Mark::EnterAction(a)) => format!("enter_action a{}", a.index()),
            InstKind::Mark(Mark::Enter(name)) => format!("enter {}", quoted(name)),
            InstKind::Mark(Mark::Leave) => "leave".into(),
            InstKind::Mark(Mark::ParserBlocks(count)) => format!("parser_blocks {count}"),
        }
    }

    fn rvalue(&self, value: &Rvalue) -> String {
        let o = |x: &Operand| self.operand(x);
        match value {
            Rvalue::Use(a) => o(a),
            Rvalue::Unary(UnaryOp::Not, a) => format!("not {}", o(a)),
            Rvalue::Unary(UnaryOp::Neg, a) => format!("neg {}", o(a)),
            Rvalue::Binary(op, a, b) => format!("{} {}, {}", binary_name(*op), o(a), o(b)),
            Rvalue::Slice { value, hi, lo } => format!("slice {} [{hi}:{lo}]", o(value)),
            Rvalue::Insert { base, hi, lo, value } => format!("insert {} [{hi}:{lo}] {}", o(base), o(value)),
            Rvalue::ZeroExtend(a) => format!("zero_extend {}", o(a)),
            Rvalue::SignExtend(a) => format!("sign_extend {}", o(a)),
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } => format!("mux {}, {}, {}", o(condition), o(then), o(otherwise)),
            Rvalue::VarbitEq(a, b) => format!("varbit_eq {}, {}", o(a), o(b)),
        }
    }

    fn call(&self, call: &Call) -> String {
        let mut out = String::from("call ");
        if let Some(x) = call.instance {
            let _ = write!(out, "x{} ", x.index());
        }
        let _ = write!(out, "{}", quoted(&call.function));
        if !call.type_arguments.is_empty() {
            let types: Vec<String> = call.type_arguments.iter().map(type_spec).collect();
            let _ = write!(out, "<{}>", types.join(" "));
        }
        let arguments: Vec<String> = call
            .arguments
            .iter()
            .map(|a| format!("{} = {}", quoted(&a.name), self.argument(&a.value)))
            .collect();
        let _ = write!(out, "({})", arguments.join(" "));
        if !call.results.is_empty() {
            let _ = write!(out, " results ({})", self.vars(&call.results));
        }
        if let Some(entry) = call.entry {
            let _ = write!(out, " entry {}", self.var(entry));
        }
        out.push_str(&closure(call.closure));
        if call.is_pure {
            out.push_str(" pure");
        }
        if let Some(calculation) = call.calculation {
            let _ = write!(out, " calculation {calculation}");
        }
        match call.execution {
            Execution::Inline => {}
            Execution::Async(AsyncCall { order, full }) => {
                let _ = write!(out, " async order {}", order.word());
                if let Some(full) = full {
                    let _ = write!(out, " full {}", full.word());
                }
            }
            Execution::Begin(_) => out.push_str(" begin"),
            Execution::Finish(_) => out.push_str(" finish"),
        }
        out
    }

    fn argument(&self, value: &ArgumentValue) -> String {
        match value {
            ArgumentValue::In(leaves) => {
                let leaves: Vec<String> = leaves
                    .iter()
                    .map(|l| match l {
                        InLeaf::Value(o) => self.operand(o),
                        InLeaf::Header(h) => format!("h{}", h.index()),
                    })
                    .collect();
                format!("in ({})", leaves.join(", "))
            }
            ArgumentValue::Out(vars) => format!("out ({})", self.vars(vars)),
            ArgumentValue::InOut(vars) => format!("inout ({})", self.vars(vars)),
            ArgumentValue::String(s) => quoted(s),
            ArgumentValue::Extern(x) => format!("x{}", x.index()),
            ArgumentValue::Packet => "packet".into(),
        }
    }

    fn terminator(&self, terminator: &Terminator) -> String {
        let b = |id: &BlockId| format!("b{}", id.index());
        match terminator {
            Terminator::Goto(to) => format!("goto {}", b(to)),
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => format!("branch {} {} {}", self.operand(condition), b(then), b(otherwise)),
            Terminator::Switch { value, cases, default } => {
                let cases: Vec<String> = cases.iter().map(|(v, to)| format!("{} : {}", bits(v), b(to))).collect();
                format!(
                    "switch {} {{ {} }} {}",
                    self.operand(value),
                    cases.join(" "),
                    b(default)
                )
            }
            Terminator::Select { keys, cases, default } => {
                let keys: Vec<String> = keys.iter().map(|k| self.operand(k)).collect();
                let cases: Vec<String> = cases
                    .iter()
                    .map(|c| {
                        let patterns: Vec<String> = c.patterns.iter().map(|p| self.pattern(p)).collect();
                        format!("({}) : {}{}", patterns.join(", "), b(&c.target), self.loc(c.loc))
                    })
                    .collect();
                format!("select ({}) {{ {} }} {}", keys.join(", "), cases.join(" "), b(default))
            }
            Terminator::Lookup(l) => {
                let keys: Vec<String> = l.keys.iter().map(|k| self.operand(k)).collect();
                format!(
                    "lookup t{} ({}) hit {} action {} entry {} {}",
                    l.table.index(),
                    keys.join(", "),
                    self.var(l.hit),
                    self.var(l.action),
                    self.var(l.entry),
                    b(&l.next)
                )
            }
            Terminator::Accept => "accept".into(),
            Terminator::Reject => "reject".into(),
            Terminator::Return => "return".into(),
            Terminator::Exit(exit) => format!("exit {exit}"),
            Terminator::Suspend(next) => format!("suspend {}", b(next)),
        }
    }

    fn pattern(&self, pattern: &Pattern) -> String {
        match pattern {
            Pattern::Any => "_".into(),
            Pattern::Exact(a) => self.operand(a),
            Pattern::Mask(a, b) => format!("mask {} {}", self.operand(a), self.operand(b)),
            Pattern::Range(a, b, false) => format!("range {} {}", self.operand(a), self.operand(b)),
            Pattern::Range(a, b, true) => format!("range_signed {} {}", self.operand(a), self.operand(b)),
            Pattern::ValueSet(v) => format!("v{}", v.index()),
        }
    }
}

fn annotation_value(value: &AnnotationValue) -> String {
    match value {
        AnnotationValue::String(s) => quoted(s),
        AnnotationValue::Int(v) => v.to_string(),
        AnnotationValue::Bool(v) => v.to_string(),
    }
}

fn action_call(call: &ActionCall) -> String {
    let arguments: Vec<String> = call.arguments.iter().map(bits).collect();
    format!("{} ({})", call.action, arguments.join(", "))
}

fn key_match(m: &KeyMatch) -> String {
    match m {
        KeyMatch::Exact(v) => format!("exact {}", bits(v)),
        KeyMatch::Lpm { value, prefix_length } => format!("lpm {} {prefix_length}", bits(value)),
        KeyMatch::Ternary { value, mask } => format!("ternary {} {}", bits(value), bits(mask)),
        KeyMatch::Range { low, high } => format!("range {} {}", bits(low), bits(high)),
        KeyMatch::Optional(Some(v)) => format!("optional {}", bits(v)),
        KeyMatch::Optional(None) => "optional _".into(),
    }
}

fn const_value(value: &ConstValue) -> String {
    match value {
        ConstValue::Bits(b) => bits(b),
        ConstValue::Int(v) => format!("int {v}"),
        ConstValue::Bool(b) => b.to_string(),
        ConstValue::String(s) => quoted(s),
        ConstValue::Enum { enum_name, member } => format!("enum {} {}", quoted(enum_name), quoted(member)),
        ConstValue::Extern(x) => format!("x{}", x.index()),
        ConstValue::List(values) => format!("[{}]", values.iter().map(const_value).collect::<Vec<_>>().join(" ")),
    }
}

/// A type on one line.
pub(crate) fn type_spec(spec: &TypeSpec) -> String {
    let fields = |list: &[(String, TypeSpec)]| {
        list.iter()
            .map(|(n, t)| format!("{} {}", quoted(n), type_spec(t)))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match spec {
        TypeSpec::Opaque(s) => format!("opaque {}", quoted(s)),
        TypeSpec::Void => "void".into(),
        TypeSpec::Bool => "bool".into(),
        TypeSpec::Bit(w) => format!("bit {w}"),
        TypeSpec::Int(w) => format!("int {w}"),
        TypeSpec::Varbit(w) => format!("varbit {w}"),
        TypeSpec::Error => "error".into(),
        TypeSpec::String => "string".into(),
        TypeSpec::Tuple(parts) => format!("tuple ({})", parts.iter().map(type_spec).collect::<Vec<_>>().join(" ")),
        TypeSpec::Struct(n, f) => format!("struct {} ({})", quoted(n), fields(f)),
        TypeSpec::Header(n, f) => format!("header {} ({})", quoted(n), fields(f)),
        TypeSpec::HeaderUnion(n, f) => format!("header_union {} ({})", quoted(n), fields(f)),
        TypeSpec::Stack(t, n) => format!("stack {n} {}", type_spec(t)),
        TypeSpec::Enum(n, m) => format!(
            "enum {} ({})",
            quoted(n),
            m.iter().map(|m| quoted(m)).collect::<Vec<_>>().join(" ")
        ),
        TypeSpec::SerializableEnum(n, w, m) => {
            format!(
                "serializable_enum {} {w} ({})",
                quoted(n),
                m.iter()
                    .map(|(m, v)| format!("{} {}", quoted(m), bits(v)))
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        }
        TypeSpec::New(n, t, None) => format!("new {} ({})", quoted(n), type_spec(t)),
        TypeSpec::New(n, t, Some((uri, width))) => {
            let width = width.map_or("string".to_string(), |w| w.to_string());
            format!(
                "new {} ({}) translation {} {width}",
                quoted(n),
                type_spec(t),
                quoted(uri)
            )
        }
    }
}

/// The number of a closure as text; nothing for the first.
fn closure(number: u32) -> String {
    if number == 0 {
        String::new()
    } else {
        format!(" closure {number}")
    }
}
