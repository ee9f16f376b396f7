//! Tokens of a text as it is written, for edits that concern words wherever they stand.

/// Kinds of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or keyword.
    Word,
    /// A number.
    Number,
    /// A string literal.
    String,
    /// A directive of the preprocessor with all its lines.
    Directive,
    /// Any other character.
    Punctuation,
}

/// A token; comments and white space are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// First byte.
    pub lo: usize,
    /// One past the last byte.
    pub hi: usize,
    /// What it is.
    pub kind: TokenKind,
    /// It is part of an annotation: `@` and the name, or in its parentheses or brackets.
    pub in_annotation: bool,
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut line_start) = (0, true);
    while at < bytes.len() {
        let rest = &text[at..];
        if bytes[at] == b'\n' {
            line_start = true;
            at += 1;
        } else if bytes[at].is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else {
            let (kind, length) = match bytes[at] {
                b'#' if line_start => (TokenKind::Directive, directive(rest)),
                b'"' => (TokenKind::String, string(rest)),
                b'{' if rest.starts_with("{#}") => (TokenKind::Punctuation, 3),
                b if is_word(b) => (
                    if b.is_ascii_digit() {
                        TokenKind::Number
                    } else {
                        TokenKind::Word
                    },
                    bytes[at..].iter().take_while(|b| is_word(**b)).count(),
                ),
                _ => (TokenKind::Punctuation, rest.chars().next().map_or(1, char::len_utf8)),
            };
            line_start = false;
            tokens.push(Token {
                lo: at,
                hi: at + length,
                kind,
                in_annotation: false,
            });
            at += length;
        }
    }
    mark_annotations(text, &mut tokens);
    tokens
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// The length of a directive: to the end of the first line without a backslash.
fn directive(text: &str) -> usize {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.trim_end_matches(['\n', '\r']).len();
        if !line.trim_end().ends_with('\\') {
            return length;
        }
        length += line.len() - line.trim_end_matches(['\n', '\r']).len();
    }
    length
}

/// The length of a string literal with its quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (i, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return i + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

fn mark_annotations(text: &str, tokens: &mut [Token]) {
    let mut at = 0;
    while at < tokens.len() {
        if &text[tokens[at].lo..tokens[at].hi] != "@" {
            at += 1;
            continue;
        }
        let end = annotation_end(text, tokens, at);
        tokens[at..end].iter_mut().for_each(|t| t.in_annotation = true);
        at = end.max(at + 1);
    }
}

/// The index after the last token of the annotation that begins at `at`.
fn annotation_end(text: &str, tokens: &[Token], at: usize) -> usize {
    let is = |i: usize, what: &[&str]| tokens.get(i).is_some_and(|t| what.contains(&&text[t.lo..t.hi]));
    if is(at + 1, &["pragma"]) {
        let same_line = |t: &&Token| !text[tokens[at].lo..t.lo].contains('\n');
        return at + tokens[at..].iter().take_while(same_line).count();
    }
    let mut depth = 0;
    let mut end = at + 2;
    while end < tokens.len() {
        depth += usize::from(is(end, &["(", "["]));
        if depth == 0 {
            break;
        }
        depth -= usize::from(is(end, &[")", "]"]));
        end += 1;
        if depth == 0 {
            break;
        }
    }
    end.min(tokens.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_tokens_and_directives_are_one() {
        let text = "#define A \\\n  b\na /* c */ + 8w1; {#} // d\n\"x \\\" y\" @e(f, \"g\") h @pragma i j\nk";
        let all = tokens(text);
        let texts: Vec<&str> = all.iter().map(|t| &text[t.lo..t.hi]).collect();
        let expected = [
            "#define A \\\n  b",
            "a",
            "+",
            "8w1",
            ";",
            "{#}",
            "\"x \\\" y\"",
            "@",
            "e",
            "(",
            "f",
            ",",
            "\"g\"",
            ")",
            "h",
            "@",
            "pragma",
            "i",
            "j",
            "k",
        ];
        assert_eq!(texts, expected);
        let free: Vec<&str> = all
            .iter()
            .filter(|t| !t.in_annotation)
            .map(|t| &text[t.lo..t.hi])
            .collect();
        assert_eq!(free[6..], ["\"x \\\" y\"", "h", "k"]);
    }
}
