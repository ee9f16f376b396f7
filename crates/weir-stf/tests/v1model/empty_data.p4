// Action data of no bits beside some of others.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> small; bit<64> first; bit<64> second; }
struct headers_t { h_t h; }
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action before(bit<0> nothing, bit<8> small, bit<64> second) {
        hdr.h.small = small;
        hdr.h.first = (bit<64>) (nothing ++ hdr.h.op);
        hdr.h.second = second;
    }
    action after(bit<64> second, bit<0> nothing) {
        hdr.h.first = (bit<64>) (nothing ++ hdr.h.op);
        hdr.h.second = second;
    }
    action none() { }
    table t {
        key = { hdr.h.op: exact; }
        actions = { before; after; none; }
        default_action = none;
        const entries = {
            1: before(0w0, 5, 0xffff_ffff_ffff_ffff);
            2: after(0x1122_3344_5566_7788, 0w0);
        }
    }
    apply { t.apply(); sm.egress_spec = 1; }
}
#include "skeleton.p4i"
