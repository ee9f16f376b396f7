//! Wireshark shows the fields that weir's encoders and programs have put into packets.
//!
//! Without tshark the tests say so and pass, except in CI.

#[path = "../common/mod.rs"]
mod common;
mod efcp;
mod frames;
mod generated;
mod int;
mod tshark;
