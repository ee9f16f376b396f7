//! Which architecture a program is for, and what is wrong with a `main` that is no switch of any.

use crate::check::{Checked, DefKind};
use crate::types::TyKind;
use std::path::Path;
use weir_ir::target::Target;
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::preprocess::Include;
use weir_syntax::source::SourceMap;

/// Whether a file, by its name wherever it was found, is one of those that declare an architecture.
pub(crate) fn declares(target: &Target, file: &str) -> bool {
    let base = |path: &str| Path::new(path).file_name().map(ToOwned::to_owned);
    target.files.iter().any(|(name, _)| base(name) == base(file))
}

/// The include of a file of another architecture, where one was asked for by name.
pub(crate) fn other_architecture(includes: &[Include], targets: &[Target], chosen: &Target) -> Option<Diagnostic> {
    includes.iter().find_map(|include| {
        if declares(chosen, &include.name) {
            return None;
        }
        let other = targets.iter().find(|t| declares(t, &include.name))?;
        let message = format!(
            "the architecture {} was asked for, but the program includes `{}`, which is for {}",
            chosen.name, include.name, other.name
        );
        let (first, _) = chosen.files.first()?;
        let help = format!("leave out `--arch {}`, or include `{first}`", chosen.name);
        Some(Diagnostic::error("architecture", include.span, message).help(help))
    })
}

/// Says of a `main` whose package an architecture's file declares, though it is only a part of a
/// switch there, what it should be. A package of the program's own is no mistake: it may be for
/// another compiler.
pub(crate) fn no_switch(
    checked: &Checked<'_>,
    sources: &SourceMap,
    targets: &[Target],
    included: Option<&str>,
) -> Option<Diagnostic> {
    let main = &checked.defs[checked.main?.0 as usize];
    let DefKind::Instance { ty, ast } = &main.kind else {
        return None;
    };
    let TyKind::Package(def, _) = checked.types.get(*ty) else {
        return None;
    };
    let package = &checked.defs[def.0 as usize];
    let file = &sources.file_of(package.span.lo)?.name;
    let chosen = targets.iter().find(|t| included == Some(t.name) && declares(t, file));
    let target = chosen.or_else(|| targets.iter().find(|t| declares(t, file)))?;
    let known: Vec<String> = target.packages.iter().map(|p| format!("`{}`", p.name)).collect();
    let has_the_name = target.packages.iter().any(|p| *p.name == *package.name);
    let why = if has_the_name {
        "but not with the blocks that a switch has"
    } else {
        "which is no switch"
    };
    let message = format!(
        "`main` is a `{}`, {why}: a `main` of {} is a {}",
        package.name,
        target.name,
        known.join(" or a ")
    );
    Some(Diagnostic::error("main", ast.ty.span, message).label(package.span, "declared here"))
}
