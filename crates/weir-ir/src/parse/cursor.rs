//! The place in the tokens, and the small things that stand everywhere: words, numbers, ids, lists.

use super::tokens::Token;
use super::{ParseError, Parsed};
use crate::arena::Id;
use crate::bits::Bits;
use crate::program::{Loc, Operand, VarId};
use num_bigint::BigInt;

/// Deepest nesting of types and values.
const MAX_DEPTH: usize = 100;

/// A place in the tokens of a program.
pub(super) struct Parser {
    tokens: Vec<(Token, usize)>,
    pub(super) at: usize,
    depth: usize,
}

impl Parser {
    pub(super) fn new(tokens: Vec<(Token, usize)>) -> Self {
        Parser {
            tokens,
            at: 0,
            depth: 0,
        }
    }

    pub(super) fn peek(&self) -> &Token {
        self.peek_after(0)
    }

    /// The token after so many that come before it.
    pub(super) fn peek_after(&self, tokens: usize) -> &Token {
        self.tokens.get(self.at + tokens).map_or(&Token::End, |t| &t.0)
    }

    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    pub(super) fn fail<T>(&self, expected: &str) -> Parsed<T> {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |t| t.1);
        Err(ParseError::Syntax {
            line,
            expected: expected.into(),
            found: format!("{:?}", self.peek()),
        })
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    pub(super) fn is(&self, c: char) -> bool {
        *self.peek() == Token::Punctuation(c)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat(&mut self, c: char) -> bool {
        let found = self.is(c);
        self.at += usize::from(found);
        found
    }

    pub(super) fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) {
            Ok(())
        } else {
            self.fail(&format!("`{word}`"))
        }
    }

    pub(super) fn punctuation(&mut self, c: char) -> Parsed<()> {
        if self.eat(c) {
            Ok(())
        } else {
            self.fail(&format!("`{c}`"))
        }
    }

    pub(super) fn any_word(&mut self) -> Parsed<String> {
        match self.peek().clone() {
            Token::Word(w) => {
                self.at += 1;
                Ok(w)
            }
            _ => self.fail("a word"),
        }
    }

    pub(super) fn string(&mut self) -> Parsed<String> {
        match self.peek().clone() {
            Token::String(s) => {
                self.at += 1;
                Ok(s)
            }
            _ => self.fail("a string"),
        }
    }

    pub(super) fn optional_string(&mut self) -> Option<String> {
        let Token::String(found) = self.peek().clone() else {
            return None;
        };
        self.at += 1;
        Some(found)
    }

    pub(super) fn big(&mut self) -> Parsed<BigInt> {
        match self.peek().clone() {
            Token::Number(n) => {
                self.at += 1;
                Ok(n)
            }
            _ => self.fail("a number"),
        }
    }

    pub(super) fn number<N: TryFrom<BigInt>>(&mut self) -> Parsed<N> {
        let at = self.at;
        let value = self.big()?;
        N::try_from(value).or_else(|_| {
            self.at = at;
            self.fail("a smaller number")
        })
    }

    pub(super) fn bits(&mut self) -> Parsed<Bits> {
        match self.peek().clone() {
            Token::Bits(b) => {
                self.at += 1;
                Ok(b)
            }
            _ => self.fail("a constant like 8w0x2a"),
        }
    }

    /// `h3`, `t3`, …: a letter and a number in one word.
    pub(super) fn id<T>(&mut self, letter: char) -> Parsed<Id<T>> {
        if let Some(id) = self.peek_id(letter) {
            self.at += 1;
            return Ok(id);
        }
        self.fail(&format!("an id like {letter}0"))
    }

    pub(super) fn peek_id<T>(&self, letter: char) -> Option<Id<T>> {
        let Token::Word(w) = self.peek() else { return None };
        let digits = w.strip_prefix(letter)?;
        digits.parse::<u32>().ok().map(|n| Id::new(n as usize))
    }

    pub(super) fn var(&mut self) -> Parsed<VarId> {
        match *self.peek() {
            Token::Var(n) => {
                self.at += 1;
                Ok(Id::new(n))
            }
            _ => self.fail("a variable like %0"),
        }
    }

    pub(super) fn operand(&mut self) -> Parsed<Operand> {
        match self.peek() {
            Token::Var(_) => self.var().map(Operand::Var),
            Token::Bits(_) => self.bits().map(Operand::Const),
            _ => self.fail("a variable or a constant"),
        }
    }

    /// Items up to a closing character; commas between them do not matter.
    pub(super) fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut out = Vec::new();
        while !self.eat(close) {
            out.push(item(self)?);
            self.eat(',');
        }
        Ok(out)
    }

    pub(super) fn vars(&mut self) -> Parsed<Vec<VarId>> {
        self.punctuation('(')?;
        self.list(')', Self::var)
    }

    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail("less nesting");
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub(super) fn loc(&mut self) -> Parsed<Loc> {
        if !self.eat('@') {
            return Ok(Loc::default());
        }
        let first: u32 = self.number()?;
        let (file, line) = if self.eat('/') {
            (first, self.number()?)
        } else {
            (0, first)
        };
        self.punctuation(':')?;
        let column = self.number()?;
        match line {
            // No place is printed as nothing.
            0 => self.fail("a line, counted from 1"),
            _ => Ok(Loc { file, line, column }),
        }
    }
}
