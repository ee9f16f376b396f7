//! The preprocessor: macros, conditionals and inclusion, on tokens.
//!
//! It does what the P4_16 specification asks for and what programs written for the C preprocessor
//! also use: function-like and variadic macros, `#` and `##`, `defined`, full integer expressions
//! in `#if`, `#error`, `#warning`, `#line`. Lines of the form `#pragma …` are skipped.
//!
//! A token that comes out of a macro carries the span of the macro's use, so that diagnostics point
//! at the file the user is looking at. Arguments of a macro keep their own spans.
//!
//! Every resource is bounded: depth and number of inclusions, bytes read, tokens produced, nesting
//! of macro arguments. Going beyond a bound is one error of code `overlimit`, and the input ends
//! there.

mod condition;
mod directives;
mod include;
mod macros;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::lexer::Lexer;
use crate::source::{SourceMap, Span};
use crate::token::{Interner, SPACE, Sym, Tok, Token};

pub use include::{DiskLoader, FileLoader, Include, MemoryLoader, SystemFiles};

/// Most tokens read and produced by macro expansion in one compilation.
pub const MAX_TOKENS: u64 = 16_000_000;
/// Deepest inclusion of files.
pub const MAX_INCLUDE_DEPTH: usize = 64;
/// Most files included in one compilation, repetitions counted.
pub const MAX_INCLUDES: usize = 4096;
/// Most bytes of source in one compilation, repetitions counted.
pub const MAX_SOURCE_BYTES: usize = 256 << 20;

/// Most bytes of one file.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Macros that are defined unless [`Options::undefines`] names them; [`Options::defines`]
/// overrides.
pub const PREDEFINED: &[(&str, &str)] = &[
    ("__p4c__", "1"),
    ("__p4c_version__", "\"1.2.5\""),
    ("__p4c_major__", "1"),
    ("__p4c_minor__", "2"),
    ("__p4c_patchlevel__", "5"),
    ("__TARGET_BMV2__", "1"),
];

/// Where a program comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// A file of the user, who sees warnings.
    #[default]
    Local,
    /// A client, which sees errors only. Text that would be ignored with a warning behind
    /// `#include` is an error; `#line` and line markers are ignored, as they would have messages
    /// name files of this machine that have no part in the program.
    Sent,
}

/// What the command line says about preprocessing.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where the program comes from.
    pub origin: Origin,
    /// Directories searched for included files, in order (`-I`).
    pub include_dirs: Vec<PathBuf>,
    /// Macros defined before the first line (`-D name[=value]`); without a value they are 1. A name
    /// may have parameters: `F(x)`.
    pub defines: Vec<(String, Option<String>)>,
    /// Macros not defined before the first line (`-U name`); they win over `defines`.
    pub undefines: Vec<String>,
}

/// A macro.
#[derive(Debug)]
struct Macro {
    /// `None` for object-like macros.
    parameters: Option<usize>,
    /// The last parameter takes all further arguments.
    variadic: bool,
    body: Rc<[Token]>,
    /// For each body token the parameter it names, or `u32::MAX`.
    slots: Vec<u32>,
    /// The body has `##`.
    pastes: bool,
    /// Being expanded: its name is not a use of it.
    disabled: std::cell::Cell<bool>,
    span: Span,
}

/// Tokens waiting to be read before the file goes on: the body of a macro, or an argument.
#[derive(Debug)]
struct Context {
    tokens: Rc<[Token]>,
    next: usize,
    /// Where the tokens are said to stand, if not where they do.
    span: Option<Span>,
    /// The first token takes its leading space from the macro's name.
    first_space: bool,
    /// Enabled again when the tokens have been read.
    source: Option<Rc<Macro>>,
}

/// Where expansion reads from: contexts above `base`, then the file unless `isolated`.
#[derive(Debug, Clone, Copy)]
struct Level {
    base: usize,
    isolated: bool,
}

const FILE_LEVEL: Level = Level {
    base: 0,
    isolated: false,
};

/// A file being read.
#[derive(Debug)]
struct Cursor {
    text: Arc<str>,
    pos: usize,
    start: u32,
    name: Arc<str>,
    /// Only white space so far on this line.
    line_start: bool,
    multiline_strings: bool,
    is_system: bool,
    /// The command line's definitions.
    is_built_in: bool,
    /// Conditionals open where the file began.
    conditionals: usize,
}

/// An open `#if`.
#[derive(Debug)]
struct Conditional {
    span: Span,
    /// Some group was or is being taken.
    taken: bool,
    /// The current group is being taken.
    active: bool,
    else_seen: bool,
}

/// The state of preprocessing one program.
pub(crate) struct Preprocessor<'a> {
    options: &'a Options,
    loader: &'a dyn FileLoader,
    system: SystemFiles<'a>,
    pub(crate) sources: SourceMap,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) interner: Interner,
    pub(crate) includes: Vec<Include>,
    /// The input was cut short by an error.
    pub(crate) aborted: bool,
    macros: FxHashMap<Sym, Rc<Macro>>,
    files: Vec<Cursor>,
    contexts: Vec<Context>,
    conditionals: Vec<Conditional>,
    spent: u64,
    bytes: usize,
    argument_nesting: usize,
    output: Vec<Token>,
    /// Between `@pragma` and the end of its line.
    in_pragma: bool,
    /// Lines that begin with `#` and were skipped.
    skipped_lines: usize,
    /// A line ended since the last token.
    pending_space: bool,
    sym_line: Sym,
    sym_file: Sym,
    sym_va_args: Sym,
    sym_defined: Sym,
    sym_pragma: Sym,
}

impl<'a> Preprocessor<'a> {
    pub(crate) fn new(options: &'a Options, loader: &'a dyn FileLoader, system: SystemFiles<'a>) -> Self {
        let mut interner = Interner::new();
        Preprocessor {
            options,
            loader,
            system,
            sources: SourceMap::default(),
            diagnostics: Diagnostics::default(),
            includes: Vec::new(),
            aborted: false,
            macros: FxHashMap::default(),
            files: Vec::new(),
            contexts: Vec::new(),
            conditionals: Vec::new(),
            spent: 0,
            bytes: 0,
            argument_nesting: 0,
            output: Vec::new(),
            in_pragma: false,
            skipped_lines: 0,
            pending_space: false,
            sym_line: interner.intern("__LINE__"),
            sym_file: interner.intern("__FILE__"),
            sym_va_args: interner.intern("__VA_ARGS__"),
            sym_defined: interner.intern("defined"),
            sym_pragma: interner.intern("pragma"),
            interner,
        }
    }

    /// Preprocesses a program given as text; the tokens end with [`Tok::Eof`].
    pub(crate) fn run(&mut self, name: &str, bytes: Vec<u8>) -> Vec<Token> {
        let main = self.add_file(name, bytes, false);
        let definitions = self.command_line();
        if let Some(cursor) = self.add_file("<command line>", definitions.into_bytes(), true) {
            self.files.push(Cursor {
                is_built_in: true,
                ..cursor
            });
            while self.expanded(FILE_LEVEL).is_some() {}
        }
        let mut end = 0;
        if let Some(main) = main {
            end = main.start + main.text.trim_end().len() as u32;
            self.files.push(main);
            self.produce();
        }
        if let Some(last) = self.output.last()
            && last.span.lo < end
            && self.sources.files()[0].start <= last.span.lo
        {
            end = last.span.hi;
        }
        let span = Span { lo: end, hi: end };
        self.output.push(Token {
            tok: Tok::Eof,
            flags: SPACE,
            sym: Sym(0),
            span,
        });
        std::mem::take(&mut self.output)
    }

    fn produce(&mut self) {
        while let Some(mut token) = self.expanded(FILE_LEVEL) {
            match token.tok {
                Tok::Ident => {
                    if token.sym == self.sym_pragma && self.output.last().is_some_and(|t| t.tok == Tok::At) {
                        self.in_pragma = true;
                    }
                    token.tok = Interner::keyword(token.sym).unwrap_or(Tok::Ident);
                }
                Tok::UnterminatedString => {
                    let error = Diagnostic::error("lexical", token.span, "this string has no closing `\"`");
                    self.diagnostics.push(error);
                    token.tok = Tok::Error;
                }
                Tok::UnterminatedComment => {
                    let error = Diagnostic::error("lexical", token.span, "this comment has no closing `*/`");
                    self.diagnostics.push(error);
                    token.tok = Tok::Error;
                }
                _ => {}
            }
            if self.output.len() as u64 >= MAX_TOKENS / 2 {
                self.abort(
                    token.span,
                    format!("the program has more than {} tokens", MAX_TOKENS / 2),
                );
                break;
            }
            self.output.push(token);
        }
        self.end_pragma();
    }

    fn end_pragma(&mut self) {
        if std::mem::take(&mut self.in_pragma) {
            let span = self.output.last().map_or(Span::default(), |t| Span {
                lo: t.span.hi,
                hi: t.span.hi,
            });
            self.output.push(Token {
                tok: Tok::PragmaEnd,
                flags: 0,
                sym: Sym(0),
                span,
            });
        }
    }

    /// The definitions of the options as directives.
    fn command_line(&self) -> String {
        let mut text = String::new();
        let name_of = |define: &str| define.split('(').next().unwrap_or("").trim().to_string();
        let overridden = |name: &str| self.options.defines.iter().any(|(n, _)| name_of(n) == name);
        for (name, value) in PREDEFINED.iter().filter(|(name, _)| !overridden(name)) {
            text.push_str(&format!("#define {name} {value}\n"));
        }
        for (name, value) in &self.options.defines {
            let value = value.as_deref().unwrap_or("1").replace(['\n', '\r'], " ");
            text.push_str(&format!("#define {} {value}\n", name.replace(['\n', '\r'], " ")));
        }
        for name in &self.options.undefines {
            text.push_str(&format!("#undef {}\n", name.replace(['\n', '\r'], " ")));
        }
        text
    }

    // ------------------------------------------------------------------------------ reading tokens

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("preprocessor", span, message));
    }

    /// Reports a bound that was exceeded and ends the input.
    fn abort(&mut self, span: Span, message: impl Into<String>) {
        if !self.aborted {
            self.diagnostics.push(Diagnostic::error("overlimit", span, message));
        }
        self.aborted = true;
    }

    fn charge(&mut self, tokens: usize, span: Span) {
        self.spent += tokens as u64;
        if self.spent > MAX_TOKENS && !self.aborted {
            self.abort(span, format!("macros expand to more than {MAX_TOKENS} tokens"));
        }
    }

    /// Runs the lexer on the innermost file.
    fn lex(&mut self, multiline_strings: bool) -> Token {
        let Some(file) = self.files.last_mut() else {
            return Token {
                tok: Tok::Eof,
                flags: 0,
                sym: Sym(0),
                span: Span::default(),
            };
        };
        let mut lexer = Lexer {
            text: &file.text,
            pos: file.pos,
            base: file.start,
            multiline_strings: multiline_strings && file.multiline_strings,
        };
        let token = lexer.next(&mut self.interner);
        if token.tok == Tok::UnterminatedString && multiline_strings {
            file.multiline_strings = false;
        }
        file.pos = lexer.pos;
        token
    }

    /// The next token of the files; directives are obeyed on the way. Stays within the innermost
    /// file if `collecting` the arguments of a macro.
    fn file_token(&mut self, collecting: bool) -> Option<Token> {
        loop {
            if self.aborted {
                return None;
            }
            self.files.last()?;
            let mut token = self.lex(true);
            match token.tok {
                Tok::Newline => {
                    self.set_line_start(true);
                    self.pending_space = true;
                    self.end_pragma();
                }
                Tok::Eof if collecting => return None,
                Tok::Eof => {
                    self.end_pragma();
                    self.end_file();
                    self.pending_space = true;
                }
                Tok::Hash if self.files.last().is_some_and(|f| f.line_start) => self.directive(token),
                Tok::HashHash if self.files.last().is_some_and(|f| f.line_start) => self.not_a_directive(token.span),
                _ => {
                    self.set_line_start(false);
                    if std::mem::take(&mut self.pending_space) {
                        token.flags |= SPACE;
                    }
                    return Some(token);
                }
            }
        }
    }

    fn set_line_start(&mut self, value: bool) {
        if let Some(file) = self.files.last_mut() {
            file.line_start = value;
        }
    }

    fn end_file(&mut self) {
        let Some(file) = self.files.pop() else { return };
        for open in self
            .conditionals
            .split_off(file.conditionals.min(self.conditionals.len()))
        {
            self.error(open.span, "this conditional has no `#endif`");
        }
    }

    /// The next token before expansion.
    fn raw(&mut self, level: Level, collecting: bool) -> Option<Token> {
        while self.contexts.len() > level.base {
            let context = self.contexts.last_mut()?;
            let Some(&token) = context.tokens.get(context.next) else {
                self.pop_context();
                continue;
            };
            let mut token = token;
            if context.next == 0 && context.first_space {
                token.flags |= SPACE;
            }
            context.next += 1;
            token.span = context.span.unwrap_or(token.span);
            self.charge(1, token.span);
            return if self.aborted { None } else { Some(token) };
        }
        if level.isolated {
            None
        } else {
            self.file_token(collecting)
        }
    }

    fn pop_context(&mut self) {
        if let Some(source) = self.contexts.pop().and_then(|c| c.source) {
            source.disabled.set(false);
        }
    }

    /// The next token after expansion.
    fn expanded(&mut self, level: Level) -> Option<Token> {
        loop {
            let mut token = self.raw(level, false)?;
            if token.tok != Tok::Ident || token.flags & crate::token::NO_EXPAND != 0 {
                return Some(token);
            }
            let Some(definition) = self.macros.get(&token.sym).cloned() else {
                return Some(self.built_in(token));
            };
            if definition.disabled.get() {
                token.flags |= crate::token::NO_EXPAND;
                return Some(token);
            }
            if !self.expand(&definition, token, level) {
                return Some(token);
            }
        }
    }

    /// `__LINE__` and `__FILE__`.
    fn built_in(&mut self, mut token: Token) -> Token {
        if token.sym == self.sym_line {
            let line = self.sources.place(token.span.lo).line;
            token.tok = Tok::Int;
            token.sym = self.interner.intern(&line.to_string());
        } else if token.sym == self.sym_file {
            let file = self.sources.place(token.span.lo).file;
            token.tok = Tok::Str;
            token.sym = self.interner.intern(&format!("{file:?}"));
        }
        token
    }
}

#[cfg(test)]
mod tests;
