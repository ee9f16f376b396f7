#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
extern void fuzz_mix(in bit<32> by, inout bit<48> value, out bit<8> fold);
header h_t {
    bit<96> addresses;
    bit<16> kind;
    bit<32> number;
}
struct headers_t {
    h_t first;
}
struct meta_t {
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.first);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control Part(inout headers_t hdr) {
    bit<48> value = hdr.first.addresses[47:0];
    bit<8> fold;
    action mix(bit<32> by) {
        fuzz_mix(by, value, fold);
    }
    apply {
        mix(hdr.first.number);
        @async(order=none) {
            mix(2);
        }
        @sync {
            mix(3);
        }
        hdr.first.addresses[47:0] = value;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Part() part;
    Part() other;
    apply {
        sm.egress_spec = 1;
        part.apply(hdr);
        for (bit<8> i in 8w1 .. 3) {
            @async(order=port) {
                other.apply(hdr);
            }
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control D(packet_out b, in headers_t hdr) {
    apply {
        b.emit(hdr.first);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
