//! Looking ahead: recognises types and brackets without consuming or building anything.

use super::Parser;
use super::scopes::NameClass;
use crate::token::{Tok, Token};

/// Longest type argument list looked through, in tokens.
const MAX_TYPE_TOKENS: u32 = 400;
/// Deepest nesting of type arguments looked through.
const MAX_TYPE_NESTING: u32 = 32;

/// For each opening bracket the index of its closing one. A brace is never matched across by a
/// parenthesis or square bracket.
pub(super) fn match_brackets(tokens: &[Token]) -> Vec<u32> {
    let mut closing = vec![u32::MAX; tokens.len()];
    let mut open: Vec<u32> = Vec::new();
    let mut braces = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        let opener = match token.tok {
            Tok::LParen | Tok::LBracket => {
                open.push(i as u32);
                continue;
            }
            Tok::LBrace => {
                braces += 1;
                open.push(i as u32);
                continue;
            }
            Tok::RParen => Tok::LParen,
            Tok::RBracket => Tok::LBracket,
            Tok::RBrace if braces > 0 => Tok::LBrace,
            _ => continue,
        };
        while let Some(&top) = open.last() {
            let found = tokens[top as usize].tok;
            if found == Tok::LBrace && opener != Tok::LBrace {
                break;
            }
            open.pop();
            braces -= usize::from(found == Tok::LBrace);
            if found == opener {
                closing[top as usize] = i as u32;
                break;
            }
        }
    }
    closing
}

impl Parser<'_> {
    /// The index just after the bracket that closes the one at `index`.
    pub(super) fn after_brackets(&self, index: usize) -> Option<usize> {
        match self.closing.get(index) {
            Some(&close) if close != u32::MAX => Some(close as usize + 1),
            _ => None,
        }
    }

    /// The index just after the type that begins at `index`, if one does.
    pub(super) fn scan_type(&self, index: usize) -> Option<usize> {
        let mut budget = MAX_TYPE_TOKENS;
        self.scan_type_within(index, &mut budget, 0)
    }

    /// The index just after `<…>` at `index`, if those are type arguments.
    pub(super) fn scan_type_arguments(&self, index: usize) -> Option<usize> {
        let mut budget = MAX_TYPE_TOKENS;
        self.scan_arguments_within(index, &mut budget, 0)
    }

    fn scan_type_within(&self, index: usize, budget: &mut u32, depth: u32) -> Option<usize> {
        *budget = budget.checked_sub(1)?;
        if depth > MAX_TYPE_NESTING {
            return None;
        }
        let mut end = match self.tok_at(index) {
            Tok::Bool | Tok::ErrorKw | Tok::MatchKind | Tok::StringKw | Tok::Void | Tok::Underscore => index + 1,
            Tok::Bit | Tok::IntKw | Tok::Varbit if self.tok_at(index + 1) == Tok::Lt => {
                self.scan_width(index + 2, budget)?
            }
            Tok::Bit | Tok::IntKw => index + 1,
            Tok::Tuple if self.tok_at(index + 1) == Tok::Lt && self.tok_at(index + 2) == Tok::Gt => index + 3,
            Tok::Tuple => self.scan_arguments_within(index + 1, budget, depth)?,
            tok if tok.is_name() || tok == Tok::Dot => {
                let name = index + usize::from(tok == Tok::Dot);
                if !self.tok_at(name).is_name() {
                    return None;
                }
                match self.tok_at(name + 1) {
                    Tok::Lt => self.scan_arguments_within(name + 1, budget, depth)?,
                    _ => name + 1,
                }
            }
            _ => return None,
        };
        while self.tok_at(end) == Tok::LBracket {
            end = self.after_brackets(end)?;
        }
        Some(end)
    }

    fn scan_arguments_within(&self, index: usize, budget: &mut u32, depth: u32) -> Option<usize> {
        if self.tok_at(index) != Tok::Lt {
            return None;
        }
        let mut at = index + 1;
        loop {
            at = self.scan_type_within(at, budget, depth + 1)?;
            match self.tok_at(at) {
                Tok::Comma => at += 1,
                Tok::Gt => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// After the `>` that closes a width.
    fn scan_width(&self, index: usize, budget: &mut u32) -> Option<usize> {
        let mut at = index;
        loop {
            *budget = budget.checked_sub(1)?;
            match self.tok_at(at) {
                Tok::Gt => return Some(at + 1),
                Tok::LParen | Tok::LBracket => at = self.after_brackets(at)?,
                Tok::Eof | Tok::Semi | Tok::LBrace | Tok::RBrace | Tok::RParen | Tok::RBracket => {
                    return None;
                }
                _ => at += 1,
            }
        }
    }

    /// What the name (perhaps with a leading dot) at `index` is known to be.
    pub(super) fn class_at(&self, index: usize) -> Option<NameClass> {
        if self.tok_at(index) == Tok::Dot {
            return self.scopes.look_up_global(self.sym_at(index + 1)?);
        }
        self.scopes.look_up(self.sym_at(index)?)
    }

    /// Whether the `(` at the cursor begins a cast.
    pub(super) fn at_cast(&self) -> bool {
        let first = self.nth(1);
        if first == Tok::ErrorKw && self.nth(2) == Tok::Dot {
            return false;
        }
        let Some(close) = self.scan_type(self.pos + 1) else {
            return false;
        };
        if self.tok_at(close) != Tok::RParen {
            return false;
        }
        let next = self.tok_at(close + 1);
        if !begins_operand(next) {
            return false;
        }
        if !first.is_name() && first != Tok::Dot {
            return true;
        }
        match self.class_at(self.pos + 1) {
            Some(NameClass::Type) => true,
            Some(NameClass::Value) => false,
            // An unknown name: a cast if the next token cannot go on after a value.
            None => !matches!(next, Tok::Minus | Tok::Plus | Tok::LParen),
        }
    }

    /// Whether a declaration of a variable or an instance begins at the cursor.
    pub(super) fn at_typed_declaration(&self) -> bool {
        match self.tok() {
            Tok::Bit | Tok::IntKw | Tok::Bool | Tok::Varbit | Tok::StringKw | Tok::Tuple | Tok::Void => return true,
            Tok::MatchKind => return true,
            Tok::ErrorKw => return self.nth(1) != Tok::Dot,
            Tok::List if self.nth(1) == Tok::Lt => return true,
            _ => {}
        }
        let Some(end) = self.scan_type(self.pos) else {
            return false;
        };
        if self.tok_at(end).is_name() {
            return true;
        }
        if self.tok_at(end) == Tok::Underscore {
            return self.class_at(self.pos) == Some(NameClass::Type);
        }
        if self.tok_at(end) != Tok::LParen || self.class_at(self.pos) == Some(NameClass::Value) {
            return false;
        }
        self.after_brackets(end)
            .is_some_and(|after| self.tok_at(after).is_name())
    }
}

/// Whether an operand of an expression may begin with the token.
fn begins_operand(tok: Tok) -> bool {
    tok.is_name()
        || matches!(
            tok,
            Tok::Int
                | Tok::Str
                | Tok::True
                | Tok::False
                | Tok::This
                | Tok::Dot
                | Tok::LParen
                | Tok::LBrace
                | Tok::InvalidHeader
                | Tok::Bang
                | Tok::Tilde
                | Tok::Minus
                | Tok::Plus
                | Tok::ErrorKw
                | Tok::Ellipsis
        )
}
