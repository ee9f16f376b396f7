//! Diagnostics as text: for people, for tools that read lines, and as JSON.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, Severity};
use crate::source::{SourceMap, Span};

/// Source lines longer than this are shown in part.
const MAX_LINE: usize = 200;
/// Places further apart than this many bytes are shown separately.
const MAX_VIEW: usize = 2000;
/// How much is shown before the place in a line shown in part.
const BEFORE: usize = 60;

/// One line: `FILE:LINE:COLUMN: error[CODE]: MESSAGE`.
#[must_use]
pub fn short(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let place = sources.place(diagnostic.span.lo);
    let severity = severity(diagnostic);
    let text = format!(
        "{}:{}:{}: {severity}[{}]: {}",
        place.file, place.line, place.column, diagnostic.code, diagnostic.message
    );
    printable(&text).replace('\n', " ")
}

fn severity(diagnostic: &Diagnostic) -> &'static str {
    match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// One JSON object on one line. Lines and columns count from 1, columns in characters; `end_column`
/// is one past the last character. Fields: `severity`, `code`, `message`, `file`, `line`, `column`,
/// `end_line`, `end_column`, `source` (the line's text), `labels` (objects with the same places and
/// a `message`), `help` (or null).
#[must_use]
pub fn json(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let mut object = json!({
        "severity": severity(diagnostic),
        "code": diagnostic.code,
        "message": diagnostic.message,
    });
    let labels: Vec<Value> = diagnostic
        .labels
        .iter()
        .map(|label| {
            let mut object = json!({ "message": label.message });
            add_place(&mut object, label.span, sources);
            object
        })
        .collect();
    add_place(&mut object, diagnostic.span, sources);
    object["source"] = excerpt(sources, diagnostic.span).text.into();
    object["labels"] = labels.into();
    object["help"] = diagnostic.help.clone().into();
    object.to_string()
}

fn add_place(object: &mut Value, span: Span, sources: &SourceMap) {
    let start = sources.place(span.lo);
    let end = sources.place(span.hi.max(span.lo));
    object["file"] = (*start.file).into();
    object["line"] = start.line.into();
    object["column"] = start.column.into();
    object["end_line"] = end.line.into();
    object["end_column"] = end.column.into();
}

/// A line of source, perhaps in part, with the place in it.
struct Excerpt {
    text: String,
    start: usize,
    end: usize,
}

/// The part of the line of `span` that is worth showing. Spans are cut at the end of their line.
fn excerpt(sources: &SourceMap, span: Span) -> Excerpt {
    let line = sources.line_text(span.lo);
    let line_start = sources.line_start(span.lo);
    let lo = floor(line, (span.lo - line_start) as usize);
    let hi = floor(line, (span.hi.max(span.lo) - line_start) as usize).max(lo);
    if line.len() <= MAX_LINE {
        return Excerpt {
            text: line.to_string(),
            start: lo,
            end: hi,
        };
    }
    let from = floor(line, lo.saturating_sub(BEFORE));
    let to = floor(line, from + MAX_LINE);
    let left = if from > 0 { "…" } else { "" };
    let right = if to < line.len() { "…" } else { "" };
    Excerpt {
        text: format!("{left}{}{right}", &line[from..to]),
        start: lo - from + left.len(),
        end: hi.min(to).max(lo) - from + left.len(),
    }
}

/// The last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Several lines with the source, as rustc shows them.
#[must_use]
pub fn human(diagnostic: &Diagnostic, sources: &SourceMap, colours: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(printable(&diagnostic.message)).id(diagnostic.code);
    let mut group: Group<'_> = Group::with_title(title);
    let mut marks = vec![Mark::new(sources, diagnostic.span, None)];
    marks.extend(
        diagnostic
            .labels
            .iter()
            .map(|l| Mark::new(sources, l.span, Some(printable(&l.message)))),
    );
    if let Some(view) = View::of_all(sources, &marks) {
        group = group.element(view.snippet(true));
    } else {
        // One snippet per line; labels on the line of the diagnostic share its snippet.
        let mut shown: Vec<u32> = Vec::new();
        for (i, mark) in marks.iter().enumerate() {
            if shown.contains(&mark.line_start) {
                continue;
            }
            shown.push(mark.line_start);
            if let Some(view) = View::of_line(sources, i, &marks) {
                group = group.element(view.snippet(i == 0));
            }
        }
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(printable(help)));
    }
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}

/// Control characters shown as such, so that a program cannot write to the terminal.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c })
        .collect()
}

/// Control characters as blanks of the same length; line ends stay.
fn blank_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            shown.extend(std::iter::repeat_n(' ', c.len_utf8()));
        } else {
            shown.push(c);
        }
    }
    shown
}

struct Mark {
    span: Span,
    line_start: u32,
    label: Option<String>,
}

impl Mark {
    fn new(sources: &SourceMap, span: Span, label: Option<String>) -> Self {
        Mark {
            span,
            line_start: sources.line_start(span.lo),
            label,
        }
    }
}

/// Part of a source with the marks on it.
struct View {
    text: String,
    file: String,
    line: u32,
    marks: Vec<(usize, usize, Option<String>)>,
}

impl View {
    /// All marks in one view, if they are near each other in one file and the lines are not long.
    fn of_all(sources: &SourceMap, marks: &[Mark]) -> Option<View> {
        let first = marks.iter().map(|m| m.line_start).min()?;
        let last = marks.iter().map(|m| m.line_start).max()?;
        let file = sources.file_of(first)?;
        if file.start != sources.file_of(last)?.start || (last - first) as usize > MAX_VIEW {
            return None;
        }
        let place = sources.place(first);
        let offset = |position: u32| position.checked_sub(file.start).map(|n| n as usize);
        let end = offset(last)? + sources.line_text(last).len();
        let text = file.text.get(offset(first)?..end)?;
        if text.len() > MAX_VIEW || text.lines().any(|line| line.len() > MAX_LINE) {
            return None;
        }
        let within = |position: u32| floor(text, position.saturating_sub(first) as usize);
        let marks = marks
            .iter()
            .map(|m| (within(m.span.lo), within(m.span.hi.max(m.span.lo)), m.label.clone()))
            .collect();
        let file = place.file.to_string();
        Some(View {
            text: blank_controls(text),
            file,
            line: place.line,
            marks,
        })
    }

    /// The line of one mark, with the others on that line.
    fn of_line(sources: &SourceMap, index: usize, all: &[Mark]) -> Option<View> {
        let first = all.get(index)?;
        sources.file_of(first.span.lo)?;
        let place = sources.place(first.span.lo);
        let main = excerpt(sources, first.span);
        let shift = |span: Span| {
            let lo = main.start as i64 + i64::from(span.lo) - i64::from(first.span.lo);
            let hi = lo + i64::from(span.hi.max(span.lo)) - i64::from(span.lo);
            let clamp = |at: i64| floor(&main.text, usize::try_from(at).unwrap_or(0));
            (clamp(lo), clamp(hi))
        };
        let mut marks = vec![(main.start, main.end, first.label.clone())];
        for (i, mark) in all.iter().enumerate() {
            if i != index && mark.line_start == first.line_start {
                let (lo, hi) = shift(mark.span);
                marks.push((lo, hi, mark.label.clone()));
            }
        }
        let file = place.file.to_string();
        Some(View {
            text: blank_controls(&main.text),
            file,
            line: place.line,
            marks,
        })
    }

    fn snippet(self, primary: bool) -> Snippet<'static, annotate_snippets::Annotation<'static>> {
        let mut snippet = Snippet::source(self.text)
            .path(self.file)
            .line_start(self.line as usize);
        for (i, (lo, hi, label)) in self.marks.into_iter().enumerate() {
            let kind = if primary && i == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let mut annotation = kind.span(lo..hi);
            if let Some(label) = label {
                annotation = annotation.label(label);
            }
            snippet = snippet.annotation(annotation);
        }
        snippet
    }
}

#[cfg(test)]
mod tests;
