//! Tables.

use super::recovery::begins_top_level;
use super::scopes::NameClass;
use super::{Parse, Parser};
use crate::ast::{ActionReference, DeclarationKind, KeyElement, Table, TableEntry, TableProperty, TablePropertyValue};
use crate::token::Tok;

impl Parser<'_> {
    /// `tableDeclaration`
    pub(super) fn table(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let name = self.name("the name of a table")?;
        self.declare(&name, NameClass::Value);
        self.expect(Tok::LBrace, "before the properties of the table")?;
        let properties = self.members("a table property", Self::table_property)?;
        Ok(DeclarationKind::Table(Table { name, properties }))
    }

    /// Members up to and with `}`, each recovering on its own.
    pub(super) fn members<T>(&mut self, what: &str, mut rule: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut members = Vec::new();
        while !self.eat(Tok::RBrace) {
            if self.at(Tok::Eof) || begins_top_level(self.tok()) {
                return self.unexpected(&format!("{what} or `}}`"));
            }
            let start = self.pos;
            match rule(self) {
                Ok(member) => members.push(member),
                Err(_) => self.recover_member(start),
            }
        }
        Ok(members)
    }

    fn table_property(&mut self) -> Parse<TableProperty> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let is_const = self.eat(Tok::Const);
        let keyword = self.tok();
        let name = self.name("the name of a table property")?;
        self.expect(Tok::Assign, "after the name of the property")?;
        let value = match keyword {
            Tok::Key => {
                self.expect(Tok::LBrace, "before the elements of the key")?;
                TablePropertyValue::Key(self.members("a key element", Self::key_element)?)
            }
            Tok::Actions => {
                self.expect(Tok::LBrace, "before the actions")?;
                TablePropertyValue::Actions(self.members("an action", Self::action_list_element)?)
            }
            Tok::Entries => {
                self.expect(Tok::LBrace, "before the entries")?;
                TablePropertyValue::Entries(self.members("an entry", Self::entry)?)
            }
            _ => {
                let value = self.expression()?;
                self.semicolon("after the property")?;
                TablePropertyValue::Expression(value)
            }
        };
        Ok(TableProperty {
            annotations,
            is_const,
            name,
            value,
            span: self.span_from(start),
        })
    }

    fn key_element(&mut self) -> Parse<KeyElement> {
        let start = self.start();
        let expression = self.expression()?;
        self.expect(Tok::Colon, "and a match kind after the key")?;
        let match_kind = self.name("the name of a match kind")?;
        let annotations = self.opt_annotations()?;
        self.semicolon("after the key element")?;
        Ok(KeyElement {
            expression,
            match_kind,
            annotations,
            span: self.span_from(start),
        })
    }

    fn action_list_element(&mut self) -> Parse<ActionReference> {
        let reference = self.action_reference()?;
        self.semicolon("after the action")?;
        Ok(reference)
    }

    fn action_reference(&mut self) -> Parse<ActionReference> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let absolute = self.eat(Tok::Dot);
        let name = self.name("the name of an action")?;
        let arguments = if self.at(Tok::LParen) {
            Some(self.arguments()?)
        } else {
            None
        };
        Ok(ActionReference {
            annotations,
            absolute,
            name,
            arguments,
            span: self.span_from(start),
        })
    }

    fn entry(&mut self) -> Parse<TableEntry> {
        let start = self.start();
        let is_const = self.eat(Tok::Const);
        let mut priority = None;
        if self.at(Tok::Priority) && self.nth(1) == Tok::Assign {
            self.bump();
            self.bump();
            priority = Some(self.expression()?);
            self.expect(Tok::Colon, "after the priority")?;
        }
        let keyset = self.keyset()?;
        self.expect(Tok::Colon, "and an action after the keys of the entry")?;
        let action = self.action_reference()?;
        let annotations = self.opt_annotations()?;
        self.semicolon("after the entry")?;
        Ok(TableEntry {
            is_const,
            priority,
            keyset,
            action,
            annotations,
            span: self.span_from(start),
        })
    }
}
