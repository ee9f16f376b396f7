// A checksum that is compared, fields that change (CHANGES), and the checksum of the same fields again.
#include <core.p4>
#include <v1model.p4>
header h_t {
    bit<8> op;
    bit<4> a;
#ifdef UNALIGNED
    bit<16> sum;
#endif
    bit<4> b;
    bit<13> c;
    bit<3> d;
#ifndef UNALIGNED
    bit<16> sum;
#endif
    bit<32> e;
    bit<8> ttl;
    bit<8> bytes;
}
header opt_t { varbit<64> options; }
struct headers_t { h_t h; opt_t opt; }
struct meta_t { }

#define DATA { hdr.h.op, hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d, hdr.h.e, hdr.h.ttl, hdr.h.bytes, hdr.opt.options }

parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.bytes) {
            0: accept;
            1 .. 8: options;
            default: reject;
        }
    }
    state options {
        b.extract(hdr.opt, (bit<32>) hdr.h.bytes << 3);
        transition accept;
    }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum(true, DATA, hdr.h.sum, HashAlgorithm.csum16); }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error != error.NoError || sm.checksum_error == 1) {
            mark_to_drop(sm);
        } else {
            sm.egress_spec = 1;
            CHANGES
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }

control C(inout headers_t hdr, inout meta_t meta) {
    apply { update_checksum(true, DATA, hdr.h.sum, HashAlgorithm.csum16); }
}

control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
