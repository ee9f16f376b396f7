//! Parsers and controls.

use super::machine::{Machine, reject};
use super::stop::{Eval, Stop, unknown};
use super::value::{Object, Value};
use weir_compiler::tools::{CallInfo, DefId, DefKind, Param, TyKind};
use weir_syntax::ast::{self, Argument, Direction, Expr, SelectCase, Transition};

/// States that a parser goes through, after which it is too much.
const MOST_STATES: u32 = 10_000;

impl<'a> Machine<'a> {
    /// `x.apply(args)`, also where `x` is the name of a type.
    pub fn apply_block(&mut self, base: &Expr, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        let block = self.applied(base)?;
        let params = self.block_params(self.blocks[block].def)?;
        self.with_parameters_of_block(&params, arguments, info, block)
    }

    fn applied(&mut self, base: &Expr) -> Eval<usize> {
        let ty = self.checked.ty(base);
        if let TyKind::TypeName(named) = self.checked.types.get(ty).clone() {
            let (TyKind::Parser(def, _) | TyKind::Control(def, _)) = self.kind(named) else {
                return unknown("an application of something else");
            };
            return match self.blocks[self.block].direct.get(&def) {
                Some(&block) => Ok(block),
                None => unknown("a direct application without an instance"),
            };
        }
        match self.expr(base)? {
            Value::Object(Object::Block(block)) => Ok(block),
            _ => unknown("an application of something else"),
        }
    }

    /// Run-time parameters of a parser or control.
    pub fn block_params(&self, def: DefId) -> Eval<Vec<Param<'a>>> {
        match self.def(def) {
            DefKind::Parser { params, .. } | DefKind::Control { params, .. } => Ok(params.clone()),
            _ => unknown("a block without a body"),
        }
    }

    /// What an instance does once its parameters have values.
    pub fn run_block(&mut self, block: usize) -> Eval<Value> {
        let def = self.blocks[block].def;
        self.within(block, |m| {
            match m.def(def) {
                DefKind::Control { ast, .. } => {
                    let ast = *ast;
                    ast.locals.iter().try_for_each(|l| m.declaration(l))?;
                    m.body(&ast.apply)?;
                }
                DefKind::Parser { ast, .. } => {
                    let ast = *ast;
                    ast.locals.iter().try_for_each(|l| m.declaration(l))?;
                    m.parse(ast)?;
                }
                _ => return unknown("a block without a body"),
            }
            Ok(Value::Void)
        })
    }

    /// Runs an instance that the architecture applies: with these values, of which those of `out`
    /// parameters do not matter. What parameters are afterwards, and why it ended if not by its
    /// end.
    pub fn run_top(&mut self, block: usize, values: Vec<Value>) -> Eval<(Vec<Value>, Option<Stop>)> {
        let params = self.block_params(self.blocks[block].def)?;
        let mut bound = Vec::new();
        for (param, value) in params.iter().zip(values) {
            let value = match param.direction {
                Direction::Out => self.zero(param.ty)?,
                Direction::In | Direction::InOut | Direction::None => value,
            };
            bound.push((param.def, value));
        }
        let (result, after) = self.with_variables(bound, |m| m.run_block(block));
        match result {
            Ok(_) => Ok((after, None)),
            Err(stop @ Stop::Unknown(_)) => Err(stop),
            Err(stop) => Ok((after, Some(stop))),
        }
    }

    // ------------------------------------------------------------------------------------- parsers

    fn parse(&mut self, parser: &'a ast::Parser) -> Eval<()> {
        let mut state = "start";
        for _ in 0..MOST_STATES {
            let Some(found) = parser.states.iter().find(|s| &*s.name.name == state) else {
                return match state {
                    "accept" => Ok(()),
                    "reject" => Err(reject("NoError")),
                    _ => unknown("a state that is not there"),
                };
            };
            self.statements(&found.statements)?;
            state = match &found.transition {
                None => "reject",
                Some(Transition::State(next)) => &next.name,
                Some(Transition::Select { expressions, cases, .. }) => self.select(expressions, cases)?,
            };
        }
        unknown("a parser that goes through very many states")
    }

    /// The state of the first case that fits.
    fn select(&mut self, expressions: &'a [Expr], cases: &'a [SelectCase]) -> Eval<&'a str> {
        let mut values = Vec::new();
        for expression in expressions {
            values.push((self.expr(expression)?, self.checked.ty(expression)));
        }
        for case in cases {
            if self.in_keyset(&values, &case.keyset)? {
                return Ok(&case.state.name);
            }
        }
        Err(reject("NoMatch"))
    }
}
