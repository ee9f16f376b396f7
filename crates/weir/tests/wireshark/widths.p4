// Widths: varbits, fields that begin within a byte, fields of hundreds of bits, signed fields,
// booleans and enums.
#include <core.p4>
#include <v1model.p4>

enum bit<4> Kind {
    Plain = 1,
    Long = 9
}

header first_t {
    bit<3> words;
    bool is_marked;
    Kind kind;
    int<12> offset;
    bit<100> key;
    bit<32> src_addr;
    bit<48> dst_mac;
    bit<40> time;
    int<40> delta;
}

header rest_t {
    bit<4> before;
    varbit<56> options;
    bit<4> after;
}

header wide_t {
    bit<320> digest;
    bit<128> dst_addr;
    bit<64> id;
}

struct headers_t {
    first_t first;
    rest_t rest;
    wide_t wide;
}

struct metadata_t {}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.rest, (bit<32>) hdr.first.words * 8);
        transition select(hdr.first.kind, hdr.first.is_marked, hdr.rest.after) {
            (Kind.Long, true, _): parse_wide;
            (_, false, 4w3 .. 4w6): parse_wide;
            default: accept;
        }
    }

    state parse_wide {
        packet.extract(hdr.wide);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control In(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
    }
}

control Out(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
