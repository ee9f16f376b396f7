//! The printed form of the IR ([`crate::print`]) read back.

use crate::arena::{Arena, Id};
use crate::bits::Bits;
use crate::print::{BINARY_OPS, binary_name};
use crate::program::*;
use num_bigint::{BigInt, BigUint};
use thiserror::Error;

/// Why a text is no program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What would have been right.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

type Parsed<T> = Result<T, ParseError>;

/// Reads a program. It is verified too ([`crate::verify`]): what this returns can be run.
///
/// # Errors
/// The text is not in the printed form, or the program breaks an invariant.
pub fn parse(text: &str) -> Parsed<Program> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
    };
    let program = parser.program()?;
    crate::verify::verify(&program).map_err(|errors| ParseError {
        line: 0,
        expected: "a program that keeps the invariants of the IR".into(),
        found: errors.first().map_or_else(String::new, ToString::to_string),
    })?;
    Ok(program)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    String(String),
    Number(BigInt),
    Bits(Bits),
    /// `%3:name`
    Var(usize),
    Punctuation(char),
    End,
}

/// Widest number the parser makes.
const MAX_WIDTH: u32 = 1 << 20;
/// Deepest nesting of types and values.
const MAX_DEPTH: usize = 100;

fn tokens(text: &str) -> Parsed<Vec<(Token, usize)>> {
    let mut out = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut rest = line.trim_start();
        while let Some(c) = rest.chars().next() {
            let (token, length) = token(rest, c, number)?;
            out.push((token, number));
            rest = rest[length..].trim_start();
        }
    }
    Ok(out)
}

fn token(rest: &str, c: char, line: usize) -> Parsed<(Token, usize)> {
    let fail = |expected: &str| ParseError {
        line,
        expected: expected.into(),
        found: rest.chars().take(20).collect(),
    };
    if c == '"' {
        let mut value = String::new();
        let mut escaped = false;
        for (i, c) in rest.char_indices().skip(1) {
            match (escaped, c) {
                (true, 'n') => value.push('\n'),
                (true, 'r') => value.push('\r'),
                (true, c) => value.push(c),
                (false, '"') => return Ok((Token::String(value), i + 1)),
                (false, '\\') => {}
                (false, c) => value.push(c),
            }
            escaped = !escaped && c == '\\';
        }
        return Err(fail("a closing quote"));
    }
    if c == '%' {
        let digits = rest[1..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |e| e + 1);
        let id = rest[1..digits].parse().map_err(|_| fail("the number of a variable"))?;
        let mut end = digits;
        if rest[digits..].starts_with(':') {
            let name = rest[digits + 1..].find(|c: char| !(c.is_ascii_alphanumeric() || "._$[]".contains(c)));
            end = name.map_or(rest.len(), |e| digits + 1 + e);
        }
        return Ok((Token::Var(id), end));
    }
    if c.is_ascii_digit() || c == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        let end = rest[1..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .map_or(rest.len(), |e| e + 1);
        let word = &rest[..end];
        if let Some((width, value)) = word.split_once("w0x") {
            let width: u32 = width
                .parse()
                .ok()
                .filter(|&w| w <= MAX_WIDTH)
                .ok_or_else(|| fail("a width"))?;
            let value = BigUint::parse_bytes(value.as_bytes(), 16).ok_or_else(|| fail("a hexadecimal number"))?;
            return Ok((Token::Bits(Bits::from_biguint(width, &value)), end));
        }
        let value = word.parse().map_err(|_| fail("a number"))?;
        return Ok((Token::Number(value), end));
    }
    if c.is_ascii_alphabetic() || c == '_' {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        return Ok((Token::Word(rest[..end].to_string()), end));
    }
    Ok((Token::Punctuation(c), c.len_utf8()))
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
}

impl Parser {
    // --------------------------------------------------------------------------------- cursor

    fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn fail<T>(&self, expected: &str) -> Parsed<T> {
        let line = self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |t| t.1);
        Err(ParseError {
            line,
            expected: expected.into(),
            found: format!("{:?}", self.peek()),
        })
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }

    fn is(&self, c: char) -> bool {
        *self.peek() == Token::Punctuation(c)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.is(c);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> Parsed<()> {
        if self.eat_word(word) {
            Ok(())
        } else {
            self.fail(&format!("`{word}`"))
        }
    }

    fn punctuation(&mut self, c: char) -> Parsed<()> {
        if self.eat(c) {
            Ok(())
        } else {
            self.fail(&format!("`{c}`"))
        }
    }

    fn any_word(&mut self) -> Parsed<String> {
        match self.peek().clone() {
            Token::Word(w) => {
                self.at += 1;
                Ok(w)
            }
            _ => self.fail("a word"),
        }
    }

    fn string(&mut self) -> Parsed<String> {
        match self.peek().clone() {
            Token::String(s) => {
                self.at += 1;
                Ok(s)
            }
            _ => self.fail("a string"),
        }
    }

    fn big(&mut self) -> Parsed<BigInt> {
        match self.peek().clone() {
            Token::Number(n) => {
                self.at += 1;
                Ok(n)
            }
            _ => self.fail("a number"),
        }
    }

    fn number<N: TryFrom<BigInt>>(&mut self) -> Parsed<N> {
        let at = self.at;
        let value = self.big()?;
        N::try_from(value).or_else(|_| {
            self.at = at;
            self.fail("a smaller number")
        })
    }

    fn bits(&mut self) -> Parsed<Bits> {
        match self.peek().clone() {
            Token::Bits(b) => {
                self.at += 1;
                Ok(b)
            }
            _ => self.fail("a constant like 8w0x2a"),
        }
    }

    /// `h3`, `t3`, …: a letter and a number in one word.
    fn id<T>(&mut self, letter: char) -> Parsed<Id<T>> {
        if let Some(id) = self.peek_id(letter) {
            self.at += 1;
            return Ok(id);
        }
        self.fail(&format!("an id like {letter}0"))
    }

    fn peek_id<T>(&self, letter: char) -> Option<Id<T>> {
        let Token::Word(w) = self.peek() else { return None };
        let digits = w.strip_prefix(letter)?;
        digits.parse::<u32>().ok().map(|n| Id::new(n as usize))
    }

    fn var(&mut self) -> Parsed<VarId> {
        match *self.peek() {
            Token::Var(n) => {
                self.at += 1;
                Ok(Id::new(n))
            }
            _ => self.fail("a variable like %0"),
        }
    }

    fn operand(&mut self) -> Parsed<Operand> {
        match self.peek() {
            Token::Var(_) => self.var().map(Operand::Var),
            Token::Bits(_) => self.bits().map(Operand::Const),
            _ => self.fail("a variable or a constant"),
        }
    }

    /// Items up to a closing character; commas between them do not matter.
    fn list<T>(&mut self, close: char, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut out = Vec::new();
        while !self.eat(close) {
            out.push(item(self)?);
            self.eat(',');
        }
        Ok(out)
    }

    fn vars(&mut self) -> Parsed<Vec<VarId>> {
        self.punctuation('(')?;
        self.list(')', Self::var)
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail("less nesting");
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn loc(&mut self) -> Parsed<Loc> {
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
        Ok(Loc {
            file,
            line,
            column: self.number()?,
        })
    }

    // ---------------------------------------------------------------------------------- items

    fn program(&mut self) -> Parsed<Program> {
        let mut p = Program::default();
        self.word("weir")?;
        if self.number::<u32>()? != 1 {
            self.at -= 1;
            return self.fail("version 1 of the format");
        }
        self.word("target")?;
        p.target = self.string()?;
        while *self.peek() != Token::End {
            self.item(&mut p)?;
        }
        Ok(p)
    }

    fn item(&mut self, p: &mut Program) -> Parsed<()> {
        match self.any_word()?.as_str() {
            "file" => p.files.push(self.string()?),
            "error" => p.errors.push(self.string()?),
            "enum" => {
                let e = self.enum_type()?;
                p.enums.push(e);
            }
            "header_type" => {
                let t = self.header_type()?;
                p.header_types.push(t);
            }
            "var" => {
                let v = self.variable(p.vars.len())?;
                p.vars.push(v);
            }
            "header" => {
                let h = self.header()?;
                p.headers.push(h);
            }
            "shared" => p.shared.push(self.shared()?),
            "value_set" => {
                let v = self.value_set()?;
                p.value_sets.push(v);
            }
            "action" => {
                let a = self.action()?;
                p.actions.push(a);
            }
            "extern" => {
                let x = self.extern_instance()?;
                p.externs.push(x);
            }
            "table" => {
                let t = self.table()?;
                p.tables.push(t);
            }
            "type" => {
                let name = self.string()?;
                self.punctuation('=')?;
                p.type_info.push((name, self.type_spec()?));
            }
            "main" => p.annotations = self.annotations()?,
            "block" => p.blocks.push(self.block()?),
            _ => {
                self.at -= 1;
                return self.fail("an item: file, error, enum, header_type, var, header, shared, value_set, action, extern, table, type, main or block");
            }
        }
        Ok(())
    }

    fn enum_type(&mut self) -> Parsed<EnumType> {
        let name = self.string()?;
        self.punctuation('{')?;
        let mut members = Vec::new();
        let mut values = Vec::new();
        while !self.eat('}') {
            members.push(self.string()?);
            if self.eat('=') {
                values.push(self.bits()?);
            }
        }
        let values = if values.len() == members.len() && !values.is_empty() {
            Some(values)
        } else {
            None
        };
        Ok(EnumType { name, members, values })
    }

    fn ty(&mut self) -> Parsed<Type> {
        let make = match self.any_word()?.as_str() {
            "bits" => Type::Bits,
            "varbit" => Type::Varbit,
            _ => {
                self.at -= 1;
                return self.fail("`bits` or `varbit`");
            }
        };
        self.punctuation('<')?;
        let width: u32 = self.number()?;
        if width > MAX_WIDTH {
            return self.fail("a smaller width");
        }
        self.punctuation('>')?;
        Ok(make(width))
    }

    fn display(&mut self) -> Parsed<Display> {
        if let Some(id) = self.peek_id('e') {
            self.at += 1;
            return Ok(Display::Enum(id));
        }
        Ok(match self.any_word()?.as_str() {
            "unsigned" => Display::Unsigned,
            "signed" => Display::Signed,
            "bool" => Display::Bool,
            "error" => Display::Error,
            _ => {
                self.at -= 1;
                return self.fail("unsigned, signed, bool, error or an enum");
            }
        })
    }

    fn header_type(&mut self) -> Parsed<HeaderType> {
        let name = self.string()?;
        self.punctuation('{')?;
        let fields = self.list('}', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            Ok(HeaderField {
                name,
                ty: s.ty()?,
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(HeaderType {
            name,
            fields,
            annotations: self.annotations()?,
        })
    }

    fn variable(&mut self, expected: usize) -> Parsed<Var> {
        if self.var()?.index() != expected {
            self.at -= 1;
            return self.fail(&format!("variables in order: %{expected}"));
        }
        let name = self.string()?;
        self.punctuation(':')?;
        let (ty, display) = (self.ty()?, self.display()?);
        let kind = match self.any_word()?.as_str() {
            "shared" => VarKind::Shared,
            "local" => VarKind::Local,
            "temporary" => VarKind::Temporary,
            "action_parameter" => VarKind::ActionParameter,
            "field" => VarKind::Field {
                header: self.id('h')?,
                index: self.number()?,
            },
            "valid" => VarKind::Valid { header: self.id('h')? },
            _ => {
                self.at -= 1;
                return self.fail("the kind of a variable");
            }
        };
        Ok(Var {
            name,
            ty,
            display,
            kind,
        })
    }

    fn header(&mut self) -> Parsed<Header> {
        let _: HeaderId = self.id('h')?;
        let name = self.string()?;
        self.punctuation(':')?;
        let ty = self.id('y')?;
        self.word("valid")?;
        let valid = self.var()?;
        self.word("fields")?;
        Ok(Header {
            name,
            ty,
            valid,
            fields: self.vars()?,
        })
    }

    fn shared(&mut self) -> Parsed<Shared> {
        let (role, name) = (self.string()?, self.string()?);
        self.punctuation(':')?;
        let ty = self.type_spec()?;
        self.word("headers")?;
        self.punctuation('(')?;
        let headers = self.list(')', |s| s.id('h'))?;
        self.punctuation('{')?;
        let leaves = self.list('}', |s| {
            Ok(SharedLeaf {
                var: s.var()?,
                path: s.string()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(Shared {
            role,
            name,
            leaves,
            headers,
            ty,
        })
    }

    fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut out = Vec::new();
        while self.eat('#') {
            let name = self.string()?;
            let body = if self.eat('(') {
                let text = self.string()?;
                self.punctuation(':')?;
                AnnotationBody::Text {
                    text,
                    tokens: self.list(')', Self::string)?,
                }
            } else if self.eat('[') {
                AnnotationBody::Expressions(self.list(']', Self::annotation_value)?)
            } else if self.is('{')
                && matches!(self.tokens.get(self.at + 1), Some((Token::String(_), _)))
                && self
                    .tokens
                    .get(self.at + 2)
                    .is_some_and(|t| t.0 == Token::Punctuation('='))
            {
                self.at += 1;
                AnnotationBody::KeyValues(self.list('}', |s| {
                    let key = s.string()?;
                    s.punctuation('=')?;
                    Ok((key, s.annotation_value()?))
                })?)
            } else {
                AnnotationBody::Empty
            };
            out.push(Annotation {
                name,
                body,
                loc: self.loc()?,
            });
        }
        Ok(out)
    }

    fn annotation_value(&mut self) -> Parsed<AnnotationValue> {
        match self.next() {
            Token::String(s) => Ok(AnnotationValue::String(s)),
            Token::Word(w) if w == "true" || w == "false" => Ok(AnnotationValue::Bool(w == "true")),
            Token::Number(_) => {
                self.at -= 1;
                Ok(AnnotationValue::Int(self.number()?))
            }
            _ => {
                self.at -= 1;
                self.fail("a string, number or boolean")
            }
        }
    }

    fn sdn_width(&mut self) -> Parsed<Option<u32>> {
        if self.eat_word("string") {
            Ok(None)
        } else {
            self.number().map(Some)
        }
    }

    fn control(&mut self) -> Parsed<ControlType> {
        let type_name = if self.eat_word("type") {
            Some(self.string()?)
        } else {
            None
        };
        let translation = if self.eat_word("translation") {
            Some(Translation {
                uri: self.string()?,
                sdn_width: self.sdn_width()?,
            })
        } else {
            None
        };
        Ok(ControlType { type_name, translation })
    }

    fn keys(&mut self) -> Parsed<Vec<Key>> {
        self.punctuation('(')?;
        self.list(')', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            let width = s.number()?;
            let match_kind = match s.any_word()?.as_str() {
                "exact" => MatchKind::Exact,
                "lpm" => MatchKind::Lpm,
                "ternary" => MatchKind::Ternary,
                "range" => MatchKind::Range,
                "optional" => MatchKind::Optional,
                "selector" => MatchKind::Selector,
                _ => {
                    s.at -= 1;
                    return s.fail("a match kind");
                }
            };
            Ok(Key {
                name,
                width,
                match_kind,
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
                loc: s.loc()?,
            })
        })
    }

    fn value_set(&mut self) -> Parsed<ValueSet> {
        let name = self.string()?;
        self.word("size")?;
        let size = self.number()?;
        Ok(ValueSet {
            name,
            size,
            fields: self.keys()?,
            annotations: self.annotations()?,
            loc: self.loc()?,
        })
    }

    fn action(&mut self) -> Parsed<Action> {
        let name = self.string()?;
        self.punctuation('(')?;
        let parameters = self.list(')', |s| {
            let name = s.string()?;
            s.punctuation(':')?;
            Ok(ActionParameter {
                name,
                width: s.number()?,
                display: s.display()?,
                control: s.control()?,
                annotations: s.annotations()?,
            })
        })?;
        Ok(Action {
            name,
            parameters,
            annotations: self.annotations()?,
            loc: self.loc()?,
        })
    }

    fn extern_instance(&mut self) -> Parsed<ExternInstance> {
        let (name, type_name) = (self.string()?, self.string()?);
        self.punctuation('<')?;
        let type_arguments = self.list('>', Self::type_spec)?;
        self.punctuation('(')?;
        let arguments = self.list(')', |s| {
            let name = s.string()?;
            s.punctuation('=')?;
            Ok((name, s.const_value()?))
        })?;
        let annotations = self.annotations()?;
        let loc = self.loc()?;
        self.punctuation('{')?;
        let methods = self.list('}', |s| {
            s.word("method")?;
            let name = s.string()?;
            s.punctuation('(')?;
            let parameters = s.list(')', |s| Ok((s.string()?, s.vars()?)))?;
            s.word("results")?;
            let results = s.vars()?;
            s.punctuation('{')?;
            Ok(Method {
                name,
                parameters,
                results,
                body: s.body()?,
            })
        })?;
        Ok(ExternInstance {
            name,
            type_name,
            type_arguments,
            arguments,
            methods,
            annotations,
            loc,
        })
    }

    fn action_call(&mut self) -> Parsed<ActionCall> {
        let action = self.number()?;
        self.punctuation('(')?;
        Ok(ActionCall {
            action,
            arguments: self.list(')', Self::bits)?,
        })
    }

    fn table(&mut self) -> Parsed<Table> {
        let name = self.string()?;
        let annotations = self.annotations()?;
        let loc = self.loc()?;
        let mut t = Table {
            name,
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: ActionCall {
                action: 0,
                arguments: Vec::new(),
            },
            const_default: false,
            size: None,
            entries: Vec::new(),
            const_entries: false,
            implementation: None,
            direct: Vec::new(),
            idle_timeout: false,
            properties: Vec::new(),
            annotations,
            loc,
        };
        self.punctuation('{')?;
        while !self.eat('}') {
            self.table_item(&mut t)?;
        }
        Ok(t)
    }

    fn table_item(&mut self, t: &mut Table) -> Parsed<()> {
        let is_const = self.eat_word("const");
        match self.any_word()?.as_str() {
            "key" => t.keys = self.keys()?,
            "action" => {
                let action = self.id('a')?;
                let parameters = self.vars()?;
                let (default_only, table_only) = (self.eat_word("default_only"), self.eat_word("table_only"));
                t.actions.push(TableAction {
                    action,
                    parameters,
                    default_only,
                    table_only,
                    annotations: self.annotations()?,
                });
            }
            "default" => {
                t.default_action = self.action_call()?;
                t.const_default = is_const;
            }
            "size" => t.size = Some(self.number()?),
            "implementation" => t.implementation = Some(self.id('x')?),
            "direct" => t.direct.push(self.id('x')?),
            "idle_timeout" => t.idle_timeout = true,
            "const_entries" => t.const_entries = true,
            "property" => {
                let name = self.string()?;
                self.punctuation('=')?;
                t.properties.push((name, self.const_value()?));
            }
            "entry" => {
                let priority = self.number()?;
                self.punctuation('(')?;
                let matches = self.list(')', Self::key_match)?;
                let action = self.action_call()?;
                t.entries.push(Entry {
                    matches,
                    action,
                    priority,
                    is_const,
                    annotations: self.annotations()?,
                    loc: self.loc()?,
                });
            }
            _ => {
                self.at -= 1;
                return self.fail("a part of a table");
            }
        }
        Ok(())
    }

    fn key_match(&mut self) -> Parsed<KeyMatch> {
        Ok(match self.any_word()?.as_str() {
            "exact" => KeyMatch::Exact(self.bits()?),
            "lpm" => KeyMatch::Lpm {
                value: self.bits()?,
                prefix_length: self.number()?,
            },
            "ternary" => KeyMatch::Ternary {
                value: self.bits()?,
                mask: self.bits()?,
            },
            "range" => KeyMatch::Range {
                low: self.bits()?,
                high: self.bits()?,
            },
            "optional" => KeyMatch::Optional(if self.eat_word("_") { None } else { Some(self.bits()?) }),
            _ => {
                self.at -= 1;
                return self.fail("a match");
            }
        })
    }

    fn const_value(&mut self) -> Parsed<ConstValue> {
        self.nested(|s| {
            if let Some(x) = s.peek_id('x') {
                s.at += 1;
                return Ok(ConstValue::Extern(x));
            }
            Ok(match s.next() {
                Token::Bits(b) => ConstValue::Bits(b),
                Token::String(t) => ConstValue::String(t),
                Token::Punctuation('[') => ConstValue::List(s.list(']', Self::const_value)?),
                Token::Word(w) if w == "int" => ConstValue::Int(s.big()?),
                Token::Word(w) if w == "true" || w == "false" => ConstValue::Bool(w == "true"),
                Token::Word(w) if w == "enum" => ConstValue::Enum {
                    enum_name: s.string()?,
                    member: s.string()?,
                },
                _ => {
                    s.at -= 1;
                    return s.fail("a constant");
                }
            })
        })
    }

    fn fields(&mut self) -> Parsed<Vec<(String, TypeSpec)>> {
        self.punctuation('(')?;
        self.list(')', |s| Ok((s.string()?, s.type_spec()?)))
    }

    fn type_spec(&mut self) -> Parsed<TypeSpec> {
        self.nested(|s| {
            Ok(match s.any_word()?.as_str() {
                "opaque" => TypeSpec::Opaque(s.string()?),
                "void" => TypeSpec::Void,
                "bool" => TypeSpec::Bool,
                "bit" => TypeSpec::Bit(s.number()?),
                "int" => TypeSpec::Int(s.number()?),
                "varbit" => TypeSpec::Varbit(s.number()?),
                "error" => TypeSpec::Error,
                "string" => TypeSpec::String,
                "tuple" => {
                    s.punctuation('(')?;
                    TypeSpec::Tuple(s.list(')', Self::type_spec)?)
                }
                "struct" => TypeSpec::Struct(s.string()?, s.fields()?),
                "header" => TypeSpec::Header(s.string()?, s.fields()?),
                "header_union" => TypeSpec::HeaderUnion(s.string()?, s.fields()?),
                "stack" => {
                    let n = s.number()?;
                    TypeSpec::Stack(Box::new(s.type_spec()?), n)
                }
                "enum" => {
                    let name = s.string()?;
                    s.punctuation('(')?;
                    TypeSpec::Enum(name, s.list(')', Self::string)?)
                }
                "serializable_enum" => {
                    let (name, width) = (s.string()?, s.number()?);
                    s.punctuation('(')?;
                    TypeSpec::SerializableEnum(name, width, s.list(')', |s| Ok((s.string()?, s.bits()?)))?)
                }
                "new" => {
                    let name = s.string()?;
                    s.punctuation('(')?;
                    let inner = Box::new(s.type_spec()?);
                    s.punctuation(')')?;
                    let translation = if s.eat_word("translation") {
                        Some((s.string()?, s.sdn_width()?))
                    } else {
                        None
                    };
                    TypeSpec::New(name, inner, translation)
                }
                _ => {
                    s.at -= 1;
                    return s.fail("a type");
                }
            })
        })
    }

    // ----------------------------------------------------------------------------------- code

    fn block(&mut self) -> Parsed<Block> {
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
    fn body(&mut self) -> Parsed<Body> {
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
        Ok(Call {
            instance,
            function,
            type_arguments,
            arguments,
            results,
            entry,
            is_pure: self.eat_word("pure"),
        })
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
