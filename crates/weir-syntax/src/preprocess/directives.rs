//! Directives: lines that begin with `#`.

use super::{Conditional, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::lexer::Lexer;
use crate::source::Span;
use crate::token::{Tok, Token};

impl Preprocessor<'_> {
    /// Obeys the directive whose `#` was just read.
    pub(super) fn directive(&mut self, hash: Token) {
        let name = self.lex(false);
        let span = hash.span.to(name.span);
        match name.tok {
            Tok::Newline | Tok::Eof => self.set_line_start(true),
            Tok::Int => {
                // `# 12 "file"`, as other preprocessors leave behind.
                let mut line = self.rest_of_line();
                line.insert(0, name);
                self.line(&line, span);
            }
            Tok::Ident => {
                let text = self.interner.name(name.sym);
                self.named_directive(&text, span);
            }
            _ => {
                self.rest_of_line();
                let text = name.text(&self.interner).to_string();
                self.error(name.span, format!("expected a directive after `#`, found `{text}`"));
            }
        }
        if self.conditionals.last().is_some_and(|c| !c.active) {
            self.skip_group();
        }
    }

    fn named_directive(&mut self, name: &str, span: Span) {
        match name {
            "include" => self.include(span),
            "define" => {
                let line = self.rest_of_line();
                self.define(&line, span);
            }
            "undef" => {
                let line = self.rest_of_line();
                self.undefine(&line, span);
            }
            "if" | "ifdef" | "ifndef" => {
                let active = self.opens(name, span);
                self.conditionals.push(Conditional {
                    span,
                    taken: active,
                    active,
                    else_seen: false,
                });
            }
            "elif" | "else" | "endif" => self.continues(name, span),
            "line" => {
                let line = self.rest_of_line();
                let line = self.expand_line(&line);
                self.line(&line, span);
            }
            "error" | "warning" => {
                let message = self.rest_of_line_text();
                let message = if message.is_empty() {
                    format!("#{name}")
                } else {
                    message
                };
                if name == "error" {
                    self.error(span, message);
                } else {
                    self.diagnostics
                        .push(Diagnostic::warning("preprocessor", span, message));
                }
            }
            "pragma" | "ident" => {
                self.rest_of_line();
            }
            _ => {
                self.rest_of_line();
                self.error(span, format!("there is no directive `#{name}`"));
            }
        }
    }

    /// The condition of a directive that opens a conditional.
    fn opens(&mut self, name: &str, span: Span) -> bool {
        let line = self.rest_of_line();
        if name == "if" {
            return self.condition(line, span);
        }
        match line.first() {
            Some(token) if token.tok == Tok::Ident => self.is_defined(token.sym) == (name == "ifdef"),
            other => {
                let at = other.map_or(span, |t| t.span);
                self.error(at, format!("`#{name}` needs the name of a macro"));
                false
            }
        }
    }

    /// `#elif`, `#else` and `#endif`.
    fn continues(&mut self, name: &str, span: Span) {
        let line = self.rest_of_line();
        let base = self.files.last().map_or(0, |f| f.conditionals);
        if self.conditionals.len() <= base {
            self.error(span, format!("`#{name}` without `#if`"));
            return;
        }
        if name == "endif" {
            self.conditionals.pop();
            return;
        }
        let Some(conditional) = self.conditionals.last_mut() else {
            return;
        };
        if conditional.else_seen {
            let opening = conditional.span;
            let error = Diagnostic::error("preprocessor", span, format!("`#{name}` after `#else`"));
            self.diagnostics.push(error.label(opening, "of this conditional"));
            return;
        }
        if name == "else" {
            conditional.else_seen = true;
            conditional.active = !conditional.taken;
            conditional.taken = true;
            return;
        }
        conditional.active = false;
        if !conditional.taken {
            let holds = self.condition(line, span);
            if let Some(conditional) = self.conditionals.last_mut() {
                conditional.active = holds;
                conditional.taken = holds;
            }
        }
    }

    /// Skips lines until a group of the innermost conditional is taken, or it ends.
    fn skip_group(&mut self) {
        let mut nested = 0_usize;
        while self.conditionals.last().is_some_and(|c| !c.active) {
            let first = self.lex(false);
            match first.tok {
                Tok::Eof => return,
                Tok::Newline => continue,
                Tok::Hash => {}
                _ => {
                    self.skip_line();
                    continue;
                }
            }
            let name = self.lex(false);
            let text = if name.tok == Tok::Ident {
                self.interner.name(name.sym)
            } else {
                "".into()
            };
            let span = first.span.to(name.span);
            match &*text {
                "if" | "ifdef" | "ifndef" => nested += 1,
                "endif" if nested > 0 => nested -= 1,
                "elif" | "else" | "endif" if nested == 0 => {
                    self.continues(&text, span);
                    continue;
                }
                _ => {}
            }
            if name.tok != Tok::Newline {
                self.skip_line();
            }
        }
    }

    fn skip_line(&mut self) {
        if let Some(file) = self.files.last_mut() {
            let mut lexer = Lexer {
                text: &file.text,
                pos: file.pos,
                base: 0,
                multiline_strings: false,
            };
            lexer.skip_line();
            file.pos = lexer.pos;
            file.line_start = true;
        }
    }

    /// The tokens up to the end of the line.
    pub(super) fn rest_of_line(&mut self) -> Vec<Token> {
        let mut line = Vec::new();
        loop {
            let token = self.lex(false);
            match token.tok {
                Tok::Newline | Tok::Eof => break,
                Tok::UnterminatedComment => {
                    let error = Diagnostic::error("lexical", token.span, "this comment has no closing `*/`");
                    self.diagnostics.push(error);
                }
                _ => line.push(token),
            }
        }
        self.set_line_start(true);
        self.pending_space = true;
        line
    }

    fn rest_of_line_text(&mut self) -> String {
        let Some(file) = self.files.last() else {
            return String::new();
        };
        let text = file.text[file.pos..].lines().next().unwrap_or("").trim();
        let text = text.chars().take(500).collect();
        self.skip_line();
        text
    }

    /// `#line 12 "file"`
    fn line(&mut self, line: &[Token], span: Span) {
        let number = line.first().filter(|t| t.tok == Tok::Int);
        let number = number.and_then(|t| t.text(&self.interner).parse::<u32>().ok());
        let file = line.get(1).filter(|t| t.tok == Tok::Str);
        let (Some(number), true) = (number, line.len() < 2 || file.is_some()) else {
            self.error(span, "`#line` needs a line number and perhaps a file name in quotes");
            return;
        };
        let file = file.map(|t| self.file_name(t.text(&self.interner)));
        self.sources.add_line_directive(span.lo, number, file);
    }
}
