//! `cargo xtask docs`: the documentation as a site, by mdBook.
//!
//! Pages keep their paths below `target/site/src`, so that links between them are the same in the
//! repository and in the site. Files that pages link to are copied beside them. A link to a folder
//! leads to its `README.md`, or to a list of its files. Flowcharts become SVG.

use crate::links::{self, Link};
use crate::{is_installed, mermaid, pages, root, step};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How flowcharts look, in each theme of mdBook.
const STYLE: &str = "\
.diagram { overflow-x: auto; margin: 1em 0; }
.diagram svg { max-width: 100%; height: auto; font: 13px sans-serif; }
.diagram rect { fill: var(--quote-bg); stroke: var(--icons); }
.diagram text { fill: var(--fg); text-anchor: middle; }
.diagram .label { font-size: 12px; paint-order: stroke; stroke: var(--bg); stroke-width: 5px; }
.diagram .edge { fill: none; stroke: var(--icons); }
.diagram marker path { fill: var(--icons); }
";

/// Builds the site and checks its links.
pub(crate) fn build() -> Result<()> {
    if !is_installed("mdbook") {
        bail!("mdbook is not installed: `cargo install mdbook --locked`");
    }
    let site = root().join("target/site");
    let _ = std::fs::remove_dir_all(&site);
    stage(&root(), &site)?;
    step("site", "mdbook", &["build", &site.display().to_string()])?;
    let count = check(&site.join("book"))?;
    println!("── {count} pages without a dead link: target/site/book/index.html");
    Ok(())
}

/// Writes what mdBook reads.
fn stage(root: &Path, site: &Path) -> Result<()> {
    let pages = pages::read(root);
    let source = site.join("src");
    let mut files = BTreeSet::new();
    let mut lists = BTreeSet::new();
    for (path, text) in &pages {
        let is_summary = path == Path::new(pages::SUMMARY);
        // mdBook has the table of contents at the root.
        let place = if is_summary { Path::new("SUMMARY.md") } else { path };
        let text = relinked(text, |link| target(root, path, place, link, &mut files, &mut lists));
        let text = pictured(&text).with_context(|| path.display().to_string())?;
        write(&source.join(place), &text)?;
    }
    for folder in lists {
        write(
            &source.join(&folder).join("index.html"),
            &list(root, &folder, &mut files)?,
        )?;
    }
    for file in files {
        let to = source.join(&file);
        std::fs::create_dir_all(to.parent().unwrap_or(&source))?;
        std::fs::copy(root.join(&file), to).with_context(|| file.display().to_string())?;
    }
    write(&site.join("diagram.css"), STYLE)?;
    std::fs::copy(root.join("docs/book.toml"), site.join("book.toml"))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::create_dir_all(path.parent().unwrap_or(path))?;
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// A page whose links are replaced where the function says so.
fn relinked(text: &str, mut replace: impl FnMut(&Link<'_>) -> Option<String>) -> String {
    let (mut out, mut from) = (String::new(), 0);
    for link in links::links(text) {
        if let Some(target) = replace(&link) {
            out += &text[from..link.start];
            out += &target;
            from = link.start + link.target.len();
        }
    }
    out + &text[from..]
}

/// The target of a link in the site, where it is another one. Notes files and folders to be there.
fn target(
    root: &Path,
    page: &Path,
    place: &Path,
    link: &Link<'_>,
    files: &mut BTreeSet<PathBuf>,
    lists: &mut BTreeSet<PathBuf>,
) -> Option<String> {
    let (file, _) = link.parts();
    if link.is_external() || file.is_empty() {
        return None;
    }
    let path = links::resolve(page, file)?;
    if path == Path::new(pages::SUMMARY) {
        // The same as a page, at the root.
        return Some("../".repeat(page.components().count() - 1) + "toc.html");
    }
    if place != page {
        // The table of contents: from the root.
        return Some(path.display().to_string());
    }
    let folder = file.trim_end_matches('/');
    if root.join(&path).is_dir() {
        if root.join(&path).join("README.md").is_file() {
            return Some(format!("{folder}/README.md"));
        }
        lists.insert(path);
        return Some(format!("{folder}/index.html"));
    }
    if path.extension().is_none_or(|e| e != "md") {
        files.insert(path);
    }
    None
}

/// A page that lists the files of a folder.
fn list(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
            files.insert(folder.join(entry.file_name()));
        }
    }
    names.sort();
    let rows = names.iter().map(|n| format!("<li><a href=\"{n}\">{n}</a></li>\n"));
    let title = folder.display();
    Ok(format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n<ul>\n{}</ul>\n",
        rows.collect::<String>()
    ))
}

/// A page whose flowcharts are pictures.
fn pictured(text: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("```mermaid\n") {
        let (chart, behind) = behind.split_once("```").context("a flowchart has no end")?;
        out += before;
        out += &format!("<div class=\"diagram\">\n{}\n</div>", mermaid::svg(chart)?);
        rest = behind;
    }
    Ok(out + rest)
}

/// Checks links, pictures and anchors of the built pages, and returns how many pages there are.
fn check(book: &Path) -> Result<usize> {
    let mut pages = BTreeMap::new();
    html(book, book, &mut pages)?;
    // It may be served for any address, so that its links depend on where the site is.
    pages.remove(Path::new("404.html"));
    let mut dead = Vec::new();
    for (page, text) in &pages {
        let values = ["href=\"", "src=\""].iter().flat_map(|key| text.split(key).skip(1));
        for value in values.filter_map(|rest| rest.split('"').next()) {
            let link = Link {
                start: 0,
                target: value,
            };
            if !link.is_external() && !value.starts_with("data:") && !leads(book, &pages, page, &link) {
                dead.push(format!("{}: {value}", page.display()));
            }
        }
    }
    if dead.is_empty() {
        return Ok(pages.len());
    }
    bail!("dead links in the site:\n{}", dead.join("\n"))
}

fn leads(book: &Path, pages: &BTreeMap<PathBuf, String>, page: &Path, link: &Link<'_>) -> bool {
    let (file, anchor) = link.parts();
    let Some(target) = links::resolve(page, file.split('?').next().unwrap_or(file)) else {
        return false;
    };
    match (pages.get(&target), anchor) {
        (Some(text), Some(anchor)) => anchor.is_empty() || text.contains(&format!("id=\"{anchor}\"")),
        _ => book.join(target).exists(),
    }
}

fn html(book: &Path, folder: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            html(book, &path, pages)?;
        } else if path.extension().is_some_and(|e| e == "html") {
            pages.insert(path.strip_prefix(book)?.to_path_buf(), std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flowchart_of_the_pages_is_drawn() {
        let mut count = 0;
        for (path, text) in pages::read(&root()) {
            count += text.matches("```mermaid\n").count();
            let text = pictured(&text).unwrap_or_else(|e| panic!("{}: {e:#}", path.display()));
            assert!(!text.contains("```mermaid"), "{}", path.display());
        }
        assert!(count >= 6, "{count}");
    }

    #[test]
    fn links_to_folders_lead_to_pages() {
        let (mut files, mut lists) = (BTreeSet::new(), BTreeSet::new());
        let page = Path::new("docs/x.md");
        let text = "[a](../p4/programs) [b](../p4/programs/ipv4_router/losses) [c](pipeline.svg) [d](run.md#x)";
        let text = relinked(text, |link| target(&root(), page, page, link, &mut files, &mut lists));
        assert_eq!(
            text,
            "[a](../p4/programs/README.md) [b](../p4/programs/ipv4_router/losses/index.html) \
             [c](pipeline.svg) [d](run.md#x)"
        );
        assert!(files.contains(Path::new("docs/pipeline.svg")), "{files:?}");
        assert!(lists.contains(Path::new("p4/programs/ipv4_router/losses")), "{lists:?}");
    }
}
