//! Parser states and select.

use super::value::{Object, Val};
use super::{Lowerer, constant};
use crate::types::{Ty, TyKind};
use rustc_hash::FxHashMap;
use weir_ir::{BlockId, Operand, Pattern, SelectCase, Terminator};
use weir_syntax::ast::{self, Expr, ExprKind, Transition};

impl<'a> Lowerer<'a, '_> {
    /// The states of a parser; afterwards control is where it has accepted.
    pub(super) fn parser_states(&mut self, parser: &'a ast::Parser) {
        let accept = self.new_block();
        let outer_accept = self.accept.replace(accept);
        let mut blocks: FxHashMap<&str, BlockId> = FxHashMap::default();
        for state in &parser.states {
            let block = self.new_block();
            self.body.blocks[block].state = Some(state.name.name.to_string());
            blocks.insert(&state.name.name, block);
        }
        if let Some(&start) = blocks.get("start") {
            self.goto(start);
        }
        let dangling = self.new_block();
        for state in &parser.states {
            if self.exhausted {
                break;
            }
            self.current = blocks[&*state.name.name];
            let loc = self.locate(state.name.span);
            self.loc = loc;
            for statement in &state.statements {
                self.statement(statement);
            }
            self.transition(state, &blocks);
            self.current = dangling;
        }
        self.current = accept;
        self.accept = outer_accept;
    }

    fn state_block(&self, name: &ast::Ident, blocks: &FxHashMap<&str, BlockId>) -> BlockId {
        match &*name.name {
            "accept" => self.accept.unwrap_or(self.current),
            "reject" => self.reject.unwrap_or(self.current),
            other => blocks.get(other).copied().unwrap_or(self.current),
        }
    }

    fn transition(&mut self, state: &'a ast::ParserState, blocks: &FxHashMap<&str, BlockId>) {
        match &state.transition {
            None => {
                let to = self.reject.unwrap_or(self.current);
                self.terminate(Terminator::Goto(to));
            }
            Some(Transition::State(name)) => {
                let loc = self.locate(name.span);
                self.loc = loc;
                let to = self.state_block(name, blocks);
                self.terminate(Terminator::Goto(to));
            }
            Some(Transition::Select {
                expressions,
                cases,
                span,
            }) => {
                let loc = self.locate(*span);
                self.loc = loc;
                self.select(expressions, cases, blocks);
            }
        }
    }

    fn select(&mut self, expressions: &'a [Expr], cases: &'a [ast::SelectCase], blocks: &FxHashMap<&str, BlockId>) {
        let mut keys: Vec<Operand> = Vec::new();
        let mut types: Vec<Ty> = Vec::new();
        let effects = expressions.iter().rposition(|e| self.has_effects(e));
        for (i, e) in expressions.iter().enumerate() {
            let value = self.expr(e);
            let later = effects.is_some_and(|last| last > i);
            let value = if later { self.snapshot(&value) } else { value };
            value.leaves(&mut keys);
            types.push(self.ty(e));
        }
        let mut lowered = Vec::new();
        for case in cases {
            let mut patterns = Vec::new();
            self.keyset(&case.keyset, &types, &mut patterns);
            let target = self.state_block(&case.state, blocks);
            let loc = self.locate(case.span);
            lowered.push(SelectCase { patterns, target, loc });
        }
        // Nothing matches: an error (P4_16 1.2.5, section 13.6).
        let no_match = self.new_block();
        self.terminate_to(
            Terminator::Select {
                keys,
                cases: lowered,
                default: no_match,
            },
            no_match,
        );
        if let (Some(error), Some(reject)) = (self.body.error, self.reject) {
            let code = self.program.error_code("NoMatch").unwrap_or(0);
            self.set(error, constant(32, code.into()));
            self.terminate(Terminator::Goto(reject));
        }
    }

    fn keyset(&mut self, keyset: &'a Expr, types: &[Ty], to: &mut Vec<Pattern>) {
        match &keyset.kind {
            ExprKind::Default | ExprKind::DontCare => {
                let count: usize = types.iter().map(|&t| self.scalar_count(t)).sum();
                to.extend(std::iter::repeat_n(Pattern::Any, count));
            }
            ExprKind::List(elements)
                if elements.len() == types.len() && (types.len() != 1 || !self.is_aggregate(types[0])) =>
            {
                for (e, &ty) in elements.iter().zip(types) {
                    self.pattern(e, ty, to);
                }
            }
            _ if types.len() == 1 => self.pattern(keyset, types[0], to),
            _ => {
                // One value set, or one tuple, for all keys.
                match self.expr(keyset) {
                    Val::Object(Object::ValueSet(id)) => to.push(Pattern::ValueSet(id)),
                    value => {
                        let mut leaves = Vec::new();
                        value.leaves(&mut leaves);
                        to.extend(leaves.into_iter().map(Pattern::Exact));
                    }
                }
            }
        }
    }

    fn is_aggregate(&self, ty: Ty) -> bool {
        matches!(
            self.kind(ty),
            TyKind::Tuple(_) | TyKind::Listed(_) | TyKind::Struct(..) | TyKind::Fields(..)
        )
    }

    fn scalar_count(&mut self, ty: Ty) -> usize {
        if self.is_aggregate(ty) {
            self.component_types(ty).into_iter().map(|t| self.scalar_count(t)).sum()
        } else {
            1
        }
    }

    fn pattern(&mut self, e: &'a Expr, ty: Ty, to: &mut Vec<Pattern>) {
        match &e.kind {
            ExprKind::Default | ExprKind::DontCare => {
                let count = self.scalar_count(ty);
                to.extend(std::iter::repeat_n(Pattern::Any, count));
            }
            ExprKind::Mask(a, b) => {
                let (a, b) = (self.pattern_operand(a, ty), self.pattern_operand(b, ty));
                to.push(Pattern::Mask(a, b));
            }
            ExprKind::Range(a, b) => {
                let (a, b) = (self.pattern_operand(a, ty), self.pattern_operand(b, ty));
                to.push(Pattern::Range(a, b, self.is_signed(ty)));
            }
            ExprKind::List(elements) if self.is_aggregate(ty) => {
                let types = self.component_types(ty);
                for (e, ty) in elements.iter().zip(types) {
                    self.pattern(e, ty, to);
                }
            }
            ExprKind::List(elements) if elements.len() == 1 => self.pattern(&elements[0], ty, to),
            _ => match self.expr_as(e, ty) {
                Val::Object(Object::ValueSet(id)) => to.push(Pattern::ValueSet(id)),
                value => {
                    let mut leaves = Vec::new();
                    value.leaves(&mut leaves);
                    to.extend(leaves.into_iter().map(Pattern::Exact));
                }
            },
        }
    }

    fn pattern_operand(&mut self, e: &'a Expr, ty: Ty) -> Operand {
        match self.expr_as(e, ty) {
            Val::Scalar(operand) => operand,
            _ => constant(self.scalar_width(ty).unwrap_or(0), 0),
        }
    }
}
