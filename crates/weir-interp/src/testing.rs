//! Programs made by hand, for tests of engines, architectures and switches.
//!
//! Not for compilers: the builder checks nothing, and its source places are invented (every
//! instruction gets a line of its own in a file named `test.p4`).

use crate::runtime::{CallContext, CallEffect, LookupDetail, LookupOutcome, Runtime};
use std::sync::Arc;
use weir_ir::{
    Action, ActionCall, ActionId, ActionParameter, Argument, ArgumentValue, BasicBlock, Bits, Block, BlockId,
    BlockKind, Body, Call, ConstValue, ControlType, Display, ExternId, ExternInstance, Header, HeaderField, HeaderId,
    HeaderType, InLeaf, Inst, InstKind, Key, Loc, Lookup, MatchKind, Operand, Program, Rvalue, Shared, SharedLeaf,
    Table, TableAction, TableId, Terminator, Type, TypeSpec, ValueSet, ValueSetId, Var, VarId, VarKind,
};

/// A runtime without tables and externs: lookups miss, calls do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRuntime;

impl Runtime for NoRuntime {
    fn lookup(&mut self, _: TableId, _: &[Bits]) -> LookupOutcome {
        LookupOutcome {
            hit: false,
            action: 0,
            arguments: Arc::new([]),
            entry: 0,
        }
    }
    fn describe(&self, _: TableId, _: &[Bits], _: &LookupOutcome) -> LookupDetail {
        LookupDetail::default()
    }
    fn value_set_contains(&mut self, _: ValueSetId, _: &[Bits]) -> bool {
        false
    }
    fn call(&mut self, _: CallContext<'_>) -> CallEffect {
        CallEffect::Continue
    }
}

/// Builds a [`Program`].
#[derive(Debug, Default)]
pub struct ProgramBuilder {
    program: Program,
}

/// Variables of a table's lookup.
#[derive(Debug, Clone)]
pub struct TableVars {
    /// The table.
    pub table: TableId,
    /// [`Lookup::hit`]
    pub hit: VarId,
    /// [`Lookup::action`]
    pub action: VarId,
    /// [`Lookup::entry`]
    pub entry: VarId,
    /// Parameters of each action in order.
    pub parameters: Vec<Vec<VarId>>,
}

/// A number as an operand.
#[must_use]
pub fn constant(width: u32, value: u128) -> Operand {
    Operand::Const(Bits::new(width, value))
}

impl ProgramBuilder {
    /// An empty program for a target, with the core errors.
    #[must_use]
    pub fn new(target: &str) -> Self {
        let errors = [
            "NoError",
            "PacketTooShort",
            "NoMatch",
            "StackOutOfBounds",
            "HeaderTooShort",
            "ParserTimeout",
            "ParserInvalidArgument",
        ];
        ProgramBuilder {
            program: Program {
                target: target.to_owned(),
                files: vec!["test.p4".to_owned()],
                errors: errors.map(str::to_owned).to_vec(),
                ..Program::default()
            },
        }
    }

    /// The program as it is.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The program.
    #[must_use]
    pub fn finish(self) -> Program {
        self.program
    }

    /// A variable.
    pub fn var(&mut self, name: &str, ty: Type, kind: VarKind) -> VarId {
        self.program.vars.push(Var {
            name: name.to_owned(),
            ty,
            display: Display::Unsigned,
            kind,
        })
    }

    /// A local variable of `width` bits.
    pub fn local(&mut self, name: &str, width: u32) -> VarId {
        self.var(name, Type::Bits(width), VarKind::Local)
    }

    /// A shared group with scalars `(path, width)`.
    pub fn shared(&mut self, role: &str, leaves: &[(&str, u32)]) -> Vec<VarId> {
        let vars: Vec<_> = leaves
            .iter()
            .map(|(path, width)| self.var(&format!("{role}.{path}"), Type::Bits(*width), VarKind::Shared))
            .collect();
        let new = leaves.iter().zip(&vars).map(|((path, _), &var)| SharedLeaf {
            path: (*path).to_owned(),
            var,
            annotations: Vec::new(),
        });
        let leaves: Vec<_> = new.collect();
        self.group(role).leaves.extend(leaves);
        vars
    }

    /// The shared group of a role, made if need be.
    pub fn group(&mut self, role: &str) -> &mut Shared {
        let at = self
            .program
            .shared
            .iter()
            .position(|s| s.role == role)
            .unwrap_or_else(|| {
                self.program.shared.push(Shared {
                    role: role.to_owned(),
                    name: role.to_owned(),
                    leaves: Vec::new(),
                    headers: Vec::new(),
                    ty: TypeSpec::Opaque(role.to_owned()),
                });
                self.program.shared.len() - 1
            });
        &mut self.program.shared[at]
    }

    /// A header instance named `name` in the group `headers`, with fields in wire order.
    pub fn header(&mut self, name: &str, fields: &[(&str, Type)]) -> HeaderId {
        let ty = self.program.header_types.push(HeaderType {
            name: format!("{name}_t"),
            fields: fields
                .iter()
                .map(|(n, ty)| HeaderField {
                    name: (*n).to_owned(),
                    ty: *ty,
                    display: Display::Unsigned,
                    control: ControlType::default(),
                    annotations: Vec::new(),
                })
                .collect(),
            annotations: Vec::new(),
        });
        let header = HeaderId::new(self.program.headers.len());
        let valid = self.var(&format!("hdr.{name}.$valid$"), Type::Bits(1), VarKind::Valid { header });
        let vars: Vec<_> = fields
            .iter()
            .enumerate()
            .map(|(i, (n, ty))| {
                self.var(
                    &format!("hdr.{name}.{n}"),
                    *ty,
                    VarKind::Field {
                        header,
                        index: i as u32,
                    },
                )
            })
            .collect();
        self.program.headers.push(Header {
            name: format!("hdr.{name}"),
            ty,
            valid,
            fields: vars.clone(),
        });
        let leaf = |path: String, var| SharedLeaf {
            path,
            var,
            annotations: Vec::new(),
        };
        let mut leaves = vec![leaf(format!("{name}.$valid$"), valid)];
        leaves.extend(
            fields
                .iter()
                .zip(&vars)
                .map(|((n, _), &v)| leaf(format!("{name}.{n}"), v)),
        );
        let group = self.group("headers");
        group.headers.push(header);
        group.leaves.extend(leaves);
        header
    }

    /// Field `index` of a header.
    #[must_use]
    pub fn field(&self, header: HeaderId, index: usize) -> VarId {
        self.program.headers[header].fields[index]
    }

    /// An action with parameters `(name, width)`.
    pub fn action(&mut self, name: &str, parameters: &[(&str, u32)]) -> ActionId {
        self.program.actions.push(Action {
            name: name.to_owned(),
            parameters: parameters
                .iter()
                .map(|(n, width)| ActionParameter {
                    name: (*n).to_owned(),
                    width: *width,
                    display: Display::Unsigned,
                    control: ControlType::default(),
                    annotations: Vec::new(),
                })
                .collect(),
            annotations: Vec::new(),
            loc: Loc::default(),
        })
    }

    /// A key, for [`ProgramBuilder::table`] and value sets.
    #[must_use]
    pub fn key(name: &str, width: u32, match_kind: MatchKind) -> Key {
        Key {
            name: name.to_owned(),
            width,
            match_kind,
            own_kind: None,
            display: Display::Unsigned,
            control: ControlType::default(),
            annotations: Vec::new(),
            loc: Loc::default(),
        }
    }

    /// A table whose default action is the last one, with zeros as parameters.
    pub fn table(&mut self, name: &str, keys: &[(&str, u32, MatchKind)], actions: &[ActionId]) -> TableVars {
        let parameters: Vec<Vec<VarId>> = actions
            .iter()
            .map(|&a| {
                let wanted = self.program.actions[a].parameters.clone();
                wanted
                    .iter()
                    .map(|p| self.var(&p.name, Type::Bits(p.width), VarKind::ActionParameter))
                    .collect()
            })
            .collect();
        let last = actions.len().saturating_sub(1);
        let zeros = actions.last().map_or(Vec::new(), |&a| {
            self.program.actions[a]
                .parameters
                .iter()
                .map(|p| Bits::zero(p.width))
                .collect()
        });
        let table = self.program.tables.push(Table {
            keys: keys.iter().map(|(n, w, k)| Self::key(n, *w, *k)).collect(),
            actions: actions
                .iter()
                .zip(&parameters)
                .map(|(&action, parameters)| TableAction {
                    action,
                    parameters: parameters.clone(),
                    default_only: false,
                    table_only: false,
                    executes: Vec::new(),
                    annotations: Vec::new(),
                })
                .collect(),
            default_action: ActionCall {
                action: last,
                arguments: zeros,
            },
            ..Table::new(name.to_owned())
        });
        TableVars {
            table,
            hit: self.var("hit", Type::Bits(1), VarKind::Temporary),
            action: self.var("action", Type::Bits(32), VarKind::Temporary),
            entry: self.var("entry", Type::Bits(32), VarKind::Temporary),
            parameters,
        }
    }

    /// An extern instance.
    pub fn instance(
        &mut self,
        name: &str,
        type_name: &str,
        type_arguments: Vec<TypeSpec>,
        arguments: Vec<(&str, ConstValue)>,
    ) -> ExternId {
        self.program.externs.push(ExternInstance {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            type_arguments,
            arguments: arguments.into_iter().map(|(n, v)| (n.to_owned(), v)).collect(),
            methods: Vec::new(),
            annotations: Vec::new(),
            loc: Loc::default(),
        })
    }

    /// A value set with exact fields of these widths.
    pub fn value_set(&mut self, name: &str, widths: &[u32], size: u64) -> ValueSetId {
        let fields = widths
            .iter()
            .map(|w| Self::key("field", *w, MatchKind::Exact))
            .collect();
        let (annotations, loc) = (Vec::new(), Loc::default());
        self.program.value_sets.push(ValueSet {
            name: name.to_owned(),
            fields,
            size,
            annotations,
            loc,
        })
    }

    /// A control; its body is what `build` leaves.
    pub fn control(&mut self, role: &str, build: impl FnOnce(BodyBuilder) -> BodyBuilder) {
        let body = build(BodyBuilder::default()).body;
        self.block(role, BlockKind::Control, body);
    }

    /// A parser with an error variable. Failing operations go to a block that rejects.
    pub fn parser(&mut self, role: &str, build: impl FnOnce(BodyBuilder) -> BodyBuilder) {
        let error = self.local("error", 32);
        let mut built = build(BodyBuilder::default()).block(|b| b.end(Terminator::Reject));
        built.body.on_error = Some(BlockId::new(built.body.blocks.len() - 1));
        built.body.error = Some(error);
        self.block(role, BlockKind::Parser, built.body);
    }

    fn block(&mut self, role: &str, kind: BlockKind, body: Body) {
        let name = format!("My_{role}");
        self.program.blocks.push(Block {
            role: role.to_owned(),
            name,
            kind,
            body,
            loc: Loc::default(),
        });
    }
}

/// Builds a [`Body`] block by block; blocks are numbered from 0 in the order of their making.
#[derive(Debug, Default)]
pub struct BodyBuilder {
    body: Body,
}

impl BodyBuilder {
    /// One more basic block.
    #[must_use]
    pub fn block(mut self, build: impl FnOnce(BlockBuilder) -> BasicBlock) -> Self {
        let first_line = self.body.blocks.len() as u32 * 100 + 1;
        let block = build(BlockBuilder {
            state: None,
            insts: Vec::new(),
            line: first_line,
        });
        self.body.blocks.push(block);
        self
    }
}

/// Builds a [`BasicBlock`].
#[derive(Debug)]
pub struct BlockBuilder {
    state: Option<String>,
    insts: Vec<Inst>,
    line: u32,
}

impl BlockBuilder {
    /// A parser state begins here.
    #[must_use]
    pub fn state(mut self, name: &str) -> Self {
        self.state = Some(name.to_owned());
        self
    }

    /// One more instruction.
    #[must_use]
    pub fn inst(mut self, kind: InstKind) -> Self {
        let loc = Loc {
            file: 0,
            line: self.line,
            column: 1,
        };
        self.line += 1;
        self.insts.push(Inst { kind, loc });
        self
    }

    /// `dst = value`
    #[must_use]
    pub fn assign(self, dst: VarId, value: Rvalue) -> Self {
        self.inst(InstKind::Assign { dst, value })
    }

    /// `dst = operand`
    #[must_use]
    pub fn set(self, dst: VarId, value: Operand) -> Self {
        self.assign(dst, Rvalue::Use(value))
    }

    /// Extracts a header without varbit.
    #[must_use]
    pub fn extract(self, header: HeaderId) -> Self {
        self.inst(InstKind::Extract {
            header,
            varbit_bits: None,
        })
    }

    /// Emits a header.
    #[must_use]
    pub fn emit(self, header: HeaderId) -> Self {
        self.inst(InstKind::Emit { header })
    }

    /// Calls an extern; parameters are named `p0`, `p1`, …
    #[must_use]
    pub fn call(self, instance: Option<ExternId>, function: &str, arguments: Vec<ArgumentValue>) -> Self {
        self.call_with(instance, function, arguments, Vec::new(), None)
    }

    /// Calls an extern with results and the entry variable of a table.
    #[must_use]
    pub fn call_with(
        self,
        instance: Option<ExternId>,
        function: &str,
        arguments: Vec<ArgumentValue>,
        results: Vec<VarId>,
        entry: Option<VarId>,
    ) -> Self {
        let named = |(i, value)| Argument {
            name: format!("p{i}"),
            value,
        };
        self.inst(InstKind::Call(Call {
            instance,
            function: function.to_owned(),
            type_arguments: Vec::new(),
            arguments: arguments.into_iter().enumerate().map(named).collect(),
            results,
            entry,
            closure: 0,
            is_pure: false,
            calculation: None,
            execution: weir_ir::Execution::Inline,
        }))
    }

    /// The block, with its end.
    #[must_use]
    pub fn end(self, terminator: Terminator) -> BasicBlock {
        let loc = Loc {
            file: 0,
            line: self.line,
            column: 1,
        };
        BasicBlock {
            state: self.state,
            insts: self.insts,
            terminator,
            loc,
        }
    }

    /// The block, ended by a lookup that goes on at `next`.
    #[must_use]
    pub fn lookup(self, vars: &TableVars, keys: Vec<Operand>, next: usize) -> BasicBlock {
        self.end(Terminator::Lookup(Lookup {
            table: vars.table,
            keys,
            hit: vars.hit,
            action: vars.action,
            entry: vars.entry,
            next: BlockId::new(next),
        }))
    }
}

/// A scalar argument that is read.
#[must_use]
pub fn in_value(operand: Operand) -> ArgumentValue {
    ArgumentValue::In(vec![InLeaf::Value(operand)])
}
