//! Types.

use super::{Parse, Parser};
use crate::ast::{Expr, Type, TypeKind};
use crate::source::Span;
use crate::token::Tok;

impl Parser<'_> {
    /// `typeRef`. Like expressions, types leave their height in `self.height`.
    pub(super) fn ty(&mut self) -> Parse<Type> {
        self.type_or(false)
    }

    /// `typeOrVoid`
    pub(super) fn type_or_void(&mut self) -> Parse<Type> {
        self.type_or(true)
    }

    fn type_or(&mut self, void: bool) -> Parse<Type> {
        let outer = std::mem::replace(&mut self.angle_closes, true);
        let ty = self.nested(|p| p.unbounded_type(void));
        self.angle_closes = outer;
        ty
    }

    fn unbounded_type(&mut self, void: bool) -> Parse<Type> {
        let start = self.start();
        self.height = 0;
        let mut kind = self.type_without_suffix(void)?;
        self.grow(self.height)?;
        while self.at(Tok::LBracket) {
            let height = self.height;
            let element = self.typed(kind, start);
            self.bump();
            let size = self.bracketed(Self::expression)?;
            self.grow(height.max(self.height))?;
            self.expect(Tok::RBracket, "after the size of the stack")?;
            kind = TypeKind::Stack(Box::new(element), Box::new(size));
        }
        Ok(self.typed(kind, start))
    }

    /// Sizes after a declared name, as in `bit<8> a[2]`, make the type one of arrays.
    pub(super) fn opt_array_sizes(&mut self, mut ty: Type) -> Parse<Type> {
        let mut sizes = Vec::new();
        while self.at(Tok::LBracket) {
            let height = self.height;
            self.bump();
            sizes.push(self.bracketed(Self::expression)?);
            self.grow(height.max(self.height))?;
            self.expect(Tok::RBracket, "after the size of the array")?;
        }
        for size in sizes.into_iter().rev() {
            let span = ty.span;
            ty = Type {
                kind: TypeKind::Stack(Box::new(ty), Box::new(size)),
                span,
            };
        }
        Ok(ty)
    }

    fn typed(&self, kind: TypeKind, start: Span) -> Type {
        Type {
            kind,
            span: self.span_from(start),
        }
    }

    fn type_without_suffix(&mut self, void: bool) -> Parse<TypeKind> {
        let simple = match self.tok() {
            Tok::Bool => TypeKind::Bool,
            Tok::ErrorKw => TypeKind::Error,
            Tok::MatchKind => TypeKind::MatchKind,
            Tok::StringKw => TypeKind::String,
            Tok::Void if void => TypeKind::Void,
            Tok::Bit => {
                self.bump();
                return Ok(TypeKind::Bit(self.opt_width()?));
            }
            Tok::IntKw => {
                self.bump();
                return Ok(self.opt_width()?.map_or(TypeKind::Integer, TypeKind::Int));
            }
            Tok::Varbit => {
                self.bump();
                if !self.at(Tok::Lt) {
                    return self.unexpected("`<` and the greatest width after `varbit`");
                }
                return match self.opt_width()? {
                    Some(width) => Ok(TypeKind::Varbit(width)),
                    None => self.unexpected("the greatest width after `varbit`"),
                };
            }
            Tok::Tuple => {
                self.bump();
                if !self.at(Tok::Lt) {
                    return self.unexpected("`<` after `tuple`");
                }
                return Ok(TypeKind::Tuple(self.type_arguments()?));
            }
            Tok::List if self.nth(1) == Tok::Lt => return self.list_type(),
            Tok::Dot => return self.named_type(),
            tok if tok.is_name() => return self.named_type(),
            _ => return self.unexpected("a type"),
        };
        self.bump();
        Ok(simple)
    }

    fn list_type(&mut self) -> Parse<TypeKind> {
        self.bump();
        self.bump();
        let element = self.type_argument()?;
        self.expect(Tok::Gt, "after the element type of the list")?;
        Ok(TypeKind::List(Box::new(element)))
    }

    fn named_type(&mut self) -> Parse<TypeKind> {
        let absolute = self.eat(Tok::Dot);
        let name = self.name("a type name")?;
        let arguments = if self.at(Tok::Lt) {
            Some(self.type_arguments()?)
        } else {
            None
        };
        Ok(TypeKind::Named {
            absolute,
            name,
            arguments,
        })
    }

    /// `<W>` where it stands.
    fn opt_width(&mut self) -> Parse<Option<Box<Expr>>> {
        if !self.eat(Tok::Lt) {
            return Ok(None);
        }
        let outer = std::mem::replace(&mut self.angle_closes, true);
        let width = self.nested(Self::expression);
        self.angle_closes = outer;
        let width = width?;
        if !self.at(Tok::Gt) {
            return self.unexpected_with_help(
                "`>` after the width",
                Some("put a width that compares or shifts with `>` in parentheses"),
            );
        }
        self.bump();
        Ok(Some(Box::new(width)))
    }

    /// `<A, B>`; the cursor is at `<`.
    pub(super) fn type_arguments(&mut self) -> Parse<Vec<Type>> {
        self.bump();
        let outer = std::mem::replace(&mut self.angle_closes, true);
        let mut height = 0;
        let arguments = self.nested(|p| {
            p.list(Tok::Gt, false, "after a type argument", |p| {
                let argument = p.type_argument()?;
                height = height.max(p.height);
                Ok(argument)
            })
        });
        self.angle_closes = outer;
        self.height = height;
        arguments
    }

    fn type_argument(&mut self) -> Parse<Type> {
        if self.at(Tok::Underscore) {
            let span = self.bump().span;
            self.height = 1;
            return Ok(Type {
                kind: TypeKind::DontCare,
                span,
            });
        }
        self.type_or_void()
    }
}
