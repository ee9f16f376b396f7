//! Definition and expansion of macros.

use std::rc::Rc;

use super::{Context, Level, Macro, Preprocessor};
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{Interner, NO_EXPAND, SPACE, Sym, Tok, Token};

/// Deepest nesting of macro calls within arguments of macro calls.
const MAX_ARGUMENT_NESTING: usize = 100;

const NO_SLOT: u32 = u32::MAX;

impl Preprocessor<'_> {
    /// Replaces the use of a macro, unless it is the name of a function-like macro without
    /// arguments. Returns whether it did.
    pub(super) fn expand(&mut self, definition: &Rc<Macro>, name: Token, level: Level) -> bool {
        let first_space = name.has_space();
        let context = match definition.parameters {
            None if !definition.pastes => Context {
                tokens: definition.body.clone(),
                next: 0,
                span: Some(name.span),
                first_space,
                source: Some(definition.clone()),
            },
            None => {
                let tokens = self.substitute(definition, name, &[]).into();
                Context {
                    tokens,
                    next: 0,
                    span: None,
                    first_space,
                    source: Some(definition.clone()),
                }
            }
            Some(count) => {
                if !self.parenthesis_follows(level) {
                    return false;
                }
                let Some(arguments) = self.arguments(definition, count, name, level) else {
                    return false;
                };
                let tokens = self.substitute(definition, name, &arguments).into();
                Context {
                    tokens,
                    next: 0,
                    span: None,
                    first_space,
                    source: Some(definition.clone()),
                }
            }
        };
        definition.disabled.set(true);
        self.contexts.push(context);
        self.charge(1, name.span);
        true
    }

    /// Whether the next token is `(`, without consuming anything.
    fn parenthesis_follows(&mut self, level: Level) -> bool {
        for context in self.contexts[level.base..].iter().rev() {
            if let Some(token) = context.tokens.get(context.next) {
                return token.tok == Tok::LParen;
            }
        }
        if level.isolated {
            return false;
        }
        let Some(file) = self.files.last() else {
            return false;
        };
        let mut lexer = Lexer {
            text: &file.text,
            pos: file.pos,
            base: 0,
            multiline_strings: false,
        };
        loop {
            match lexer.next(&mut self.interner).tok {
                Tok::Newline => {}
                tok => return tok == Tok::LParen,
            }
        }
    }

    /// Reads the arguments of a use. Reports and returns `None` if they do not fit.
    fn arguments(&mut self, definition: &Macro, count: usize, name: Token, level: Level) -> Option<Vec<Vec<Token>>> {
        let files = self.files.len();
        let mut arguments = vec![Vec::new()];
        let mut depth = 0_usize;
        loop {
            let token = if self.files.len() == files {
                self.raw(level, true)
            } else {
                None
            };
            let Some(mut token) = token else {
                if !self.aborted {
                    let text = self.interner.name(name.sym);
                    self.error(
                        name.span,
                        format!("the arguments of macro `{text}` have no closing `)`"),
                    );
                }
                return None;
            };
            match token.tok {
                Tok::LParen => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                Tok::RParen => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                Tok::Comma if depth == 1 && !(definition.variadic && arguments.len() >= count) => {
                    arguments.push(Vec::new());
                    continue;
                }
                Tok::Ident if self.macros.get(&token.sym).is_some_and(|m| m.disabled.get()) => {
                    token.flags |= NO_EXPAND;
                }
                _ => {}
            }
            self.charge(1, name.span);
            arguments.last_mut()?.push(token);
        }
        if count == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if definition.variadic && arguments.len() + 1 == count {
            arguments.push(Vec::new());
        }
        if arguments.len() == count {
            return Some(arguments);
        }
        let text = self.interner.name(name.sym);
        let given = arguments.len();
        let error = crate::Diagnostic::error(
            "preprocessor",
            name.span,
            format!("macro `{text}` takes {count} arguments, but {given} are given"),
        );
        self.diagnostics.push(error.label(definition.span, "defined here"));
        None
    }

    /// Expands an argument on its own.
    fn expand_argument(&mut self, tokens: &[Token]) -> Vec<Token> {
        if !tokens.iter().any(|t| t.tok == Tok::Ident) {
            return tokens.to_vec();
        }
        if self.argument_nesting >= MAX_ARGUMENT_NESTING {
            let message = format!("macro arguments are nested more than {MAX_ARGUMENT_NESTING} deep");
            self.abort(tokens[0].span, message);
            return Vec::new();
        }
        self.argument_nesting += 1;
        let base = self.contexts.len();
        let tokens = tokens.into();
        self.contexts.push(Context {
            tokens,
            next: 0,
            span: None,
            first_space: false,
            source: None,
        });
        let mut expanded = Vec::new();
        while let Some(token) = self.expanded(Level { base, isolated: true }) {
            expanded.push(token);
        }
        while self.contexts.len() > base {
            self.pop_context();
        }
        self.argument_nesting -= 1;
        expanded
    }

    pub(super) fn expand_line(&mut self, tokens: &[Token]) -> Vec<Token> {
        self.expand_argument(tokens)
    }

    /// The body of a macro with its parameters replaced.
    fn substitute(&mut self, definition: &Macro, name: Token, arguments: &[Vec<Token>]) -> Vec<Token> {
        let body = &definition.body;
        let is_paste = |i: usize| body.get(i).is_some_and(|t| t.tok == Tok::HashHash);
        let mut expansions: Vec<Option<Vec<Token>>> = vec![None; arguments.len()];
        let mut result: Vec<Token> = Vec::new();
        // Where the operands of the current chain of `##` begin in `result`.
        let mut chain = 0;
        let mut i = 0;
        while i < body.len() && !self.aborted {
            let mut token = body[i];
            token.span = name.span;
            if token.tok == Tok::HashHash && i > 0 {
                i += 1;
                continue;
            }
            let pasted = i > 0 && is_paste(i - 1);
            let mut slot = definition.slots[i];
            let mut operand = vec![token];
            let mut len = 1;
            if token.tok == Tok::Hash
                && definition.parameters.is_some()
                && let Some(&next) = definition.slots.get(i + 1).filter(|&&s| s != NO_SLOT)
            {
                operand = vec![self.stringify(&arguments[next as usize], token)];
                len = 2;
                slot = NO_SLOT;
            }
            let pastes_next = is_paste(i + len);
            if slot != NO_SLOT {
                let slot = slot as usize;
                let raw = &arguments[slot];
                let rest = definition.variadic && slot + 1 == arguments.len();
                let comma = pasted && rest && i >= 2 && body[i - 2].tok == Tok::Comma;
                operand = if comma && raw.is_empty() {
                    result.pop();
                    Vec::new()
                } else if (pasted && !comma) || pastes_next {
                    raw.clone()
                } else {
                    if expansions[slot].is_none() {
                        expansions[slot] = Some(self.expand_argument(raw));
                    }
                    expansions[slot].clone().unwrap_or_default()
                };
                if let Some(first) = operand.first_mut() {
                    first.flags = (first.flags & !SPACE) | (token.flags & SPACE);
                }
                if comma {
                    chain = result.len();
                }
            }
            self.charge(operand.len(), name.span);
            if pasted && result.len() > chain && !operand.is_empty() {
                let left = result.pop().unwrap_or(token);
                let right = operand.remove(0);
                self.paste(left, right, name.span, &mut result);
            } else if !pasted {
                chain = result.len();
            }
            result.append(&mut operand);
            i += len;
        }
        result
    }

    fn paste(&mut self, left: Token, right: Token, span: Span, result: &mut Vec<Token>) {
        let text = format!("{}{}", left.text(&self.interner), right.text(&self.interner));
        let mut lexer = Lexer {
            text: &text,
            pos: 0,
            base: 0,
            multiline_strings: true,
        };
        let mut token = lexer.next(&mut self.interner);
        if lexer.pos == text.len() && !text.is_empty() && token.tok != Tok::UnterminatedComment {
            token.flags = left.flags & SPACE;
            token.span = span;
            result.push(token);
            return;
        }
        // They stay two, as `cpp` leaves them in the mode that other compilers call it in.
        result.extend([left, right]);
    }

    fn stringify(&mut self, argument: &[Token], hash: Token) -> Token {
        let mut text = String::from("\"");
        for (i, token) in argument.iter().enumerate() {
            if i > 0 && token.has_space() {
                text.push(' ');
            }
            let token_text = token.text(&self.interner);
            if token.tok == Tok::Str {
                text.push_str(&token_text.replace('\\', "\\\\").replace('"', "\\\""));
            } else {
                text.push_str(token_text);
            }
        }
        text.push('"');
        self.charge(text.len() / 16, hash.span);
        Token {
            tok: Tok::Str,
            sym: self.interner.intern(&text),
            ..hash
        }
    }

    // ---------------------------------------------------------------------------------- definition

    /// `#define` with the rest of its line.
    pub(super) fn define(&mut self, line: &[Token], directive: Span) {
        let Some(&name) = line.first().filter(|t| t.tok == Tok::Ident) else {
            let span = line.first().map_or(directive, |t| t.span);
            self.error(span, "`#define` needs the name of a macro");
            return;
        };
        if name.sym == self.sym_defined {
            self.error(name.span, "`defined` cannot be a macro");
            return;
        }
        let mut body = &line[1..];
        let mut parameters: Option<Vec<Sym>> = None;
        let mut variadic = false;
        if body.first().is_some_and(|t| t.tok == Tok::LParen && !t.has_space()) {
            let Some((names, is_variadic, len)) = self.parameters(&body[1..], name) else {
                return;
            };
            parameters = Some(names);
            variadic = is_variadic;
            body = &body[1 + len..];
        }
        let mut body = body.to_vec();
        if let Some(first) = body.first_mut() {
            first.flags &= !SPACE;
        }
        let pastes = body.iter().any(|t| t.tok == Tok::HashHash);
        for end in [body.first(), body.last()].into_iter().flatten() {
            if end.tok == Tok::HashHash {
                self.error(end.span, "`##` stands between two tokens of a macro");
                return;
            }
        }
        let slot_of: rustc_hash::FxHashMap<Sym, u32> = parameters
            .iter()
            .flatten()
            .enumerate()
            .map(|(i, &sym)| (sym, i as u32))
            .collect();
        let slot = |t: &Token| match t.tok {
            Tok::Ident => slot_of.get(&t.sym).copied().unwrap_or(NO_SLOT),
            _ => NO_SLOT,
        };
        let definition = Macro {
            parameters: parameters.map(|p| p.len()),
            variadic,
            slots: body.iter().map(slot).collect(),
            body: body.into(),
            pastes,
            disabled: std::cell::Cell::new(false),
            span: name.span,
        };
        let built_in = self.files.last().is_some_and(|f| f.is_built_in);
        if let Some(earlier) = self.macros.get(&name.sym).filter(|_| !built_in)
            && !same(earlier, &definition, &self.interner)
        {
            let text = self.interner.text(name.sym);
            let warning = crate::Diagnostic::warning(
                "preprocessor",
                name.span,
                format!("macro `{text}` is defined again, differently"),
            );
            self.diagnostics
                .push(warning.label(earlier.span, "defined here before"));
        }
        self.macros.insert(name.sym, Rc::new(definition));
    }

    /// Parameters up to and with `)`: names, whether variadic, how many tokens.
    fn parameters(&mut self, line: &[Token], name: Token) -> Option<(Vec<Sym>, bool, usize)> {
        let mut names = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut i = 0;
        if line.first().is_some_and(|t| t.tok == Tok::RParen) {
            return Some((names, false, 1));
        }
        loop {
            let token = line.get(i).copied();
            let mut variadic = false;
            match token.map(|t| t.tok) {
                Some(Tok::Ident) => {
                    names.push(token?.sym);
                    if line.get(i + 1).is_some_and(|t| t.tok == Tok::Ellipsis) {
                        variadic = true;
                        i += 1;
                    }
                }
                Some(Tok::Ellipsis) => {
                    variadic = true;
                    names.push(self.sym_va_args);
                }
                _ => {
                    let span = token.map_or(name.span, |t| t.span);
                    self.error(
                        span,
                        "a macro's parameters are names separated by `,` and closed by `)`",
                    );
                    return None;
                }
            }
            if !seen.insert(*names.last()?) {
                self.error(token?.span, "this macro parameter is named twice");
                return None;
            }
            match line.get(i + 1).map(|t| t.tok) {
                Some(Tok::RParen) => return Some((names, variadic, i + 2)),
                Some(Tok::Comma) if !variadic => i += 2,
                _ => {
                    let span = line.get(i + 1).map_or(name.span, |t| t.span);
                    self.error(span, "expected `,` or `)` after a macro parameter");
                    return None;
                }
            }
        }
    }

    /// `#undef` with the rest of its line.
    pub(super) fn undefine(&mut self, line: &[Token], directive: Span) {
        match line.first() {
            Some(name) if name.tok == Tok::Ident => {
                self.macros.remove(&name.sym);
                self.warn_of_extra("undef", &line[1..]);
            }
            other => {
                let span = other.map_or(directive, |t| t.span);
                self.error(span, "`#undef` needs the name of a macro");
            }
        }
    }
}

/// Whether two definitions differ in nothing but white space.
fn same(a: &Macro, b: &Macro, interner: &Interner) -> bool {
    a.parameters == b.parameters
        && a.variadic == b.variadic
        && a.slots == b.slots
        && a.body.len() == b.body.len()
        && a.body
            .iter()
            .zip(b.body.iter())
            .all(|(x, y)| x.tok == y.tok && x.text(interner) == y.text(interner))
}
