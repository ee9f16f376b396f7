//! Parsers and controls.

use super::recovery::begins_top_level;
use super::scopes::NameClass;
use super::{Parse, Parser};
use crate::ast::{
    Annotation, BlockType, Control, Declaration, DeclarationKind, ExprKind, Parser as ParserDeclaration, ParserState,
    SelectCase, Statement, StatementKind, Transition, ValueSet,
};
use crate::source::Span;
use crate::token::Tok;

impl Parser<'_> {
    /// Name, type parameters and parameters of a parser, control or package.
    fn block_type(&mut self, what: &str) -> Parse<BlockType> {
        let name = self.name(what)?;
        let type_parameters = self.opt_type_parameters()?;
        let parameters = self.parameters()?;
        Ok(BlockType {
            name,
            type_parameters,
            parameters,
        })
    }

    /// `package P<T>(…);`
    pub(super) fn package(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.declare_next(NameClass::Type);
        self.scopes.push();
        let signature = self.block_type("the name of a package");
        self.scopes.pop();
        let signature = signature?;
        self.semicolon("after the package")?;
        Ok(DeclarationKind::PackageType(signature))
    }

    /// `parserDeclaration` or a parser type.
    pub(super) fn parser(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.declare_next(NameClass::Type);
        self.scopes.push();
        let parser = self.parser_after_keyword();
        self.scopes.pop();
        parser
    }

    fn parser_after_keyword(&mut self) -> Parse<DeclarationKind> {
        let signature = self.block_type("the name of a parser")?;
        if self.eat(Tok::Semi) {
            return Ok(DeclarationKind::ParserType(signature));
        }
        let constructor_parameters = self.opt_constructor_parameters()?;
        self.body_opens("parser")?;
        let mut locals = Vec::new();
        let mut states = Vec::new();
        self.members("a state, a declaration", |p| {
            let start = p.start();
            let annotations = p.opt_annotations()?;
            if p.at(Tok::State) && p.nth(1).is_name() {
                states.push(p.state(annotations, start)?);
                return Ok(());
            }
            locals.push(p.parser_local(annotations, start)?);
            Ok(())
        })?;
        Ok(DeclarationKind::Parser(ParserDeclaration {
            signature,
            constructor_parameters,
            locals,
            states,
        }))
    }

    fn opt_constructor_parameters(&mut self) -> Parse<Vec<crate::ast::Parameter>> {
        if self.at(Tok::LParen) {
            self.parameters()
        } else {
            Ok(Vec::new())
        }
    }

    fn body_opens(&mut self, what: &str) -> Parse<()> {
        if self.eat(Tok::LBrace) {
            return Ok(());
        }
        self.unexpected(&format!("`;` or the body of the {what}"))
    }

    fn parser_local(&mut self, annotations: Vec<Annotation>, start: Span) -> Parse<Declaration> {
        if self.at(Tok::ValueSet) {
            let kind = self.value_set()?;
            return Ok(self.declared(annotations, kind, start));
        }
        if !self.at(Tok::Const) && !self.at_typed_declaration() {
            return self.unexpected("a state or a declaration");
        }
        self.variable_or_instance(annotations)
    }

    /// `value_set<T>(n) v;`
    fn value_set(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.expect(Tok::Lt, "after `value_set`")?;
        let element = self.ty()?;
        self.expect(Tok::Gt, "after the type of the members")?;
        self.expect(Tok::LParen, "before the size")?;
        let size = self.bracketed(Self::expression)?;
        self.expect(Tok::RParen, "after the size")?;
        let name = self.name("the name of a value set")?;
        self.declare(&name, NameClass::Value);
        self.semicolon("after the value set")?;
        Ok(DeclarationKind::ValueSet(ValueSet { element, size, name }))
    }

    // ------------------------------------------------------------------------------------- states

    fn state(&mut self, annotations: Vec<Annotation>, start: Span) -> Parse<ParserState> {
        self.bump();
        let name = self.name("the name of a state")?;
        self.expect(Tok::LBrace, "before the body of the state")?;
        self.scopes.push();
        let body = self.state_body();
        self.scopes.pop();
        let (statements, transition) = body?;
        self.expect(Tok::RBrace, "at the end of the state")?;
        Ok(ParserState {
            annotations,
            name,
            statements,
            transition,
            span: self.span_from(start),
        })
    }

    fn state_body(&mut self) -> Parse<(Vec<Statement>, Option<Transition>)> {
        let mut statements = Vec::new();
        let mut transition = None;
        while !matches!(self.tok(), Tok::RBrace | Tok::Eof) {
            if begins_top_level(self.tok())
                || (self.at(Tok::State) && self.nth(1).is_name() && self.nth(2) == Tok::LBrace)
            {
                self.unexpected::<()>("a statement, `transition` or `}`")?;
            }
            if transition.is_some() {
                self.unexpected::<()>("`}` after the transition")?;
            }
            let start = self.pos;
            if self.at(Tok::Transition) {
                match self.transition() {
                    Ok(t) => transition = Some(t),
                    Err(_) => self.recover_statement(start),
                }
                continue;
            }
            match self.state_statement() {
                Ok(statement) => statements.push(statement),
                Err(_) => self.recover_statement(start),
            }
        }
        Ok((statements, transition))
    }

    fn state_statement(&mut self) -> Parse<Statement> {
        match self.tok() {
            Tok::Return | Tok::Exit | Tok::Switch | Tok::For | Tok::Break | Tok::Continue => {
                self.unexpected("a statement of a parser state, `transition` or `}`")
            }
            Tok::LBrace => {
                let start = self.start();
                let block = self.block()?;
                Ok(Statement {
                    kind: StatementKind::Block(block),
                    span: self.span_from(start),
                })
            }
            _ => self.statement(),
        }
    }

    /// `transition s;` or `transition select(…) { … }`
    fn transition(&mut self) -> Parse<Transition> {
        self.bump();
        if !self.at(Tok::Select) {
            let state = self.name("the name of a state, or `select`")?;
            self.semicolon("after the transition")?;
            return Ok(Transition::State(state));
        }
        let start = self.bump().span;
        self.expect(Tok::LParen, "after `select`")?;
        let expressions = self.bracketed(|p| p.list(Tok::RParen, false, "after an expression", Self::expression))?;
        self.expect(Tok::LBrace, "before the cases of `select`")?;
        let cases = self.members("a case", |p| p.select_case(expressions.len()))?;
        Ok(Transition::Select {
            expressions,
            cases,
            span: self.span_from(start),
        })
    }

    fn select_case(&mut self, selected: usize) -> Parse<SelectCase> {
        let start = self.start();
        let mut keyset = self.keyset()?;
        if self.at(Tok::Comma) {
            let help = if selected == 1 {
                "write a case for each value: `A: state; B: state;`"
            } else {
                "the values for several expressions stand in parentheses: `(A, B): state;`"
            };
            self.several_values("a case of `select` has one keyset", help, Self::simple_keyset)?;
            // The first value alone need not have the type of what is selected.
            keyset = self.expr(ExprKind::Error, start);
        }
        self.expect(Tok::Colon, "and a state after the keyset")?;
        let state = self.name("the name of a state")?;
        self.semicolon("after the case")?;
        Ok(SelectCase {
            keyset,
            state,
            span: self.span_from(start),
        })
    }

    // ----------------------------------------------------------------------------------- controls

    /// `controlDeclaration` or a control type.
    pub(super) fn control(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.declare_next(NameClass::Type);
        self.scopes.push();
        let control = self.control_after_keyword();
        self.scopes.pop();
        control
    }

    fn control_after_keyword(&mut self) -> Parse<DeclarationKind> {
        let signature = self.block_type("the name of a control")?;
        if self.eat(Tok::Semi) {
            return Ok(DeclarationKind::ControlType(signature));
        }
        let constructor_parameters = self.opt_constructor_parameters()?;
        self.body_opens("control")?;
        let mut locals = Vec::new();
        while !matches!(self.tok(), Tok::Apply | Tok::RBrace | Tok::Eof) {
            if begins_top_level(self.tok()) {
                return self.unexpected("a declaration or `apply`");
            }
            let start = self.pos;
            match self.control_local() {
                Ok(local) => locals.push(local),
                Err(_) => self.recover_member(start),
            }
        }
        if !self.at(Tok::Apply) {
            return self.unexpected_with_help(
                "a declaration or `apply`",
                Some("a control ends with its `apply { … }` block"),
            );
        }
        self.bump();
        let apply = self.block()?;
        if !self.at(Tok::RBrace) {
            return self.unexpected("`}` after the `apply` block");
        }
        self.bump();
        Ok(DeclarationKind::Control(Control {
            signature,
            constructor_parameters,
            locals,
            apply,
        }))
    }

    fn control_local(&mut self) -> Parse<Declaration> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let kind = match self.tok() {
            Tok::Action => self.action()?,
            Tok::Table => self.table()?,
            Tok::Const => return self.variable_or_instance(annotations),
            _ if self.at_typed_declaration() => return self.variable_or_instance(annotations),
            _ => return self.unexpected("a declaration or `apply`"),
        };
        Ok(self.declared(annotations, kind, start))
    }
}
