//! Common parts of items and code: types, annotations, constants.

use super::Parsed;
use super::cursor::Parser;
use super::tokens::{MAX_WIDTH, Token};
use crate::program::*;

impl Parser {
    pub(super) fn ty(&mut self) -> Parsed<Type> {
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

    pub(super) fn display(&mut self) -> Parsed<Display> {
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

    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
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
                && matches!(self.peek_after(1), Token::String(_))
                && *self.peek_after(2) == Token::Punctuation('=')
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

    pub(super) fn control(&mut self) -> Parsed<ControlType> {
        let type_name = if self.eat_word("type") {
            Some(self.string()?)
        } else {
            None
        };
        let translation = if self.eat_word("translation") {
            let (uri, sdn_width) = (self.string()?, self.sdn_width()?);
            let mut mappings = Vec::new();
            if self.eat_word("mapped") {
                self.punctuation('(')?;
                mappings = self.list(')', |s| Ok((s.string()?, s.bits()?)))?;
            }
            Some(Translation {
                uri,
                sdn_width,
                mappings,
            })
        } else {
            None
        };
        Ok(ControlType { type_name, translation })
    }

    pub(super) fn const_value(&mut self) -> Parsed<ConstValue> {
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

    pub(super) fn type_spec(&mut self) -> Parsed<TypeSpec> {
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
}
