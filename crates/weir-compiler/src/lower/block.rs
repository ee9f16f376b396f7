//! Controls, and the application of sub-controls and sub-parsers.

use super::Lowerer;
use super::value::BlockInstance;
use crate::check::{CallInfo, DefKind, Param};
use crate::types::Types;
use std::rc::Rc;
use weir_ir::{InstKind, Mark};
use weir_syntax::ast::{self, Expr};

impl<'a> Lowerer<'a, '_> {
    /// `x.apply(args)` of a parser or control.
    pub(super) fn apply_block_call(&mut self, base: &'a Expr, arguments: &'a [ast::Argument], info: &CallInfo) {
        let Some(instance) = self.block_instance(base) else {
            return;
        };
        let Some(params) = self.block_params(&instance) else {
            return;
        };
        self.substitution.extend(instance.types.iter().copied());
        let passed = self.pass(&params, arguments, info);
        if self.depth > super::MAX_DEPTH {
            self.error(
                "overlimit",
                base.span,
                "sub-parsers and sub-controls are nested too deeply",
            );
            return;
        }
        self.depth += 1;
        self.emit(InstKind::Mark(Mark::Enter(instance.path.clone())));
        let may_alias = !instance.arguments.iter().any(|(_, value)| self.has_bodies(value));
        let back = self.bind_parameters(&params, passed, may_alias);
        self.run_inlined(back, None, Types::VOID, |s| s.block_body(&instance));
        self.emit(InstKind::Mark(Mark::Leave));
        self.depth -= 1;
    }

    pub(super) fn block_params(&self, instance: &BlockInstance) -> Option<Vec<Param<'a>>> {
        match self.def_kind(instance.def) {
            DefKind::Parser { params, .. } | DefKind::Control { params, .. } => Some(params.clone()),
            _ => None,
        }
    }

    /// The body of an instance whose parameters are bound.
    pub(super) fn block_body(&mut self, instance: &Rc<BlockInstance>) {
        match self.def_kind(instance.def) {
            DefKind::Control { ast, .. } => {
                let ast = *ast;
                let outer = self.enter(instance, &ast.locals);
                for local in &ast.locals {
                    self.initialise(local);
                }
                self.block(&ast.apply);
                self.leave(instance, &ast.locals, outer);
            }
            DefKind::Parser { ast, .. } => {
                let ast = *ast;
                let outer = self.enter(instance, &ast.locals);
                for local in &ast.locals {
                    self.initialise(local);
                }
                self.parser_states(ast);
                self.leave(instance, &ast.locals, outer);
            }
            _ => {}
        }
    }
}
