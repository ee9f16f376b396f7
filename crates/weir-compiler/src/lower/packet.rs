//! The packet: what parsers take from it and deparsers put into it.

use super::value::{Place, Val};
use super::{Lowerer, boolean, constant};
use crate::check::{CallInfo, Signature};
use crate::types::{Ty, TyKind, Types};
use std::rc::Rc;
use weir_ir::{InstKind, Operand, Rvalue, Terminator, VarKind};
use weir_syntax::ast::{self, Expr, ExprKind, StructKind};

impl<'a> Lowerer<'a, '_> {
    pub(super) fn packet_method(
        &mut self,
        expr: &'a Expr,
        signature: &Signature<'a>,
        arguments: &'a [ast::Argument],
        info: &CallInfo,
    ) -> Val {
        match (&*signature.name.name, arguments.len()) {
            ("extract", 1 | 2) => {
                self.extract(arguments);
                Val::Void
            }
            ("lookahead", _) => {
                let ty = info
                    .type_arguments
                    .first()
                    .map_or(Types::UNKNOWN, |&t| self.concrete(t));
                if self.kind(ty) == TyKind::Unknown || matches!(self.kind(ty), TyKind::Infer(_)) {
                    return self.unsupported(
                        expr.span,
                        "the type that lookahead reads is not known; write `lookahead<T>()`",
                    );
                }
                let mut offset = 0;
                self.lookahead(ty, &mut offset)
            }
            ("advance", 1) => {
                let bits = self.number(&arguments[0].value);
                let bits = self.with_width(bits, 32);
                self.emit(InstKind::Advance { bits });
                Val::Void
            }
            ("length", 0) => {
                let dst = self.temporary(32);
                self.emit(InstKind::PacketLength { dst });
                Val::Scalar(Operand::Var(dst))
            }
            ("emit", 1) => {
                let value = self.expr(&arguments[0].value);
                self.emit_value(&value, expr);
                Val::Void
            }
            (name, _) => {
                let message = format!("the packet has no method `{name}` that weir knows");
                self.unsupported(expr.span, message)
            }
        }
    }

    pub(super) fn with_width(&mut self, operand: Operand, width: u32) -> Operand {
        if self.width_of(&operand) == width {
            operand
        } else {
            self.compute(Rvalue::ZeroExtend(operand), width)
        }
    }

    pub(super) fn extract(&mut self, arguments: &'a [ast::Argument]) {
        let target = &arguments[0].value;
        let ty = self.ty(target);
        // `stack.next`: which element is known only now, and it is used up.
        if let ExprKind::Member(base, member) = &target.kind {
            let base_type = self.ty(base);
            if &*member.name == "next" && matches!(self.kind(base_type), TyKind::Stack(..)) {
                let stack = self.place(base);
                self.extract_next(target, &stack, arguments);
                return;
            }
        }
        // `stack.next.member` of a stack of unions likewise.
        if let ExprKind::Member(inner, member) = &target.kind
            && let ExprKind::Member(base, cursor) = &inner.kind
        {
            let base_type = self.ty(base);
            if &*cursor.name == "next"
                && matches!(self.kind(base_type), TyKind::Stack(..))
                && let Place::Stack { elements, next } = self.place(base)
            {
                let members = elements.iter().filter_map(|e| e.member(&member.name, None)).collect();
                self.extract_next(
                    target,
                    &Place::Stack {
                        elements: Rc::new(members),
                        next,
                    },
                    arguments,
                );
                return;
            }
        }
        let place = if matches!(target.kind, ExprKind::DontCare) {
            self.allocate("_", ty, VarKind::Temporary)
        } else {
            self.place(target)
        };
        let length = arguments
            .get(1)
            .map(|a| self.number(&a.value))
            .map(|l| self.with_width(l, 32));
        self.extract_to(&place, ty, length);
    }

    pub(super) fn extract_to(&mut self, place: &Place, ty: Ty, length: Option<Operand>) {
        match place {
            Place::Header { id, .. } => {
                self.emit(InstKind::Extract {
                    header: *id,
                    varbit_bits: length,
                });
                self.clear_padding(*id);
                self.invalidate_others(*id, &boolean(true));
            }
            other => {
                let scratch = self.allocate("extracted", ty, VarKind::Temporary);
                if let Place::Header { id, .. } = &scratch {
                    self.emit(InstKind::Extract {
                        header: *id,
                        varbit_bits: length,
                    });
                    let value = self.read(&scratch);
                    self.write(other, &value);
                }
            }
        }
    }

    pub(super) fn extract_next(&mut self, target: &'a Expr, stack: &Place, arguments: &'a [ast::Argument]) {
        let length = arguments
            .get(1)
            .map(|a| self.number(&a.value))
            .map(|l| self.with_width(l, 32));
        let Place::Stack {
            elements,
            next: Some(next),
        } = stack
        else {
            self.error(
                "unsupported",
                target.span,
                "`next` of a stack that is chosen by a run-time index",
            );
            return;
        };
        let ty = self.ty(target);
        let done = self.new_block();
        let full = self.new_block();
        let blocks: Vec<_> = elements.iter().map(|_| self.new_block()).collect();
        let cases = blocks
            .iter()
            .enumerate()
            .map(|(i, &b)| (weir_ir::Bits::new(32, i as u128), b))
            .collect();
        self.terminate_to(
            Terminator::Switch {
                value: Operand::Var(*next),
                cases,
                default: full,
            },
            full,
        );
        if let (Some(reject), Some(error)) = (self.reject, self.body.error) {
            let code = self.program.error_code("StackOutOfBounds").unwrap_or(0);
            self.set(error, constant(32, code.into()));
            self.terminate_to(Terminator::Goto(reject), done);
        }
        for (i, (element, block)) in elements.iter().zip(blocks).enumerate() {
            self.current = block;
            self.extract_to(element, ty, length.clone());
            self.set(*next, constant(32, i as u128 + 1));
            self.terminate_to(Terminator::Goto(done), done);
        }
        self.current = done;
    }

    pub(super) fn lookahead(&mut self, ty: Ty, offset: &mut u32) -> Val {
        match self.kind(ty) {
            TyKind::Struct(def, arguments) => {
                let fields = self.checked.fields_of(def, &arguments);
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(n, t)| {
                        let value = self.lookahead(t, offset);
                        (n, value)
                    })
                    .collect();
                let fields = Rc::new(fields);
                if self.checked.struct_kind(ty) == Some(StructKind::Header) {
                    Val::Header {
                        valid: boolean(true),
                        fields,
                        source: None,
                    }
                } else {
                    Val::Struct(fields)
                }
            }
            TyKind::Tuple(parts) => Val::tuple(parts.iter().map(|&t| self.lookahead(t, offset)).collect()),
            TyKind::Stack(element, n) => {
                let elements: Vec<Val> = (0..n).map(|_| self.lookahead(element, offset)).collect();
                let next = self.is_header_like(element).then(|| constant(32, u128::from(n)));
                Val::Stack {
                    elements: Rc::new(elements),
                    next,
                }
            }
            _ => {
                let width = self.scalar_width(ty).unwrap_or(0);
                let dst = self.temporary(width);
                self.emit(InstKind::Lookahead { dst, offset: *offset });
                *offset += width;
                Val::Scalar(Operand::Var(dst))
            }
        }
    }

    pub(super) fn emit_value(&mut self, value: &Val, expr: &'a Expr) {
        match value {
            Val::Header { source: Some(id), .. } => self.emit(InstKind::Emit { header: *id }),
            Val::Header { source: None, .. } => {
                let ExprKind::Call { arguments, .. } = &expr.kind else {
                    return;
                };
                let ty = arguments.first().map_or(Types::UNKNOWN, |a| self.ty(&a.value));
                let ty = match self.kind(ty) {
                    TyKind::Struct(..) if self.checked.struct_kind(ty) == Some(StructKind::Header) => ty,
                    TyKind::Stack(element, _) => element,
                    _ => {
                        self.error("unsupported", expr.span, "a header that is computed in place cannot be emitted as part of a struct; assign it to a variable first");
                        return;
                    }
                };
                let scratch = self.allocate("emitted", ty, VarKind::Temporary);
                self.write(&scratch, value);
                if let Place::Header { id, .. } = scratch {
                    self.emit(InstKind::Emit { header: id });
                }
            }
            Val::Struct(parts) | Val::Union(parts) => {
                for (_, part) in parts.iter() {
                    self.emit_value(part, expr);
                }
            }
            Val::Stack { elements, .. } => {
                for element in elements.iter() {
                    self.emit_value(element, expr);
                }
            }
            Val::Scalar(_) => self.error(
                "unsupported",
                expr.span,
                "only headers can be emitted; this struct holds other fields too",
            ),
            _ => {}
        }
    }
}
