//! Statements.

use super::recovery::begins_top_level;
use super::scopes::NameClass;
use super::{MAX_STATEMENT_DEPTH, Parse, Parser};
use crate::ast::{Annotation, Block, DeclarationKind, Expr, ExprKind, Statement, StatementKind, SwitchCase};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::Tok;

impl Parser<'_> {
    /// `blockStatement`
    pub(super) fn block(&mut self) -> Parse<Block> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        self.block_after(annotations, start, "to begin a block")
    }

    pub(super) fn block_after(&mut self, annotations: Vec<Annotation>, start: Span, why: &str) -> Parse<Block> {
        self.expect(Tok::LBrace, why)?;
        self.scopes.push();
        let statements = self.statement_list();
        self.scopes.pop();
        let statements = statements?;
        self.expect(Tok::RBrace, "at the end of the block")?;
        Ok(Block {
            annotations,
            statements,
            span: self.span_from(start),
        })
    }

    /// Statements up to `}`, which stays.
    fn statement_list(&mut self) -> Parse<Vec<Statement>> {
        let mut statements = Vec::new();
        while !matches!(self.tok(), Tok::RBrace | Tok::Eof) {
            if begins_top_level(self.tok()) {
                return self.unexpected("a statement or `}`");
            }
            let start = self.pos;
            match self.statement() {
                Ok(statement) => statements.push(statement),
                Err(_) => self.recover_statement(start),
            }
        }
        Ok(statements)
    }

    /// `statementOrDeclaration`
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        if self.statement_depth >= MAX_STATEMENT_DEPTH {
            return self.abort(&format!("statements are nested more than {MAX_STATEMENT_DEPTH} deep"));
        }
        self.statement_depth += 1;
        let start = self.start();
        let kind = self.statement_kind();
        self.statement_depth -= 1;
        Ok(Statement {
            kind: kind?,
            span: self.span_from(start),
        })
    }

    fn statement_kind(&mut self) -> Parse<StatementKind> {
        match self.tok() {
            Tok::At => self.annotated_statement(),
            Tok::Semi => {
                self.bump();
                Ok(StatementKind::Empty)
            }
            Tok::LBrace => Ok(StatementKind::Block(self.block()?)),
            Tok::If => self.if_statement(),
            Tok::Switch => self.switch(),
            Tok::For => self.for_statement(Vec::new()),
            Tok::Return => self.return_statement(),
            Tok::Exit => self.keyword_statement(StatementKind::Exit, "after `exit`"),
            Tok::Break => self.keyword_statement(StatementKind::Break, "after `break`"),
            Tok::Continue => self.keyword_statement(StatementKind::Continue, "after `continue`"),
            Tok::Const => self.declaration_statement(Vec::new()),
            Tok::Ident if self.at_else_if_in_one_word() => self.else_if_in_one_word(),
            _ if self.at_typed_declaration() => self.declaration_statement(Vec::new()),
            _ => {
                let statement = self.assignment_or_call()?;
                self.semicolon("after the statement")?;
                Ok(statement)
            }
        }
    }

    fn annotated_statement(&mut self) -> Parse<StatementKind> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        match self.tok() {
            Tok::LBrace => Ok(StatementKind::Block(self.block_after(annotations, start, "")?)),
            Tok::For => self.for_statement(annotations),
            Tok::Const => self.declaration_statement(annotations),
            _ if self.at_typed_declaration() => self.declaration_statement(annotations),
            _ => self.unexpected("a declaration, a block or a loop after an annotation"),
        }
    }

    fn declaration_statement(&mut self, annotations: Vec<Annotation>) -> Parse<StatementKind> {
        let declaration = self.variable_or_instance(annotations)?;
        Ok(StatementKind::Declaration(Box::new(declaration)))
    }

    fn keyword_statement(&mut self, kind: StatementKind, after: &str) -> Parse<StatementKind> {
        self.bump();
        self.semicolon(after)?;
        Ok(kind)
    }

    fn return_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        let value = if self.at(Tok::Semi) {
            None
        } else {
            Some(self.expression()?)
        };
        self.semicolon("after `return`")?;
        Ok(StatementKind::Return(value))
    }

    pub(super) fn if_statement(&mut self) -> Parse<StatementKind> {
        self.bump();
        self.expect(Tok::LParen, "after `if`")?;
        let condition = self.condition()?;
        self.expect(Tok::RParen, "after the condition")?;
        let then = Box::new(self.statement_in_scope()?);
        let otherwise = if self.eat(Tok::Else) || self.at_else_if_in_one_word() {
            Some(Box::new(self.statement_in_scope()?))
        } else {
            None
        };
        Ok(StatementKind::If {
            condition,
            then,
            otherwise,
        })
    }

    /// The condition of an `if`, where `=` is reported and read as `==`.
    fn condition(&mut self) -> Parse<Expr> {
        let outer = std::mem::replace(&mut self.in_condition, true);
        let condition = self.bracketed(Self::expression);
        self.in_condition = outer;
        condition
    }

    /// Whether the word at the cursor is another language's for `else if`, and no name of the
    /// program's.
    fn at_else_if_in_one_word(&self) -> bool {
        let is_word = self.at(Tok::Ident)
            && matches!(
                self.token().text(self.interner),
                "elseif" | "elsif" | "elif" | "else_if"
            );
        let follows = || self.after_brackets(self.pos + 1).map(|after| self.tok_at(after));
        is_word
            && self.nth(1) == Tok::LParen
            && self.class_at(self.pos).is_none()
            && !matches!(follows(), None | Some(Tok::Semi | Tok::Dot))
    }

    /// `elseif (…) …`, reported and read as `else if (…) …`.
    fn else_if_in_one_word(&mut self) -> Parse<StatementKind> {
        let word = self.token();
        let message = format!("expected `else if`, found {}", self.describe(word));
        let error = Diagnostic::error("syntax", word.span, message);
        let _: Parse<()> = self.report(error.help("write two words: `else if (…) { … }`"));
        self.if_statement()
    }

    /// The body of an `if` or loop.
    fn statement_in_scope(&mut self) -> Parse<Statement> {
        self.scopes.push();
        let statement = self.statement();
        self.scopes.pop();
        statement
    }

    /// `l = e`, `l += e` or a call, without `;`.
    pub(super) fn assignment_or_call(&mut self) -> Parse<StatementKind> {
        match self.tok() {
            tok if tok.is_name() => {}
            Tok::Dot | Tok::This | Tok::LParen => {}
            Tok::Else => {
                return self.unexpected_with_help(
                    "a statement",
                    Some("`else` follows the statement or block of an `if` directly"),
                );
            }
            _ => return self.unexpected("a statement"),
        }
        let target = self.postfix(false)?;
        if let Some((operator, length)) = self.assignment_operator() {
            for _ in 0..length {
                self.bump();
            }
            let value = self.expression()?;
            return Ok(StatementKind::Assign {
                target,
                operator,
                value,
            });
        }
        if matches!(target.kind, ExprKind::Call { .. }) {
            return Ok(StatementKind::Call(target));
        }
        let help = match (&target.kind, self.tok()) {
            (_, Tok::EqEq) => Some("an assignment is written with `=`"),
            (ExprKind::Name { .. }, tok) if tok.is_name() => Some("is an operator or a `;` missing?"),
            _ => None,
        };
        self.unexpected_with_help("an assignment or a call", help)
    }

    fn switch(&mut self) -> Parse<StatementKind> {
        self.bump();
        self.expect(Tok::LParen, "after `switch`")?;
        let expression = self.bracketed(Self::expression)?;
        self.expect(Tok::RParen, "after what is switched on")?;
        self.expect(Tok::LBrace, "before the cases")?;
        let mut cases = Vec::new();
        while !matches!(self.tok(), Tok::RBrace | Tok::Eof) {
            if begins_top_level(self.tok()) {
                return self.unexpected("a case or `}`");
            }
            let start = self.pos;
            match self.switch_case() {
                Ok(case) => cases.push(case),
                Err(_) => self.recover_statement(start),
            }
        }
        self.expect(Tok::RBrace, "after the cases")?;
        Ok(StatementKind::Switch { expression, cases })
    }

    fn switch_case(&mut self) -> Parse<SwitchCase> {
        let start = self.start();
        let label = match self.tok() {
            Tok::Default => {
                self.bump();
                self.expr(ExprKind::Default, start)
            }
            Tok::LBrace => return self.unexpected("the label of a case"),
            _ => self.expression()?,
        };
        if self.at(Tok::Comma) {
            let help = "write the labels one after the other, each with its colon: `A: B: { … }`";
            self.several_values("a case of `switch` has one label", help, Self::expression)?;
        }
        self.expect(Tok::Colon, "after the label of the case")?;
        let body = if matches!(self.tok(), Tok::LBrace | Tok::At) {
            Some(self.block()?)
        } else {
            None
        };
        Ok(SwitchCase {
            label,
            body,
            span: self.span_from(start),
        })
    }

    fn for_statement(&mut self, annotations: Vec<Annotation>) -> Parse<StatementKind> {
        self.bump();
        self.expect(Tok::LParen, "after `for`")?;
        self.scopes.push();
        let statement = if self.at_for_in() {
            self.for_in(annotations)
        } else {
            self.for_loop(annotations)
        };
        self.scopes.pop();
        statement
    }

    /// Whether `T x in` comes next, annotations aside.
    fn at_for_in(&self) -> bool {
        let mut at = self.pos;
        while self.tok_at(at) == Tok::At {
            at += 2;
            if matches!(self.tok_at(at), Tok::LParen | Tok::LBracket) {
                match self.after_brackets(at) {
                    Some(after) => at = after,
                    None => return false,
                }
            }
        }
        self.scan_type(at)
            .is_some_and(|end| self.tok_at(end).is_name() && self.tok_at(end + 1) == Tok::In)
    }

    fn for_in(&mut self, mut annotations: Vec<Annotation>) -> Parse<StatementKind> {
        annotations.append(&mut self.opt_annotations()?);
        let ty = Some(self.ty()?);
        let name = self.name("the name of the loop variable")?;
        self.declare(&name, NameClass::Value);
        let span = name.span;
        let mut variable: Expr = self.expr(ExprKind::Name { absolute: false, name }, span);
        variable.span = span;
        self.expect(Tok::In, "after the loop variable")?;
        let collection = self.bracketed(Self::collection)?;
        self.expect(Tok::RParen, "after what the loop runs over")?;
        let body = Box::new(self.statement_in_scope()?);
        Ok(StatementKind::ForIn {
            annotations,
            ty,
            variable,
            collection,
            body,
        })
    }

    fn for_loop(&mut self, annotations: Vec<Annotation>) -> Parse<StatementKind> {
        let (init, condition, update) = self.for_header()?;
        let body = Box::new(self.statement_in_scope()?);
        Ok(StatementKind::For {
            annotations,
            init,
            condition,
            update,
            body,
        })
    }

    /// What stands between the parentheses. Apart from [`Self::for_loop`] to keep the frames of
    /// nested loops small.
    #[inline(never)]
    fn for_header(&mut self) -> Parse<(Vec<Statement>, Expr, Vec<Statement>)> {
        let init = self.comma_separated(Tok::Semi, Self::for_init)?;
        self.expect(Tok::Semi, "after the initialisation of the loop")?;
        let condition = self.bracketed(Self::expression)?;
        self.expect(Tok::Semi, "after the condition of the loop")?;
        let update = self.comma_separated(Tok::RParen, |p| {
            let start = p.start();
            let kind = p.assignment_or_call()?;
            Ok(Statement {
                kind,
                span: p.span_from(start),
            })
        })?;
        self.expect(Tok::RParen, "after the update of the loop")?;
        Ok((init, condition, update))
    }

    /// Statements up to `end`, which stays.
    fn comma_separated(
        &mut self,
        end: Tok,
        mut rule: impl FnMut(&mut Self) -> Parse<Statement>,
    ) -> Parse<Vec<Statement>> {
        let mut statements = Vec::new();
        if self.at(end) {
            return Ok(statements);
        }
        loop {
            statements.push(rule(self)?);
            if !self.eat(Tok::Comma) {
                return Ok(statements);
            }
        }
    }

    fn for_init(&mut self) -> Parse<Statement> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let kind = if !annotations.is_empty() || self.at_typed_declaration() {
            let variable = self.variable_without_semicolon()?;
            let kind = DeclarationKind::Variable(variable);
            StatementKind::Declaration(Box::new(self.declared(annotations, kind, start)))
        } else if self.tok().is_name() && self.nth(1) == Tok::In {
            self.bump();
            return self.unexpected_with_help(
                "an assignment or a call",
                Some("declare the loop variable: `for (bit<8> i in 1..6)`"),
            );
        } else {
            self.assignment_or_call()?
        };
        Ok(Statement {
            kind,
            span: self.span_from(start),
        })
    }
}
