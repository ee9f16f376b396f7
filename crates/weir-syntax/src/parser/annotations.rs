//! Annotations: `@name`, `@name(tokens)`, `@name[expressions]`, `@pragma name tokens`.

use super::{Parse, Parser};
use crate::ast::{Annotation, AnnotationBody, AnnotationToken, AnnotationTokenKind};
use crate::literal;
use crate::token::{Tok, Token};

impl Parser<'_> {
    /// `optAnnotations`
    pub(super) fn opt_annotations(&mut self) -> Parse<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.at(Tok::At) {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parse<Annotation> {
        let start = self.start();
        self.bump();
        if !self.at(Tok::Ident) && !self.tok().is_keyword() {
            return self.unexpected("the name of an annotation after `@`");
        }
        let token = self.bump();
        let mut name = self.ident(token);
        let body = if &*name.name == "pragma" && self.is_pragma() {
            let Some(token) = self.pragma_name() else {
                return self.unexpected("the name of the pragma");
            };
            name = self.ident(token);
            self.pragma_body()
        } else {
            match self.tok() {
                Tok::LParen => self.unstructured()?,
                Tok::LBracket => self.structured()?,
                _ => AnnotationBody::Empty,
            }
        };
        let annotation = Annotation {
            name,
            body,
            span: self.span_from(start),
        };
        self.check_annotation(&annotation);
        Ok(annotation)
    }

    /// Checks the form of annotations that tools rely on.
    fn check_annotation(&mut self, annotation: &Annotation) {
        let mistake = match (&*annotation.name.name, &annotation.body) {
            ("pkginfo", AnnotationBody::Empty) => Some((
                annotation.span,
                "`@pkginfo` takes pairs: `@pkginfo[name=\"…\", version=\"…\"]`",
            )),
            ("p4runtime_translation", AnnotationBody::Unstructured(tokens)) => {
                translation_mistake(tokens).map(|at| (tokens.get(at).map_or(annotation.span, |t| t.span), TRANSLATION))
            }
            ("p4runtime_translation", _) => Some((annotation.span, TRANSLATION)),
            _ => None,
        };
        if let Some((span, message)) = mistake {
            self.diagnostics.push(crate::Diagnostic::error("syntax", span, message));
        }
    }

    /// Whether a pragma's end follows; an annotation may happen to be called `pragma`, too.
    fn is_pragma(&self) -> bool {
        !matches!(self.tok(), Tok::LParen | Tok::LBracket)
    }

    fn pragma_name(&mut self) -> Option<Token> {
        let found = self.at(Tok::Ident) || self.tok().is_keyword();
        found.then(|| self.bump())
    }

    fn pragma_body(&mut self) -> AnnotationBody {
        let mut tokens = Vec::new();
        while !matches!(self.tok(), Tok::PragmaEnd | Tok::Eof) {
            let token = self.bump();
            tokens.push(self.annotation_token(token));
        }
        self.eat(Tok::PragmaEnd);
        if tokens.is_empty() {
            AnnotationBody::Empty
        } else {
            AnnotationBody::Unstructured(tokens)
        }
    }

    fn unstructured(&mut self) -> Parse<AnnotationBody> {
        let open = self.bump();
        let mut tokens = Vec::new();
        let mut depth = 1_usize;
        loop {
            match self.tok() {
                Tok::Eof => {
                    let error =
                        crate::Diagnostic::error("syntax", open.span, "the body of this annotation has no closing `)`");
                    return self.report(error);
                }
                Tok::LParen => depth += 1,
                Tok::RParen => depth -= 1,
                _ => {}
            }
            let token = self.bump();
            if depth == 0 {
                return Ok(AnnotationBody::Unstructured(tokens));
            }
            if token.tok != Tok::PragmaEnd {
                tokens.push(self.annotation_token(token));
            }
        }
    }

    fn annotation_token(&self, token: Token) -> AnnotationToken {
        let text = token.text(self.interner);
        let (kind, text) = match token.tok {
            Tok::Str => (AnnotationTokenKind::String, literal::string(text).into()),
            Tok::Int => match literal::integer(text) {
                Ok(integer) => (AnnotationTokenKind::Integer(integer.value), text.into()),
                Err(_) => (AnnotationTokenKind::Word, text.into()),
            },
            tok if tok == Tok::Ident || tok.is_keyword() => (AnnotationTokenKind::Word, text.into()),
            _ => (AnnotationTokenKind::Punctuation, text.into()),
        };
        AnnotationToken {
            text,
            kind,
            span: token.span,
        }
    }

    /// `[e, …]` or `[k=e, …]`
    fn structured(&mut self) -> Parse<AnnotationBody> {
        self.bump();
        let after = "in the annotation";
        if self.tok().is_name() && self.nth(1) == Tok::Assign {
            let pairs = self.bracketed(|p| {
                p.list(Tok::RBracket, true, after, |p| {
                    let key = p.name("a key of the annotation")?;
                    p.expect(Tok::Assign, "after the key; keys and plain values do not mix")?;
                    Ok((key, p.expression()?))
                })
            })?;
            return Ok(AnnotationBody::KeyValues(pairs));
        }
        let values = self.bracketed(|p| p.list(Tok::RBracket, true, after, Self::expression))?;
        Ok(AnnotationBody::Expressions(values))
    }
}

const TRANSLATION: &str = "`@p4runtime_translation` takes a URI in quotes and `bit<W>`, `string` or a width";

/// The index of the token that does not fit `"uri", bit<W>`, `"uri", string` or `"uri", W`.
fn translation_mistake(tokens: &[AnnotationToken]) -> Option<usize> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|t| &*t.text == text);
    let integer = |at: usize| {
        tokens
            .get(at)
            .is_some_and(|t| matches!(t.kind, AnnotationTokenKind::Integer(_)))
    };
    if tokens.first().is_none_or(|t| t.kind != AnnotationTokenKind::String) {
        return Some(0);
    }
    if !is(1, ",") {
        return Some(1);
    }
    let end = if integer(2) || is(2, "string") {
        3
    } else if !is(2, "bit") {
        return Some(2);
    } else if is(3, "<") && integer(4) {
        if !is(5, ">") {
            return Some(5);
        }
        6
    } else {
        return Some(3);
    };
    (tokens.len() > end).then_some(end)
}
