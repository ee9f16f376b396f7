//! The pipeline IR: what a P4 program is once its source has been checked.
//!
//! A [`Program`] is **closed, typed and flat**. Closed: no type variable, no `int`, no unresolved
//! name, no constructor parameter is left; sub-parsers, sub-controls, functions and actions have
//! been inlined where they are used. Typed: every [`Var`] is `bits<W>` or `varbit<W>`. Flat:
//! structs, headers, unions and stacks have been taken apart into scalar variables; a header is a
//! validity variable and one variable per field.
//!
//! # Semantics
//!
//! A packet runs the blocks of the program in the order its architecture says. All variables
//! exist from the packet's arrival on and start as zero; the architecture resets a [`Shared`] group
//! where its specification says so. A [`Body`] is a control-flow graph: basic blocks of
//! [`Inst`]ructions that run in order and end in one [`Terminator`]. Reading and writing a
//! variable have no effect but that: a field of an invalid header is a variable like any other, so
//! there is no undefined value anywhere. Arithmetic wraps at the width unless the operator says
//! saturate. Instructions that take from the packet ([`InstKind::Extract`], …) can fail: then the
//! body's `error` variable is set and control goes to its `on_error` block.
//!
//! A table lookup is a terminator ([`Terminator::Lookup`]): the one place besides a slow extern
//! where a packet may have to wait. The lookup writes whether it hit, the handle of the entry, the
//! index of the chosen action and the parameters of that action; the code after it branches to the
//! bodies of the actions, which are ordinary blocks. So a suspension never happens inside a basic
//! block, and what is live across it is what is live at the start of the next block.
//!
//! # Example
//!
//! A program has a text form that can be read and written ([`mod@parse`], [`mod@print`]):
//!
//! ```
//! use weir_ir::{passes, parse, print, verify};
//!
//! let text = r#"weir 2 target "none"
//! var %0 "x" : bits<8> unsigned shared
//! var %1 "y" : bits<8> unsigned local
//! shared "metadata" "meta" : struct "meta_t" ("x" bit 8) headers () {
//!   %0:x "x"
//! }
//! main
//! block "ingress" control "I" {
//!   b0:
//!     %1:y = 8w0x2
//!     %0:x = add %1:y, 8w0x3
//!     return
//! }
//! "#;
//! let mut program = parse::parse(text)?;
//! assert_eq!(print::print(&program), text);
//!
//! // The architecture reads `x`, so that is what must remain.
//! passes::optimize(&mut program, &|role, leaf| role == "metadata" && leaf.path == "x");
//! verify::verify(&program).expect("passes keep the invariants");
//! let body = print::print_body(&program, &program.blocks[0].body);
//! assert_eq!(body, "  b0:\n    %0:x = 8w0x5\n    return\n");
//! # Ok::<(), weir_ir::parse::ParseError>(())
//! ```
//!
//! Nothing here knows the name of an architecture: what an extern means, which blocks exist and
//! which variables they share is data in [`target`].
#![forbid(unsafe_code)]

pub mod arena;
pub mod bits;
pub mod cost;
pub mod eval;
pub mod parse;
pub mod passes;
pub mod pipeline;
pub mod print;
pub mod program;
mod serial;
pub mod target;
pub mod verify;

pub use arena::{Arena, Id};
pub use bits::Bits;
pub use program::*;
