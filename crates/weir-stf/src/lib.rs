//! STF packet tests: what goes into a switch, and what must come out of it.
//!
//! [`parse`] reads a test, [`run`] runs it on a program, [`run_on`] on a switch that is already set
//! up; [`configure`] does only what a text says to the control plane.
//!
//! # The language
//!
//! One directive per line; keywords in any case; `#` begins a comment; names may be quoted.
//! The directives of p4c's tests:
//!
//! ```text
//! packet PORT HEX…                 a packet comes in
//! expect PORT [HEX…] [$]           one must go out: `*` is any digit; without `$` more bytes may follow;
//!                                  without digits any packet will do
//! add TABLE [PRIO] KEY:VALUE… ACTION(ARG:VALUE, …) [= ID]
//! setdefault TABLE ACTION(ARG:VALUE, …)
//! remove all                       all entries that are not const
//! check_counter NAME(INDEX|$ID) [packets|bytes] [== N]       also != < <= > >=
//! wait                             nothing: packets are through at once
//! mirroring_add ID PORT    mirroring_add_mc ID GROUP    mirroring_delete ID    mirroring_get ID
//! mc_mgrp_create GROUP     mc_node_create RID PORT…     mc_node_update HANDLE PORT…
//! mc_node_associate GROUP HANDLE
//! counter_read NAME INDEX  counter_write NAME INDEX PACKETS BYTES
//! register_read NAME INDEX register_write NAME INDEX VALUE    register_reset NAME
//! meter_get_rates NAME INDEX           meter_set_rates NAME INDEX CIR:CBS PIR:PBS
//! meter_array_set_rates NAME CIR:CBS PIR:PBS        (tokens per µs, tokens)
//! no_packet                        nothing may have gone out since the last `packet`
//! ```
//!
//! Packets are expected per port in order. On every port that a `packet` or `expect` names, as many
//! packets must go out as are expected; other ports are not looked at. Values are decimal, `0x` or
//! `0b`. In a ternary key the digits written are compared and `*` digits are not; in an LPM key the
//! prefix is as long as its digits that are not `*`. Keys that are left out match anything (exact
//! ones: 0). The higher `PRIO` wins. Tables, actions and keys may be called by a unique suffix of
//! their name; `extra$0.h` is `extra[0].h`, `h.valid` or `valid(h)` is the validity of `h`.
//!
//! Extensions of ours:
//!
//! ```text
//! expect PORT HEX… | PORT HEX… | drop      one of these; the first that fits is taken
//! expect_drop REASON                       a packet was dropped for this reason (`ingress-drop`, …)
//! expect_digest NAME FIELD:VALUE…          the next digest message; NAME is P4Info's or ends it
//! counter_read NAME INDEX [packets|bytes] == N
//! register_read NAME INDEX|$ID == VALUE…   a value for each field of the cell, or for the first ones
//! register_write NAME INDEX VALUE…         a value for each field
//! add T k:10/8 a()   add T k:5..9 a()   add T k:1&&&3 a()    prefix, range, mask;  k:* is any value
//! add T k:1 member(7)    add T k:1 group(2)     where the table has an action profile or selector
//! member PROFILE ID ACTION(ARG:VALUE, …)        group PROFILE ID MEMBER[:WEIGHT]…
//! modify TABLE ID ACTION(…)    delete TABLE ID      the entry that was added as `= ID`
//! value_set NAME VALUE…                    adds a member, one value per field
//! now +1ms                                 the clock goes on: ns, us, ms, s
//! port PORT up|down                        the link
//! port PORT loopback                       what it sends comes in there
//! port_rate PORT pps|bps N                 queue_capacity PORT N
//! mc_node_associate GROUP HANDLE NUMBER    packets with this exclusion number get no copy of the node
//! mc_port_list NUMBER PORT…                ports that packets exclude by this number
//! port_metadata PORT HEX…                  what parsers see of the port
//! frame_check BYTES                        counted with every packet: 4 on a Tofino, 0 elsewhere
//! set_crc32_parameters NAME POLYNOMIAL INITIAL XOR_OUT REFLECT_IN REFLECT_OUT
//!                                          `crc32_custom` or a calculation, `calc_1`;
//!                                          `set_crc16_parameters`: those of `crc16_custom`
//! deflection PORT                          where packets go that ask for it when their queue is full
//! lpf_set NAME INDEX|$ID sample|rate GAIN_NS DECAY_NS SCALE
//! wred_set NAME INDEX|$ID TIME_CONSTANT_NS MIN MAX OF_10000
//! pktgen_port PORT [generates] [matches]   packet generators: a port that sends, or that looks for patterns
//! pktgen_buffer PIPE OFFSET HEX…           bytes of packets
//! pktgen_mask PIPE NUMBER PORT…            local ports that `port_down mask NUMBER` is about
//! pktgen_app PIPE APP one_shot|periodic NS [OPTION N]…        OPTION: offset, length, port, last_port, channel,
//! pktgen_app PIPE APP port_down [mask N] [OPTION N]…          batches, packets, batch_gap, packet_gap,
//! pktgen_app PIPE APP recirculated|deparser VALUE MASK [OPTION N]…  batch_jitter, packet_jitter
//! pktgen_app PIPE APP off                  packets that are due go out with `now`
//! check_pktgen PIPE APP triggers|batches|packets == N
//! receive PORT HEX…                        as `packet`, but the queues are not emptied
//! drain                                    empties them
//! ```
//!
//! What this crate does not do: it compiles nothing, prints nothing and reads no file.
//!
//! ```
//! use std::sync::Arc;
//! use weir_stf::{RunOptions, run};
//!
//! let program = Arc::new(weir_switch::testing::reflector());
//! let report = run(program.clone(), "packet 1 00 ff\nexpect 1 00 f* $", &RunOptions::default())?;
//! assert!(report.passed());
//! let report = run(program, "packet 1 00\nexpect 2 00", &RunOptions::default())?;
//! assert_eq!(report.failures[0].line, 2);
//! # Ok::<(), weir_stf::RunError>(())
//! ```
#![forbid(unsafe_code)]

mod ast;
mod check;
mod control;
mod generator;
mod parse;
mod report;
mod run;
mod scan;
mod value;

pub use ast::{
    ActionUse, Alternative, Argument, Comparison, CounterIndex, Directive, KeyValue, Line, Pattern, Quantity, Rate,
    RateUnit, Test,
};
pub use generator::{Counted, GeneratorDirective};
pub use parse::parse;
pub use report::{Failure, Report};
pub use run::{RunError, RunOptions, Session, configure, run, run_on};
pub use scan::ParseError;
pub use value::{Value, ValueError};
