//! The checked tree, for tools that read programs without lowering them.
//!
//! [`checked`] parses and checks a text and hands the tree and [`Checked`], what the checker found
//! out, to a function. Nothing of it can be changed in a way that reaches the compiler. The oracle
//! of weir-fuzz evaluates programs by it, independently of everything after the checker.
//!
//! ```
//! use weir_compiler::{Options, tools};
//!
//! let text = "const bit<8> a = 1;"; let names = tools::checked("a.p4", text, &Options::default(),
//! &[], |_, checked| checked.globals.len()); assert_eq!(names.ok(), Some(1)); ```

pub use crate::check::{
    BlockKind, Builtin, CallInfo, Callee, Checked, Const, Def, DefKind, FieldDef, FunctionKind, Param, Signature,
    TableActionDef,
};
pub use crate::types::{DefId, Ty, TyKind, Types};

use crate::{Cancellation, Options, check, on_large_stack, syntax_options, system_files};
use weir_ir::target::Target;
use weir_syntax::preprocess::SystemFiles;
use weir_syntax::source::SourceMap;
use weir_syntax::{Diagnostics, ast};

/// A text with mistakes.
#[derive(Debug)]
pub struct Refused {
    /// The source files, to show where diagnostics point.
    pub sources: SourceMap,
    /// The mistakes.
    pub diagnostics: Diagnostics,
}

/// Parses and checks a text and gives the tree and what is known of it to `look`, which runs on a
/// stack that is large enough to walk the tree. `#include` finds only the core library and the
/// targets' files.
///
/// # Errors
/// The text has mistakes that parsing or checking finds.
pub fn checked<R: Send>(
    name: &str,
    text: &str,
    options: &Options,
    targets: &[Target],
    look: impl for<'a> FnOnce(&'a ast::Program, Checked<'a>) -> R + Send,
) -> Result<R, Box<Refused>> {
    on_large_stack(|| {
        let files = system_files(targets);
        let parsed = weir_syntax::parse_source(name, text, &syntax_options(options), SystemFiles(&files));
        let (sources, mut diagnostics) = (parsed.sources, parsed.diagnostics);
        let (checked, found) = check::check(&parsed.program, &Cancellation::default());
        diagnostics.extend(found);
        if diagnostics.has_errors() {
            return Err(Box::new(Refused { sources, diagnostics }));
        }
        Ok(look(&parsed.program, checked))
    })
    .unwrap_or_else(|no_thread| {
        let diagnostics = crate::undiagnosed(&no_thread);
        Err(Box::new(Refused {
            sources: Default::default(),
            diagnostics,
        }))
    })
}
