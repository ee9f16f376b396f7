//! weir's fast engine: machine code for pipelines, a vector of packets at a time.
//!
//! [`Compiled::new`] takes a [`Pipeline`](weir_ir::pipeline::Pipeline) and cuts its control flow at table lookups into **segments**. A
//! segment is a function over a vector of packets: it runs each from one suspension point to the next, and leaves
//! behind a context, which holds what is live there and nothing else. Between segments [`Loaded::run`] looks
//! tables up for all packets that wait, so that they share the latency of memory. Fields that nobody reads
//! stay in the packet, headers whose layout has not changed are rewritten where they are.
//!
//! What this crate does not do: it knows no architecture and no extern (whoever runs a pipeline is its [`Host`]),
//! it holds no table, opens no device and starts no thread. What it cannot compile it refuses
//! ([`CompileError::Unsupported`]); the interpreter runs everything.
//!
//! # Memory
//!
//! Code reads up to [`TAILROOM`] bytes beyond a packet's end and, where headers are put in, writes up to
//! [`Compiled::headroom`] bytes before its start; [`Frame`] and [`Loaded::run`] see that there is room. Every other
//! access is to the packet within the bounds the parser checked, or to the machine's own memory.
//!
//! ```
//! use std::sync::Arc;
//! use weir_ir::pipeline::{Exit, Pipeline};
//! use weir_ir::{BasicBlock, Body, Loc, Program, Terminator};
//! use weir_jit::{Compiled, Options};
//!
//! // A pipeline that lets every packet leave by its only exit.
//! let mut body = Body::default();
//! body.blocks.push(BasicBlock { state: None, insts: vec![], terminator: Terminator::Exit(0), loc: Loc::default() });
//! let exit = Exit { name: "out", live: vec![], deparsed: false, touches: None };
//! let pipeline = Pipeline {
//!     program: Arc::new(Program::default()), body, inputs: vec![], exits: vec![exit], calls: vec![], overrun: 0, restart: 0,
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
mod sites;
mod wide;

pub use compile::{Compiled, Options};
pub use error::{CompileError, Unsupported};
pub use layout::{PITCH, VECTOR};
pub use run::{Frame, Host, Indexes, LaneUse, Loaded, LookedUp, Machine, StageCount, TAILROOM, cycles};
pub use sites::CallArguments;
pub use wide::{Job, widely};
