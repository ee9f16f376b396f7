//! Source files, spans and line numbers.
//!
//! All files of one compilation share one position space: a [`Span`] is two offsets into it, and
//! the [`SourceMap`] finds the file, line and column again. `#line` directives change what is
//! shown, not the positions.
//!
//! A line ends with LF, CR LF, or CR alone: the map keeps each CR that no LF follows as LF, so that
//! everything that reads a text sees the same lines.

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// A half-open range of byte offsets in the position space of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// First byte.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
}

impl Span {
    /// The smallest span that covers both. Spans of different files (a macro and its use) do not
    /// join; the first one wins then.
    #[must_use]
    pub fn to(self, end: Span) -> Span {
        if end.hi < self.lo {
            return self;
        }
        Span {
            lo: self.lo,
            hi: end.hi.max(self.hi),
        }
    }
}

/// A file of the compilation.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path as the user would write it.
    pub name: Arc<str>,
    /// Its text; lines end with LF or CR LF.
    pub text: Arc<str>,
    /// Offset of its first byte in the position space.
    pub start: u32,
    /// Embedded in weir (core.p4, v1model.p4, …) rather than read from the user's disk.
    pub is_system: bool,
    /// Offset within the file of each line's first byte.
    lines: Vec<u32>,
    /// Characters before each block of [`BLOCK`] bytes, for columns in long lines.
    characters: Vec<u32>,
    /// `#line` directives: (0-based physical line from which it holds, number shown for that line,
    /// file name shown).
    line_directives: Vec<(u32, u32, Option<Arc<str>>)>,
}

/// A place as people write it; line and column count from 1, the column in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File name, after `#line`.
    pub file: Arc<str>,
    /// Line, after `#line`.
    pub line: u32,
    /// Column in characters.
    pub column: u32,
}

/// All files of one compilation.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

/// The position space (4 GiB) is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMuchSource;

/// Bytes whose characters are counted together.
const BLOCK: usize = 1024;

fn count_characters(bytes: &[u8]) -> u32 {
    // All bytes of a character but the first are 0b10xx_xxxx.
    bytes.iter().filter(|&b| b & 0xc0 != 0x80).count() as u32
}

/// A text whose lines end with LF or CR LF, as long as before.
fn line_feeds(text: &str) -> Cow<'_, str> {
    let mut bytes = text.bytes().zip(text.bytes().skip(1).chain([0]));
    if !bytes.any(|pair| pair.0 == b'\r' && pair.1 != b'\n') {
        return text.into();
    }
    let next = text.chars().skip(1).chain(['\0']);
    let ended = text.chars().zip(next).map(|(c, next)| match (c, next) {
        ('\r', '\n') => '\r',
        ('\r', _) => '\n',
        _ => c,
    });
    ended.collect::<String>().into()
}

impl SourceMap {
    /// Adds a file and returns its index.
    ///
    /// # Errors
    /// Fails where all files together exceed the 32-bit position space.
    pub fn add(&mut self, name: &str, text: &str, is_system: bool) -> Result<usize, TooMuchSource> {
        let start = self.files.last().map_or(0, |f| f.start as usize + f.text.len() + 1);
        if start + text.len() >= u32::MAX as usize {
            return Err(TooMuchSource);
        }
        let text = line_feeds(text);
        let mut lines = vec![0];
        lines.extend(
            text.bytes()
                .enumerate()
                .filter(|&(_, b)| b == b'\n')
                .map(|(i, _)| i as u32 + 1),
        );
        let counts = text.as_bytes().chunks(BLOCK).map(count_characters).chain([0]);
        let characters = counts.scan(0, |before, count| Some(std::mem::replace(before, *before + count)));
        self.files.push(SourceFile {
            characters: characters.collect(),
            name: name.into(),
            text: text.as_ref().into(),
            start: start as u32,
            is_system,
            lines,
            line_directives: Vec::new(),
        });
        Ok(self.files.len() - 1)
    }

    /// Records a `#line` directive: the line after the one that holds `at` is shown as `line` (of
    /// `file`, where given).
    pub fn add_line_directive(&mut self, at: u32, line: u32, file: Option<Arc<str>>) {
        let index = self.file_index(at);
        if let Some(f) = self.files.get_mut(index) {
            let physical = f.physical_line(at) as u32 + 1;
            let file = file.or_else(|| f.line_directives.last().and_then(|d| d.2.clone()));
            f.line_directives.push((physical, line, file));
        }
    }

    /// All files in the order they were added.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Lines of the program's own files with the files and numbers that [`SourceMap::place`] gives
    /// them. System files are left out.
    pub fn shown_lines(&self) -> impl Iterator<Item = (Place, &str)> {
        let files = self.files.iter().filter(|f| !f.is_system);
        let starts = files.flat_map(|f| f.lines.iter().map(|line| f.start + line));
        starts.map(|at| (self.place(at), self.line_text(at)))
    }

    fn file_index(&self, position: u32) -> usize {
        self.files.partition_point(|f| f.start <= position).saturating_sub(1)
    }

    /// The file that holds a position.
    #[must_use]
    pub fn file_of(&self, position: u32) -> Option<&SourceFile> {
        self.files.get(self.file_index(position))
    }

    /// Where a position is, after `#line` directives.
    #[must_use]
    pub fn place(&self, position: u32) -> Place {
        let Some(file) = self.file_of(position) else {
            return Place {
                file: "".into(),
                line: 1,
                column: 1,
            };
        };
        let physical = file.physical_line(position);
        let offset = ((position - file.start) as usize).min(file.text.len());
        let line_start = file.lines[physical] as usize;
        let column = file.characters_before(offset) - file.characters_before(line_start) + 1;
        let mut name = file.name.clone();
        let mut line = physical as u32 + 1;
        let after = file.line_directives.partition_point(|d| d.0 <= physical as u32);
        if let Some((from, shown, shown_file)) = after.checked_sub(1).map(|i| &file.line_directives[i]) {
            line = shown.saturating_add(physical as u32 - from);
            name = shown_file.clone().unwrap_or(name);
        }
        Place {
            file: name,
            line,
            column,
        }
    }

    /// All lines by the places that [`SourceMap::place`] gives them.
    #[must_use]
    pub fn by_place(&self) -> Lines<'_> {
        let mut starts = FxHashMap::default();
        for file in &self.files {
            for line in &file.lines {
                let place = self.place(file.start + line);
                starts.entry((place.file, place.line)).or_insert(file.start + line);
            }
        }
        Lines { sources: self, starts }
    }

    /// The text of the physical line that holds a position, without its newline.
    #[must_use]
    pub fn line_text(&self, position: u32) -> &str {
        self.file_of(position).map_or("", |f| {
            let line = f.physical_line(position);
            let start = f.lines[line] as usize;
            f.text[start..].lines().next().unwrap_or("")
        })
    }

    /// The position of the first byte of the physical line that holds a position.
    #[must_use]
    pub fn line_start(&self, position: u32) -> u32 {
        self.file_of(position)
            .map_or(0, |f| f.start + f.lines[f.physical_line(position)])
    }

    /// The text of a span; empty where the span does not lie within one file.
    #[must_use]
    pub fn text(&self, span: Span) -> &str {
        self.file_of(span.lo)
            .and_then(|f| {
                f.text
                    .get((span.lo - f.start) as usize..(span.hi.saturating_sub(f.start)) as usize)
            })
            .unwrap_or("")
    }
}

/// Lines of a [`SourceMap`], found by their places.
#[derive(Debug)]
pub struct Lines<'a> {
    sources: &'a SourceMap,
    /// First bytes of the first line of each file and number.
    starts: FxHashMap<(Arc<str>, u32), u32>,
}

impl Lines<'_> {
    /// The position of a place; `None`: no file has such a one.
    #[must_use]
    pub fn position(&self, place: &Place) -> Option<u32> {
        let &start = self.starts.get(&(Arc::clone(&place.file), place.line))?;
        let file = self.sources.file_of(start)?;
        let text = file.text.get((start - file.start) as usize..)?;
        let before = text.chars().take(place.column.saturating_sub(1) as usize);
        Some(start + before.map(|c| c.len_utf8() as u32).sum::<u32>())
    }
}

impl SourceFile {
    /// Characters that begin before a byte.
    fn characters_before(&self, offset: usize) -> u32 {
        let block = offset / BLOCK;
        let before = self.characters.get(block).copied().unwrap_or_default();
        before + count_characters(&self.text.as_bytes()[block * BLOCK..offset])
    }

    fn physical_line(&self, position: u32) -> usize {
        let offset = position.saturating_sub(self.start);
        self.lines.partition_point(|&l| l <= offset).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_long_lines_count_characters() {
        let text = "aä€𝄞".repeat(BLOCK);
        let mut map = SourceMap::default();
        map.add("a.p4", &format!("\n{text}"), false).unwrap();
        for (column, (at, _)) in (1..).zip(text.char_indices()) {
            assert_eq!(map.place(1 + at as u32).column, column);
        }
        assert_eq!(map.place(1 + text.len() as u32).column as usize, 4 * BLOCK + 1);
    }

    #[test]
    fn places_count_from_one_and_honour_line_directives() {
        let mut map = SourceMap::default();
        map.add("a.p4", "one\ntwo\n", false).unwrap();
        let b = map.add("b.p4", "x\n#line 100 \"c.p4\"\ny\nz", false).unwrap();
        let start = map.files()[b].start;
        assert_eq!(
            map.place(4),
            Place {
                file: "a.p4".into(),
                line: 2,
                column: 1
            }
        );
        map.add_line_directive(start + 3, 100, Some("c.p4".into()));
        assert_eq!(
            map.place(start),
            Place {
                file: "b.p4".into(),
                line: 1,
                column: 1
            }
        );
        assert_eq!(
            map.place(start + 21),
            Place {
                file: "c.p4".into(),
                line: 101,
                column: 1
            }
        );
    }
}
