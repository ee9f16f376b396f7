//! The parser: hand-written recursive descent, one function per production of the grammar.
//!
//! Conventions: a function named after a production parses it and returns `Err(Fail)` after it has
//! reported an error; whoever parses a list of productions catches the failure, moves on to where
//! the next one may begin (`recovery`) and keeps what was parsed so far. One mistake is reported
//! once: nothing more is reported before a token is consumed after recovery.
//!
//! P4 needs to know which names are types to tell `(a) - b` from a cast. `scopes` holds that, and
//! `lookahead` recognises types without building them.
//!
//! The depth of the tree is bounded (so later phases may recurse over it), and so is the recursion
//! here: going beyond is one error of code `overlimit`, and the program ends there.

mod annotations;
mod blocks;
mod declarations;
mod expressions;
mod lookahead;
mod operators;
mod p4_14;
mod recovery;
mod scopes;
mod statements;
mod tables;
mod types;

use std::cell::Cell;

use crate::ast::{Expr, ExprId, ExprKind, Ident, Program};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{SourceMap, Span};
use crate::token::{Interner, Sym, Tok, Token};

/// Greatest height of an expression or type.
pub const MAX_EXPRESSION_DEPTH: u32 = 400;
/// Deepest nesting of brackets, unary operators and types: what the parser recurses on.
pub const MAX_NESTING: u32 = 128;
/// Deepest nesting of statements; every `else if` nests one deeper.
pub const MAX_STATEMENT_DEPTH: u32 = 200;
/// A parser that looks at tokens so often without consuming one is stuck.
const MAX_LOOKS: u32 = 1_000_000;

/// An error has been reported.
#[derive(Debug)]
pub(crate) struct Fail;

pub(crate) type Parse<T> = Result<T, Fail>;

pub(crate) struct Parser<'a> {
    tokens: Vec<Token>,
    /// For each opening bracket the index of its closing one, else `u32::MAX`.
    closing: Vec<u32>,
    pos: usize,
    interner: &'a Interner,
    sources: &'a SourceMap,
    diagnostics: Diagnostics,
    expr_count: u32,
    /// Height of the expression parsed last.
    height: u32,
    nesting: u32,
    statement_depth: u32,
    /// `>` closes a type here and is no operator.
    angle_closes: bool,
    /// `=` is a mistake for `==` here.
    in_condition: bool,
    /// No error is reported at or before this token index.
    quiet_until: Option<usize>,
    aborted: bool,
    looks: Cell<u32>,
    scopes: scopes::Scopes,
}

impl<'a> Parser<'a> {
    /// A parser over tokens that end with [`Tok::Eof`].
    pub(crate) fn new(tokens: Vec<Token>, interner: &'a Interner, sources: &'a SourceMap) -> Self {
        Parser {
            closing: lookahead::match_brackets(&tokens),
            tokens,
            pos: 0,
            interner,
            sources,
            diagnostics: Diagnostics::default(),
            expr_count: 0,
            height: 0,
            nesting: 0,
            statement_depth: 0,
            angle_closes: false,
            in_condition: false,
            quiet_until: None,
            aborted: false,
            looks: Cell::new(0),
            scopes: scopes::Scopes::default(),
        }
    }

    /// Parses a whole program.
    pub(crate) fn program(mut self) -> (Program, Diagnostics) {
        let mut declarations = Vec::new();
        if let Some(error) = self.p4_14() {
            self.diagnostics.push(error);
            self.pos = self.tokens.len() - 1;
        }
        while !self.at(Tok::Eof) {
            if self.eat(Tok::Semi) {
                continue;
            }
            let start = self.pos;
            match self.declaration() {
                Ok(declaration) => declarations.push(declaration),
                Err(Fail) => self.recover_declaration(start),
            }
        }
        (
            Program {
                declarations,
                expr_count: self.expr_count,
            },
            self.diagnostics,
        )
    }

    /// Parses one expression and nothing else.
    pub(crate) fn only_expression(mut self) -> (Option<Expr>, Diagnostics) {
        let expression = self.expression().and_then(|e| {
            if self.at(Tok::Eof) {
                Ok(e)
            } else {
                self.unexpected("the end of the expression")
            }
        });
        (expression.ok(), self.diagnostics)
    }

    // ------------------------------------------------------------------------------------- cursor

    fn token(&self) -> Token {
        self.tokens[self.pos]
    }

    fn tok(&self) -> Tok {
        self.looks.set(self.looks.get() + 1);
        if self.looks.get() > MAX_LOOKS {
            return Tok::Eof;
        }
        self.tokens[self.pos].tok
    }

    /// The kind of the token `n` after the current one.
    fn nth(&self, n: usize) -> Tok {
        self.tok_at(self.pos + n)
    }

    fn tok_at(&self, index: usize) -> Tok {
        self.tokens.get(index).map_or(Tok::Eof, |t| t.tok)
    }

    fn at(&self, tok: Tok) -> bool {
        self.tok() == tok
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        self.looks.set(0);
        if token.tok != Tok::Eof {
            self.pos += 1;
        }
        token
    }

    fn eat(&mut self, tok: Tok) -> bool {
        let found = self.at(tok);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, tok: Tok, after: &str) -> Parse<Token> {
        if self.at(tok) {
            return Ok(self.bump());
        }
        self.unexpected(&format!("`{}` {after}", tok.fixed_text().unwrap_or("")))
    }

    /// Expects `;`. If it is missing at the end of a line, parsing goes on as if it were there.
    fn semicolon(&mut self, after: &str) -> Parse<()> {
        if self.eat(Tok::Semi) {
            return Ok(());
        }
        let previous = self.previous_span();
        let new_line = self.sources.place(previous.hi).line < self.sources.place(self.token().span.lo).line;
        let failure = self.unexpected(&format!("`;` {after}"));
        if new_line && !self.aborted { Ok(()) } else { failure }
    }

    /// Expects a name; `what` says of what.
    fn name(&mut self, what: &str) -> Parse<Ident> {
        if self.tok().is_name() {
            let token = self.bump();
            return Ok(self.ident(token));
        }
        self.unexpected(what)
    }

    fn ident(&self, token: Token) -> Ident {
        Ident {
            name: self.interner.name(token.sym),
            span: token.span,
        }
    }

    /// The interned text of a name token; keywords are interned by their order.
    fn sym_at(&self, index: usize) -> Option<Sym> {
        let token = self.tokens.get(index)?;
        token.tok.is_name().then_some(token.sym)
    }

    fn previous_span(&self) -> Span {
        self.tokens[self.pos.saturating_sub(1)].span
    }

    fn span_from(&self, start: Span) -> Span {
        if self.pos == 0 {
            start
        } else {
            start.to(self.previous_span())
        }
    }

    fn start(&self) -> Span {
        self.token().span
    }

    // ------------------------------------------------------------------------------------- errors

    /// Reports that the current token is not what the grammar wants.
    fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        self.unexpected_with_help(expected, None)
    }

    fn unexpected_with_help<T>(&mut self, expected: &str, help: Option<&str>) -> Parse<T> {
        let token = self.token();
        let found = self.describe(token);
        let code = if token.tok == Tok::Unknown { "lexical" } else { "syntax" };
        let mut error = Diagnostic::error(code, token.span, format!("expected {expected}, found {found}"));
        if expected.starts_with('`') && !expected.contains(" or `") && self.pos > 0 {
            let end = self.previous_span().hi;
            let wanted = expected.split(' ').next().unwrap_or("");
            error = error.label(Span { lo: end, hi: end }, format!("{wanted} is missing here"));
        }
        if token.tok == Tok::Unknown && !token.text(self.interner).is_ascii() {
            error = error.help("characters beyond ASCII stand only in comments and strings");
        } else if let Some(help) = help {
            error = error.help(help);
        } else if expected.contains("name") && token.tok.is_keyword() && !token.tok.is_name() {
            error = error.help(format!("{found} is a keyword and cannot be a name"));
        }
        self.report(error)
    }

    /// Reports an error unless it follows from the one before.
    fn report<T>(&mut self, error: Diagnostic) -> Parse<T> {
        if self.looks.get() > MAX_LOOKS {
            return self.abort("the parser is stuck here; please report this program");
        }
        let quiet = self.quiet_until.is_some_and(|q| self.pos <= q) || self.token().tok == Tok::Error;
        if !quiet && !self.aborted {
            self.diagnostics.push(error);
        }
        if self.token().tok == Tok::Error {
            self.bump();
        }
        self.quiet_until = Some(self.pos);
        Err(Fail)
    }

    /// Reports a bound that was exceeded and ends the program.
    fn abort<T>(&mut self, message: &str) -> Parse<T> {
        if !self.aborted {
            let error = Diagnostic::error("overlimit", self.token().span, message);
            self.diagnostics.push(error);
        }
        self.aborted = true;
        self.looks.set(0);
        self.pos = self.tokens.len() - 1;
        Err(Fail)
    }

    fn describe(&self, token: Token) -> String {
        let text: String = token.text(self.interner).chars().take(40).collect();
        match token.tok {
            Tok::Eof => "the end of the file".to_string(),
            Tok::PragmaEnd => "the end of the pragma".to_string(),
            Tok::Ident => format!("name `{text}`"),
            Tok::Int => format!("integer `{text}`"),
            Tok::Str => "a string".to_string(),
            Tok::Unknown => format!("the character {text:?}"),
            _ => format!("`{text}`"),
        }
    }

    // ------------------------------------------------------------------------------------- bounds

    /// Runs a rule one level deeper.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= MAX_NESTING {
            return self.abort(&format!("this is nested more than {MAX_NESTING} deep"));
        }
        self.nesting += 1;
        let result = rule(self);
        self.nesting -= 1;
        result
    }

    /// Runs a rule between brackets, where `>` is an operator again.
    fn bracketed<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        let outer = std::mem::replace(&mut self.angle_closes, false);
        let result = self.nested(rule);
        self.angle_closes = outer;
        result
    }

    /// Notes the height of an expression built on children of height at most `below`.
    fn grow(&mut self, below: u32) -> Parse<()> {
        self.height = below + 1;
        if self.height > MAX_EXPRESSION_DEPTH {
            return self.abort(&format!(
                "this expression is more than {MAX_EXPRESSION_DEPTH} operators high"
            ));
        }
        Ok(())
    }

    fn expr(&mut self, kind: ExprKind, start: Span) -> Expr {
        let id = ExprId(self.expr_count);
        self.expr_count += 1;
        Expr {
            id,
            kind,
            span: self.span_from(start),
        }
    }

    /// Parses `rule` separated by commas until `close`, which is consumed. A comma before `close`
    /// is allowed if `trailing`.
    fn list<T>(
        &mut self,
        close: Tok,
        trailing: bool,
        after: &str,
        mut rule: impl FnMut(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut list = Vec::new();
        if self.eat(close) {
            return Ok(list);
        }
        loop {
            list.push(rule(self)?);
            if self.eat(close) {
                return Ok(list);
            }
            if !self.eat(Tok::Comma) {
                let close = close.fixed_text().unwrap_or("");
                return self.unexpected(&format!("`,` or `{close}` {after}"));
            }
            if trailing && self.eat(close) {
                return Ok(list);
            }
        }
    }
}

#[cfg(test)]
mod tests;
