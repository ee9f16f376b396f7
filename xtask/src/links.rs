//! Links of Markdown: what they lead to must exist, anchors included.
//!
//! Links into the network are not followed.

use crate::tidy::Breaches;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// A link of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// Where its target begins, in bytes of the page.
    pub(crate) start: usize,
    /// The target as written.
    pub(crate) target: &'a str,
}

impl<'a> Link<'a> {
    /// Whether it leads out of the repository.
    pub(crate) fn is_external(&self) -> bool {
        self.target.contains("://") || self.target.starts_with("mailto:")
    }

    /// The file, if it names one, and the anchor in it.
    pub(crate) fn parts(&self) -> (&'a str, Option<&'a str>) {
        match self.target.split_once('#') {
            Some((file, anchor)) => (file, Some(anchor)),
            None => (self.target, None),
        }
    }

    fn line(&self, text: &str) -> usize {
        text[..self.start].matches('\n').count() + 1
    }
}

/// The links of a page, without those in code.
pub(crate) fn links(text: &str) -> Vec<Link<'_>> {
    let code = code(text);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("](") {
        let start = from + at + 2;
        from = start;
        if code.iter().any(|range| range.contains(&start)) {
            continue;
        }
        if let Some(length) = text[start..].find(')') {
            let target = &text[start..start + length];
            found.push(Link { start, target });
        }
    }
    found
}

/// The stretches of a page that are code: fenced blocks, and spans between backticks.
fn code(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut fence = None;
    let mut at = 0;
    let mut prose = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            match fence.take() {
                Some(start) => {
                    ranges.push(start..at + line.len());
                    prose = at + line.len();
                }
                None => {
                    spans(text, prose..at, &mut ranges);
                    fence = Some(at);
                }
            }
        }
        at += line.len();
    }
    match fence {
        Some(start) => ranges.push(start..at),
        None => spans(text, prose..at, &mut ranges),
    }
    ranges
}

/// Spans of code within a paragraph or several. A span ends with as many backticks as it begins
/// with, in the same paragraph.
fn spans(text: &str, within: std::ops::Range<usize>, ranges: &mut Vec<std::ops::Range<usize>>) {
    let mut at = within.start;
    for paragraph in text[within].split_inclusive("\n\n") {
        let mut from = 0;
        while let Some(start) = paragraph[from..].find('`').map(|p| p + from) {
            let ticks = paragraph[start..].bytes().take_while(|&b| b == b'`').count();
            let inner = start + ticks;
            let close = &paragraph[start..inner];
            let Some(end) = paragraph[inner..].find(close).map(|p| p + inner + ticks) else {
                from = inner;
                continue;
            };
            ranges.push(at + start..at + end);
            from = end;
        }
        at += paragraph.len();
    }
}

/// The anchors of a page's headings, as forges and mdBook make them.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let anchor = anchor(title);
        let count = counts.entry(anchor.clone()).or_insert(0);
        found.insert(if *count == 0 {
            anchor
        } else {
            format!("{anchor}-{count}")
        });
        *count += 1;
    }
    found
}

fn anchor(title: &str) -> String {
    // Of a link in a title only the text counts.
    let mut plain = String::new();
    let mut rest = title.trim();
    while let Some((before, behind)) = rest.split_once("](") {
        plain += before;
        rest = behind.split_once(')').map_or("", |(_, r)| r);
    }
    plain += rest;
    let kept = plain.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// A path without `.` and `..`; nothing where it leaves the repository.
pub(crate) fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::Normal(name) => out.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// The file or folder of the repository that a link of a page leads to.
pub(crate) fn resolve(page: &Path, file: &str) -> Option<PathBuf> {
    if file.is_empty() {
        return Some(page.to_path_buf());
    }
    normal(&page.parent().unwrap_or(Path::new("")).join(file))
}

/// Checks the links of all pages, which are given with their paths in the repository.
pub(crate) fn check(root: &Path, pages: &BTreeMap<PathBuf, String>, breaches: &mut Breaches) {
    for (page, text) in pages {
        for link in links(text) {
            if link.is_external() {
                continue;
            }
            if let Some(reason) = dead(root, pages, page, &link) {
                breaches.push(format!("{}:{}: {reason}", page.display(), link.line(text)));
            }
        }
    }
}

/// Why a link is dead, if it is.
fn dead(root: &Path, pages: &BTreeMap<PathBuf, String>, page: &Path, link: &Link<'_>) -> Option<String> {
    let (file, anchor) = link.parts();
    let Some(target) = resolve(page, file) else {
        return Some(format!("`{}` leads out of the repository", link.target));
    };
    if !pages.contains_key(&target) && !root.join(&target).exists() {
        return Some(format!("`{}` leads to nothing", link.target));
    }
    let anchor = anchor?;
    match pages.get(&target) {
        Some(text) if anchors(text).contains(anchor) => None,
        Some(_) => Some(format!("`{}`: {} has no such heading", link.target, target.display())),
        None => Some(format!("`{}`: an anchor needs a page", link.target)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches_of(page: &str) -> Breaches {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let other = "# A title: `x`, and so\n\n## Same\n## Same\n```\n# no title\n```\n".to_owned();
        let pages = [("docs/a.md".into(), page.to_owned()), ("README.md".into(), other)];
        let mut breaches = Breaches::new();
        check(&root, &pages.into(), &mut breaches);
        breaches
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let good = "# Here\n[a](../README.md), [b](../README.md#a-title-x-and-so), ![c](pipeline.svg)\n\
            [d](#here), [e](../README.md#same-1), [f](../p4/programs), [g](https://example.org/#x)\n";
        assert_eq!(breaches_of(good), Breaches::new());
    }

    #[test]
    fn dead_links_are_named_with_their_line() {
        let bad = "\n[a](nothing.md)\n[b](../README.md#no-title)\n[c](../../README.md)\n[d](../p4/programs#x)\n";
        let breaches = breaches_of(bad);
        assert_eq!(breaches.len(), 4, "{breaches:?}");
        assert_eq!(breaches[0], "docs/a.md:2: `nothing.md` leads to nothing");
        assert!(breaches[1].starts_with("docs/a.md:3: "), "{}", breaches[1]);
    }

    #[test]
    fn code_has_no_links() {
        let code = "`a[0](x)` and ``b`[0](y)``\n\n```p4\nt[1](z);\n```\n[real](target)\n";
        let targets: Vec<&str> = links(code).iter().map(|l| l.target).collect();
        assert_eq!(targets, ["target"]);
    }
}
