//! Names that nothing declares because the program lacks an `#include` or a `#define`: one error
//! for all of them, which says what to add.

use crate::check::{self, Checked};
use crate::main_package::declares;
use crate::{Cancellation, system_files};
use rustc_hash::FxHashSet;
use weir_ir::target::Target;
use weir_syntax::ast::Name;
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::preprocess::{Include, Options, SystemFiles};
use weir_syntax::source::Span;

/// Names that a message lists; of more it gives the number.
const LISTED: usize = 3;

/// The errors that say what to add, and the places of the errors that they stand for.
#[derive(Default)]
pub(crate) struct Explained {
    /// The errors.
    pub errors: Vec<Diagnostic>,
    places: FxHashSet<Span>,
}

impl Explained {
    /// Whether an error of the checker is part of what [`Explained::errors`] say.
    pub(crate) fn covers(&self, found: &Diagnostic) -> bool {
        found.code == "not-found" && self.places.contains(&found.span)
    }
}

/// Explains the names that `checked` misses by the files of `targets`.
pub(crate) fn explain(checked: &Checked<'_>, includes: &[Include], targets: &[Target]) -> Explained {
    let mut explained = Explained::default();
    if checked.missing.is_empty() {
        return explained;
    }
    match targets.iter().find(|t| includes.iter().any(|i| declares(t, &i.name))) {
        Some(target) => customary_macros(checked, target, &mut explained),
        None => lacking_include(checked, targets, &mut explained),
    }
    explained
}

/// An error for each macro that the program does not define, though others for its architecture do.
fn customary_macros(checked: &Checked<'_>, target: &Target, explained: &mut Explained) {
    let Some((file, _)) = target.files.first() else { return };
    let mut seen = FxHashSet::default();
    for (name, span) in &checked.missing {
        let Some((_, value)) = target.customary.iter().find(|(n, _)| *n == &**name) else {
            continue;
        };
        explained.places.insert(*span);
        if seen.insert(name) {
            let message = format!("`{name}` is not defined: {file} does not have it");
            let help = format!("define it: `#define {name} {value}`");
            explained
                .errors
                .push(Diagnostic::error("not-found", *span, message).help(help));
        }
    }
}

/// An error for all names that a file declares which the program does not include: of core.p4 and
/// the files of architectures those that declare most of the names, and core.p4 where it has as
/// many.
fn lacking_include(checked: &Checked<'_>, targets: &[Target], explained: &mut Explained) {
    let missing: FxHashSet<&Name> = checked.missing.iter().map(|(name, _)| name).collect();
    let system = system_files(targets);
    let first_files = targets.iter().filter_map(|t| t.files.first()).map(|(file, _)| *file);
    let mut best: Vec<&str> = Vec::new();
    let mut declared = FxHashSet::default();
    for file in std::iter::once("core.p4").chain(first_files) {
        let names = declared_by(file, &system, &missing);
        if names.len() > declared.len() {
            (best, declared) = (vec![file], names);
        } else if names.len() == declared.len() && best.first().is_some_and(|&b| b != "core.p4") {
            best.push(file);
        }
    }
    let covered: Vec<&(Name, Span)> = checked.missing.iter().filter(|(n, _)| declared.contains(n)).collect();
    let Some((_, first)) = covered.first() else { return };
    explained.places.extend(covered.iter().map(|(_, span)| *span));
    let lines: Vec<String> = best.iter().map(|file| format!("`#include <{file}>`")).collect();
    let lines = lines.join(" or ");
    let message = format!("{lines} is missing: it declares {}", listed(&covered));
    let help = "write it at the top of the program";
    explained
        .errors
        .push(Diagnostic::error("not-found", *first, message).help(help));
}

/// Those of some names that a system file declares, or what it includes.
fn declared_by(file: &str, system: &[(&'static str, &'static str)], names: &FxHashSet<&Name>) -> FxHashSet<Name> {
    let text = format!("#include <{file}>\n");
    let parsed = weir_syntax::parse_source("include", &text, &Options::default(), SystemFiles(system));
    let (declared, _) = check::check(&parsed.program, &Cancellation::default());
    let kinds = declared.match_kinds.iter().map(|k| &k.name);
    let all = declared.globals.keys().chain(kinds);
    all.filter(|name| names.contains(name)).cloned().collect()
}

/// The first few distinct names, and how many more there are.
fn listed(names: &[&(Name, Span)]) -> String {
    let mut seen = FxHashSet::default();
    let mut distinct: Vec<String> = Vec::new();
    for (name, _) in names {
        if seen.insert(name) {
            distinct.push(format!("`{name}`"));
        }
    }
    let more = distinct.len().saturating_sub(LISTED);
    distinct.truncate(LISTED);
    if more > 0 {
        distinct.push(format!("{more} more names that it uses"));
    }
    match distinct.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => distinct.concat(),
    }
}
