//! Annotations, control-plane names and control-plane types.

use super::Lowerer;
use crate::check::{Const, DefKind, FunctionKind};
use crate::types::{DefId, Ty, TyKind};
use weir_ir::target::IgnoredAnnotation;
use weir_ir::{
    Annotation, AnnotationBody, AnnotationValue, Bits, ConstValue, ControlType, NamedType, Operand, Translation,
    TypeSpec,
};
use weir_syntax::ast::{self, AnnotationTokenKind, StructKind};
use weir_syntax::diagnostic::Diagnostic;

use super::value::{Object, Val};

/// The strings of an annotation's tokens joined: `"a" ++ "b"` is one string.
fn joined_strings(tokens: &[ast::AnnotationToken]) -> Option<String> {
    let strings: Vec<&str> = tokens
        .iter()
        .filter(|t| t.kind == AnnotationTokenKind::String)
        .map(|t| &*t.text)
        .collect();
    (!strings.is_empty()).then(|| strings.concat())
}

/// The string of `@name("…")`, where the list has one.
pub(super) fn name_annotation(list: &[ast::Annotation]) -> Option<String> {
    list.iter()
        .find(|a| &*a.name.name == "name")
        .and_then(|a| match &a.body {
            ast::AnnotationBody::Unstructured(tokens) => joined_strings(tokens),
            ast::AnnotationBody::Expressions(values) => match values.first().map(|v| &v.kind) {
                Some(ast::ExprKind::String(s)) => Some(s.to_string()),
                _ => None,
            },
            _ => None,
        })
}

pub(super) fn has_annotation(list: &[ast::Annotation], name: &str) -> bool {
    list.iter().any(|a| &*a.name.name == name)
}

/// An unstructured body as text: tokens separated as they were written.
fn body_text(tokens: &[ast::AnnotationToken]) -> String {
    let mut text = String::new();
    let mut end = None;
    for token in tokens {
        if end.is_some_and(|e| e != token.span.lo) {
            text.push(' ');
        }
        if token.kind == AnnotationTokenKind::String {
            text.push('"');
            text.push_str(&token.text);
            text.push('"');
        } else {
            text.push_str(&token.text);
        }
        end = Some(token.span.hi);
    }
    text
}

impl Lowerer<'_, '_> {
    /// Warns of annotations that mean something on the real target and nothing here.
    pub(super) fn warn_of_ignored_annotations(&mut self) {
        let is_extern = |kind: &DefKind<'_>| match kind {
            DefKind::Function(signature) => {
                matches!(signature.kind, FunctionKind::Extern | FunctionKind::Method { .. })
            }
            _ => false,
        };
        let others = self.checked.defs.iter().filter(|d| !is_extern(&d.kind));
        let misplaced: Vec<_> = others
            .flat_map(|d| d.annotations.iter().chain(annotations_within(&d.kind)))
            .collect();
        self.refuse_execution(misplaced);
        let defs = self.checked.defs.iter();
        let mut found: Vec<&ast::Annotation> = defs
            .flat_map(|d| d.annotations.iter().chain(annotations_within(&d.kind)))
            .collect();
        found.sort_by_key(|a| a.span.lo);
        found.dedup_by_key(|a| a.span.lo);
        for annotation in found {
            let name = &*annotation.name.name;
            let known = self.target.without_effect.iter().find(|i| i.name == name);
            if let Some(IgnoredAnnotation { instead, .. }) = known {
                let text = format!("@{name} has no effect: {instead}");
                let warning = Diagnostic::warning("annotation", annotation.span, text);
                self.diagnostics.push(warning);
            }
        }
    }

    pub(super) fn annotations(&mut self, list: &[ast::Annotation]) -> Vec<Annotation> {
        list.iter().map(|a| self.annotation(a)).collect()
    }

    fn annotation(&mut self, annotation: &ast::Annotation) -> Annotation {
        let loc = self.locate(annotation.span);
        let body = match &annotation.body {
            ast::AnnotationBody::Empty => AnnotationBody::Empty,
            ast::AnnotationBody::Unstructured(tokens) => AnnotationBody::Text {
                text: body_text(tokens),
                tokens: tokens.iter().map(|t| self.annotation_token(t)).collect(),
            },
            ast::AnnotationBody::Expressions(values) => {
                AnnotationBody::Expressions(values.iter().map(|v| self.annotation_value(v)).collect())
            }
            ast::AnnotationBody::KeyValues(pairs) => AnnotationBody::KeyValues(
                pairs
                    .iter()
                    .map(|(k, v)| (k.name.to_string(), self.annotation_value(v)))
                    .collect(),
            ),
        };
        Annotation {
            name: annotation.name.name.to_string(),
            body,
            loc,
        }
    }

    /// A token's text; the name of a constant number is replaced by the number, since readers of
    /// the annotation (`@field_list(MY_LIST)`) know no names.
    fn annotation_token(&self, token: &ast::AnnotationToken) -> String {
        let constant = self
            .checked
            .globals
            .get(&token.text)
            .and_then(|d| d.first())
            .map(|&d| self.def_kind(d));
        match (&token.kind, constant) {
            (
                AnnotationTokenKind::Word,
                Some(DefKind::Constant {
                    value: Some(Const::Int(v)),
                    ..
                }),
            ) => v.to_string(),
            _ => token.text.to_string(),
        }
    }

    fn annotation_value(&mut self, expr: &ast::Expr) -> AnnotationValue {
        match &expr.kind {
            ast::ExprKind::String(s) => AnnotationValue::String(s.to_string()),
            ast::ExprKind::Bool(b) => AnnotationValue::Bool(*b),
            ast::ExprKind::Int { value, .. } => {
                AnnotationValue::Int(num_traits::ToPrimitive::to_i64(value).unwrap_or(i64::MAX))
            }
            _ => self.computed_annotation_value(expr),
        }
    }

    fn computed_annotation_value(&mut self, expr: &ast::Expr) -> AnnotationValue {
        match &expr.kind {
            ast::ExprKind::Unary(ast::UnaryOp::Negate, inner) => match self.annotation_value(inner) {
                AnnotationValue::Int(v) => AnnotationValue::Int(-v),
                other => other,
            },
            ast::ExprKind::Binary(op, a, b) => match (op, self.annotation_value(a), self.annotation_value(b)) {
                (ast::BinaryOp::Concat, AnnotationValue::String(a), AnnotationValue::String(b)) => {
                    AnnotationValue::String(a + &b)
                }
                (ast::BinaryOp::Add, AnnotationValue::Int(a), AnnotationValue::Int(b)) => {
                    AnnotationValue::Int(a.wrapping_add(b))
                }
                (ast::BinaryOp::Sub, AnnotationValue::Int(a), AnnotationValue::Int(b)) => {
                    AnnotationValue::Int(a.wrapping_sub(b))
                }
                (ast::BinaryOp::Mul, AnnotationValue::Int(a), AnnotationValue::Int(b)) => {
                    AnnotationValue::Int(a.wrapping_mul(b))
                }
                (ast::BinaryOp::Shl, AnnotationValue::Int(a), AnnotationValue::Int(b)) => {
                    AnnotationValue::Int(a.wrapping_shl(b as u32))
                }
                (ast::BinaryOp::Eq, a, b) => AnnotationValue::Bool(a == b),
                (ast::BinaryOp::Ne, a, b) => AnnotationValue::Bool(a != b),
                (ast::BinaryOp::Lt, AnnotationValue::Int(a), AnnotationValue::Int(b)) => AnnotationValue::Bool(a < b),
                (ast::BinaryOp::Gt, AnnotationValue::Int(a), AnnotationValue::Int(b)) => AnnotationValue::Bool(a > b),
                (ast::BinaryOp::And, AnnotationValue::Bool(a), AnnotationValue::Bool(b)) => {
                    AnnotationValue::Bool(a && b)
                }
                (ast::BinaryOp::Or, AnnotationValue::Bool(a), AnnotationValue::Bool(b)) => {
                    AnnotationValue::Bool(a || b)
                }
                _ => AnnotationValue::Int(0),
            },
            ast::ExprKind::Name { .. } => {
                let def = self.checked.names.get(expr.id.0 as usize).copied().flatten();
                match def.map(|d| self.def_kind(d)) {
                    Some(DefKind::Constant {
                        value: Some(Const::Int(v)),
                        ..
                    }) => AnnotationValue::Int(num_traits::ToPrimitive::to_i64(v).unwrap_or(i64::MAX)),
                    Some(DefKind::Constant {
                        value: Some(Const::Bool(b)),
                        ..
                    }) => AnnotationValue::Bool(*b),
                    Some(DefKind::Constant {
                        value: Some(Const::String(s)),
                        ..
                    }) => AnnotationValue::String(s.to_string()),
                    _ => AnnotationValue::Int(0),
                }
            }
            _ => AnnotationValue::Int(0),
        }
    }

    /// Annotations of a field of a struct.
    pub(super) fn field_annotations(&mut self, def: DefId, index: usize) -> Vec<Annotation> {
        let DefKind::Struct { fields, .. } = self.def_kind(def) else {
            return Vec::new();
        };
        let list = fields.get(index).map_or(&[][..], |f| f.annotations);
        self.annotations(list)
    }

    /// The control-plane name of something declared here: the path of what is around it, then its
    /// own name or what `@name` says; a leading dot in `@name` starts from the top.
    pub(super) fn control_name(&self, declared: &str, annotations: &[ast::Annotation]) -> String {
        let local = name_annotation(annotations).unwrap_or_else(|| declared.to_string());
        if let Some(absolute) = local.strip_prefix('.') {
            self.of_pipeline(absolute)
        } else if self.path.is_empty() {
            local
        } else {
            format!("{}.{local}", self.path)
        }
    }

    /// A name within the pipeline whose block is being lowered.
    pub(super) fn of_pipeline(&self, name: &str) -> String {
        match self.pipeline.as_str() {
            "" => name.to_string(),
            pipeline => format!("{pipeline}.{name}"),
        }
    }

    /// What P4Runtime knows of a type beyond its width.
    pub(super) fn control_type(&mut self, ty: Ty) -> ControlType {
        match self.kind(ty) {
            TyKind::New(def) => {
                let name = self.checked.defs[def.0 as usize].name.to_string();
                let spec = self.type_spec(ty);
                let translation = self.translation(def);
                self.note_type(def, spec);
                ControlType {
                    type_name: Some(name),
                    translation,
                }
            }
            TyKind::Enum(def) if self.checked.enum_underlying(def).is_some() => {
                let name = self.checked.defs[def.0 as usize].name.to_string();
                let spec = self.type_spec(ty);
                self.note_type(def, spec);
                ControlType {
                    type_name: Some(name),
                    translation: None,
                }
            }
            _ => ControlType::default(),
        }
    }

    fn note_type(&mut self, def: DefId, spec: TypeSpec) {
        let declaration = &self.checked.defs[def.0 as usize];
        let (name, list) = (declaration.name.to_string(), declaration.annotations);
        if !self.program.type_info.iter().any(|known| known.name == name) {
            let annotations = self.annotations(list);
            let named = NamedType {
                name,
                spec,
                annotations,
            };
            self.program.type_info.push(named);
        }
    }

    fn translation(&mut self, def: DefId) -> Option<Translation> {
        let list = self.checked.defs[def.0 as usize].annotations;
        let annotation = list.iter().find(|a| &*a.name.name == "p4runtime_translation")?;
        let ast::AnnotationBody::Unstructured(tokens) = &annotation.body else {
            return None;
        };
        let uri = joined_strings(&tokens[..1.min(tokens.len())])?;
        let last = tokens
            .iter()
            .rev()
            .find(|t| matches!(t.kind, AnnotationTokenKind::Integer(_) | AnnotationTokenKind::Word))?;
        let sdn_width = match &last.kind {
            AnnotationTokenKind::Integer(v) => num_traits::ToPrimitive::to_u32(v),
            _ => None,
        };
        let mappings = self.translation_mappings(def, sdn_width.is_none());
        Some(Translation {
            uri,
            sdn_width,
            mappings,
        })
    }

    /// `@p4runtime_translation_mappings({ { "string", value }, … })`.
    fn translation_mappings(&mut self, def: DefId, is_string: bool) -> Vec<(String, Bits)> {
        let list = self.checked.defs[def.0 as usize].annotations;
        let Some(annotation) = list.iter().find(|a| &*a.name.name == "p4runtime_translation_mappings") else {
            return Vec::new();
        };
        let width = match self.def_kind(def) {
            DefKind::NewType(inner) => self.scalar_width(*inner).unwrap_or(0),
            _ => 0,
        };
        let mappings = match &annotation.body {
            ast::AnnotationBody::Unstructured(tokens) if is_string => string_mappings(tokens, width),
            _ => None,
        };
        mappings.unwrap_or_else(|| {
            let text = "@p4runtime_translation_mappings takes `{ { \"string\", value }, … }` for a type that is translated to string, \
                        with other strings and other values, which fit the type, in each pair";
            if !self.diagnostics.list().iter().any(|d| d.span == annotation.span) {
                self.error("invalid", annotation.span, text);
            }
            Vec::new()
        })
    }

    /// A type for whoever must describe it to a control plane.
    pub(super) fn type_spec(&mut self, ty: Ty) -> TypeSpec {
        match self.kind(ty) {
            TyKind::Void => TypeSpec::Void,
            TyKind::Bool => TypeSpec::Bool,
            TyKind::Bit(w) => TypeSpec::Bit(w),
            TyKind::Int(w) => TypeSpec::Int(w),
            TyKind::Varbit(w) => TypeSpec::Varbit(w),
            TyKind::Error => TypeSpec::Error,
            TyKind::String => TypeSpec::String,
            TyKind::Tuple(parts) | TyKind::Listed(parts) => {
                TypeSpec::Tuple(parts.iter().map(|&t| self.type_spec(t)).collect())
            }
            TyKind::Fields(fields, _) => TypeSpec::Tuple(fields.iter().map(|(_, t)| self.type_spec(*t)).collect()),
            TyKind::Stack(element, n) => TypeSpec::Stack(Box::new(self.type_spec(element)), n),
            TyKind::Struct(def, arguments) => {
                let name = self.checked.defs[def.0 as usize].name.to_string();
                let fields = self.checked.fields_of(def, &arguments);
                let fields = fields
                    .into_iter()
                    .map(|(n, t)| (n.to_string(), self.type_spec(t)))
                    .collect();
                match self.checked.struct_kind(ty) {
                    Some(StructKind::Header) => TypeSpec::Header(name, fields),
                    Some(StructKind::HeaderUnion) => TypeSpec::HeaderUnion(name, fields),
                    _ => TypeSpec::Struct(name, fields),
                }
            }
            TyKind::Enum(def) => {
                let id = self.enum_id(def);
                let e = self.program.enums[id].clone();
                match e.values {
                    Some(values) => {
                        let width = self.scalar_width(ty).unwrap_or(0);
                        TypeSpec::SerializableEnum(e.name, width, e.members.into_iter().zip(values).collect())
                    }
                    None => TypeSpec::Enum(e.name, e.members),
                }
            }
            TyKind::New(def) => {
                let name = self.checked.defs[def.0 as usize].name.to_string();
                let inner = match self.def_kind(def) {
                    DefKind::NewType(inner) => *inner,
                    _ => return TypeSpec::Opaque(name),
                };
                let translation = self.translation(def).map(|t| (t.uri, t.sdn_width));
                let inner = self.type_spec(inner);
                let spec = TypeSpec::New(name.clone(), Box::new(inner), translation);
                self.note_type(def, spec.clone());
                spec
            }
            _ => TypeSpec::Opaque(self.checked.show(ty)),
        }
    }

    /// A compile-time value for an extern's constructor or a table property.
    pub(super) fn const_value(&mut self, value: &Val, ty: Ty) -> ConstValue {
        match (value, self.kind(ty)) {
            (Val::Scalar(Operand::Const(bits)), kind) => match kind {
                TyKind::Bool => ConstValue::Bool(!bits.is_zero()),
                TyKind::Error => ConstValue::Enum {
                    enum_name: "error".into(),
                    member: self.error_name(bits),
                },
                TyKind::Enum(def) => {
                    let id = self.enum_id(def);
                    let e = &self.program.enums[id];
                    let index = match &e.values {
                        Some(values) => values.iter().position(|v| v == bits),
                        None => bits.to_u64().map(|v| v as usize),
                    };
                    match index.and_then(|i| e.members.get(i)) {
                        Some(member) => ConstValue::Enum {
                            enum_name: e.name.clone(),
                            member: member.clone(),
                        },
                        None => ConstValue::Bits(bits.clone()),
                    }
                }
                _ => ConstValue::Bits(bits.clone()),
            },
            (Val::Int(v), _) => ConstValue::Int(v.clone()),
            (Val::String(s), _) => ConstValue::String(s.to_string()),
            (Val::Struct(fields), _) => {
                let types = self.component_types(ty);
                ConstValue::List(
                    fields
                        .iter()
                        .zip(types.into_iter().chain(std::iter::repeat(ty)))
                        .map(|((_, v), t)| self.const_value(v, t))
                        .collect(),
                )
            }
            (Val::Object(Object::Extern(id)), _) => ConstValue::Extern(*id),
            _ => ConstValue::List(Vec::new()),
        }
    }

    fn error_name(&self, bits: &Bits) -> String {
        bits.to_u64()
            .and_then(|v| self.program.errors.get(v as usize))
            .cloned()
            .unwrap_or_default()
    }
}

/// Annotations of the parts of a declaration that are no declarations themselves.
fn annotations_within<'a>(kind: &DefKind<'a>) -> Vec<&'a ast::Annotation> {
    match kind {
        DefKind::Struct { fields, .. } => fields.iter().flat_map(|f| f.annotations).collect(),
        DefKind::Table { ast, .. } => ast.properties.iter().flat_map(|p| &p.annotations).collect(),
        DefKind::Parser { ast, .. } => ast.states.iter().flat_map(|s| &s.annotations).collect(),
        _ => Vec::new(),
    }
}

/// The pairs of `{ { "string", value }, … }`; `None` where they are no such list, or not one to
/// one.
fn string_mappings(tokens: &[ast::AnnotationToken], width: u32) -> Option<Vec<(String, Bits)>> {
    let inner = match tokens {
        [first, inner @ .., last] if &*first.text == "{" && &*last.text == "}" => inner,
        _ => return None,
    };
    let mut mappings: Vec<(String, Bits)> = Vec::new();
    let mut rest = inner;
    while let [open, string, comma, value, close, more @ ..] = rest {
        let AnnotationTokenKind::Integer(number) = &value.kind else {
            return None;
        };
        let is_pair = (&*open.text, &*comma.text, &*close.text) == ("{", ",", "}");
        let fits = number.bits() <= width.into() && number.sign() != num_bigint::Sign::Minus;
        let bits = Bits::from_bigint(width, number);
        let is_new = mappings.iter().all(|(s, v)| **s != *string.text && *v != bits);
        if !is_pair || string.kind != AnnotationTokenKind::String || !fits || !is_new {
            return None;
        }
        mappings.push((string.text.to_string(), bits));
        rest = match more {
            [comma, more @ ..] if &*comma.text == "," => more,
            [] => more,
            _ => return None,
        };
    }
    rest.is_empty().then_some(mappings)
}
