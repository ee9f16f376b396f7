//! Declarations other than parsers, controls and tables.

use super::recovery::begins_top_level;
use super::scopes::NameClass;
use super::{Parse, Parser};
use crate::ast::{
    Action, Annotation, Constant, Declaration, DeclarationKind, Direction, EnumMember, EnumType, ExternMethod,
    ExternType, Field, Function, FunctionPrototype, Ident, Instantiation, Parameter, StructKind, StructType, Type,
    TypeKind, TypeParameters, Typedef, TypedefTarget, Variable,
};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::Tok;

impl Parser<'_> {
    /// A declaration at the top level.
    pub(super) fn declaration(&mut self) -> Parse<Declaration> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let kind = match self.tok() {
            Tok::Const => return self.variable_or_instance(annotations),
            Tok::Extern => self.extern_declaration()?,
            Tok::Action => self.action()?,
            Tok::Parser => self.parser()?,
            Tok::Control => self.control()?,
            Tok::Package => self.package()?,
            Tok::Struct | Tok::Header | Tok::HeaderUnion => self.struct_type()?,
            Tok::Enum => self.enum_type()?,
            Tok::Typedef => self.typedef()?,
            Tok::Type if !matches!(self.nth(1), Tok::LParen | Tok::Lt) => self.typedef()?,
            Tok::ErrorKw if self.nth(1) == Tok::LBrace => self.error_members()?,
            Tok::MatchKind if self.nth(1) == Tok::LBrace => self.match_kind_members()?,
            tok if begins_type(tok) && self.at_variable() => DeclarationKind::Variable(self.top_level_variable()?),
            tok if begins_type(tok) => self.function_or_instance()?,
            Tok::Table => {
                let help = "a table stands in a control";
                return self.unexpected_with_help("a declaration", Some(help));
            }
            Tok::State => {
                return self.unexpected_with_help("a declaration", Some("a state stands in a parser"));
            }
            Tok::Entries | Tok::Key | Tok::Actions => {
                return self.unexpected_with_help("a declaration", Some("this stands in a table"));
            }
            Tok::RBrace => {
                return self.unexpected_with_help("a declaration", Some("is there a `}` too many?"));
            }
            Tok::If | Tok::Switch | Tok::Return | Tok::Exit | Tok::For => {
                let help = "statements stand in actions, functions, controls and parser states";
                return self.unexpected_with_help("a declaration", Some(help));
            }
            _ => return self.unexpected("a declaration"),
        };
        Ok(self.declared(annotations, kind, start))
    }

    pub(super) fn declared(&self, annotations: Vec<Annotation>, kind: DeclarationKind, start: Span) -> Declaration {
        Declaration {
            annotations,
            kind,
            span: self.span_from(start),
        }
    }

    /// Notes what a name is.
    pub(super) fn declare(&mut self, name: &Ident, class: NameClass) {
        if let Some(sym) = self.interner.find(&name.name) {
            self.scopes.declare(sym, class);
        }
    }

    /// Notes what the name at the cursor is.
    pub(super) fn declare_next(&mut self, class: NameClass) {
        if let Some(sym) = self.sym_at(self.pos) {
            self.scopes.declare(sym, class);
        }
    }

    // --------------------------------------------------------------------------------- parameters

    /// `<T, U>` where it stands.
    pub(super) fn opt_type_parameters(&mut self) -> Parse<TypeParameters> {
        if !self.eat(Tok::Lt) {
            return Ok(Vec::new());
        }
        let names = self.list(Tok::Gt, false, "after a type parameter", |p| {
            p.name("the name of a type parameter")
        })?;
        for name in &names {
            self.declare(name, NameClass::Type);
        }
        Ok(names)
    }

    /// `(in T a, …)`
    pub(super) fn parameters(&mut self) -> Parse<Vec<Parameter>> {
        self.expect(Tok::LParen, "before the parameters")?;
        self.bracketed(|p| p.list(Tok::RParen, false, "after a parameter", Self::parameter))
    }

    fn parameter(&mut self) -> Parse<Parameter> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let direction = match self.tok() {
            Tok::In => Direction::In,
            Tok::Out => Direction::Out,
            Tok::InOut => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.ty()?;
        let name = self.name("the name of a parameter")?;
        self.declare(&name, NameClass::Value);
        let default = if self.eat(Tok::Assign) {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Parameter {
            annotations,
            direction,
            ty,
            name,
            default,
            span: self.span_from(start),
        })
    }

    // -------------------------------------------------------------------- constants and instances

    /// `const T n = e;`, `T n;`, `T n = e;`, `T(args) n;` or `T(args) n = { … };`
    pub(super) fn variable_or_instance(&mut self, annotations: Vec<Annotation>) -> Parse<Declaration> {
        let start = annotations.first().map_or(self.start(), |a| a.span);
        if self.eat(Tok::Const) {
            let kind = self.constant()?;
            return Ok(self.declared(annotations, kind, start));
        }
        let ty = self.ty()?;
        let kind = if self.at(Tok::LParen) {
            self.instantiation(ty)?
        } else {
            let variable = self.variable(ty)?;
            self.semicolon("after the declaration")?;
            DeclarationKind::Variable(variable)
        };
        Ok(self.declared(annotations, kind, start))
    }

    fn constant(&mut self) -> Parse<DeclarationKind> {
        let ty = self.ty()?;
        let name = self.name("the name of a constant")?;
        self.declare(&name, NameClass::Value);
        self.expect(Tok::Assign, "and a value after the name of the constant")?;
        let value = self.expression()?;
        self.semicolon("after the declaration")?;
        Ok(DeclarationKind::Constant(Constant { ty, name, value }))
    }

    pub(super) fn variable_without_semicolon(&mut self) -> Parse<Variable> {
        let ty = self.ty()?;
        self.variable(ty)
    }

    /// Whether `T n;` or `T n =` is at the cursor.
    fn at_variable(&self) -> bool {
        self.scan_type(self.pos)
            .is_some_and(|end| self.tok_at(end).is_name() && matches!(self.tok_at(end + 1), Tok::Semi | Tok::Assign))
    }

    /// A variable where none may stand, which the checker reports.
    fn top_level_variable(&mut self) -> Parse<Variable> {
        let variable = self.variable_without_semicolon()?;
        self.semicolon("after the declaration")?;
        Ok(variable)
    }

    fn variable(&mut self, ty: Type) -> Parse<Variable> {
        let name = self.name("the name of a variable")?;
        self.declare(&name, NameClass::Value);
        let ty = self.opt_array_sizes(ty)?;
        let value = if self.eat(Tok::Assign) {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(Variable { ty, name, value })
    }

    /// What follows the type; the cursor is at `(`.
    fn instantiation(&mut self, ty: Type) -> Parse<DeclarationKind> {
        let arguments = self.arguments()?;
        let name = self.name("the name of an instance")?;
        self.declare(&name, NameClass::Value);
        let ty = self.opt_array_sizes(ty)?;
        let mut body = None;
        if self.eat(Tok::Assign) {
            self.expect(Tok::LBrace, "before the body of the instance")?;
            self.scopes.push();
            let members = self.nested(|p| p.members("a function, an instance", Self::instance_member));
            self.scopes.pop();
            body = Some(members?);
        }
        self.semicolon("after the declaration")?;
        Ok(DeclarationKind::Instantiation(Instantiation {
            ty,
            arguments,
            name,
            body,
        }))
    }

    fn instance_member(&mut self) -> Parse<Declaration> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        if !begins_type(self.tok()) {
            return self.unexpected("a function or an instance");
        }
        let kind = self.function_or_instance()?;
        Ok(self.declared(annotations, kind, start))
    }

    /// `R f<T>(…) { … }` or `T(args) n;`
    fn function_or_instance(&mut self) -> Parse<DeclarationKind> {
        let result = self.type_or_void()?;
        if self.at(Tok::LParen) {
            return self.instantiation(result);
        }
        let what = "the name of a function, or `(` and the arguments of an instance";
        if matches!(self.nth(1), Tok::Semi | Tok::Assign) && self.tok().is_name() {
            self.bump();
            return self.unexpected_with_help(
                "`(` and the parameters of a function",
                Some("variables are declared in controls, parsers, actions and functions; here only constants"),
            );
        }
        if !self.tok().is_name() {
            return self.unexpected(what);
        }
        self.declare_next(NameClass::Value);
        self.scopes.push();
        let function = self.function(result);
        self.scopes.pop();
        function
    }

    fn function(&mut self, result: Type) -> Parse<DeclarationKind> {
        let prototype = self.prototype(result)?;
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let body = self.block_after(annotations, start, "before the body of the function")?;
        Ok(DeclarationKind::Function(Function { prototype, body }))
    }

    /// What follows the result type.
    fn prototype(&mut self, result: Type) -> Parse<FunctionPrototype> {
        let name = self.name("the name of a function")?;
        let type_parameters = self.opt_type_parameters()?;
        let parameters = self.parameters()?;
        Ok(FunctionPrototype {
            result: Some(result),
            name,
            type_parameters,
            parameters,
        })
    }

    /// `action a(…) { … }`
    pub(super) fn action(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let name = self.name("the name of an action")?;
        self.declare(&name, NameClass::Value);
        self.scopes.push();
        let parts = self.parameters().and_then(|parameters| Ok((parameters, self.block()?)));
        self.scopes.pop();
        let (parameters, body) = parts?;
        Ok(DeclarationKind::Action(Action { name, parameters, body }))
    }

    // ------------------------------------------------------------------------------------ externs

    fn extern_declaration(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let is_type = self.tok().is_name()
            && match self.nth(1) {
                Tok::LBrace | Tok::Semi => true,
                Tok::Lt => self
                    .scan_type_arguments(self.pos + 1)
                    .is_some_and(|end| matches!(self.tok_at(end), Tok::LBrace | Tok::Semi)),
                _ => false,
            };
        if is_type {
            self.declare_next(NameClass::Type);
        }
        self.scopes.push();
        let declaration = if is_type {
            self.extern_type()
        } else {
            self.extern_function()
        };
        self.scopes.pop();
        if let Ok(DeclarationKind::ExternFunction(prototype)) = &declaration {
            self.declare(&prototype.name, NameClass::Value);
        }
        declaration
    }

    fn extern_function(&mut self) -> Parse<DeclarationKind> {
        let result = self.type_or_void()?;
        let prototype = self.prototype(result)?;
        self.semicolon("after the extern function")?;
        Ok(DeclarationKind::ExternFunction(prototype))
    }

    fn extern_type(&mut self) -> Parse<DeclarationKind> {
        let name = self.name("the name of an extern")?;
        let type_parameters = self.opt_type_parameters()?;
        let mut methods = Vec::new();
        if !self.eat(Tok::Semi) {
            self.expect(Tok::LBrace, "before the methods of the extern")?;
            methods = self.members("a method", |p| {
                p.scopes.push();
                let method = p.extern_method(&name);
                p.scopes.pop();
                method
            })?;
        }
        Ok(DeclarationKind::ExternType(ExternType {
            name,
            type_parameters,
            methods,
        }))
    }

    fn extern_method(&mut self, of: &Ident) -> Parse<ExternMethod> {
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let is_abstract = self.eat(Tok::Abstract);
        let prototype = if self.tok().is_name() && self.nth(1) == Tok::LParen {
            self.constructor(of)?
        } else {
            let result = self.type_or_void()?;
            if self.at(Tok::LParen) {
                return self.unexpected_with_help(
                    "the name of a method",
                    Some("a method has a result type, perhaps `void`; a constructor has no type parameters"),
                );
            }
            self.prototype(result)?
        };
        self.semicolon("after the method")?;
        Ok(ExternMethod {
            annotations,
            is_abstract,
            prototype,
            span: self.span_from(start),
        })
    }

    fn constructor(&mut self, of: &Ident) -> Parse<FunctionPrototype> {
        let name = self.name("the name of the extern")?;
        if name.name != of.name {
            let is_type = self.class_at(self.pos - 1) == Some(NameClass::Type);
            let message = format!("method `{}` has no result type", name.name);
            let error = Diagnostic::error(if is_type { "invalid" } else { "syntax" }, name.span, message);
            return self.report(error.help(format!(
                "a method has one, perhaps `void`; a constructor is called `{}`",
                of.name
            )));
        }
        let parameters = self.parameters()?;
        Ok(FunctionPrototype {
            result: None,
            name,
            type_parameters: Vec::new(),
            parameters,
        })
    }

    // -------------------------------------------------------------------------------------- types

    fn struct_type(&mut self) -> Parse<DeclarationKind> {
        let kind = match self.bump().tok {
            Tok::Struct => StructKind::Struct,
            Tok::Header => StructKind::Header,
            _ => StructKind::HeaderUnion,
        };
        let name = self.name("the name of a type")?;
        self.declare(&name, NameClass::Type);
        self.scopes.push();
        let parts = self.struct_body();
        self.scopes.pop();
        let (type_parameters, fields) = parts?;
        Ok(DeclarationKind::Struct(StructType {
            kind,
            name,
            type_parameters,
            fields,
        }))
    }

    fn struct_body(&mut self) -> Parse<(TypeParameters, Vec<Field>)> {
        let type_parameters = self.opt_type_parameters()?;
        self.expect(Tok::LBrace, "before the fields")?;
        Ok((type_parameters, self.members("a field", Self::field)?))
    }

    fn field(&mut self) -> Parse<Field> {
        let annotations = self.opt_annotations()?;
        let ty = self.ty()?;
        let name = self.name("the name of a field")?;
        let ty = self.opt_array_sizes(ty)?;
        self.semicolon("after the field")?;
        Ok(Field { annotations, ty, name })
    }

    fn enum_type(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        let named = self.tok().is_name() && self.nth(1) == Tok::LBrace;
        let underlying = if named { None } else { Some(self.ty()?) };
        let name = self.name("the name of an enum")?;
        self.declare(&name, NameClass::Type);
        self.expect(Tok::LBrace, "before the members of the enum")?;
        let members = self.elements(true, "after a member of the enum", Self::enum_member)?;
        Ok(DeclarationKind::Enum(EnumType {
            name,
            underlying,
            members,
        }))
    }

    fn enum_member(&mut self) -> Parse<EnumMember> {
        let annotations = self.opt_annotations()?;
        let name = self.name("the name of a member")?;
        let value = if self.eat(Tok::Assign) {
            Some(self.expression()?)
        } else {
            None
        };
        Ok(EnumMember {
            annotations,
            name,
            value,
        })
    }

    fn error_members(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.bump();
        Ok(DeclarationKind::Error(self.elements(false, "after an error", |p| {
            p.name("the name of an error")
        })?))
    }

    fn match_kind_members(&mut self) -> Parse<DeclarationKind> {
        self.bump();
        self.bump();
        let names = self.elements(true, "after a match kind", |p| p.name("the name of a match kind"))?;
        Ok(DeclarationKind::MatchKind(names))
    }

    /// Elements separated by commas up to and with `}`. After a mistake the rest is skipped.
    fn elements<T>(&mut self, trailing: bool, after: &str, rule: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let start = self.pos;
        match self.list(Tok::RBrace, trailing, after, rule) {
            Ok(list) => Ok(list),
            Err(_) => {
                while !matches!(self.tok(), Tok::RBrace | Tok::Eof) && !begins_top_level(self.tok()) {
                    self.recover_element(start);
                }
                self.eat(Tok::RBrace);
                self.quiet_until = Some(self.pos);
                Ok(Vec::new())
            }
        }
    }

    /// `typedef T N;` or `type T N;`
    fn typedef(&mut self) -> Parse<DeclarationKind> {
        let is_new_type = self.bump().tok == Tok::Type;
        let start = self.start();
        let annotations = self.opt_annotations()?;
        let is_derived = matches!(self.tok(), Tok::Struct | Tok::Header | Tok::HeaderUnion | Tok::Enum);
        if is_derived && is_new_type {
            // What follows can be parsed nevertheless.
            let help = "declare the type first and name it here";
            let _: Parse<()> = self.unexpected_with_help("the name of a type", Some(help));
        }
        let derived = match self.tok() {
            Tok::Enum => Some(self.enum_type()?),
            _ if is_derived => Some(self.struct_type()?),
            _ => None,
        };
        let ty = match derived {
            Some(kind) => TypedefTarget::Declaration(Box::new(self.declared(annotations, kind, start))),
            None => TypedefTarget::Type(self.ty()?),
        };
        let name = self.name("the new name of the type")?;
        self.declare(&name, NameClass::Type);
        self.semicolon("after the declaration")?;
        Ok(DeclarationKind::Typedef(Typedef { is_new_type, ty, name }))
    }
}

/// Whether a type may begin with the token.
fn begins_type(tok: Tok) -> bool {
    (tok.is_name() && !matches!(tok, Tok::Entries | Tok::Key | Tok::Actions | Tok::State))
        || matches!(
            tok,
            Tok::Bool
                | Tok::ErrorKw
                | Tok::MatchKind
                | Tok::StringKw
                | Tok::Bit
                | Tok::IntKw
                | Tok::Varbit
                | Tok::Tuple
                | Tok::Void
                | Tok::Dot
        )
}

/// Keeps the compiler from growing the frames of recursive rules.
const _: () = assert!(size_of::<TypeKind>() <= 80);
