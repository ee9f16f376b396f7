//! Latency of P4 programs, predicted from their source: nanoseconds on a Tofino, cycles on weir's
//! compiled engine.
//!
//! The method is that of Franco et al., "A comprehensive latency profiling study of the Tofino P4
//! programmable ASIC-based hardware" (Computer Communications 218, 2024): what a packet costs is a
//! function of features of the packet and of its path through the program. This crate
//!
//! - extracts the features ([`Features`]): every path of the parser, the tables that packets of a
//!   path may come to, and how each table depends on those before it;
//! - evaluates models of them ([`model`]), those that ship and those in files;
//! - trains models on measured rows ([`mod@fit`]) and estimates their errors by cross-validation;
//! - predicts ([`predict::predict`]), compares predictions ([`compare::compare`]) and shows them
//!   ([`show`]).
//!
//! It relies on the IR of a program that no pass has optimised. It deliberately does not run
//! programs (`weir latency profile` does), does not place tables in a chip's memories, and predicts
//! no queueing.
//!
//! ```
//! use weir_latency::predict::{Question, predict};
//! use weir_latency::{Features, Gress, model};
//!
//! let text = r#"
//! #include <core.p4>
//! #include <v1model.p4>
//! header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
//! struct headers_t { ethernet_t ethernet; }
//! struct meta_t { }
//! parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
//!     state start { p.extract(h.ethernet); transition accept; }
//! }
//! control V(inout headers_t h, inout meta_t m) { apply { } }
//! control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
//!     apply { s.egress_spec = 1; }
//! }
//! control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
//! control C(inout headers_t h, inout meta_t m) { apply { } }
//! control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
//! V1Switch(P(), V(), I(), E(), C(), D()) main;
//! "#;
//! let options = weir_compiler::Options::default();
//! let compiled = weir_compiler::compile_source("p.p4", text, &options, weir_arch::targets());
//! let program = compiled.program.expect("it compiles");
//!
//! let features = Features::of(&program, Gress::Ingress)?;
//! let model = model::shipped("paper-lr").expect("it ships");
//! let question = Question { port_gbps: 100, sizes: vec![1000], ..Question::default() };
//! let answer = predict("p.p4", &features, None, &model, &question)?;
//! // 0.056 ns for each byte, and 143.4 ns.
//! assert_eq!(format!("{:.1}", answer.paths[0].points[0].total), "199.5");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod compare;
mod costliest;
pub mod data;
pub mod evaluate;
pub mod features;
pub mod fit;
pub mod model;
pub mod predict;
pub mod show;
pub mod workload;

pub use features::{FeatureError, Features, Gress};
