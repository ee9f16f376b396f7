//! The programs of the experiment, made as text.

use crate::bench::{KeyAt, TableFill};
use std::fmt::Write;
use weir_ir::MatchKind;

/// Bytes of Ethernet.
const ETHERNET: usize = 14;

/// Name of the ingress control.
const CONTROL: &str = "I";

/// A program of the grid, with what its tables hold.
pub struct Generated {
    /// What the point is called in messages.
    pub name: String,
    /// The program.
    pub source: String,
    /// Its tables' entries.
    pub fills: Vec<TableFill>,
    /// The headers of its packets.
    pub packet: Vec<u8>,
    /// Their path through the parser.
    pub path: String,
    /// Bytes of the packets.
    pub size: u32,
}

/// What the tables of a program are.
#[derive(Debug, Clone, Copy)]
pub struct TableGrid {
    /// Number of tables.
    pub tables: usize,
    /// Bits of each key.
    pub width: u32,
    /// Number of keys of each table.
    pub keys: usize,
    /// How keys are matched; of several the last, the others are exact.
    pub kind: MatchKind,
    /// Entries of each table.
    pub entries: usize,
    /// Different masks, or prefix lengths, of the entries.
    pub masks: u32,
}

/// What a program does besides looking up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Fields of headers that are written.
    pub writes: usize,
    /// Additions.
    pub additions: usize,
    /// Registers that are read and written.
    pub registers: usize,
    /// Counters.
    pub counters: usize,
    /// Hashes over the header.
    pub hashes: usize,
    /// Fields of 32 bits over which a checksum is computed.
    pub checksum_fields: usize,
    /// Each table has a counter per entry.
    pub direct_counters: bool,
}

/// A program with a number of states after Ethernet, each of which extracts a header of `bytes`.
pub fn parser(states: usize, bytes: usize, size: u32) -> Generated {
    let mut types = String::new();
    let rest = if bytes > 2 {
        format!("    bit<{}> rest;\n", 8 * (bytes - 2))
    } else {
        String::new()
    };
    let _ = writeln!(types, "header part_t {{\n    bit<16> next;\n{rest}}}");
    let fields: String = (0..states).map(|i| format!("    part_t part{i};\n")).collect();
    let mut parser = String::new();
    for i in 0..states {
        let to = if i + 1 < states {
            format!("1: part{};", i + 1)
        } else {
            String::new()
        };
        let _ = writeln!(
            parser,
            "    state part{i} {{\n        packet.extract(hdr.part{i});\n        transition select(hdr.part{i}.next) {{ \
             {to} default: accept; }}\n    }}"
        );
    }
    let path: String = (0..states).map(|i| format!("/part{i}")).collect();
    let start = if states > 0 { "1: part0;" } else { "" };
    let mut packet = vec![0_u8; ETHERNET];
    packet[ETHERNET - 1] = 1;
    for i in 0..states {
        packet.extend([0, u8::from(i + 1 < states)]);
        packet.resize(packet.len() + bytes - 2, 0x5a);
    }
    Generated {
        name: format!("parser-{states}x{bytes}-{size}"),
        path: format!("ethernet{path}"),
        source: program(
            &types,
            &fields,
            &format!("{start} default: accept;"),
            &parser,
            "",
            "",
            "",
        ),
        fills: Vec::new(),
        packet,
        size: size.max((ETHERNET + states * bytes) as u32),
    }
}

/// A program with tables of one kind, and some work.
pub fn control(grid: TableGrid, work: Work, size: u32) -> Generated {
    mixed(&[grid], work, size)
}

/// A program with tables whose keys stand in one header after Ethernet, and some work.
pub fn mixed(grids: &[TableGrid], work: Work, size: u32) -> Generated {
    let (mut fields, mut objects, mut apply, mut fills) = (String::new(), String::new(), String::new(), Vec::new());
    let mut bits = 0;
    for grid in grids {
        for _ in 0..grid.tables {
            let (fields_of, declared, fill) = table(fills.len(), *grid, 8 * ETHERNET + bits, work.direct_counters);
            fields.push_str(&fields_of);
            objects.push_str(&declared);
            let _ = writeln!(apply, "        table{}.apply();", fills.len());
            bits += grid.keys * grid.width as usize;
            fills.push(fill);
        }
    }
    let scratch = work
        .writes
        .max(work.additions)
        .max(work.checksum_fields)
        .max(work.hashes);
    for i in 0..scratch {
        let _ = writeln!(fields, "    bit<32> field{i};");
    }
    let _ = writeln!(fields, "    bit<16> sum;");
    let types = format!("header keys_t {{\n{fields}}}\n");
    add_work(work, &mut objects, &mut apply);
    let state = "    state keys {\n        packet.extract(hdr.keys);\n        transition accept;\n    }\n";
    let checksum = checksum(work.checksum_fields);
    let bytes = bits.div_ceil(8) + 4 * scratch + 2;
    let mut packet = vec![0_u8; ETHERNET + bytes];
    packet[ETHERNET - 1] = 1;
    let names: Vec<String> = grids.iter().map(TableGrid::name).collect();
    Generated {
        path: "ethernet/keys".to_owned(),
        name: format!("control-{}{}-{size}", names.join("-and-"), work.suffix()),
        source: program(
            &types,
            "    keys_t keys;\n",
            "1: keys; default: accept;",
            state,
            &objects,
            &apply,
            &checksum,
        ),
        fills,
        size: size.max(packet.len() as u32),
        packet,
    }
}

impl TableGrid {
    fn name(&self) -> String {
        let kind = self.kind.name();
        format!(
            "{}x{}x{}-{kind}-{}-{}",
            self.tables, self.keys, self.width, self.entries, self.masks
        )
    }
}

impl Work {
    fn suffix(&self) -> String {
        let parts = [
            ("w", self.writes),
            ("a", self.additions),
            ("r", self.registers),
            ("c", self.counters),
            ("h", self.hashes),
            ("s", self.checksum_fields),
            ("d", usize::from(self.direct_counters)),
        ];
        let named = parts
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| format!("-{name}{n}"));
        named.collect()
    }
}

/// The fields of a table's keys, its declaration, and its entries.
fn table(number: usize, grid: TableGrid, first_bit: usize, counts: bool) -> (String, String, TableFill) {
    let (mut fields, mut keys, mut places) = (String::new(), String::new(), Vec::new());
    for k in 0..grid.keys {
        let kind = if k + 1 == grid.keys {
            grid.kind
        } else {
            MatchKind::Exact
        };
        let _ = writeln!(fields, "    bit<{}> key{number}_{k};", grid.width);
        let _ = write!(keys, "hdr.keys.key{number}_{k}: {}; ", kind.name());
        places.push(KeyAt {
            bit: first_bit + k * grid.width as usize,
            width: grid.width,
            kind,
            value: None,
            masks: grid.masks,
        });
    }
    let (counter, property) = match counts {
        true => (
            format!("    direct_counter(CounterType.packets_and_bytes) counts{number};\n"),
            format!("        counters = counts{number};\n"),
        ),
        false => (String::new(), String::new()),
    };
    let text = format!(
        "{counter}    table table{number} {{\n        key = {{ {keys}}}\n        actions = {{ forward; NoAction; }}\n        \
         default_action = NoAction;\n{property}        size = {};\n    }}\n",
        grid.entries.max(1)
    );
    let fill = TableFill {
        table: format!("{CONTROL}.table{number}"),
        action: "forward",
        data: vec![2],
        keys: places,
        entries: grid.entries,
        is_hit: true,
    };
    (fields, text, fill)
}

fn add_work(work: Work, objects: &mut String, apply: &mut String) {
    for i in 0..work.registers {
        let _ = writeln!(objects, "    register<bit<32>>(1024) register{i};");
        let _ = writeln!(
            apply,
            "        register{i}.read(value, (bit<32>) hdr.ethernet.src_addr[9:0]);\n        \
             register{i}.write((bit<32>) hdr.ethernet.src_addr[9:0], value + 1);"
        );
    }
    if work.registers > 0 {
        objects.push_str("    bit<32> value;\n");
    }
    for i in 0..work.counters {
        let _ = writeln!(objects, "    counter(1024, CounterType.packets_and_bytes) counter{i};");
        let _ = writeln!(apply, "        counter{i}.count((bit<32>) hdr.ethernet.src_addr[9:0]);");
    }
    for i in 0..work.writes {
        let _ = writeln!(apply, "        hdr.keys.field{i} = {};", i + 1);
    }
    for i in 0..work.additions {
        let _ = writeln!(apply, "        hdr.keys.field{i} = hdr.keys.field{i} + {};", 2 * i + 1);
    }
    for i in 0..work.hashes {
        let _ = writeln!(
            apply,
            "        hash(hdr.keys.field{i}, HashAlgorithm.crc32, 32w0, {{ hdr.ethernet.src_addr, \
             hdr.ethernet.dst_addr }}, 32w65536);"
        );
    }
}

fn checksum(fields: usize) -> String {
    if fields == 0 {
        return String::new();
    }
    let all: Vec<String> = (0..fields).map(|i| format!("hdr.keys.field{i}")).collect();
    format!(
        "        update_checksum(hdr.keys.isValid(), {{ {} }}, hdr.keys.sum, HashAlgorithm.csum16);\n",
        all.join(", ")
    )
}

fn program(types: &str, fields: &str, start: &str, states: &str, objects: &str, apply: &str, checksum: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
         header ethernet_t {{\n    bit<48> dst_addr;\n    bit<48> src_addr;\n    bit<16> ether_type;\n}}\n{types}\
         struct headers_t {{\n    ethernet_t ethernet;\n{fields}}}\nstruct metadata_t {{ }}\n\
         parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{\n    \
         state start {{\n        packet.extract(hdr.ethernet);\n        \
         transition select(hdr.ethernet.ether_type) {{ {start} }}\n    }}\n{states}}}\n\
         control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ }} }}\n\
         control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{\n    \
         action forward(bit<9> port) {{ std.egress_spec = port; }}\n{objects}    apply {{\n        \
         std.egress_spec = 1;\n{apply}    }}\n}}\n\
         control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {{ apply {{ }} }}\n\
         control C(inout headers_t hdr, inout metadata_t meta) {{\n    apply {{\n{checksum}    }}\n}}\n\
         control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}\n\
         V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    )
}

/// A program with a header stack, of which packets fill `elements`.
pub fn stack(elements: usize, bytes: usize, size: u32) -> Generated {
    const ELEMENTS: usize = 8;
    let rest = if bytes > 2 {
        format!("    bit<{}> rest;\n", 8 * (bytes - 2))
    } else {
        String::new()
    };
    let types = format!("header part_t {{\n    bit<16> next;\n{rest}}}\n");
    let states = "    state part {\n        packet.extract(hdr.part.next);\n        \
                  transition select(hdr.part.last.next) { 1: part; default: accept; }\n    }\n";
    let mut packet = vec![0_u8; ETHERNET];
    packet[ETHERNET - 1] = 1;
    for i in 0..elements {
        packet.extend([0, u8::from(i + 1 < elements)]);
        packet.resize(packet.len() + bytes - 2, 0x5a);
    }
    let path: String = (0..elements).map(|i| format!("/part[{i}]")).collect();
    let fields = format!("    part_t[{ELEMENTS}] part;\n");
    Generated {
        name: format!("stack-{elements}x{bytes}-{size}"),
        path: format!("ethernet{path}"),
        source: program(&types, &fields, "1: part; default: accept;", states, "", "", ""),
        fills: Vec::new(),
        size: size.max(packet.len() as u32),
        packet,
    }
}

/// A program like that of [`parser`], which also writes a field of each header.
pub fn rewriting(states: usize, bytes: usize, size: u32) -> Generated {
    let base = parser(states, bytes, size);
    let writes: String = (0..states)
        .map(|i| format!("        hdr.part{i}.rest = {};\n", i + 1))
        .collect();
    let port = "        std.egress_spec = 1;\n";
    Generated {
        name: format!("rewriting-{states}x{bytes}-{size}"),
        source: base.source.replace(port, &format!("{port}{writes}")),
        ..base
    }
}

/// The same program for TNA, with an egress that does nothing and is passed by.
pub fn tna(program: Generated) -> Generated {
    let ingress = "inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic, \
                   in ingress_intrinsic_metadata_from_parser_t prsr, \
                   inout ingress_intrinsic_metadata_for_deparser_t dprsr, \
                   inout ingress_intrinsic_metadata_for_tm_t std";
    let source = program.source;
    // Everything before the block that v1model has for verifying checksums is alike.
    let (front, back) = source.split_once("control V(").unwrap_or((&source, ""));
    let control = back.split_once("control I(").map_or("", |(_, rest)| rest);
    let control = control.split_once("control E(").map_or(control, |(control, _)| control);
    let control = control.split_once(") {").map_or(control, |(_, body)| body);
    let front = front.replace("v1model.p4", "tna.p4").replace(
        "out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {\n    state start {\n",
        "out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {\n    state start {\n        \
         packet.extract(intrinsic);\n        packet.advance(PORT_METADATA_SIZE);\n",
    );
    let control = control
        .replace(
            "std.egress_spec = 1;",
            "std.ucast_egress_port = 1;\n        std.bypass_egress = 1;",
        )
        .replace("std.egress_spec", "std.ucast_egress_port");
    Generated {
        name: format!("tna-{}", program.name),
        source: format!(
            "{front}control {CONTROL}({ingress}) {{{control}\
             control D(packet_out packet, inout headers_t hdr, in metadata_t meta, \
             in ingress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ packet.emit(hdr); }} }}\n\
             struct none_t {{ }}\n\
             parser EP(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {{\n\
             state start {{ packet.extract(intrinsic); transition accept; }} }}\n\
             control E(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic, \
             in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr, \
             inout egress_intrinsic_metadata_for_output_port_t oport) {{ apply {{ }} }}\n\
             control ED(packet_out packet, inout none_t hdr, in none_t meta, \
             in egress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ }} }}\n\
             Pipeline(P(), {CONTROL}(), D(), EP(), E(), ED()) pipe;\nSwitch(pipe) main;\n"
        ),
        ..program
    }
}
