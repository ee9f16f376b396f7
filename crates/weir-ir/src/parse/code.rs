//! The code of blocks: basic blocks, instructions, how they end.

use super::Parsed;
use super::cursor::Parser;
use super::tokens::Token;
use crate::arena::Arena;
use crate::print::{BINARY_OPS, binary_name};
use crate::program::*;

impl Parser {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let role = self.string()?;
        let kind = match self.any_word()?.as_str() {
            "parser" => BlockKind::Parser,
            "control" => BlockKind::Control,
            _ => {
                self.at -= 1;
                return self.fail("`parser` or `control`");
            }
        };
        let name = self.string()?;
        let loc = self.loc()?;
        self.punctuation('{')?;
        Ok(Block {
            role,
            name,
            kind,
            body: self.body()?,
            loc,
        })
    }

    /// Up to and with the closing brace.
    pub(super) fn body(&mut self) -> Parsed<Body> {
        let mut body = Body::default();
        if self.eat_word("error") {
            body.error = Some(self.var()?);
        }
        if self.eat_word("on_error") {
            body.on_error = Some(self.id('b')?);
        }
        let mut blocks = Arena::default();
        while !self.eat('}') {
            let id: BlockId = self.id('b')?;
            if id.index() != blocks.len() {
                self.at -= 1;
                return self.fail(&format!("blocks in order: b{}", blocks.len()));
            }
            let block = self.basic_block()?;
            blocks.push(block);
        }
        body.blocks = blocks;
        Ok(body)
    }

    fn basic_block(&mut self) -> Parsed<BasicBlock> {
        let state = if self.eat_word("state") {
            Some(self.string()?)
        } else {
            None
        };
        self.punctuation(':')?;
        let mut insts = Vec::new();
        loop {
            if let Some(terminator) = self.terminator()? {
                return Ok(BasicBlock {
                    state,
                    insts,
                    terminator,
                    loc: self.loc()?,
                });
            }
            insts.push(Inst {
                kind: self.inst()?,
                loc: self.loc()?,
            });
        }
    }

    fn terminator(&mut self) -> Parsed<Option<Terminator>> {
        let Token::Word(word) = self.peek().clone() else {
            return Ok(None);
        };
        self.at += 1;
        Ok(Some(match word.as_str() {
            "goto" => Terminator::Goto(self.id('b')?),
            "branch" => Terminator::Branch {
                condition: self.operand()?,
                then: self.id('b')?,
                otherwise: self.id('b')?,
            },
            "switch" => {
                let value = self.operand()?;
                self.punctuation('{')?;
                let cases = self.list('}', |s| {
                    let value = s.bits()?;
                    s.punctuation(':')?;
                    Ok((value, s.id('b')?))
                })?;
                Terminator::Switch {
                    value,
                    cases,
                    default: self.id('b')?,
                }
            }
            "select" => {
                self.punctuation('(')?;
                let keys = self.list(')', Self::operand)?;
                self.punctuation('{')?;
                let cases = self.list('}', |s| {
                    s.punctuation('(')?;
                    let patterns = s.list(')', Self::pattern)?;
                    s.punctuation(':')?;
                    Ok(SelectCase {
                        patterns,
                        target: s.id('b')?,
                        loc: s.loc()?,
                    })
                })?;
                Terminator::Select {
                    keys,
                    cases,
                    default: self.id('b')?,
                }
            }
            "lookup" => {
                let table = self.id('t')?;
                self.punctuation('(')?;
                let keys = self.list(')', Self::operand)?;
                self.word("hit")?;
                let hit = self.var()?;
                self.word("action")?;
                let action = self.var()?;
                self.word("entry")?;
                let entry = self.var()?;
                Terminator::Lookup(Lookup {
                    table,
                    keys,
                    hit,
                    action,
                    entry,
                    next: self.id('b')?,
                })
            }
            "accept" => Terminator::Accept,
            "reject" => Terminator::Reject,
            "return" => Terminator::Return,
            _ => {
                self.at -= 1;
                return Ok(None);
            }
        }))
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        if let Some(v) = self.peek_id('v') {
            self.at += 1;
            return Ok(Pattern::ValueSet(v));
        }
        Ok(if self.eat_word("_") {
            Pattern::Any
        } else if self.eat_word("mask") {
            Pattern::Mask(self.operand()?, self.operand()?)
        } else if self.eat_word("range") {
            Pattern::Range(self.operand()?, self.operand()?, false)
        } else if self.eat_word("range_signed") {
            Pattern::Range(self.operand()?, self.operand()?, true)
        } else {
            Pattern::Exact(self.operand()?)
        })
    }

    fn inst(&mut self) -> Parsed<InstKind> {
        if let Token::Var(_) = self.peek() {
            let dst = self.var()?;
            self.punctuation('=')?;
            return Ok(InstKind::Assign {
                dst,
                value: self.rvalue()?,
            });
        }
        Ok(match self.any_word()?.as_str() {
            "extract" => {
                let header = self.id('h')?;
                let varbit_bits = if self.eat_word("varbit") {
                    Some(self.operand()?)
                } else {
                    None
                };
                InstKind::Extract { header, varbit_bits }
            }
            "lookahead" => InstKind::Lookahead {
                dst: self.var()?,
                offset: self.number()?,
            },
            "advance" => InstKind::Advance { bits: self.operand()? },
            "packet_length" => InstKind::PacketLength { dst: self.var()? },
            "emit" => InstKind::Emit { header: self.id('h')? },
            "call" => InstKind::Call(self.call()?),
            "enter_action" => InstKind::Mark(Mark::EnterAction(self.id('a')?)),
            "enter" => InstKind::Mark(Mark::Enter(self.string()?)),
            "leave" => InstKind::Mark(Mark::Leave),
            _ => {
                self.at -= 1;
                return self.fail("an instruction");
            }
        })
    }

    fn range(&mut self) -> Parsed<(u32, u32)> {
        self.punctuation('[')?;
        let hi = self.number()?;
        self.punctuation(':')?;
        let lo = self.number()?;
        self.punctuation(']')?;
        Ok((hi, lo))
    }

    fn two(&mut self) -> Parsed<(Operand, Operand)> {
        let a = self.operand()?;
        self.punctuation(',')?;
        Ok((a, self.operand()?))
    }

    fn rvalue(&mut self) -> Parsed<Rvalue> {
        if !matches!(self.peek(), Token::Word(_)) {
            return self.operand().map(Rvalue::Use);
        }
        let word = self.any_word()?;
        if let Some(&op) = BINARY_OPS.iter().find(|&&op| binary_name(op) == word) {
            let (a, b) = self.two()?;
            return Ok(Rvalue::Binary(op, a, b));
        }
        Ok(match word.as_str() {
            "not" => Rvalue::Unary(UnaryOp::Not, self.operand()?),
            "neg" => Rvalue::Unary(UnaryOp::Neg, self.operand()?),
            "zero_extend" => Rvalue::ZeroExtend(self.operand()?),
            "sign_extend" => Rvalue::SignExtend(self.operand()?),
            "slice" => {
                let value = self.operand()?;
                let (hi, lo) = self.range()?;
                Rvalue::Slice { value, hi, lo }
            }
            "insert" => {
                let base = self.operand()?;
                let (hi, lo) = self.range()?;
                Rvalue::Insert {
                    base,
                    hi,
                    lo,
                    value: self.operand()?,
                }
            }
            "mux" => {
                let (condition, then) = self.two()?;
                self.punctuation(',')?;
                Rvalue::Mux {
                    condition,
                    then,
                    otherwise: self.operand()?,
                }
            }
            "varbit_eq" => {
                let (a, b) = self.two()?;
                Rvalue::VarbitEq(a, b)
            }
            _ => {
                self.at -= 1;
                return self.fail("an operation");
            }
        })
    }

    fn call(&mut self) -> Parsed<Call> {
        let instance = if let Some(x) = self.peek_id('x') {
            self.at += 1;
            Some(x)
        } else {
            None
        };
        let function = self.string()?;
        let type_arguments = if self.eat('<') {
            self.list('>', Self::type_spec)?
        } else {
            Vec::new()
        };
        self.punctuation('(')?;
        let arguments = self.list(')', |s| {
            let name = s.string()?;
            s.punctuation('=')?;
            Ok(Argument {
                name,
                value: s.argument()?,
            })
        })?;
        let results = if self.eat_word("results") {
            self.vars()?
        } else {
            Vec::new()
        };
        let entry = if self.eat_word("entry") {
            Some(self.var()?)
        } else {
            None
        };
        let closure = if self.eat_word("closure") { self.number()? } else { 0 };
        Ok(Call {
            instance,
            function,
            type_arguments,
            arguments,
            results,
            entry,
            closure,
            is_pure: self.eat_word("pure"),
            calculation: match self.eat_word("calculation") {
                true => Some(self.number()?),
                false => None,
            },
            execution: self.execution()?,
        })
    }

    fn execution(&mut self) -> Parsed<Execution> {
        if !self.eat_word("async") {
            return Ok(Execution::Inline);
        }
        self.word("order")?;
        let order = self.one_of("an order", CompletionOrder::from_word)?;
        let full = match self.eat_word("full") {
            true => Some(self.one_of("inline, wait or drop", WhenFull::from_word)?),
            false => None,
        };
        Ok(Execution::Async(AsyncCall { order, full }))
    }

    fn one_of<T>(&mut self, expected: &'static str, find: impl Fn(&str) -> Option<T>) -> Parsed<T> {
        let word = self.any_word()?;
        match find(&word) {
            Some(found) => Ok(found),
            None => {
                self.at -= 1;
                self.fail(expected)
            }
        }
    }

    fn argument(&mut self) -> Parsed<ArgumentValue> {
        if let Some(x) = self.peek_id('x') {
            self.at += 1;
            return Ok(ArgumentValue::Extern(x));
        }
        if let Token::String(_) = self.peek() {
            return self.string().map(ArgumentValue::String);
        }
        Ok(match self.any_word()?.as_str() {
            "in" => {
                self.punctuation('(')?;
                ArgumentValue::In(self.list(')', |s| {
                    if let Some(h) = s.peek_id('h') {
                        s.at += 1;
                        return Ok(InLeaf::Header(h));
                    }
                    s.operand().map(InLeaf::Value)
                })?)
            }
            "out" => ArgumentValue::Out(self.vars()?),
            "inout" => ArgumentValue::InOut(self.vars()?),
            "packet" => ArgumentValue::Packet,
            _ => {
                self.at -= 1;
                return self.fail("an argument");
            }
        })
    }
}
