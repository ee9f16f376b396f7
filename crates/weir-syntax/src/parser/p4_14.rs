//! Recognises P4_14, the version of the language before P4_16: its declarations parse as nothing
//! here.

use super::Parser;
use crate::diagnostic::Diagnostic;
use crate::token::Tok;

/// Words that begin a declaration `WORD NAME {` of P4_14. No declaration of P4_16 has that form.
const BRACED: [&str; 9] = [
    "header_type",
    "field_list",
    "field_list_calculation",
    "action_profile",
    "action_selector",
    "counter",
    "meter",
    "register",
    "blackbox",
];

impl Parser<'_> {
    /// The error that the program is P4_14, at its first declaration that only P4_14 has.
    pub(super) fn p4_14(&self) -> Option<Diagnostic> {
        let mut at = 0;
        let mut begins = true;
        while self.tok_at(at) != Tok::Eof {
            if begins && self.is_p4_14(at) {
                let message = "this is P4_14, but weir compiles P4_16";
                let help = "p4c translates it: `p4test --std p4-14 OLD.p4 --pp NEW.p4`";
                return Some(Diagnostic::error("p4-14", self.tokens[at].span, message).help(help));
            }
            let tok = self.tok_at(at);
            at = match tok {
                Tok::LBrace | Tok::LParen | Tok::LBracket => self.after_brackets(at).unwrap_or(at + 1),
                _ => at + 1,
            };
            begins = matches!(tok, Tok::LBrace | Tok::Semi);
        }
        None
    }

    /// Whether the declaration that begins at a token is one of P4_14.
    fn is_p4_14(&self, at: usize) -> bool {
        let second = self.tok_at(at + 1);
        let third = self.tok_at(at + 2);
        if !second.is_name() {
            return false;
        }
        match self.tok_at(at) {
            Tok::Header => third.is_name() && matches!(self.tok_at(at + 3), Tok::Semi | Tok::LBracket),
            Tok::Table => {
                let property = self.tokens.get(at + 3).map(|t| t.text(self.interner));
                third == Tok::LBrace && property == Some("reads")
            }
            Tok::Parser => third == Tok::LBrace && self.returns_without_states(at + 2),
            Tok::Ident => match self.tokens[at].text(self.interner) {
                "metadata" => third.is_name() && matches!(self.tok_at(at + 3), Tok::Semi | Tok::LBrace),
                "calculated_field" => third == Tok::Dot,
                word => third == Tok::LBrace && BRACED.contains(&word),
            },
            _ => false,
        }
    }

    /// Whether a braced group has a `return` and no `state`: a parser of P4_14 is a single state.
    fn returns_without_states(&self, brace: usize) -> bool {
        let end = self.after_brackets(brace).unwrap_or(brace);
        let body = &self.tokens[brace..end];
        body.iter().any(|t| t.tok == Tok::Return) && !body.iter().any(|t| t.tok == Tok::State)
    }
}
