// Stacks: of headers, whose last element is looked at, and of unions.
#include <core.p4>
#include <v1model.p4>

header label_t {
    bit<20> label;
    bit<3> class;
    bit<1> bottom;
    bit<8> ttl;
}

header short_t {
    bit<8> kind;
    bit<8> value;
}

header long_t {
    bit<8> kind;
    bit<24> value;
}

header_union option_t {
    short_t short;
    long_t long;
}

struct headers_t {
    label_t[3] labels;
    option_t[2] options;
}

struct metadata_t {}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            0: start;
            1: parse_option;
        }
    }

    state parse_option {
        transition select(packet.lookahead<bit<8>>()) {
            1: parse_short;
            2: parse_long;
            default: accept;
        }
    }

    state parse_short {
        packet.extract(hdr.options.next.short);
        transition parse_option;
    }

    state parse_long {
        packet.extract(hdr.options.next.long);
        transition parse_option;
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
