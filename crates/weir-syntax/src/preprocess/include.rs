//! Finding and loading files.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Cursor, MAX_FILE_BYTES, MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_SOURCE_BYTES, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::Tok;
use weir_files::{FileError, Readable};

/// Reads files. The default is the disk; tests and editors hold files in memory.
pub trait FileLoader {
    /// The bytes of a file that is included.
    ///
    /// # Errors
    /// Fails where the file does not exist or cannot be read.
    fn load(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The bytes of the program's own file, which the user has named.
    ///
    /// # Errors
    /// As [`FileLoader::load`].
    fn load_program(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.load(path)
    }
}

/// Reads from the disk: regular files of at most [`MAX_FILE_BYTES`]. The program itself may also
/// come from a pipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskLoader;

impl FileLoader for DiskLoader {
    fn load(&self, path: &Path) -> io::Result<Vec<u8>> {
        weir_files::read(path, Readable::Regular, MAX_FILE_BYTES).map_err(reason)
    }

    fn load_program(&self, path: &Path) -> io::Result<Vec<u8>> {
        weir_files::read(path, Readable::Streams, MAX_FILE_BYTES).map_err(reason)
    }
}

/// Why a file is not read, for messages that name the file themselves.
fn reason(error: FileError) -> io::Error {
    match error {
        FileError::Io { source, .. } => source,
        FileError::NotRegular { kind, .. } => io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("it is a {kind}, not a regular file"),
        ),
        FileError::TooLarge { limit, .. } => {
            let message = format!("it has more than {} MiB", limit >> 20);
            io::Error::new(io::ErrorKind::FileTooLarge, message)
        }
        other @ (FileError::NotText { .. } | FileError::Exists { .. } | FileError::NoName { .. }) => {
            io::Error::other(other)
        }
    }
}

/// Reads from a table of paths and texts.
#[derive(Debug, Clone, Default)]
pub struct MemoryLoader(pub FxHashMap<PathBuf, Vec<u8>>);

impl<P: Into<PathBuf>, T: Into<Vec<u8>>> FromIterator<(P, T)> for MemoryLoader {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(files: I) -> Self {
        MemoryLoader(
            files
                .into_iter()
                .map(|(path, text)| (path.into(), text.into()))
                .collect(),
        )
    }
}

impl FileLoader for MemoryLoader {
    fn load(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Files that come with the compiler, `core.p4` among them: pairs of the name that programs include
/// them by and the text. Searched last.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFiles<'a>(pub &'a [(&'static str, &'static str)]);

impl SystemFiles<'_> {
    /// The text of a file.
    #[must_use]
    pub fn get(self, name: &str) -> Option<&'static str> {
        self.0.iter().find(|(n, _)| *n == name).map(|&(_, text)| text)
    }
}

/// A file that was included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// The name as written in the directive.
    pub name: String,
    /// The path it was found at.
    pub path: String,
    /// It came from the [`SystemFiles`].
    pub is_system: bool,
    /// The name in the directive.
    pub span: Span,
}

/// Files that declare architectures of other compilers, and the architectures' names.
const FOREIGN: [(&str, &str); 5] = [
    ("pna.p4", "the architecture PNA"),
    ("ebpf_model.p4", "the architecture ebpf_model"),
    ("ubpf_model.p4", "the architecture ubpf_model"),
    ("xdp_model.p4", "the architecture xdp_model"),
    ("xsa.p4", "the architecture XSA"),
];

/// The architecture of another compiler that a file declares, wherever it was expected to be.
fn foreign(name: &str) -> Option<&'static str> {
    let file = name.rsplit('/').next()?;
    FOREIGN
        .iter()
        .find(|(n, _)| *n == file)
        .map(|&(_, architecture)| architecture)
}

struct Found {
    path: String,
    bytes: Vec<u8>,
    is_system: bool,
}

/// Where a file was searched in vain.
#[derive(Default)]
struct Search {
    places: Vec<String>,
    /// Why the first file of that name is not included.
    refused: Option<String>,
}

/// The name of a system file that another one includes, relative to that one's directory.
fn beside(current: &str, name: &str) -> String {
    let mut parts: Vec<&str> = current.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

impl Preprocessor<'_> {
    /// Adds a file to the source map. `None` (and an error) if the source is too large.
    pub(super) fn add_file(&mut self, name: &str, bytes: Vec<u8>, is_system: bool) -> Option<Cursor> {
        let (text, bad) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at as u32))
            }
        };
        self.bytes += text.len();
        if self.bytes > MAX_SOURCE_BYTES || self.sources.add(name, &text, is_system).is_err() {
            let message = format!("the program has more than {MAX_SOURCE_BYTES} bytes of source");
            self.abort(Span::default(), message);
            return None;
        }
        let file = self.sources.files().last()?;
        let cursor = Cursor {
            text: file.text.clone(),
            pos: 0,
            start: file.start,
            name: file.name.clone(),
            line_start: true,
            multiline_strings: true,
            is_system,
            is_built_in: false,
            conditionals: self.conditionals.len(),
        };
        if let Some(at) = bad {
            let span = Span {
                lo: cursor.start + at,
                hi: cursor.start + at + 1,
            };
            let error = Diagnostic::error("lexical", span, "the file is not UTF-8 from here on");
            self.diagnostics.push(error.help("store the file in UTF-8"));
        }
        Some(cursor)
    }

    /// `#include`; the lexer stands after the word.
    pub(super) fn include(&mut self, directive: Span) {
        let Some((name, angled, span)) = self.header_name(directive) else {
            return;
        };
        let depth = self.files.len();
        if depth >= MAX_INCLUDE_DEPTH {
            let message = format!("files are included more than {MAX_INCLUDE_DEPTH} deep");
            let last = self.files.last().map(|f| f.name.clone()).unwrap_or_default();
            let cyclic = self.files.iter().filter(|f| f.name == last).count() > 1;
            self.abort(
                span,
                if cyclic {
                    format!("{message}: `{last}` includes itself")
                } else {
                    message
                },
            );
            return;
        }
        if self.includes.len() >= MAX_INCLUDES {
            self.abort(span, format!("more than {MAX_INCLUDES} files are included"));
            return;
        }
        let mut search = Search::default();
        let Some(found) = self.find(&name, angled, &mut search) else {
            let message = match &search.refused {
                Some(why) => format!("cannot include `{name}`: {why}"),
                None => match foreign(&name) {
                    Some(architecture) => format!("`{name}` is not found: weir does not have {architecture}"),
                    None => format!("`{name}` is not found"),
                },
            };
            let help = self.advice_on_missing(&name, &search);
            self.diagnostics
                .push(Diagnostic::error("preprocessor", span, message).help(help));
            return;
        };
        let path = found.path.clone();
        self.includes.push(Include {
            name,
            path,
            is_system: found.is_system,
            span,
        });
        if let Some(cursor) = self.add_file(&found.path, found.bytes, found.is_system) {
            self.files.push(cursor);
        }
    }

    /// What to do about a file that is nowhere.
    fn advice_on_missing(&self, name: &str, search: &Search) -> String {
        let known = || {
            let mut names: Vec<&str> = Vec::new();
            for (name, _) in self.system.0 {
                if !name.contains('/') && !names.contains(name) {
                    names.push(name);
                }
            }
            names.join(", ")
        };
        let searched = format!("searched: {}", search.places.join(", "));
        if foreign(name).is_some() {
            return format!(
                "weir comes with {}; for other files, name their directory with `-I DIR`",
                known()
            );
        }
        let near = |system: &&str| crate::similar::edit_distance(name, system) <= 2;
        match self.system.0.iter().map(|(n, _)| *n).find(near) {
            Some(system) => format!("did you mean `{system}`? {searched}"),
            None => searched,
        }
    }

    /// The name in `<…>` or `"…"`, written or made by macros; the rest of the line is consumed.
    fn header_name(&mut self, directive: Span) -> Option<(String, bool, Span)> {
        let file = self.files.last_mut()?;
        let line_end = file.text[file.pos..]
            .find('\n')
            .map_or(file.text.len(), |n| file.pos + n);
        let line = &file.text[file.pos..line_end];
        let blanks = line.len() - line.trim_start().len();
        let written = &line[blanks..];
        let close = match written.as_bytes().first() {
            Some(b'<') => '>',
            Some(b'"') => '"',
            _ => return self.header_name_from_macros(directive),
        };
        let lo = file.start + (file.pos + blanks) as u32;
        let Some(len) = written[1..].find(close) else {
            self.rest_of_line();
            self.error(
                Span { lo, hi: lo + 1 },
                format!("this file name has no closing `{close}`"),
            );
            return None;
        };
        let name = written[1..=len].to_string();
        file.pos += blanks + len + 2;
        let rest = self.rest_of_line();
        self.warn_of_extra("include", &rest);
        Some((
            name,
            close == '>',
            Span {
                lo,
                hi: lo + len as u32 + 2,
            },
        ))
    }

    fn header_name_from_macros(&mut self, directive: Span) -> Option<(String, bool, Span)> {
        let line = self.rest_of_line();
        let span = line.first().map_or(directive, |t| t.span);
        let line = self.expand_line(&line);
        match line.as_slice() {
            [name] if name.tok == Tok::Str => {
                let text = name.text(&self.interner);
                Some((text.trim_matches('"').to_string(), false, span))
            }
            [open, name @ .., close] if open.tok == Tok::Lt && close.tok == Tok::Gt => {
                let text = name.iter().map(|t| t.text(&self.interner)).collect();
                Some((text, true, span))
            }
            _ => {
                self.error(span, "`#include` needs a file name: `<core.p4>` or `\"file.p4\"`");
                None
            }
        }
    }

    fn find(&self, name: &str, angled: bool, search: &mut Search) -> Option<Found> {
        let current = self.files.last()?;
        if !angled && current.is_system {
            let beside = beside(&current.name, name);
            if let Some(text) = self.system.get(&beside) {
                return Some(Found {
                    path: beside,
                    bytes: text.into(),
                    is_system: true,
                });
            }
        }
        let mut directories = Vec::new();
        if !angled && !current.is_system {
            directories.push(
                Path::new(&*current.name)
                    .parent()
                    .unwrap_or(Path::new(""))
                    .to_path_buf(),
            );
        }
        directories.extend(self.options.include_dirs.iter().cloned());
        for directory in directories {
            let path = directory.join(name);
            match self.loader.load(&path) {
                Ok(bytes) => {
                    return Some(Found {
                        path: path.to_string_lossy().into_owned(),
                        bytes,
                        is_system: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    search.places.push(format!("`{}`", path.display()));
                }
                Err(error) => {
                    search.places.push(format!("`{}` ({error})", path.display()));
                    search.refused.get_or_insert(error.to_string());
                }
            }
        }
        if let Some(text) = self.system.get(name) {
            return Some(Found {
                path: name.to_string(),
                bytes: text.into(),
                is_system: true,
            });
        }
        search.places.push("the files that come with weir".to_string());
        None
    }

    /// The name of a file as `#line` gives it.
    pub(super) fn file_name(&self, quoted: &str) -> Arc<str> {
        crate::literal::string(quoted).into()
    }
}
