//! Widths of comments and documents, and words that comments do not use.
//!
//! The width of code is rustfmt's (`max_width` in rustfmt.toml).

use super::tidy::Breaches;

/// Most columns of a comment or a line of Markdown.
const PROSE: usize = 100;

/// Crates whose comments are checked for [`WORDS`].
const CHECKED: &[&str] = &["weir-arch", "weir-jit", "weir-server", "weir-table"];

/// Everyday words that once stood for terms of the field, which `docs/internals/glossary.md` has.
const WORDS: &[&str] = &[
    "asked for",
    "asks for",
    "is asked",
    "told",
    "ways",
    "turns",
    "begun",
    "late",
    "wanted",
    "reached",
    "nobody",
    "somebody",
    "whoever",
    "so many",
    "so much",
    "goes on",
    "go on",
];

/// Comments that use one of the words in its plain meaning: file, part of the comment, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Checks a source file.
pub(crate) fn check_source(name: &str, text: &str, breaches: &mut Breaches) {
    let mut fence = Fence::default();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(comment) = comment(line) else {
            fence = Fence::default();
            continue;
        };
        let width = line.chars().count();
        if width > PROSE && line.trim_start().starts_with("//") && fence.is_prose(comment) {
            breaches.push(format!(
                "{name}:{number}: {width} columns of comment, {PROSE} is the most"
            ));
        }
        fence.step(comment);
        check_words(name, number, comment, breaches);
    }
}

/// Checks a Markdown document.
pub(crate) fn check_markdown(name: &str, text: &str, breaches: &mut Breaches) {
    let mut fence = Fence::default();
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > PROSE && fence.is_prose(line) {
            breaches.push(format!("{name}:{number}: {width} columns, {PROSE} is the most"));
        }
        fence.step(line);
    }
}

fn check_words(name: &str, number: usize, comment: &str, breaches: &mut Breaches) {
    let is_checked = |krate: &&str| name.starts_with(&format!("crates/{krate}/"));
    if !CHECKED.iter().any(is_checked) {
        return;
    }
    let is_exception = EXCEPTIONS
        .iter()
        .any(|(file, part, _)| *file == name && comment.contains(part));
    if is_exception {
        return;
    }
    for word in WORDS.iter().filter(|word| has_word(comment, word)) {
        breaches.push(format!(
            "{name}:{number}: `{word}`: use a term of docs/internals/glossary.md"
        ));
    }
}

/// Whether a text has a word, whole and in any case.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next()))
}

/// The comment of a line, if it has one.
fn comment(line: &str) -> Option<&str> {
    if let Some(comment) = line.trim_start().strip_prefix("//") {
        return Some(comment.trim_start_matches(['/', '!']));
    }
    // `//` within a string is mostly part of an address.
    let (code, comment) = line.rsplit_once(" // ")?;
    code.matches('"').count().is_multiple_of(2).then_some(comment)
}

/// Whether lines are prose: tables and code keep their lines.
#[derive(Debug, Default)]
struct Fence {
    is_open: bool,
}

impl Fence {
    fn is_prose(&self, line: &str) -> bool {
        let line = line.trim();
        let is_one_word = !line.contains(' ');
        !self.is_open && !line.starts_with('|') && !line.starts_with("```") && !is_one_word
    }

    fn step(&mut self, line: &str) {
        if line.trim_start().starts_with("```") {
            self.is_open = !self.is_open;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches_of(check: fn(&str, &str, &mut Breaches), name: &str, text: &str) -> Vec<String> {
        let mut breaches = Breaches::new();
        check(name, text, &mut breaches);
        breaches
    }

    #[test]
    fn words_count_as_wholes_in_comments_of_the_checked_crates() {
        let of = |name, text| breaches_of(check_source, name, text).len();
        assert_eq!(of("crates/weir-jit/src/a.rs", "// Nobody is told.\n"), 2);
        assert_eq!(of("crates/weir-jit/src/a.rs", "let x = 1; // asked for\n"), 1);
        assert_eq!(of("crates/weir-jit/src/a.rs", "let ways = \"told\";\n"), 0);
        assert_eq!(of("crates/weir-jit/src/a.rs", "// always, later, unreached\n"), 0);
        assert_eq!(of("crates/weir-io/src/a.rs", "// Nobody is told.\n"), 0);
    }

    #[test]
    fn tables_and_code_may_be_wide() {
        let wide = "word ".repeat(30);
        let of = |text: &str| breaches_of(check_markdown, "a.md", text).len();
        assert_eq!(of(&wide), 1);
        assert_eq!(of(&format!("| {wide} |")), 0);
        assert_eq!(of(&format!("```\n{wide}\n```\n{wide}")), 1);
        let source = |text: &str| breaches_of(check_source, "crates/weir-io/src/a.rs", text).len();
        assert_eq!(source(&format!("//! {wide}\n")), 1);
        assert_eq!(source(&format!("/// ```\n/// {wide}\n/// ```\n")), 0);
    }
}
