//! Basic blocks as functions of Lua.

use super::needed::Needed;
use super::{Unsupported, externs, quote};
use std::collections::BTreeSet;
use weir_ir::{
    BasicBlock, BinaryOp, Bits, Block, BlockId, Call, HeaderId, InLeaf, Inst, InstKind, Operand, Pattern, Program,
    Rvalue, SelectCase, Terminator, UnaryOp, VarId,
};

/// Translates the blocks of a parser.
pub(super) struct Code<'a> {
    program: &'a Program,
    block: &'a Block,
    needed: &'a Needed,
    /// Variables that the code names.
    vars: BTreeSet<VarId>,
    errors: Vec<Unsupported>,
}

impl<'a> Code<'a> {
    pub fn new(program: &'a Program, block: &'a Block, needed: &'a Needed) -> Self {
        Code {
            program,
            block,
            needed,
            vars: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    /// The blocks, and what the runtime has to know of them.
    ///
    /// # Errors
    /// An instruction that no parser has.
    pub fn text(mut self) -> Result<String, Vec<Unsupported>> {
        let body = &self.block.body;
        let order = body.in_order();
        let mut blocks = String::new();
        let (mut states, mut starts, mut names) = (String::new(), String::new(), BTreeSet::new());
        for id in &order {
            let basic = &body.blocks[*id];
            blocks += &self.basic_block(*id, basic);
            if let Some(state) = &basic.state {
                states += &format!(" [{}] = {},", id.index(), quote(state));
                if names.insert(state) {
                    starts += &format!(" {{ {}, {} }},", quote(state), id.index());
                }
            }
        }
        if !body.blocks[BlockId::new(0)]
            .state
            .iter()
            .any(|state| names.contains(state))
        {
            starts = format!(" {{ \"entry\", 0 }},{starts}");
        }
        self.vars.extend(body.error);
        let widths = self.vars.iter().map(|var| {
            let width = self.program.vars[*var].ty.width();
            format!(" [{}] = {width},", var.index())
        });
        let widths: String = widths.collect();
        let number =
            |name: &str, value: Option<usize>| value.map_or(String::new(), |value| format!("    {name} = {value},\n"));
        let error = number("error", body.error.map(|var| var.index()));
        let on_error = number("on_error", body.on_error.map(|id| id.index()));
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        Ok(format!(
            "{error}{on_error}    start = 0,\n    starts = {{{starts} }},\n    states = {{{states} }},\n    \
             widths = {{{widths} }},\n    blocks = {{\n{blocks}    }},\n"
        ))
    }

    fn basic_block(&mut self, id: BlockId, block: &BasicBlock) -> String {
        let mut text = format!("        [{}] = function(p, v)\n", id.index());
        let mut has_failure = false;
        for inst in &block.insts {
            let Some(line) = self.instruction(inst) else { continue };
            if inst.kind.can_fail() {
                let local = if has_failure { "" } else { "local " };
                has_failure = true;
                text += &format!("            {local}e = {line}\n            if e then return p:fail(e) end\n");
            } else {
                text += &format!("            {line}\n");
            }
        }
        text += &self.terminator(block);
        text + "        end,\n"
    }

    /// The code of an instruction: the failing ones are expressions that give the error. `None`
    /// where nothing depends on it.
    fn instruction(&mut self, inst: &Inst) -> Option<String> {
        match &inst.kind {
            InstKind::Assign { dst, value } => {
                let value = self.needed.has(*dst).then(|| self.rvalue(*dst, value))?;
                Some(format!("{} = {value}", self.var(*dst)))
            }
            InstKind::Extract { header, varbit_bits } => {
                self.use_header(*header);
                let bits = varbit_bits.as_ref().map(|bits| format!(", {}", self.operand(bits)));
                Some(format!("p:extract({}{})", header.index(), bits.unwrap_or_default()))
            }
            InstKind::Lookahead { dst, offset } => {
                let width = self.program.vars[*dst].ty.width();
                self.vars.insert(*dst);
                Some(format!("p:lookahead({}, {offset}, {width})", dst.index()))
            }
            InstKind::Advance { bits } => Some(format!("p:advance({})", self.operand(bits))),
            InstKind::PacketLength { dst } => Some(format!("{} = B.of_number(#p.bits / 8, 32)", self.var(*dst))),
            InstKind::Emit { .. } => {
                let message = "a parser that emits headers cannot be a dissector";
                self.errors.push(Unsupported::new(message, inst.loc));
                None
            }
            InstKind::Call(call) if self.needed.has_call(call) => self.call(call),
            InstKind::Call(_) | InstKind::Mark(_) => None,
        }
    }

    /// A call of an extern; `Needed` has refused those that are not known.
    fn call(&mut self, call: &Call) -> Option<String> {
        let method = externs::method(self.program, call)?;
        let mut arguments = Vec::new();
        for leaf in (0..call.arguments.len()).flat_map(|index| call.inputs(index)) {
            arguments.push(match leaf {
                InLeaf::Value(operand) => self.operand(operand),
                InLeaf::Header(id) => {
                    self.use_header(*id);
                    format!("p:bits_of({})", id.index())
                }
            });
        }
        let arguments = arguments.join(if method.is_joined { " .. " } else { ", " });
        let separator = if arguments.is_empty() { "" } else { ", " };
        let instance = call.instance?.index();
        let text = format!("p:{}({instance}{separator}{arguments})", method.function);
        Some(match call.results.first() {
            Some(result) => format!("{} = {text}", self.var(*result)),
            None => text,
        })
    }

    fn use_header(&mut self, id: HeaderId) {
        let header = &self.program.headers[id];
        self.vars.insert(header.valid);
        self.vars.extend(&header.fields);
    }

    fn var(&mut self, var: VarId) -> String {
        self.vars.insert(var);
        format!("v[{}]", var.index())
    }

    fn operand(&mut self, operand: &Operand) -> String {
        match operand {
            Operand::Var(var) => self.var(*var),
            Operand::Const(bits) => constant(bits),
        }
    }

    fn rvalue(&mut self, dst: VarId, value: &Rvalue) -> String {
        let width = self.program.vars[dst].ty.width();
        match value {
            Rvalue::Use(a) => self.operand(a),
            Rvalue::Unary(UnaryOp::Not, a) => format!("B.invert({})", self.operand(a)),
            Rvalue::Unary(UnaryOp::Neg, a) => format!("B.negate({})", self.operand(a)),
            Rvalue::Binary(operator, a, b) => {
                format!("B.{}({}, {})", function(*operator), self.operand(a), self.operand(b))
            }
            Rvalue::Slice { value, hi, lo } => format!("B.slice({}, {hi}, {lo})", self.operand(value)),
            Rvalue::Insert { base, hi, lo, value } => {
                let base = self.operand(base);
                format!("B.insert({base}, {hi}, {lo}, {})", self.operand(value))
            }
            Rvalue::ZeroExtend(a) => format!("B.zextend({}, {width})", self.operand(a)),
            Rvalue::SignExtend(a) => format!("B.sextend({}, {width})", self.operand(a)),
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } => {
                let (condition, then) = (self.operand(condition), self.operand(then));
                format!("B.mux({condition}, {then}, {})", self.operand(otherwise))
            }
            // Values of varbits have their length.
            Rvalue::VarbitEq(a, b) => format!("B.eq({}, {})", self.operand(a), self.operand(b)),
        }
    }

    fn terminator(&mut self, block: &BasicBlock) -> String {
        match &block.terminator {
            Terminator::Goto(next) => format!("            return {}\n", next.index()),
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => format!(
                "            if {} == \"1\" then return {} end\n            return {}\n",
                self.operand(condition),
                then.index(),
                otherwise.index()
            ),
            Terminator::Switch { value, cases, default } => {
                let value = self.operand(value);
                let cases = cases.iter().map(|(case, target)| {
                    format!(
                        "            if {value} == {} then return {} end\n",
                        constant(case),
                        target.index()
                    )
                });
                format!("{}            return {}\n", cases.collect::<String>(), default.index())
            }
            Terminator::Select { keys, cases, default } => {
                let keys: Vec<String> = keys.iter().map(|key| self.operand(key)).collect();
                let cases: String = cases.iter().map(|case| self.case(&keys, case)).collect();
                format!("{cases}            return {}\n", default.index())
            }
            Terminator::Accept | Terminator::Return => "            return -1\n".to_owned(),
            Terminator::Reject => "            return -2\n".to_owned(),
            Terminator::Lookup(_) | Terminator::Exit(_) | Terminator::Suspend(_) => {
                let message = "a parser that looks a table up cannot be a dissector";
                self.errors.push(Unsupported::new(message, block.loc));
                String::new()
            }
        }
    }

    fn case(&mut self, keys: &[String], case: &SelectCase) -> String {
        let mut conditions = Vec::new();
        let mut rest = keys;
        for pattern in &case.patterns {
            let count = match pattern {
                Pattern::ValueSet(id) => self.program.value_sets[*id].fields.len(),
                Pattern::Any | Pattern::Exact(_) | Pattern::Mask(..) | Pattern::Range(..) => 1,
            };
            let (matched, behind) = rest.split_at(count.min(rest.len()));
            rest = behind;
            conditions.extend(self.pattern(matched, pattern));
        }
        let target = case.target.index();
        if conditions.is_empty() {
            // A `return` is the last statement of its block.
            return format!("            do return {target} end\n");
        }
        format!("            if {} then return {target} end\n", conditions.join(" and "))
    }

    fn pattern(&mut self, keys: &[String], pattern: &Pattern) -> Option<String> {
        let keys = keys.join(", ");
        match pattern {
            Pattern::Any => None,
            Pattern::Exact(value) => Some(format!("{keys} == {}", self.operand(value))),
            Pattern::Mask(value, mask) => {
                let value = self.operand(value);
                Some(format!("B.matches({keys}, {value}, {})", self.operand(mask)))
            }
            Pattern::Range(low, high, is_signed) => {
                let name = if *is_signed { "between_signed" } else { "between" };
                let low = self.operand(low);
                Some(format!("B.{name}({keys}, {low}, {})", self.operand(high)))
            }
            Pattern::ValueSet(id) => Some(format!("p:is_member({}, {keys})", self.needed.set_number(*id))),
        }
    }
}

/// A constant as the string of its bits.
fn constant(bits: &Bits) -> String {
    let digits = (0..bits.width())
        .rev()
        .map(|index| if bits.bit(index) { '1' } else { '0' });
    format!("\"{}\"", digits.collect::<String>())
}

/// The function of `values.lua` for an operator.
fn function(operator: BinaryOp) -> &'static str {
    match operator {
        BinaryOp::Add => "add",
        BinaryOp::Sub => "sub",
        BinaryOp::Mul => "mul",
        BinaryOp::Div => "div",
        BinaryOp::Mod => "mod",
        BinaryOp::AddSat => "add_sat",
        BinaryOp::SubSat => "sub_sat",
        BinaryOp::AddSatSigned => "add_sat_signed",
        BinaryOp::SubSatSigned => "sub_sat_signed",
        BinaryOp::And => "band",
        BinaryOp::Or => "bor",
        BinaryOp::Xor => "bxor",
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
