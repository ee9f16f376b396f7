//! Directives: lines that begin with `#`.

use super::{Conditional, Origin, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::lexer::Lexer;
use crate::similar::edit_distance;
use crate::source::Span;
use crate::token::{Tok, Token};
use std::cmp::Ordering;

impl Preprocessor<'_> {
    /// Obeys the directive whose `#` was just read.
    pub(super) fn directive(&mut self, hash: Token) {
        let name = self.lex(false);
        let span = hash.span.to(name.span);
        match name.tok {
            Tok::Newline | Tok::Eof => self.set_line_start(true),
            Tok::Int => {
                // `# 12 "file"`, as other preprocessors leave behind.
                if self.is_line_marker() {
                    let mut line = self.rest_of_line();
                    line.insert(0, name);
                    self.line(&line, span);
                } else {
                    self.not_a_directive(span);
                }
            }
            Tok::Ident => {
                let text = self.interner.name(name.sym);
                self.named_directive(&text, hash, name);
            }
            _ => self.not_a_directive(span),
        }
        if self.conditionals.last().is_some_and(|c| !c.active) {
            self.skip_group();
        }
    }

    fn named_directive(&mut self, name: &str, hash: Token, word: Token) {
        let span = hash.span.to(word.span);
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
                let is_joined = hash.span.hi == word.span.lo;
                match DIRECTIVES.iter().find(|d| is_near(name, d)) {
                    Some(meant) if is_joined || self.rest_begins_with(&['<', '"']) => {
                        self.rest_of_line();
                        let error = format!("there is no directive `#{name}`");
                        let error = Diagnostic::error("preprocessor", span, error);
                        self.diagnostics.push(error.help(format!("did you mean `#{meant}`?")));
                    }
                    _ => self.not_a_directive(span),
                }
            }
        }
    }

    /// Skips a line that begins with `#` and is no directive, as the reference compiler does.
    pub(super) fn not_a_directive(&mut self, span: Span) {
        self.skip_line();
        self.skipped_lines += 1;
        let message = match self.skipped_lines.cmp(&REPORTED_LINES) {
            Ordering::Less => "this line begins with `#` and is no directive: it is skipped",
            Ordering::Equal => {
                "this line begins with `#` and is no directive: it is skipped, as are all others like it"
            }
            Ordering::Greater => return,
        };
        let warning = Diagnostic::warning("preprocessor", span, message);
        self.diagnostics.push(warning.help("write comments as `// …`"));
    }

    /// Whether what follows the number after `#` makes the line a line marker: a file name, or
    /// nothing.
    fn is_line_marker(&self) -> bool {
        let rest = self.files.last().map_or("", |f| &f.text[f.pos..]);
        let rest = rest.lines().next().unwrap_or("").trim_start();
        rest.is_empty() || rest.starts_with('"')
    }

    fn rest_begins_with(&self, any: &[char]) -> bool {
        let rest = self.files.last().map_or("", |f| &f.text[f.pos..]);
        rest.trim_start_matches([' ', '\t']).starts_with(any)
    }

    /// The condition of a directive that opens a conditional.
    fn opens(&mut self, name: &str, span: Span) -> bool {
        let line = self.rest_of_line();
        if name == "if" {
            return self.condition(line, span);
        }
        match line.first() {
            Some(token) if token.tok == Tok::Ident => {
                self.warn_of_extra(name, &line[1..]);
                self.is_defined(token.sym) == (name == "ifdef")
            }
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
        if name != "elif" {
            self.warn_of_extra(name, &line);
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

    /// Warns of tokens after a directive, which have no effect. After `#include` they may be a part
    /// of the program: an error if warnings are not shown.
    pub(super) fn warn_of_extra(&mut self, name: &str, extra: &[Token]) {
        let (Some(first), Some(last)) = (extra.first(), extra.last()) else {
            return;
        };
        let span = first.span.to(last.span);
        let found = match (self.options.origin, name) {
            (Origin::Sent, "include") => {
                let message =
                    format!("expected the end of the line behind `#{name}`, found text that would be ignored");
                Diagnostic::error("preprocessor", span, message)
            }
            (Origin::Sent | Origin::Local, _) => {
                let message = format!("the text behind `#{name}` on its line is ignored");
                Diagnostic::warning("preprocessor", span, message)
            }
        };
        let help = match name {
            "else" | "endif" => "make it a comment: `// …`",
            _ => "write it on a line of its own",
        };
        self.diagnostics.push(found.help(help));
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
        // Flags follow the name in the line markers of other preprocessors.
        let is_flag = |t: &&Token| t.tok == Tok::Int && matches!(t.text(&self.interner), "1" | "2" | "3" | "4");
        let flags = line.iter().skip(2).take_while(is_flag).count();
        self.warn_of_extra("line", line.get(2 + flags..).unwrap_or_default());
        match self.options.origin {
            Origin::Local => {
                let file = file.map(|t| self.file_name(t.text(&self.interner)));
                self.sources.add_line_directive(span.lo, number, file);
            }
            Origin::Sent => {}
        }
    }
}

/// Lines that are no directives are reported up to here.
const REPORTED_LINES: usize = 10;

/// The names of directives that a word may be a misspelling of.
const DIRECTIVES: [&str; 12] = [
    "include", "define", "undef", "ifdef", "ifndef", "elif", "else", "endif", "line", "error", "warning", "pragma",
];

/// Whether a word is a directive's name but for case and one or two letters.
fn is_near(word: &str, directive: &str) -> bool {
    let word = word.to_lowercase();
    let most = if directive.len() > 4 || word.len() > 4 { 2 } else { 1 };
    edit_distance(&word, directive) <= most
}
