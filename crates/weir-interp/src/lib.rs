//! The executable semantics of the IR: an interpreter that is plain rather than fast, and the
//! traces that say why a packet went where it went.
//!
//! [`Interpreter::new`] takes a program; [`Executable::run`] runs one of its blocks on a
//! [`PacketState`]. Whatever is not the program's own business (tables, externs, value sets) it
//! asks of a [`Runtime`], which an architecture implements. [`Interpreter::run_traced`] also tells
//! a [`Tracer`] what happens; [`TraceTree`] records it as a tree for people and for JSON.
//!
//! What this crate does not do: it knows no architecture and no extern, it holds no table and no
//! state that outlives a packet, and it does no I/O.
//!
//! # Limits
//!
//! A parser may enter [`PARSER_BUDGET`] basic blocks per run; after that the packet is rejected
//! with `error.ParserTimeout`. A run of any body may cost [`INSTRUCTION_BUDGET`] units
//! ([`weir_ir::cost`]: an instruction on up to 64 bits is one); after that it is stopped with
//! [`Abort::InstructionBudget`], and the packet is to be dropped.
//!
//! ```
//! use std::sync::Arc;
//! use weir_interp::testing::{NoRuntime, ProgramBuilder};
//! use weir_interp::{Executable, Interpreter, Outcome, PacketState};
//! use weir_ir::{Operand, BinaryOp, Bits, Rvalue, Terminator};
//!
//! let mut program = ProgramBuilder::new("test");
//! let x = program.local("x", 8);
//! let sum = Rvalue::Binary(BinaryOp::Add, Operand::Var(x), Operand::Const(Bits::new(8, 7)));
//! program.control("ingress", |body| body.block(|b| b.assign(x, sum).end(Terminator::Return)));
//! let engine = Interpreter::new(Arc::new(program.finish()));
//! let mut packet = PacketState::new(engine.program(), vec![]);
//! assert_eq!(engine.run(0, &mut packet, &mut NoRuntime), Outcome::Return);
//! assert_eq!(packet.frame.get_u64(x), 7);
//! ```
#![forbid(unsafe_code)]

mod eval;
mod frame;
mod interp;
mod render;
mod runtime;
mod sites;
pub mod testing;
mod trace;
mod tree;

pub use frame::{BitBuffer, Frame, PacketState, read_bits};
pub use interp::{INSTRUCTION_BUDGET, Interpreter, PARSER_BUDGET};
pub use render::RenderOptions;
pub use runtime::{
    Abort, ArgValue, CallContext, CallEffect, Executable, InValue, LookupDetail, LookupOutcome, MethodEngine, Outcome,
    Runtime,
};
pub use sites::{BodyKey, CallSites, SiteId};
pub use trace::{Event, NoTrace, PacketTag, Tracer};
pub use tree::{
    EntryInfo, ExternArgument, MAX_NODES, NamedValue, NodeKind, Place, TraceNode, TraceTree, display_value,
};
