//! From the checked tree to the pipeline IR.
//!
//! Everything that a program only says at compile time happens here: `main` is instantiated,
//! constructor parameters and type parameters get their values, and sub-parsers, sub-controls,
//! functions and actions are inlined where they are used (P4 has no recursion). Structs, headers
//! and stacks become trees of scalar variables ([`value::Place`]); what is left are basic blocks
//! over scalars.

mod annotation;
mod block;
mod call;
mod closure;
mod entry;
mod execution;
mod expr;
mod extern_call;
mod header;
mod instance;
mod operator;
mod package;
mod packet;
mod parser;
mod place;
mod property;
mod statement;
mod symmetric;
mod table;
mod validity;
mod value;

use crate::cancellation::Cancellation;
use crate::check::{Checked, DefKind};
use crate::types::{DefId, Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use value::{Entity, Place, TableState, Val};
use weir_ir::target::Target;
use weir_ir::{
    ActionId, BasicBlock, Bits, BlockId, Body, EnumId, ExternId, HeaderId, HeaderTypeId, Inst, InstKind, Loc, Operand,
    Program, Rvalue, Terminator, VarId,
};
use weir_syntax::diagnostic::{Diagnostic, Diagnostics};
use weir_syntax::source::{SourceMap, Span};

/// More instructions than this after inlining: the program would not fit anywhere.
const MAX_INSTRUCTIONS: usize = 700_000;
/// More scalars than this.
const MAX_VARIABLES: usize = 500_000;

/// Sub-parsers and sub-controls applied within each other.
const MAX_DEPTH: u32 = 64;

/// Where `return`, `exit`, `break` and `continue` go.
#[derive(Clone)]
struct Flow {
    return_to: BlockId,
    result: Option<Place>,
    result_type: Ty,
    exit_to: BlockId,
    loops: Vec<(BlockId, BlockId)>,
}

pub(crate) struct Lowerer<'a, 'c> {
    checked: &'c mut Checked<'a>,
    sources: &'c SourceMap,
    target: &'c Target,
    program: Program,
    diagnostics: Diagnostics,
    /// What each name stands for at this point.
    bindings: FxHashMap<DefId, Entity>,
    /// What each type parameter stands for at this point.
    substitution: FxHashMap<Ty, Ty>,
    globals: FxHashSet<DefId>,
    /// Codes of the program's errors.
    error_codes: FxHashMap<String, u32>,
    /// Prefix of control-plane names here; empty at the top level.
    path: String,
    /// What names begin with that control planes tell the pipelines of a switch apart by; mostly
    /// empty.
    pipeline: String,
    body: Body,
    current: BlockId,
    flow: Flow,
    loc: Loc,
    /// In a parser: where errors go.
    reject: Option<BlockId>,
    accept: Option<BlockId>,
    /// In a parser: calls that copy out where their callees reject, each with the variable that
    /// says whether the
    /// callee is running.
    rejections: Vec<(VarId, Vec<call::CopyOut>)>,
    /// In an action of a table: the table, and which of its actions.
    current_table: Option<(Rc<TableState>, usize)>,
    header_types: FxHashMap<Ty, HeaderTypeId>,
    enums: FxHashMap<DefId, EnumId>,
    actions: FxHashMap<(String, DefId), ActionId>,
    /// The other members of the union that a header belongs to.
    union_members: FxHashMap<HeaderId, Rc<Vec<HeaderId>>>,
    file_ids: FxHashMap<String, u32>,
    instructions: usize,
    exhausted: bool,
    /// Has lowering end early, as if the program were too large.
    cancellation: Cancellation,
    locs: FxHashMap<u32, Loc>,
    /// Instances made by direct application of a type.
    direct_instances: FxHashMap<(String, DefId), Rc<value::BlockInstance>>,
    /// The instance whose abstract methods are being given bodies: `this`.
    this: Option<ExternId>,
    /// The bodies that instances give to abstract methods.
    bodies: FxHashMap<ExternId, closure::Bodies<'a>>,
    /// What the bodies capture that are being lowered; the innermost is the last.
    capturing: Vec<closure::Captures>,
    depth: u32,
    /// Where each extern instance is declared, in the order of the program's.
    extern_spans: Vec<Span>,
    /// Instances with a value per table entry, and the property that attaches each.
    attached: FxHashMap<ExternId, Span>,
    direct_calls: Vec<property::DirectCall>,
    /// The innermost block with `@async` or `@sync`.
    enclosing: Option<execution::EnclosingBlock>,
}

/// Lowers the program. `None` where `main` cannot be instantiated; errors are in the diagnostics.
pub(crate) fn lower(
    checked: &mut Checked<'_>,
    sources: &SourceMap,
    target: &Target,
    cancellation: &Cancellation,
) -> (Option<Program>, Diagnostics) {
    let globals = checked.globals.values().flatten().copied().collect();
    let mut lowerer = Lowerer {
        checked,
        sources,
        target,
        program: Program {
            target: target.name.to_string(),
            ..Program::default()
        },
        diagnostics: Diagnostics::default(),
        bindings: FxHashMap::default(),
        substitution: FxHashMap::default(),
        globals,
        error_codes: FxHashMap::default(),
        path: String::new(),
        pipeline: String::new(),
        body: Body::default(),
        current: BlockId::new(0),
        flow: Flow {
            return_to: BlockId::new(0),
            result: None,
            result_type: crate::types::Types::VOID,
            exit_to: BlockId::new(0),
            loops: Vec::new(),
        },
        loc: Loc::default(),
        reject: None,
        accept: None,
        rejections: Vec::new(),
        current_table: None,
        header_types: FxHashMap::default(),
        enums: FxHashMap::default(),
        actions: FxHashMap::default(),
        union_members: FxHashMap::default(),
        file_ids: FxHashMap::default(),
        instructions: 0,
        exhausted: false,
        cancellation: cancellation.clone(),
        locs: FxHashMap::default(),
        direct_instances: FxHashMap::default(),
        this: None,
        bodies: FxHashMap::default(),
        capturing: Vec::new(),
        depth: 0,
        extern_spans: Vec::new(),
        attached: FxHashMap::default(),
        direct_calls: Vec::new(),
        enclosing: None,
    };
    let good = lowerer.package();
    let failed = !good || lowerer.diagnostics.has_errors();
    if let Some(spec) = target.control.custom_crcs {
        spec.number(&mut lowerer.program);
    }
    ((!failed).then_some(lowerer.program), lowerer.diagnostics)
}

impl<'a> Lowerer<'a, '_> {
    // ------------------------------------------------------------------------------- reporting

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    fn unsupported(&mut self, span: Span, message: impl Into<String>) -> Val {
        self.error("unsupported", span, message);
        Val::Void
    }

    fn locate(&mut self, span: Span) -> Loc {
        if let Some(&loc) = self.locs.get(&span.lo) {
            return loc;
        }
        let place = self.sources.place(span.lo);
        let next = self.program.files.len() as u32;
        let file = *self.file_ids.entry(place.file.to_string()).or_insert_with(|| {
            self.program.files.push(place.file.to_string());
            next
        });
        let loc = Loc {
            file,
            line: place.line,
            column: place.column,
        };
        self.locs.insert(span.lo, loc);
        loc
    }

    fn at<R>(&mut self, span: Span, f: impl FnOnce(&mut Self) -> R) -> R {
        let loc = self.locate(span);
        let before = std::mem::replace(&mut self.loc, loc);
        let result = f(self);
        self.loc = before;
        result
    }

    // --------------------------------------------------------------------------------- builder

    fn new_block(&mut self) -> BlockId {
        self.instructions += 1;
        // An end that is overwritten when the block is finished.
        self.body.blocks.push(BasicBlock {
            state: None,
            insts: Vec::new(),
            terminator: Terminator::Return,
            loc: self.loc,
        })
    }

    fn emit(&mut self, kind: InstKind) {
        self.instructions += 1;
        let is_too_large = self.instructions > MAX_INSTRUCTIONS || self.program.vars.len() > MAX_VARIABLES;
        if is_too_large || self.cancellation.is_cancelled() {
            self.exhausted = true;
            return;
        }
        let inst = Inst { kind, loc: self.loc };
        self.body.blocks[self.current].insts.push(inst);
    }

    /// Ends the current block and goes on in a new one that nothing reaches yet.
    fn terminate(&mut self, terminator: Terminator) {
        let loc = self.loc;
        let block = &mut self.body.blocks[self.current];
        block.terminator = terminator;
        block.loc = loc;
        self.current = self.new_block();
    }

    /// Ends the current block and goes on in `next`.
    fn terminate_to(&mut self, terminator: Terminator, next: BlockId) {
        let loc = self.loc;
        let block = &mut self.body.blocks[self.current];
        block.terminator = terminator;
        block.loc = loc;
        self.current = next;
    }

    /// Ends the current block by a branch that the program does not have: it has no place, and
    /// traces leave it out.
    fn branch_unseen(&mut self, branch: Terminator, next: BlockId) {
        let loc = std::mem::take(&mut self.loc);
        self.terminate_to(branch, next);
        self.loc = loc;
    }

    fn goto(&mut self, next: BlockId) {
        self.terminate_to(Terminator::Goto(next), next);
    }

    fn assign(&mut self, dst: VarId, value: Rvalue) {
        if let Rvalue::Use(Operand::Var(source)) = value
            && source == dst
        {
            return;
        }
        self.emit(InstKind::Assign { dst, value });
    }

    fn set(&mut self, dst: VarId, value: Operand) {
        self.assign(dst, Rvalue::Use(value));
    }

    /// The value of an operation: folded where its operands are constants, else in a new variable.
    fn compute(&mut self, value: Rvalue, width: u32) -> Operand {
        if let Some(folded) = fold(&value, width) {
            return folded;
        }
        let dst = self.temporary(width);
        self.assign(dst, value);
        Operand::Var(dst)
    }

    fn temporary(&mut self, width: u32) -> VarId {
        self.program.vars.push(weir_ir::Var {
            name: String::new(),
            ty: weir_ir::Type::Bits(width),
            display: weir_ir::Display::Unsigned,
            kind: weir_ir::VarKind::Temporary,
        })
    }

    fn binary(&mut self, op: weir_ir::BinaryOp, a: Operand, b: Operand, width: u32) -> Operand {
        self.compute(Rvalue::Binary(op, a, b), width)
    }

    fn not(&mut self, a: Operand) -> Operand {
        self.compute(Rvalue::Unary(weir_ir::UnaryOp::Not, a), 1)
    }

    fn mux(&mut self, condition: Operand, then: Operand, otherwise: Operand) -> Operand {
        let width = self.width_of(&then);
        if self.is_varbit(&then) {
            let dst = self.varbit_temporary(width);
            self.assign(
                dst,
                Rvalue::Mux {
                    condition,
                    then,
                    otherwise,
                },
            );
            return Operand::Var(dst);
        }
        self.compute(
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            },
            width,
        )
    }

    fn varbit_temporary(&mut self, width: u32) -> VarId {
        let dst = self.temporary(width);
        self.program.vars[dst].ty = weir_ir::Type::Varbit(width);
        dst
    }

    fn is_varbit(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Var(v) if matches!(self.program.vars[*v].ty, weir_ir::Type::Varbit(_)))
    }

    fn width_of(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Var(v) => self.program.vars[*v].ty.width(),
            Operand::Const(c) => c.width(),
        }
    }

    // ----------------------------------------------------------------------------------- types

    /// A type with everything put in that is known here.
    fn concrete(&mut self, ty: Ty) -> Ty {
        let resolved = self.checked.types.resolve(ty);
        if self.substitution.is_empty() {
            return resolved;
        }
        let map = std::mem::take(&mut self.substitution);
        let result = self.checked.types.substitute(resolved, &map);
        self.substitution = map;
        result
    }

    fn ty(&mut self, expr: &weir_syntax::ast::Expr) -> Ty {
        let ty = self.checked.ty(expr);
        self.concrete(ty)
    }

    fn kind(&self, ty: Ty) -> TyKind {
        self.checked.types.get(ty).clone()
    }

    fn written(&mut self, ty: &'a weir_syntax::ast::Type) -> Ty {
        let ty = self
            .checked
            .written_types
            .get(&std::ptr::from_ref(ty))
            .copied()
            .unwrap_or(crate::types::Types::UNKNOWN);
        self.concrete(ty)
    }

    /// Width of a scalar type in bits.
    fn scalar_width(&self, ty: Ty) -> Option<u32> {
        match self.checked.types.get(ty) {
            TyKind::Bool => Some(1),
            TyKind::Bit(w) | TyKind::Int(w) => Some(*w),
            TyKind::Error => Some(32),
            TyKind::Enum(def) => match self.checked.enum_underlying(*def) {
                Some(underlying) => self.scalar_width(underlying),
                None => Some(32),
            },
            TyKind::New(_) => self.scalar_width(self.checked.underlying(ty)),
            _ => None,
        }
    }

    fn is_signed(&self, ty: Ty) -> bool {
        matches!(self.checked.types.get(self.checked.representation(ty)), TyKind::Int(_))
    }

    fn def_kind(&self, def: DefId) -> &DefKind<'a> {
        &self.checked.defs[def.0 as usize].kind
    }

    fn declared(&self, name: &weir_syntax::ast::Ident) -> Option<DefId> {
        self.checked.declared.get(&std::ptr::from_ref(name)).copied()
    }

    fn enum_id(&mut self, def: DefId) -> EnumId {
        if let Some(&id) = self.enums.get(&def) {
            return id;
        }
        let declaration = &self.checked.defs[def.0 as usize];
        let name = declaration.name.to_string();
        let DefKind::Enum { underlying, members } = &declaration.kind else {
            return EnumId::new(0);
        };
        let width = underlying.map(|u| self.scalar_width(u).unwrap_or(0));
        let values = width.map(|w| {
            members
                .iter()
                .map(|(_, value)| match value {
                    Some(crate::check::Const::Int(v)) => Bits::from_bigint(w, v),
                    _ => Bits::zero(w),
                })
                .collect()
        });
        let members = members.iter().map(|(n, _)| n.name.to_string()).collect();
        let id = self.program.enums.push(weir_ir::EnumType { name, members, values });
        self.enums.insert(def, id);
        id
    }

    fn display(&mut self, ty: Ty) -> weir_ir::Display {
        match self.kind(ty) {
            TyKind::Bool => weir_ir::Display::Bool,
            TyKind::Int(_) => weir_ir::Display::Signed,
            TyKind::Error => weir_ir::Display::Error,
            TyKind::Enum(def) => weir_ir::Display::Enum(self.enum_id(def)),
            TyKind::New(_) => {
                let underlying = self.checked.underlying(ty);
                self.display(underlying)
            }
            _ => weir_ir::Display::Unsigned,
        }
    }
}

/// The value of an operation on constants, and of some that need no operation.
fn fold(value: &Rvalue, width: u32) -> Option<Operand> {
    if let Rvalue::Use(operand) = value {
        return Some(operand.clone());
    }
    if let Rvalue::Mux {
        condition: Operand::Const(c),
        then,
        otherwise,
    } = value
    {
        return Some(if c.is_zero() { otherwise.clone() } else { then.clone() });
    }
    if let Rvalue::Binary(op, a, b) = value {
        let zero = |o: &Operand| matches!(o, Operand::Const(c) if c.is_zero());
        let ones = |o: &Operand| matches!(o, Operand::Const(c) if c.is_ones());
        match op {
            weir_ir::BinaryOp::And if zero(a) || ones(b) => return Some(a.clone()),
            weir_ir::BinaryOp::And if zero(b) || ones(a) => return Some(b.clone()),
            weir_ir::BinaryOp::Or if zero(a) || ones(b) => return Some(b.clone()),
            weir_ir::BinaryOp::Or if zero(b) || ones(a) => return Some(a.clone()),
            _ => {}
        }
    }
    if value.operands().all(|o| matches!(o, Operand::Const(_))) {
        return Some(Operand::Const(weir_ir::eval::rvalue(value, width, |o| match o {
            Operand::Const(c) => c.clone(),
            Operand::Var(_) => Bits::zero(0),
        })));
    }
    None
}

/// A constant operand.
fn constant(width: u32, value: u128) -> Operand {
    Operand::Const(Bits::new(width, value))
}

fn boolean(value: bool) -> Operand {
    Operand::Const(Bits::bool(value))
}
