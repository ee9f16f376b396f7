//! A program as text that can be edited: its tree, its tokens, and which words mean something
//! elsewhere.

use super::tokens::{Token, TokenKind, tokens};
use crate::rng::Rng;
use std::collections::HashSet;
use weir_compiler::system_files;
use weir_syntax::Parsed;
use weir_syntax::ast::Control;
use weir_syntax::preprocess::{Options, SystemFiles};
use weir_syntax::source::Span;

/// A change of a text: what stands at `lo..hi` is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// First byte replaced.
    pub lo: usize,
    /// One past the last byte replaced; `lo` for an insertion.
    pub hi: usize,
    /// What stands there afterwards.
    pub text: String,
}

impl Edit {
    /// Replaces a span.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Edit {
            lo: span.lo as usize,
            hi: span.hi as usize,
            text: text.into(),
        }
    }

    /// Inserts before a position.
    pub fn insert(at: u32, text: impl Into<String>) -> Self {
        Edit::replace(Span { lo: at, hi: at }, text)
    }

    /// Puts texts around a span.
    pub fn around(span: Span, before: &str, after: &str) -> [Self; 2] {
        [Edit::insert(span.lo, before), Edit::insert(span.hi, after)]
    }
}

/// The text with its edits done. Edits at one place are done in the order given; `None`: two
/// overlap.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let mut sorted: Vec<&Edit> = edits.iter().collect();
    sorted.sort_by_key(|e| (e.lo, e.hi));
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for edit in sorted {
        out.push_str(text.get(done..edit.lo)?);
        out.push_str(&edit.text);
        done = edit.hi;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// A program that rewrites are made from.
pub(crate) struct Subject {
    /// Its text, the files of its own that it includes among it.
    pub text: String,
    /// Its tree.
    pub parsed: Parsed,
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Words that packet tests use.
    pub visible: HashSet<String>,
    /// Words of the files that come with the compiler.
    pub system: HashSet<String>,
    /// Words in directives of the preprocessor.
    pub directives: HashSet<String>,
    /// Words in annotations.
    pub annotations: HashSet<String>,
    /// Macros that the program defines.
    macros: HashSet<String>,
    /// From the name of a macro to the end of its arguments: what stands there may stand elsewhere
    /// in the tree.
    macro_uses: Vec<(usize, usize)>,
}

/// The words of a text, whatever stands between them.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// The name of the macro that a directive defines.
fn defined(directive: &str) -> Option<String> {
    let rest = directive.trim_start_matches('#').trim_start().strip_prefix("define")?;
    words(rest).next().map(str::to_owned)
}

/// Where macros are used with arguments.
fn macro_uses(text: &str, tokens: &[Token], macros: &HashSet<String>) -> Vec<(usize, usize)> {
    let mut uses = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        let is_use = token.kind == TokenKind::Word && macros.contains(&text[token.lo..token.hi]);
        let mut depth = 0;
        for next in tokens[i + 1..].iter().filter(|_| is_use) {
            match &text[next.lo..next.hi] {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth <= 0 {
                uses.push((token.lo, next.hi));
                break;
            }
        }
    }
    uses
}

impl Subject {
    /// A program and its packet tests; `None` where it does not parse.
    pub fn new<'t>(text: &str, tests: impl IntoIterator<Item = &'t str>) -> Option<Self> {
        let files = system_files(weir_arch::targets());
        let options = Options::default();
        let parsed = weir_syntax::parse_source("case.p4", text, &options, SystemFiles(&files));
        if parsed.diagnostics.has_errors() {
            return None;
        }
        let tokens = tokens(text);
        let of = |what: &dyn Fn(&Token) -> bool| -> HashSet<String> {
            let chosen = tokens.iter().filter(|t| what(t));
            chosen
                .flat_map(|t| words(&text[t.lo..t.hi]).map(str::to_owned))
                .collect()
        };
        let included = parsed.sources.files().iter().filter(|f| f.is_system);
        let system = included
            .flat_map(|f| words(&f.text).map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let directives = tokens.iter().filter(|t| t.kind == TokenKind::Directive);
        let macros: HashSet<String> = directives.filter_map(|t| defined(&text[t.lo..t.hi])).collect();
        Some(Subject {
            text: text.to_owned(),
            macro_uses: macro_uses(text, &tokens, &macros),
            macros,
            directives: of(&|t| t.kind == TokenKind::Directive),
            annotations: of(&|t| t.in_annotation),
            visible: tests.into_iter().flat_map(words).map(str::to_owned).collect(),
            system,
            tokens,
            parsed,
        })
    }

    /// Whether a span lies in the program's own text.
    pub fn is_own(&self, span: Span) -> bool {
        span.lo < span.hi && (span.hi as usize) <= self.text.len()
    }

    /// The text of a span that is the program's own and that no macro or directive has a part in.
    pub fn plain(&self, span: Span) -> Option<&str> {
        let text = self
            .is_own(span)
            .then(|| self.text.get(span.lo as usize..span.hi as usize))??;
        let is_free = |w: &str| !self.macros.contains(w) && !w.starts_with("__");
        let (lo, hi) = (span.lo as usize, span.hi as usize);
        let outside = self.macro_uses.iter().all(|(from, to)| hi <= *from || *to <= lo);
        (outside && words(text).all(is_free) && !text.lines().any(|l| l.trim_start().starts_with('#'))).then_some(text)
    }

    /// The tokens in a span.
    pub fn tokens_in(&self, span: Span) -> impl Iterator<Item = (usize, &Token)> + Clone {
        let (lo, hi) = (span.lo as usize, span.hi as usize);
        let all = self.tokens.iter().enumerate();
        all.filter(move |(_, t)| lo <= t.lo && t.hi <= hi)
    }

    /// The text of a token.
    pub fn token(&self, token: &Token) -> &str {
        &self.text[token.lo..token.hi]
    }

    /// Where words of a span stand that are not members of something (`x.word`) nor in annotations.
    pub fn free_words(&self, span: Span) -> impl Iterator<Item = (&str, &Token)> {
        self.tokens_in(span).filter_map(|(i, t)| {
            let is_member = i > 0 && self.token(&self.tokens[i - 1]) == ".";
            (t.kind == TokenKind::Word && !is_member && !t.in_annotation).then(|| (self.token(t), t))
        })
    }

    /// The first token with this text at or after a position.
    pub fn find(&self, from: u32, text: &str) -> Option<&Token> {
        let first = self.tokens.partition_point(|t| t.lo < from as usize);
        self.tokens[first..].iter().find(|t| self.token(t) == text)
    }

    /// The position before `apply` in a control; `None` where a macro has a part in that.
    pub fn before_apply(&self, control: &Control) -> Option<u32> {
        let brace = control.apply.span.lo as usize;
        let index = self.tokens.partition_point(|t| t.lo < brace);
        let (apply, brace) = (
            self.tokens.get(index.checked_sub(1)?)?,
            self.tokens.get(index).filter(|t| t.lo == brace)?,
        );
        (self.token(apply) == "apply" && self.token(brace) == "{").then_some(apply.lo as u32)
    }

    /// The position before the brace that ends a span.
    pub fn closing_brace(&self, span: Span) -> Option<u32> {
        let last = self.tokens_in(span).last()?.1;
        (self.token(last) == "}").then_some(last.lo as u32)
    }

    /// A word that the program does not have.
    pub fn fresh(&self, stem: &str, count: &mut usize) -> String {
        loop {
            let name = format!("mm_{stem}{count}");
            *count += 1;
            if !self.text.contains(&name) {
                return name;
            }
        }
    }
}

/// Most places that one rewrite changes at once.
const MOST: usize = 40;

/// Some of the places where a rewrite can be done, at least one of them; `None` if there is none.
pub(crate) fn some<T>(rng: &mut Rng, mut places: Vec<T>) -> Option<Vec<T>> {
    let share = rng.one([30, 60, 100]);
    let mut chosen = Vec::new();
    if places.is_empty() {
        return None;
    }
    let first = places.swap_remove(rng.below(places.len()));
    chosen.push(first);
    for place in places {
        if chosen.len() < MOST && rng.chance(share) {
            chosen.push(place);
        }
    }
    Some(chosen)
}

/// Some places of which none lies in another one.
pub(crate) fn disjoint<T>(rng: &mut Rng, places: Vec<(Span, T)>) -> Option<Vec<(Span, T)>> {
    let mut kept: Vec<(Span, T)> = Vec::new();
    for (span, place) in some(rng, places)? {
        if kept.iter().all(|(k, _)| span.hi <= k.lo || k.hi <= span.lo) {
            kept.push((span, place));
        }
    }
    Some(kept)
}

/// Replaces some places of which none lies in another one, each by its text.
pub(crate) fn replace_some(rng: &mut Rng, places: Vec<(Span, String)>) -> Option<Vec<Edit>> {
    let chosen = disjoint(rng, places)?.into_iter();
    Some(chosen.map(|(span, text)| Edit::replace(span, text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_done_in_order_and_must_not_overlap() {
        let insert = |at, text: &str| Edit::insert(at, text);
        let span = |lo, hi| Span { lo, hi };
        let edits = [
            Edit::replace(span(2, 3), "X"),
            insert(2, "("),
            insert(0, "<"),
            insert(3, ")"),
        ];
        assert_eq!(apply("abcd", &edits).unwrap(), "<ab(X)d");
        assert_eq!(apply("abcd", &[Edit::replace(span(0, 3), ""), insert(1, "x")]), None);
    }

    #[test]
    fn what_a_macro_has_a_part_in_is_not_plain() {
        let subject = Subject::new("#define W 8\nconst bit<W> a = 1;\nconst bit<8> b = 2;", ["t a"]).unwrap();
        let spans: Vec<_> = subject.parsed.program.declarations.iter().map(|d| d.span).collect();
        let spans: Vec<_> = spans.into_iter().filter(|s| subject.is_own(*s)).collect();
        assert_eq!(subject.plain(spans[0]), None);
        assert_eq!(subject.plain(spans[1]), Some("const bit<8> b = 2;"));
        assert!(subject.visible.contains("a") && !subject.visible.contains("b"));
    }
}
