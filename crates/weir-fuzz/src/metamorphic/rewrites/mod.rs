//! The rewrites. Each changes the text of a program and keeps what it does; what it says about
//! itself is why.

mod calls;
mod constants;
mod declarations;
mod expressions;
mod layout;
mod parsers;
mod rename;
mod statements;
mod structs;
mod tables;
#[cfg(test)]
mod tests;
mod widths;

use super::names::Names;
use super::nodes::Nodes;
use super::text::{Edit, Subject, apply};
use crate::rng::Rng;

/// What a rewrite looks at.
pub(super) struct Context<'a> {
    /// The program.
    pub subject: &'a Subject,
    /// Its nodes.
    pub nodes: Nodes<'a>,
    /// Its names.
    pub names: Names<'a>,
}

impl<'a> Context<'a> {
    /// What there is to know about a program.
    pub fn new(subject: &'a Subject) -> Self {
        let nodes = Nodes::new(subject);
        let names = Names::new(subject, &nodes);
        Context { subject, nodes, names }
    }
}

/// A change of a program's text that keeps its meaning.
pub(crate) struct Rewrite {
    /// Its name.
    pub name: &'static str,
    /// Why it keeps the meaning.
    pub why: &'static str,
    edits: fn(&Context<'_>, &mut Rng) -> Option<Vec<Edit>>,
}

impl Rewrite {
    const fn new(
        name: &'static str,
        edits: fn(&Context<'_>, &mut Rng) -> Option<Vec<Edit>>,
        why: &'static str,
    ) -> Self {
        Rewrite { name, why, edits }
    }

    /// The rewritten text; `None` where the program has no place for it.
    pub fn text(&self, context: &Context<'_>, rng: &mut Rng) -> Option<String> {
        let edits = (self.edits)(context, rng)?;
        let text = apply(&context.subject.text, &edits)?;
        (text != context.subject.text).then_some(text)
    }
}

/// All rewrites.
pub(crate) const REWRITES: &[Rewrite] = &[
    Rewrite::new(
        "rename-locals",
        rename::locals,
        "a name is changed everywhere at once, and no control-plane name is made of it",
    ),
    Rewrite::new(
        "rename-types",
        rename::types,
        "a name is changed everywhere at once; the tests name no type, parser or control",
    ),
    Rewrite::new(
        "rename-fields",
        rename::fields,
        "a name is changed everywhere at once, and keys made of it keep theirs by @name",
    ),
    Rewrite::new(
        "rename-control-plane",
        rename::control_plane,
        "actions, tables and instances keep their control-plane names by @name",
    ),
    Rewrite::new(
        "name-keys",
        rename::keys,
        "@name of a key says what its text says anyway",
    ),
    Rewrite::new(
        "copy-action",
        tables::copy_action,
        "the copy has the body and the control-plane name of the action, and only one table calls it",
    ),
    Rewrite::new(
        "default-action",
        tables::default_action,
        "a table without a default action has NoAction, which entries cannot name",
    ),
    Rewrite::new("table-size", tables::size, "a table without a size has this one"),
    Rewrite::new(
        "unfold-constants",
        constants::unfold,
        "a literal is the sum of its halves, of the same type",
    ),
    Rewrite::new(
        "name-constants",
        constants::name,
        "a constant has the value and type of the literal",
    ),
    Rewrite::new(
        "fold-constants",
        constants::fold,
        "an expression known at compile time is its value",
    ),
    Rewrite::new(
        "typedef",
        constants::typedef,
        "a typedef is another name for the same type",
    ),
    Rewrite::new(
        "parenthesize",
        expressions::parenthesize,
        "parentheses around an expression mean nothing",
    ),
    Rewrite::new(
        "negate-twice",
        expressions::negate_twice,
        "the negation of its negation is the condition",
    ),
    Rewrite::new(
        "conditional",
        expressions::conditional,
        "a condition is true if it holds, and false otherwise",
    ),
    Rewrite::new(
        "commute",
        expressions::commute,
        "these operators commute, and the operands have no side effects",
    ),
    Rewrite::new(
        "compound",
        expressions::compound,
        "`x op= e` is `x = x op (e)` where x is a path",
    ),
    Rewrite::new("block", statements::block, "a statement is the only one of a block"),
    Rewrite::new("if-true", statements::if_true, "what is done if true is done"),
    Rewrite::new("empty-else", statements::empty_else, "an empty block does nothing"),
    Rewrite::new(
        "negate-if",
        statements::negate_if,
        "where the condition is negated, the branches change places",
    ),
    Rewrite::new(
        "hit-or-miss",
        expressions::hit_or_miss,
        "a lookup that does not miss hits",
    ),
    Rewrite::new(
        "local",
        statements::local,
        "a value is stored in a variable and then used at once",
    ),
    Rewrite::new(
        "outline-action",
        statements::action,
        "an action's body is done where the action is called",
    ),
    Rewrite::new(
        "sub-control",
        statements::sub_control,
        "a control applied once with the parameters of the outer one does what that one did",
    ),
    Rewrite::new(
        "named-arguments",
        calls::named,
        "arguments are bound by name; those whose order matters keep it",
    ),
    Rewrite::new(
        "select-any",
        parsers::dont_care,
        "`default` and `_` match the same values",
    ),
    Rewrite::new("select-mask", parsers::mask, "a mask of ones compares all bits"),
    Rewrite::new(
        "select-order",
        parsers::order,
        "values and keysets change places together",
    ),
    Rewrite::new(
        "split-state",
        parsers::split,
        "the second state does the rest, unconditionally",
    ),
    Rewrite::new(
        "move-up",
        declarations::move_up,
        "a declaration that needs no other can stand before all others",
    ),
    Rewrite::new("unused", declarations::unused, "what nothing uses does nothing"),
    Rewrite::new(
        "unused-variable",
        declarations::unused_variable,
        "a variable that nothing reads does nothing",
    ),
    Rewrite::new(
        "annotate",
        declarations::annotate,
        "annotations that nobody knows mean nothing",
    ),
    Rewrite::new(
        "wrap-fields",
        structs::wrap,
        "each field is reached through the struct it stands in now",
    ),
    Rewrite::new(
        "flatten-fields",
        structs::flatten,
        "each field is reached where it stands now",
    ),
    Rewrite::new(
        "comments",
        layout::comments,
        "comments and line breaks between tokens mean nothing",
    ),
    Rewrite::new(
        "halves",
        widths::halves,
        "a value is its upper bits followed by its lower ones",
    ),
    Rewrite::new(
        "widen",
        widths::widen,
        "bits that are added in front are taken away again",
    ),
    Rewrite::new(
        "subtract",
        widths::subtract,
        "the negative of a value is its complement and 1, modulo 2^W",
    ),
    Rewrite::new(
        "assign-halves",
        widths::assign_halves,
        "all bits are assigned, in two steps",
    ),
    Rewrite::new("function", widths::function, "the function returns its argument"),
    Rewrite::new("once", widths::once, "the loop is done once"),
];
