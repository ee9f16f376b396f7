//! Splits the text of one file into tokens.
//!
//! The lexer serves the preprocessor: it reports line ends, takes keywords for names, keeps
//! integers and strings as texts ([`crate::literal`] reads them) and never fails. What cannot be a
//! token of P4 becomes [`Tok::Unknown`], [`Tok::UnterminatedString`] or
//! [`Tok::UnterminatedComment`].

use crate::source::Span;
use crate::token::{Interner, SPACE, Sym, Tok, Token};

/// A cursor over the text of a file.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    pub text: &'a str,
    /// Offset of the next byte within the text.
    pub pos: usize,
    /// Offset of the text in the position space.
    pub base: u32,
    /// Strings may extend over several lines (not so in directives).
    pub multiline_strings: bool,
}

impl Lexer<'_> {
    fn byte(&self, offset: usize) -> u8 {
        self.text.as_bytes().get(self.pos + offset).copied().unwrap_or(0)
    }

    /// Length of the backslash, blanks and newline at `at`, 0 if there are none.
    fn splice_len(&self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        if bytes.get(at) != Some(&b'\\') {
            return 0;
        }
        let mut end = at + 1;
        while matches!(bytes.get(end), Some(b' ' | b'\t' | b'\r')) {
            end += 1;
        }
        if bytes.get(end) == Some(&b'\n') {
            end + 1 - at
        } else {
            0
        }
    }

    /// Skips blanks and comments. `Err` holds the start of a comment without end.
    fn skip_blanks(&mut self) -> Result<bool, usize> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.pos) {
            match byte {
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.pos += 1,
                b'\\' => match self.splice_len(self.pos) {
                    0 => break,
                    n => self.pos += n,
                },
                b'/' if bytes.get(self.pos + 1) == Some(&b'/') => self.skip_line_comment(),
                b'/' if bytes.get(self.pos + 1) == Some(&b'*') => {
                    let comment = self.pos;
                    match self.text[self.pos + 2..].find("*/") {
                        Some(n) => self.pos += n + 4,
                        None => {
                            self.pos = self.text.len();
                            return Err(comment);
                        }
                    }
                }
                0xef if self.pos == 0 && self.text.starts_with('\u{feff}') => self.pos += 3,
                _ => break,
            }
        }
        Ok(self.pos > start)
    }

    fn skip_line_comment(&mut self) {
        let bytes = self.text.as_bytes();
        while self.pos < bytes.len() && bytes[self.pos] != b'\n' {
            self.pos += self.splice_len(self.pos).max(1);
        }
    }

    /// Moves to just after the next newline without making tokens. Comments are honoured.
    pub(crate) fn skip_line(&mut self) {
        let bytes = self.text.as_bytes();
        while self.pos < bytes.len() {
            if self.skip_blanks().is_err() {
                return;
            }
            match bytes.get(self.pos) {
                Some(b'\n') => {
                    self.pos += 1;
                    return;
                }
                Some(b'"') => match self.string_end(false) {
                    Some(end) => self.pos = end,
                    None => self.pos += self.text[self.pos..].find('\n').unwrap_or(self.text.len() - self.pos),
                },
                Some(_) => self.pos += 1,
                None => return,
            }
        }
    }

    /// The next token; [`Tok::Eof`] for ever at the end.
    pub(crate) fn next(&mut self, interner: &mut Interner) -> Token {
        let space = match self.skip_blanks() {
            Ok(space) => space,
            Err(comment) => {
                return self.token(Tok::UnterminatedComment, comment, comment + 2, Sym(0), true);
            }
        };
        let start = self.pos;
        let (tok, sym) = self.scan(interner);
        self.token(tok, start, self.pos, sym, space)
    }

    fn token(&self, tok: Tok, lo: usize, hi: usize, sym: Sym, space: bool) -> Token {
        let span = Span {
            lo: self.base + lo as u32,
            hi: self.base + hi as u32,
        };
        Token {
            tok,
            flags: if space { SPACE } else { 0 },
            sym,
            span,
        }
    }

    fn scan(&mut self, interner: &mut Interner) -> (Tok, Sym) {
        let start = self.pos;
        let Some(c) = self.text[start..].chars().next() else {
            return (Tok::Eof, Sym(0));
        };
        match c {
            '\n' => {
                self.pos += 1;
                (Tok::Newline, Sym(0))
            }
            'a'..='z' | 'A'..='Z' | '_' => (Tok::Ident, self.word(interner)),
            '0'..='9' => (Tok::Int, self.word(interner)),
            '"' => self.string(interner),
            _ => match self.punctuation() {
                Some((tok, len)) => {
                    self.pos += len;
                    (tok, Sym(0))
                }
                None => {
                    self.pos += c.len_utf8();
                    (Tok::Unknown, interner.intern(&self.text[start..self.pos]))
                }
            },
        }
    }

    /// Letters, digits and underscores, with continued lines joined.
    fn word(&mut self, interner: &mut Interner) -> Sym {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let is_word = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let mut spliced = false;
        loop {
            if is_word(self.pos) {
                self.pos += 1;
                continue;
            }
            let splice = self.splice_len(self.pos);
            if splice == 0 || !is_word(self.pos + splice) {
                break;
            }
            spliced = true;
            self.pos += splice;
        }
        let text = &self.text[start..self.pos];
        if spliced {
            let joined: String = text
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
                .collect();
            interner.intern(&joined)
        } else {
            interner.intern(text)
        }
    }

    /// The offset just after the string that starts here.
    fn string_end(&self, multiline: bool) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.pos + 1;
        loop {
            match bytes.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += self.splice_len(at).max(2),
                b'\n' if !multiline => return None,
                _ => at += 1,
            }
        }
    }

    fn string(&mut self, interner: &mut Interner) -> (Tok, Sym) {
        let start = self.pos;
        let Some(end) = self.string_end(self.multiline_strings) else {
            // Only this line is lost; and a second search to the end of the file is spared.
            self.multiline_strings = false;
            let line = self.text[start..].find('\n').unwrap_or(self.text.len() - start);
            self.pos = start + line;
            return (Tok::UnterminatedString, Sym(0));
        };
        self.pos = end;
        let text = &self.text[start..end];
        if !text.contains("\\\n") && !text.contains("\\\r") {
            return (Tok::Str, interner.intern(text));
        }
        (
            Tok::Str,
            interner.intern(&text.replace("\\\r\n", "").replace("\\\n", "")),
        )
    }

    fn punctuation(&self) -> Option<(Tok, usize)> {
        let (b1, b2, b3) = (self.byte(1), self.byte(2), self.byte(3));
        Some(match self.byte(0) {
            b'(' => (Tok::LParen, 1),
            b')' => (Tok::RParen, 1),
            b'[' => (Tok::LBracket, 1),
            b']' => (Tok::RBracket, 1),
            b'{' if b1 == b'#' && b2 == b'}' => (Tok::InvalidHeader, 3),
            b'{' => (Tok::LBrace, 1),
            b'}' => (Tok::RBrace, 1),
            b';' => (Tok::Semi, 1),
            b':' => (Tok::Colon, 1),
            b',' => (Tok::Comma, 1),
            b'.' if b1 == b'.' && b2 == b'.' => (Tok::Ellipsis, 3),
            b'.' if b1 == b'.' => (Tok::DotDot, 2),
            b'.' => (Tok::Dot, 1),
            b'@' => (Tok::At, 1),
            b'?' => (Tok::Question, 1),
            b'#' if b1 == b'#' => (Tok::HashHash, 2),
            b'#' => (Tok::Hash, 1),
            b'~' => (Tok::Tilde, 1),
            b'=' if b1 == b'=' => (Tok::EqEq, 2),
            b'=' => (Tok::Assign, 1),
            b'!' if b1 == b'=' => (Tok::NotEq, 2),
            b'!' => (Tok::Bang, 1),
            b'<' if b1 == b'<' && b2 == b'=' => (Tok::ShlAssign, 3),
            b'<' if b1 == b'<' => (Tok::Shl, 2),
            b'<' if b1 == b'=' => (Tok::Le, 2),
            b'<' => (Tok::Lt, 1),
            b'>' if b1 == b'=' => (Tok::Ge, 2),
            b'>' => (Tok::Gt, 1),
            b'+' if b1 == b'+' => (Tok::PlusPlus, 2),
            b'+' if b1 == b'=' => (Tok::PlusAssign, 2),
            b'+' if b1 == b':' => (Tok::PlusColon, 2),
            b'+' => (Tok::Plus, 1),
            b'-' if b1 == b'=' => (Tok::MinusAssign, 2),
            b'-' => (Tok::Minus, 1),
            b'*' if b1 == b'=' => (Tok::StarAssign, 2),
            b'*' => (Tok::Star, 1),
            b'/' if b1 == b'=' => (Tok::SlashAssign, 2),
            b'/' => (Tok::Slash, 1),
            b'%' if b1 == b'=' => (Tok::PercentAssign, 2),
            b'%' => (Tok::Percent, 1),
            b'^' if b1 == b'=' => (Tok::CaretAssign, 2),
            b'^' => (Tok::Caret, 1),
            b'&' if b1 == b'&' && b2 == b'&' => (Tok::MaskOp, 3),
            b'&' if b1 == b'&' => (Tok::AndAnd, 2),
            b'&' if b1 == b'=' => (Tok::AndAssign, 2),
            b'&' => (Tok::And, 1),
            b'|' => match (b1, b2, b3) {
                (b'+', b'|', b'=') => (Tok::AddSatAssign, 4),
                (b'+', b'|', _) => (Tok::AddSat, 3),
                (b'-', b'|', b'=') => (Tok::SubSatAssign, 4),
                (b'-', b'|', _) => (Tok::SubSat, 3),
                (b'|', ..) => (Tok::OrOr, 2),
                (b'=', ..) => (Tok::OrAssign, 2),
                _ => (Tok::Or, 1),
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        let mut interner = Interner::new();
        let mut lexer = Lexer {
            text: source,
            pos: 0,
            base: 0,
            multiline_strings: true,
        };
        let mut texts = Vec::new();
        loop {
            let token = lexer.next(&mut interner);
            match token.tok {
                Tok::Eof => return texts,
                Tok::Newline => texts.push("\\n".to_string()),
                Tok::UnterminatedString | Tok::UnterminatedComment => texts.push(format!("{:?}", token.tok)),
                _ => texts.push(token.text(&interner).to_string()),
            }
        }
    }

    #[test]
    fn longest_punctuation_wins_but_angle_brackets_stay_single() {
        assert_eq!(
            texts("a|+|=b>>c&&&d...e..f"),
            ["a", "|+|=", "b", ">", ">", "c", "&&&", "d", "...", "e", "..", "f"]
        );
    }

    #[test]
    fn numbers_take_letters_but_not_range_dots() {
        assert_eq!(texts("8w0xFF 1..4"), ["8w0xFF", "1", "..", "4"]);
    }

    #[test]
    fn comments_are_blanks_and_do_not_end_lines() {
        assert_eq!(texts("a/*x\ny*/b//c\nd"), ["a", "b", "\\n", "d"]);
    }

    #[test]
    fn continued_lines_join_words_and_comments() {
        assert_eq!(texts("ab\\\ncd // x \\\n still\ne"), ["abcd", "\\n", "e"]);
    }

    #[test]
    fn strings_may_hold_line_ends_and_escaped_quotes() {
        assert_eq!(texts("\"a\\\"b\nc\" d"), ["\"a\\\"b\nc\"", "d"]);
    }

    #[test]
    fn an_unterminated_string_costs_only_its_line() {
        assert_eq!(texts("\"abc\nd"), ["UnterminatedString", "\\n", "d"]);
    }

    #[test]
    fn an_unterminated_comment_is_a_token() {
        assert_eq!(texts("a /* b"), ["a", "UnterminatedComment"]);
    }

    #[test]
    fn other_characters_are_unknown_not_fatal() {
        assert_eq!(texts("a\0é$"), ["a", "\0", "é", "$"]);
    }
}
