//! Integer expressions of `#if` and `#elif`.

use super::Preprocessor;
use crate::source::Span;
use crate::token::{Interner, Sym, Tok, Token};

/// Deepest nesting of parentheses, unary and conditional operators.
const MAX_DEPTH: u32 = 100;

impl Preprocessor<'_> {
    /// Whether the condition on a line holds; a mistaken one does not.
    pub(super) fn condition(&mut self, line: Vec<Token>, directive: Span) -> bool {
        if line.is_empty() {
            self.error(directive, "this conditional has no condition");
            return false;
        }
        let Some(line) = self.replace_defined(&line) else {
            return false;
        };
        let line = self.expand_line(&line);
        if self.aborted {
            return false;
        }
        let end = line.last().map_or(directive, |t| t.span);
        let mut evaluator = Evaluator {
            tokens: &line,
            next: 0,
            interner: &self.interner,
            depth: 0,
            end,
        };
        let value = evaluator.conditional(true).and_then(|value| match evaluator.peek() {
            None => Ok(value),
            Some(token) => Err((token.span, format!("unexpected `{}`", token.text(evaluator.interner)))),
        });
        match value {
            Ok(value) => value != 0,
            Err((span, message)) => {
                self.error(span, format!("bad preprocessor condition: {message}"));
                false
            }
        }
    }

    /// Replaces `defined X` and `defined(X)` before macros are expanded.
    fn replace_defined(&mut self, line: &[Token]) -> Option<Vec<Token>> {
        let mut result = Vec::with_capacity(line.len());
        let mut i = 0;
        while i < line.len() {
            let token = line[i];
            i += 1;
            if token.tok != Tok::Ident || token.sym != self.sym_defined {
                result.push(token);
                continue;
            }
            let parenthesis = line.get(i).is_some_and(|t| t.tok == Tok::LParen);
            i += usize::from(parenthesis);
            let name = line.get(i).filter(|t| t.tok == Tok::Ident);
            let closed = !parenthesis || line.get(i + 1).is_some_and(|t| t.tok == Tok::RParen);
            let (Some(name), true) = (name, closed) else {
                self.error(token.span, "`defined` takes one name: `defined(NAME)`");
                return None;
            };
            i += 1 + usize::from(parenthesis);
            let known = self.is_defined(name.sym);
            let sym = self.interner.intern(if known { "1" } else { "0" });
            result.push(Token {
                tok: Tok::Int,
                sym,
                ..token
            });
        }
        Some(result)
    }

    pub(super) fn is_defined(&self, name: Sym) -> bool {
        self.macros.contains_key(&name) || name == self.sym_line || name == self.sym_file
    }
}

type Value = Result<i128, (Span, String)>;

struct Evaluator<'a> {
    tokens: &'a [Token],
    next: usize,
    interner: &'a Interner,
    depth: u32,
    end: Span,
}

impl Evaluator<'_> {
    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    fn eat(&mut self, tok: Tok) -> bool {
        let found = self.peek().is_some_and(|t| t.tok == tok);
        self.next += usize::from(found);
        found
    }

    fn fail<T>(&self, message: &str) -> Result<T, (Span, String)> {
        Err((self.peek().map_or(self.end, |t| t.span), message.to_string()))
    }

    fn nested(&mut self, rule: impl FnOnce(&mut Self) -> Value) -> Value {
        if self.depth >= MAX_DEPTH {
            return self.fail("nested too deeply");
        }
        self.depth += 1;
        let value = rule(self);
        self.depth -= 1;
        value
    }

    /// `live` is false where the value is not used: mistakes of arithmetic do not count there.
    fn conditional(&mut self, live: bool) -> Value {
        let condition = self.binary(0, live)?;
        if !self.eat(Tok::Question) {
            return Ok(condition);
        }
        let then = self.nested(|e| e.conditional(live && condition != 0))?;
        if !self.eat(Tok::Colon) {
            return self.fail("expected `:`");
        }
        let otherwise = self.nested(|e| e.conditional(live && condition == 0))?;
        Ok(if condition != 0 { then } else { otherwise })
    }

    /// The binary operator that comes next: its token, precedence and length in tokens.
    fn operator(&self) -> Option<(Tok, u8, usize)> {
        let token = self.peek()?;
        let precedence = match token.tok {
            Tok::OrOr => 1,
            Tok::AndAnd => 2,
            Tok::Or => 3,
            Tok::Caret => 4,
            Tok::And => 5,
            Tok::EqEq | Tok::NotEq => 6,
            Tok::Lt | Tok::Le | Tok::Ge => 7,
            Tok::Gt => {
                let next = self.tokens.get(self.next + 1);
                if next.is_some_and(|t| t.tok == Tok::Gt && !t.has_space()) {
                    // `>>` comes as two tokens; `Shl` with length 2 stands for it.
                    return Some((Tok::Shl, 8, 2));
                }
                7
            }
            Tok::Shl => 8,
            Tok::Plus | Tok::Minus => 9,
            Tok::Star | Tok::Slash | Tok::Percent => 10,
            _ => return None,
        };
        Some((token.tok, precedence, 1))
    }

    fn binary(&mut self, minimum: u8, live: bool) -> Value {
        let mut left = self.unary(live)?;
        while let Some((operator, precedence, length)) = self.operator() {
            if precedence <= minimum {
                break;
            }
            let span = self.peek().map_or(self.end, |t| t.span);
            self.next += length;
            let right_live = match operator {
                Tok::OrOr => live && left == 0,
                Tok::AndAnd => live && left != 0,
                _ => live,
            };
            let right = self.binary(precedence, right_live)?;
            left = match apply(operator, length, left, right) {
                Some(value) => value,
                None if live => return Err((span, "division by zero".to_string())),
                None => 0,
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> Value {
        let Some(token) = self.peek() else {
            return self.fail("expected a value");
        };
        self.next += 1;
        match token.tok {
            Tok::Bang => Ok(i128::from(self.nested(|e| e.unary(live))? == 0)),
            Tok::Minus => Ok(self.nested(|e| e.unary(live))?.wrapping_neg()),
            Tok::Plus => self.nested(|e| e.unary(live)),
            Tok::Tilde => Ok(!self.nested(|e| e.unary(live))?),
            Tok::LParen => {
                let value = self.nested(|e| e.conditional(live))?;
                if self.eat(Tok::RParen) {
                    Ok(value)
                } else {
                    self.fail("expected `)`")
                }
            }
            // Names that are not macros are 0, as in C.
            Tok::Ident => Ok(0),
            Tok::Int => {
                let text = token.text(self.interner);
                number(text).ok_or_else(|| (token.span, format!("`{text}` is not an integer")))
            }
            _ => Err((
                token.span,
                format!("expected a value, found `{}`", token.text(self.interner)),
            )),
        }
    }
}

/// `None` for a division by zero.
fn apply(operator: Tok, length: usize, a: i128, b: i128) -> Option<i128> {
    let shift = u32::try_from(b).ok().filter(|&n| n < 127);
    Some(match operator {
        Tok::OrOr => i128::from(a != 0 || b != 0),
        Tok::AndAnd => i128::from(a != 0 && b != 0),
        Tok::Or => a | b,
        Tok::Caret => a ^ b,
        Tok::And => a & b,
        Tok::EqEq => i128::from(a == b),
        Tok::NotEq => i128::from(a != b),
        Tok::Lt => i128::from(a < b),
        Tok::Le => i128::from(a <= b),
        Tok::Gt => i128::from(a > b),
        Tok::Ge => i128::from(a >= b),
        Tok::Shl if length == 2 => shift.map_or(0, |n| a >> n),
        Tok::Shl => shift.map_or(0, |n| a.wrapping_shl(n)),
        Tok::Plus => a.wrapping_add(b),
        Tok::Minus => a.wrapping_sub(b),
        Tok::Star => a.wrapping_mul(b),
        Tok::Slash if b != 0 => a.wrapping_div(b),
        Tok::Percent if b != 0 => a.wrapping_rem(b),
        _ => return None,
    })
}

/// Integers of C (with suffixes) and of P4 without width.
fn number(text: &str) -> Option<i128> {
    if let Ok(integer) = crate::literal::integer(text) {
        return i128::try_from(integer.value).ok();
    }
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    i128::try_from(crate::literal::integer(digits).ok()?.value).ok()
}
