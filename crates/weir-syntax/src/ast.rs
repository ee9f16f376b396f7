//! The abstract syntax tree of P4_16 (language specification 1.2.5).
//!
//! The tree is what the source says and nothing more: no name is resolved, no constant is folded,
//! no type is computed. Every node carries the [`Span`] it was parsed from. Every expression also
//! carries an [`ExprId`], unique within one [`Program`], so that later phases keep what they find
//! out (types, resolved names) in side tables instead of in the tree.

mod declarations;
mod expressions;
mod statements;
mod types;

pub use declarations::*;
pub use expressions::*;
pub use statements::*;
pub use types::*;

use crate::source::Span;
use std::sync::Arc;

/// The text of an identifier. Cheap to clone.
pub type Name = Arc<str>;

/// An identifier and where it stands.
#[derive(Debug, Clone)]
pub struct Ident {
    /// The text.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
}

/// Identifies an expression within one [`Program`]; dense, starting at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// A whole program after preprocessing: the declarations of all included files in order.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Top-level declarations in source order.
    pub declarations: Vec<Declaration>,
    /// One more than the largest [`ExprId`] in the tree.
    pub expr_count: u32,
}
