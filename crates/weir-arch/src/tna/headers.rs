//! The intrinsic headers that parsers read in front of a packet.

use super::fields::{Gress, Intrinsic, PIPE_COUNT};
use crate::driver::{EgressPacket, QueueInfo};
use crate::generator::GeneratorModel;
use std::ops::RangeInclusive;
use weir_interp::{BitBuffer, Frame};
use weir_ir::{Bits, Program, Type};

/// The differences between the chips.
#[derive(Debug, Clone)]
pub(crate) struct Chip {
    /// The name of the architecture in messages.
    pub name: &'static str,
    /// Bytes between the intrinsic header of an ingress packet and the packet.
    pub port_metadata: usize,
    /// Bytes of the egress intrinsic header.
    pub egress_header: usize,
    /// Local numbers of the ports that lead back to ingress.
    pub recirculation: RangeInclusive<u32>,
    /// The port of the CPU.
    pub cpu_port: u32,
    /// Numbers of mirror sessions.
    pub sessions: RangeInclusive<u32>,
    /// Applications of a pipe's packet generator.
    applications: u32,
    /// Local numbers of the ports that it can use.
    generator_ports: RangeInclusive<u32>,
    /// Bytes that it compares with a pattern.
    pattern_bytes: usize,
    /// It hands those bytes on, deparsers trigger it, and gaps begin where packets end.
    is_second: bool,
}

impl Chip {
    pub(crate) const FIRST: Chip = Chip {
        name: "tna",
        port_metadata: 8,
        egress_header: 27,
        recirculation: 68..=71,
        cpu_port: 64,
        sessions: 0..=1023,
        applications: 8,
        generator_ports: 68..=71,
        pattern_bytes: 4,
        is_second: false,
    };
    pub(crate) const SECOND: Chip = Chip {
        name: "t2na",
        port_metadata: 24,
        egress_header: 28,
        recirculation: 6..=7,
        cpu_port: 2,
        sessions: 0..=255,
        applications: 16,
        generator_ports: 0..=7,
        pattern_bytes: 16,
        is_second: true,
    };

    /// The capabilities of its packet generators.
    pub(crate) fn generators(&self) -> GeneratorModel {
        GeneratorModel {
            pipes: PIPE_COUNT as u32,
            applications: self.applications,
            ports: self.generator_ports.clone(),
            pattern_bytes: self.pattern_bytes,
            brings_context: self.is_second,
            gaps_from_end: self.is_second,
        }
    }
}

const INGRESS_HEADER: usize = 8;
const INGRESS_TYPE: &str = "ingress_intrinsic_metadata_t";
pub(crate) const EGRESS_TYPE: &str = "egress_intrinsic_metadata_t";

/// A header of the program's with these values in it, by the names of its fields; one of zeros
/// where the program does not have the type, and so reads no field.
fn compose(program: &Program, name: &str, length: usize, value: impl Fn(&str) -> u64) -> Vec<u8> {
    let Some((_, ty)) = program.header_types.iter().find(|(_, t)| t.name == name) else {
        return vec![0; length];
    };
    let mut buffer = BitBuffer::new();
    for field in &ty.fields {
        if let Type::Bits(width) = field.ty {
            buffer.push(&Bits::new(width, value(&field.name).into()));
        }
    }
    buffer.into_bytes()
}

/// The intrinsic header of an ingress packet.
pub(crate) fn ingress(program: &Program, port: u32, now_ns: u64, is_resubmitted: bool) -> Vec<u8> {
    compose(program, INGRESS_TYPE, INGRESS_HEADER, |field| {
        ingress_field(field, port, now_ns, is_resubmitted)
    })
}

fn ingress_field(field: &str, port: u32, now_ns: u64, is_resubmitted: bool) -> u64 {
    match field {
        "resubmit_flag" => is_resubmitted.into(),
        "ingress_port" => port.into(),
        "ingress_mac_tstamp" => now_ns,
        _ => 0,
    }
}

/// The intrinsic header of an egress packet.
pub(crate) fn egress(
    program: &Program,
    chip: &Chip,
    (packet, queue): (&EgressPacket, &QueueInfo),
    now_ns: u64,
    frame_check: u64,
) -> Vec<u8> {
    compose(program, EGRESS_TYPE, chip.egress_header, |field| {
        egress_field(field, packet, queue, now_ns, frame_check)
    })
}

fn egress_field(field: &str, packet: &EgressPacket, queue: &QueueInfo, now_ns: u64, frame_check: u64) -> u64 {
    let handling = &packet.handling;
    match field {
        "egress_port" => queue.port.into(),
        "enq_qdepth" => handling.depth,
        "enq_tstamp" => queue.enqueued_ns,
        "deq_qdepth" => queue.depth,
        "deq_timedelta" => now_ns.saturating_sub(queue.enqueued_ns),
        "egress_rid" => handling.rid.into(),
        "egress_rid_first" => handling.is_first_copy.into(),
        "egress_qid" => handling.queue.into(),
        "egress_cos" => handling.class.into(),
        "deflection_flag" => handling.is_deflected.into(),
        // The chip reports the length of a generated packet as it was generated.
        "pkt_length" => match handling.generated_bytes {
            0 => packet.state.bytes.len() as u64 + frame_check,
            bytes => u64::from(bytes) + frame_check,
        },
        _ => 0,
    }
}

/// Gives the control the fields of a header that its parser has not taken.
fn fill(intrinsic: &Intrinsic, frame: &mut Frame, value: impl Fn(&str) -> u64) {
    if intrinsic.valid.is_some_and(|v| frame.is_set(v)) {
        return;
    }
    for (name, var) in &intrinsic.fields {
        frame.set_u64(*var, value(name));
    }
}

/// As [`ingress`], for a control whose parser did not take the header.
pub(crate) fn fill_ingress(gress: &Gress, frame: &mut Frame, port: u32, now_ns: u64, is_resubmitted: bool) {
    fill(&gress.intrinsic, frame, |field| {
        ingress_field(field, port, now_ns, is_resubmitted)
    });
}

/// As [`egress`], for a control whose parser did not take the header; the packet is given besides
/// the frame, which is its own.
pub(crate) fn fill_egress(
    gress: &Gress,
    frame: &mut Frame,
    (packet, queue): (&EgressPacket, &QueueInfo),
    now_ns: u64,
    frame_check: u64,
) {
    fill(&gress.intrinsic, frame, |field| {
        egress_field(field, packet, queue, now_ns, frame_check)
    });
}

/// The bits of `parser_err` for a member of `error`.
pub(crate) fn error_bits(program: &Program, error: u32) -> u64 {
    let name = program.errors.get(error as usize).map_or("", String::as_str);
    match name {
        "NoError" => 0,
        "PacketTooShort" | "HeaderTooShort" => 0x2,
        "CounterRange" => 0x4,
        "Timeout" | "ParserTimeout" => 0x8,
        "StackOutOfBounds" => 0x40,
        "PhvOwner" => 0x80,
        "MultiWrite" => 0x100,
        // A select without a case that matches, `reject`, and errors of the program's own: no way
        // on.
        _ => NO_MATCH,
    }
}

/// `PARSER_ERROR_NO_MATCH`
pub(crate) const NO_MATCH: u64 = 0x1;
