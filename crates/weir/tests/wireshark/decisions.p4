// Decisions: masks, ranges, value sets, arithmetic, lookahead, advance, verify, sub-parsers and the
// ingress port.
#include <core.p4>
#include <v1model.p4>

header kind_t {
    bit<16> kind;
    bit<16> count;
}

header value_t {
    bit<16> value;
}

header pair_t {
    bit<12> left;
    bit<12> right;
}

struct headers_t {
    kind_t kind;
    value_t value;
    pair_t pair;
}

struct metadata_t {
    bit<16> sum;
}

error {
    CountWrong
}

parser Inner(packet_in packet, out pair_t pair) {
    state start {
        packet.extract(pair);
        transition accept;
    }
}

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) known;
    Inner() inner;

    state start {
        packet.extract(hdr.kind);
        verify(hdr.kind.count != 0xFFFF, error.CountWrong);
        meta.sum = ((hdr.kind.count |+| 0xFF00) - 0xFF00) * 3 + (hdr.kind.kind >> 2);
        transition select(hdr.kind.kind, standard_metadata.ingress_port) {
            (0x1000 &&& 0xF000, _): parse_value;
            (0x2000 .. 0x2FFF, 1): skip;
            (known, _): parse_value;
            (0x4000 &&& 0xF000, _): look;
            (0x5000 &&& 0xF000, _): sum;
            default: accept;
        }
    }

    state parse_value {
        packet.extract(hdr.value);
        transition accept;
    }

    state skip {
        packet.advance((bit<32>) hdr.kind.count << 3);
        transition parse_value;
    }

    state look {
        pair_t next = packet.lookahead<pair_t>();
        transition select(next.left ^ 0xFFF, next.right) {
            (0xF0F, 1 .. 9): parse_pair;
            default: reject;
        }
    }

    state parse_pair {
        inner.apply(packet, hdr.pair);
        transition accept;
    }

    state sum {
        transition select(meta.sum[7:0] ++ meta.sum[15:8]) {
            0x0614: parse_value;
            default: accept;
        }
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
