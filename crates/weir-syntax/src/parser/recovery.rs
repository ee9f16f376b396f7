//! Moving on after a syntax error.

use super::Parser;
use crate::token::Tok;

/// Keywords that begin a declaration only at the top level, or a block that ends at one.
pub(super) fn begins_top_level(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Control
            | Tok::Parser
            | Tok::Package
            | Tok::Header
            | Tok::HeaderUnion
            | Tok::Struct
            | Tok::Enum
            | Tok::Typedef
            | Tok::Extern
    )
}

fn begins_local(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Const | Tok::Action | Tok::Table | Tok::At | Tok::State | Tok::Transition
    )
}

fn begins_statement(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::If | Tok::Switch | Tok::Return | Tok::Exit | Tok::Break | Tok::Continue | Tok::For
    )
}

impl Parser<'_> {
    /// Moves on after a failed top-level declaration that began at token `start`.
    pub(super) fn recover_declaration(&mut self, start: usize) {
        self.recover(start, |tok| {
            begins_top_level(tok) || matches!(tok, Tok::Const | Tok::Action | Tok::At)
        });
        self.eat(Tok::RBrace);
    }

    /// Moves on after a failed member of a block: stops before the closing brace, after `;`, after
    /// a braced group, or before what begins another member.
    pub(super) fn recover_member(&mut self, start: usize) {
        self.recover(start, |tok| begins_top_level(tok) || begins_local(tok));
    }

    /// Moves on after a failed statement.
    pub(super) fn recover_statement(&mut self, start: usize) {
        self.recover(start, |tok| {
            begins_top_level(tok) || begins_local(tok) || begins_statement(tok)
        });
    }

    /// Moves on after a failed element of a braced list of names or fields: also stops after `,`.
    pub(super) fn recover_element(&mut self, start: usize) {
        self.recover(start, begins_top_level);
    }

    fn recover(&mut self, start: usize, stops: impl Fn(Tok) -> bool) {
        if !self.is_declaration() {
            self.leave_brackets(start);
        }
        loop {
            let tok = self.tok();
            match tok {
                Tok::Eof | Tok::RBrace => break,
                Tok::Semi => {
                    self.bump();
                    break;
                }
                _ if self.pos > start && stops(tok) && (!begins_top_level(tok) || self.is_declaration()) => break,
                Tok::LBrace => {
                    self.skip_brackets();
                    if self.tok().is_name() && self.nth(1) == Tok::Semi {
                        self.bump();
                    }
                    self.eat(Tok::Semi);
                    break;
                }
                Tok::LParen | Tok::LBracket => self.skip_brackets(),
                _ => {
                    self.bump();
                }
            }
        }
        self.quiet_until = Some(self.pos);
    }

    /// Whether a declaration begins here: its keyword may also be a name in the wrong place, which
    /// is followed by other things (`bit<8> header;`).
    fn is_declaration(&self) -> bool {
        let follows = self.nth(1);
        let is_name = matches!(
            follows,
            Tok::Semi | Tok::Comma | Tok::RBrace | Tok::RParen | Tok::Assign | Tok::Dot | Tok::Colon | Tok::RBracket
        );
        begins_top_level(self.tok()) && !is_name
    }

    /// Moves past all brackets that were opened since token `start` and are open at the cursor.
    fn leave_brackets(&mut self, start: usize) {
        let mut at = start;
        while at < self.pos {
            at = self.after_brackets(at).unwrap_or(at + 1);
        }
        if at > self.pos {
            self.skip_to(at);
        }
    }

    /// Moves past the bracket that closes the one at the cursor, or just past that one.
    fn skip_brackets(&mut self) {
        match self.after_brackets(self.pos) {
            Some(after) => self.skip_to(after),
            None => {
                self.bump();
            }
        }
    }

    fn skip_to(&mut self, index: usize) {
        self.pos = index;
        self.looks.set(0);
    }
}
