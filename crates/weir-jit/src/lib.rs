//! weir's fast engine: machine code for pipelines, a vector of packets at a time.
//!
//! [`Compiled::new`] takes a [`Pipeline`](weir_ir::pipeline::Pipeline) and cuts its control flow
//! at table lookups into **segments**. A segment is a function over a vector of packets. It runs
//! each packet from one suspension point to the next, and saves the live variables in the packet's
//! context. Between segments, [`LoadedVector::run`] looks up tables for all waiting packets at
//! once, so that their cache misses overlap. Fields that are never read stay in the packet. Headers
//! whose layout has not changed are rewritten in place.
//!
//! The modules in the order of compilation: `analysis` (dataflow), `layout` (segments and
//! contexts), `codegen` (segments to Cranelift IR), `lanes` (the same for eight packets at a time,
//! in AVX-512), `compile` (all of them together). `run` executes the result.
//!
//! The crate knows no architecture and no extern: the caller's [`Host`] provides them. It holds no
//! table, opens no device and starts no thread. It refuses programs that it cannot compile
//! ([`CompileError::Unsupported`]); the interpreter runs all programs.
//!
//! # Memory
//!
//! Code reads up to [`TAILROOM`] bytes beyond a packet's end. Where the deparser adds headers it
//! writes up to [`Compiled::headroom`] bytes before the packet's start. [`Frame`] and
//! [`LoadedVector::run`] check that this memory exists. Every other access is to the packet,
//! within the bounds that the parser checked, or to memory of the [`Machine`].
//!
//! ```
//! use std::sync::Arc;
//! use weir_ir::pipeline::{Exit, Pipeline};
//! use weir_ir::{BasicBlock, Body, Loc, Program, Terminator};
//! use weir_jit::{Compiled, Options};
//!
//! // A pipeline that lets every packet leave by its only exit.
//! let mut body = Body::default();
//! let terminator = Terminator::Exit(0);
//! body.blocks.push(BasicBlock { state: None, insts: vec![], terminator, loc: Loc::default() });
//! let exit = Exit { name: "out", live: vec![], deparsed: false, touches: None };
//! let pipeline = Pipeline {
//!     program: Arc::new(Program::default()), body, inputs: vec![], exits: vec![exit],
//!     calls: vec![], instruction_budget_drop: 0, punt_from_start: 0, parser_block_limit: 0,
//!     ordered_tables: vec![], table_states: vec![],
//! };
//! let compiled = Compiled::new(Arc::new(pipeline), Options::default())?;
//! assert_eq!(compiled.serial(), None);
//! # Ok::<(), weir_jit::CompileError>(())
//! ```

mod analysis;
mod bits;
mod budget;
mod codegen;
mod compile;
mod error;
mod lanes;
mod layout;
mod order;
mod run;
mod runtime;
mod simd;
mod sites;

pub use compile::{Compiled, Options};
pub use error::{CompileError, Unsupported};
pub use layout::{ROW_STRIDE, VECTOR};
pub use run::{
    Frame, Host, Indexes, LaneUse, LoadedVector, LookedUp, Machine, SavedContext, StageCount, Suspended, TAILROOM,
    cycles,
};
pub use simd::{SimdKernel, dispatch_simd};
pub use sites::CallArguments;
