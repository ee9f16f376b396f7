//! Expressions, arguments and keysets.

use super::scopes::NameClass;
use super::{MAX_EXPRESSION_DEPTH, Parse, Parser};
use crate::ast::{Argument, BinaryOp, Expr, ExprKind, Type, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::literal::{self, BadInteger};
use crate::source::Span;
use crate::token::Tok;

/// An operand or result with its height.
type Operand = (Expr, u32);

impl Parser<'_> {
    /// `expression`
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.nested(Self::conditional)
    }

    fn conditional(&mut self) -> Parse<Expr> {
        let condition = self.binary()?;
        if !self.at(Tok::Question) {
            return Ok(condition);
        }
        let mut height = self.height;
        let start = condition.span;
        self.bump();
        let then = self.expression()?;
        height = height.max(self.height);
        self.expect(Tok::Colon, "between the branches of `?`")?;
        let otherwise = self.expression()?;
        self.grow(height.max(self.height))?;
        let kind = ExprKind::Conditional(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(self.expr(kind, start))
    }

    /// Operands and binary operators, with explicit stacks so that precedence costs no recursion.
    fn binary(&mut self) -> Parse<Expr> {
        let first = self.unary()?;
        if self.binary_operator().is_none() {
            return Ok(first);
        }
        let mut operands: Vec<Operand> = vec![(first, self.height)];
        let mut operators: Vec<(BinaryOp, u8)> = Vec::new();
        while let Some((operator, precedence, length)) = self.binary_operator() {
            while operators.last().is_some_and(|&(_, p)| p >= precedence) {
                self.reduce(&mut operands, &mut operators)?;
            }
            operators.push((operator, precedence));
            if self.at(Tok::Assign) {
                self.assignment_in_condition();
            }
            for _ in 0..length {
                self.bump();
            }
            let operand = self.unary()?;
            operands.push((operand, self.height));
        }
        while !operators.is_empty() {
            self.reduce(&mut operands, &mut operators)?;
        }
        match operands.pop() {
            Some((expression, height)) => {
                self.height = height;
                Ok(expression)
            }
            None => self.unexpected("an expression"),
        }
    }

    /// Reports the `=` at the cursor, which is read as `==`.
    fn assignment_in_condition(&mut self) {
        let message = "expected a comparison in the condition, found the assignment `=`";
        let error = Diagnostic::error("syntax", self.token().span, message);
        let _: Parse<()> = self.report(error.help("values are compared with `==`"));
    }

    fn reduce(&mut self, operands: &mut Vec<Operand>, operators: &mut Vec<(BinaryOp, u8)>) -> Parse<()> {
        let (Some((right, b)), Some((left, a)), Some((operator, _))) =
            (operands.pop(), operands.pop(), operators.pop())
        else {
            return self.unexpected("an operand");
        };
        self.grow(a.max(b))?;
        let start = left.span;
        let end = right.span;
        let mut whole = self.expr(ExprKind::Binary(operator, Box::new(left), Box::new(right)), start);
        whole.span = start.to(end);
        operands.push((whole, self.height));
        Ok(())
    }

    fn unary(&mut self) -> Parse<Expr> {
        let start = self.start();
        if let Some(operator) = self.unary_operator() {
            self.bump();
            let operand = self.nested(Self::unary)?;
            self.grow(self.height)?;
            return Ok(self.expr(ExprKind::Unary(operator, Box::new(operand)), start));
        }
        if self.at(Tok::LParen) && self.at_cast() {
            return self.nested(Self::cast);
        }
        self.postfix(true)
    }

    fn cast(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let ty = self.ty()?;
        let height = self.height;
        self.expect(Tok::RParen, "after the type of the cast")?;
        let operand = self.unary()?;
        self.grow(height.max(self.height))?;
        Ok(self.expr(ExprKind::Cast(Box::new(ty), Box::new(operand)), start))
    }

    /// A primary expression with members, indices and calls; an l-value is one, too. The result of
    /// a call is called only if `curried`, which is left to the checker to reject.
    pub(super) fn postfix(&mut self, curried: bool) -> Parse<Expr> {
        let start = self.start();
        let mut base = self.primary()?;
        let mut height = self.height;
        loop {
            let kind = match self.tok() {
                Tok::Dot => {
                    self.bump();
                    let member = self.name("the name of a member after `.`")?;
                    ExprKind::Member(Box::new(base), member)
                }
                Tok::LBracket => {
                    self.height = 0;
                    let kind = self.bracketed(|p| p.index(base))?;
                    height = height.max(self.height);
                    kind
                }
                Tok::LParen if curried || !matches!(base.kind, ExprKind::Call { .. }) => {
                    self.height = 0;
                    let kind = self.call(base, Vec::new())?;
                    height = height.max(self.height);
                    kind
                }
                Tok::Lt if matches!(base.kind, ExprKind::Name { .. } | ExprKind::Member(..)) => {
                    let Some(end) = self.scan_type_arguments(self.pos) else {
                        break;
                    };
                    self.height = 0;
                    let kind = match self.tok_at(end) {
                        Tok::LParen => {
                            let arguments = self.type_arguments()?;
                            height = height.max(self.height);
                            self.call(base, arguments)?
                        }
                        Tok::Dot => self.specialized(base)?,
                        _ => break,
                    };
                    height = height.max(self.height);
                    kind
                }
                _ => break,
            };
            self.grow(height)?;
            height = self.height;
            base = self.expr(kind, start);
        }
        self.height = height;
        Ok(base)
    }

    /// `N<T>` before `.apply`
    fn specialized(&mut self, base: Expr) -> Parse<ExprKind> {
        let arguments = self.type_arguments()?;
        let ExprKind::Name { absolute, name } = base.kind else {
            return self.unexpected("`(` after type arguments");
        };
        let kind = TypeKind::Named {
            absolute,
            name,
            arguments: Some(arguments),
        };
        Ok(ExprKind::Type(Type {
            kind,
            span: self.span_from(base.span),
        }))
    }

    /// `[i]`, `[h:l]` or `[b+:w]`
    fn index(&mut self, base: Expr) -> Parse<ExprKind> {
        self.bump();
        let base = Box::new(base);
        let first = Box::new(self.expression()?);
        let height = self.height;
        let kind = match self.tok() {
            Tok::Colon => {
                self.bump();
                ExprKind::Slice(base, first, Box::new(self.expression()?))
            }
            Tok::PlusColon => {
                self.bump();
                ExprKind::PlusSlice(base, first, Box::new(self.expression()?))
            }
            _ => ExprKind::Index(base, first),
        };
        self.height = self.height.max(height);
        self.expect(Tok::RBracket, "after the index")?;
        Ok(kind)
    }

    fn call(&mut self, callee: Expr, type_arguments: Vec<Type>) -> Parse<ExprKind> {
        let arguments = self.arguments()?;
        Ok(ExprKind::Call {
            callee: Box::new(callee),
            type_arguments,
            arguments,
        })
    }

    /// `(a, n = b, _)`; the cursor is at `(`. The height is that of the highest argument.
    pub(super) fn arguments(&mut self) -> Parse<Vec<Argument>> {
        self.bump();
        let mut height = 0;
        let arguments = self.bracketed(|p| {
            p.list(Tok::RParen, false, "after an argument", |p| {
                let argument = p.argument()?;
                height = height.max(p.height);
                Ok(argument)
            })
        })?;
        self.height = height;
        Ok(arguments)
    }

    fn argument(&mut self) -> Parse<Argument> {
        let start = self.start();
        let mut name = None;
        if self.tok().is_name() && self.nth(1) == Tok::Assign {
            name = Some(self.name("the name of a parameter")?);
            self.bump();
        }
        let value = if self.at(Tok::Underscore) {
            self.dont_care()
        } else {
            self.expression()?
        };
        Ok(Argument {
            name,
            value,
            span: self.span_from(start),
        })
    }

    fn dont_care(&mut self) -> Expr {
        let start = self.bump().span;
        self.height = 1;
        self.expr(ExprKind::DontCare, start)
    }

    fn primary(&mut self) -> Parse<Expr> {
        let start = self.start();
        self.height = 1;
        let kind = match self.tok() {
            Tok::LParen => return self.parenthesized(),
            Tok::LBrace => self.bracketed(Self::braced)?,
            Tok::Int => self.integer()?,
            Tok::Str => {
                let token = self.bump();
                ExprKind::String(literal::string(token.text(self.interner)).into())
            }
            Tok::True | Tok::False => ExprKind::Bool(self.bump().tok == Tok::True),
            Tok::This => {
                self.bump();
                ExprKind::This
            }
            Tok::Ellipsis => {
                self.bump();
                ExprKind::Dots
            }
            Tok::InvalidHeader => {
                self.bump();
                ExprKind::InvalidHeader
            }
            Tok::Dot => {
                self.bump();
                ExprKind::Name {
                    absolute: true,
                    name: self.name("a name after `.`")?,
                }
            }
            Tok::ErrorKw if self.nth(1) == Tok::Dot => {
                let span = self.bump().span;
                ExprKind::Type(Type {
                    kind: TypeKind::Error,
                    span,
                })
            }
            Tok::List if self.nth(1) == Tok::Lt => return self.type_as_expression(),
            tok if tok.is_name() => self.name_expression()?,
            _ => return self.type_as_expression(),
        };
        Ok(self.expr(kind, start))
    }

    /// A name. Where it is that of a type, only a member, a call or type arguments may follow.
    fn name_expression(&mut self) -> Parse<ExprKind> {
        let is_type = self.class_at(self.pos) == Some(NameClass::Type);
        let name = self.name("a name")?;
        let goes_on = match self.tok() {
            Tok::Dot | Tok::LParen => true,
            Tok::Lt => self.scan_type_arguments(self.pos).is_some(),
            _ => false,
        };
        if is_type && !goes_on {
            let message = format!("expected a value, found type `{}`", name.name);
            self.diagnostics.push(Diagnostic::error("syntax", name.span, message));
            return Ok(ExprKind::Error);
        }
        Ok(ExprKind::Name { absolute: false, name })
    }

    /// Reports that no expression begins here.
    fn type_as_expression(&mut self) -> Parse<Expr> {
        let help = match self.tok() {
            Tok::Bit | Tok::IntKw | Tok::Bool | Tok::Tuple | Tok::List | Tok::Varbit => {
                Some("a value of another type is written with a cast: `(bit<8>) x`")
            }
            Tok::Underscore => Some("`_` stands for anything only in keysets and arguments"),
            _ => None,
        };
        self.unexpected_with_help("an expression", help)
    }

    fn parenthesized(&mut self) -> Parse<Expr> {
        let start = self.bump().span;
        let mut inner = self.bracketed(Self::conditional)?;
        self.expect(Tok::RParen, "after the expression")?;
        inner.span = self.span_from(start);
        Ok(inner)
    }

    fn integer(&mut self) -> Parse<ExprKind> {
        let token = self.token();
        let text = token.text(self.interner);
        let (code, message) = match literal::integer(text) {
            Ok(literal::Integer { value, width, base }) => {
                self.bump();
                return Ok(ExprKind::Int { value, width, base });
            }
            Err(BadInteger::Malformed) => {
                let shown: String = text.chars().take(40).collect();
                ("lexical", format!("`{shown}` is not an integer"))
            }
            Err(BadInteger::TooLarge) => (
                "overlimit",
                format!(
                    "this integer has more than {} digits or too large a width",
                    literal::MAX_DIGITS
                ),
            ),
        };
        let start = token.span;
        let failure = self.report::<()>(Diagnostic::error(code, start, message));
        debug_assert!(failure.is_err());
        self.bump();
        Ok(ExprKind::Error)
    }

    /// `{ a, b }`, `{ f = a, g = b }`, both with a trailing `...` or comma.
    fn braced(&mut self) -> Parse<ExprKind> {
        self.bump();
        let named = self.tok().is_name() && self.nth(1) == Tok::Assign;
        let mut height = 0;
        if !named {
            let elements = self.list(Tok::RBrace, true, "after an element of the list", |p| {
                let element = p.expression()?;
                height = height.max(p.height);
                if matches!(element.kind, ExprKind::Dots) && !p.closes_list() {
                    p.dots_not_last(element.span);
                }
                Ok(element)
            })?;
            self.grow(height)?;
            return Ok(ExprKind::List(elements));
        }
        let mut dots = false;
        let mut fields = Vec::new();
        loop {
            if self.at(Tok::Ellipsis) {
                let span = self.bump().span;
                dots = true;
                if !self.at(Tok::RBrace) && !self.closes_list() {
                    self.dots_not_last(span);
                }
                if self.eat(Tok::RBrace) {
                    break;
                }
                self.expect(Tok::Comma, "or `}` after `...`")?;
                if self.eat(Tok::RBrace) {
                    break;
                }
                continue;
            }
            let field = self.name("the name of a field")?;
            self.expect(Tok::Assign, "after the name of the field")?;
            fields.push((field, self.expression()?));
            height = height.max(self.height);
            if self.eat(Tok::RBrace) {
                break;
            }
            self.expect(Tok::Comma, "or `}` after the value of the field")?;
            if self.eat(Tok::RBrace) {
                break;
            }
        }
        self.grow(height)?;
        Ok(ExprKind::Struct(fields, dots))
    }

    fn dots_not_last(&mut self, span: Span) {
        let error = Diagnostic::error("invalid", span, "`...` must be the last element");
        self.diagnostics.push(error);
    }

    fn closes_list(&self) -> bool {
        self.at(Tok::RBrace) || (self.at(Tok::Comma) && self.nth(1) == Tok::RBrace)
    }

    // ------------------------------------------------------------------------------------ keysets

    /// `keysetExpression`: one simple keyset, or several in parentheses.
    pub(super) fn keyset(&mut self) -> Parse<Expr> {
        let start = self.start();
        let tuple = self.at(Tok::LParen)
            && self
                .after_brackets(self.pos)
                .is_some_and(|after| self.tok_at(after) == Tok::Colon)
            && !self.at_cast();
        if !tuple {
            return self.simple_keyset();
        }
        self.bump();
        let mut elements = self.bracketed(|p| p.list(Tok::RParen, false, "after a keyset", Self::simple_keyset))?;
        if elements.len() == 1
            && let Some(mut only) = elements.pop()
        {
            only.span = self.span_from(start);
            return Ok(only);
        }
        self.height = MAX_EXPRESSION_DEPTH.min(self.height + 1);
        Ok(self.expr(ExprKind::List(elements), start))
    }

    /// Reports the `,` at the cursor, after the first of several values where one may stand, and
    /// reads past the others.
    pub(super) fn several_values(
        &mut self,
        message: &str,
        help: &str,
        mut rule: impl FnMut(&mut Self) -> Parse<Expr>,
    ) -> Parse<()> {
        let message = format!("{message}, found `,` and another");
        let error = Diagnostic::error("syntax", self.token().span, message);
        let _: Parse<()> = self.report(error.help(help));
        while self.eat(Tok::Comma) {
            rule(self)?;
        }
        Ok(())
    }

    pub(super) fn simple_keyset(&mut self) -> Parse<Expr> {
        let start = self.start();
        match self.tok() {
            Tok::Default => {
                self.bump();
                return Ok(self.expr(ExprKind::Default, start));
            }
            Tok::Underscore => return Ok(self.dont_care()),
            _ => {}
        }
        let first = self.expression()?;
        let height = self.height;
        let make: fn(Box<Expr>, Box<Expr>) -> ExprKind = match self.tok() {
            Tok::MaskOp => ExprKind::Mask,
            Tok::DotDot => ExprKind::Range,
            _ => return Ok(first),
        };
        self.bump();
        let second = self.expression()?;
        self.grow(height.max(self.height))?;
        Ok(self.expr(make(Box::new(first), Box::new(second)), start))
    }

    /// What a `for` loop runs over: an expression or a range.
    pub(super) fn collection(&mut self) -> Parse<Expr> {
        self.simple_keyset()
    }
}
