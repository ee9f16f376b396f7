// What goes into a register action is as it was before the call, what comes out is there after it: also where a variable is both,
// or where the action itself uses it.
#define SECOND_CHIP
#include "header.p4i"
struct meta_t { bit<8> a; }
INGRESS(I) {
    Register<bit<32>, bit<8>>(8) first;
    Register<bit<32>, bit<8>>(8) second;
    Register<bit<32>, bit<8>>(8) third;
    Register<bit<32>, bit<8>>(8) pairs;
    RegisterAction2<bit<32>, bit<8>, bit<16>, bit<8>>(first) count = {
        void apply(inout bit<32> value, out bit<16> rv1, out bit<8> rv2) { value = value + 1; rv1 = (bit<16>) value[15:0]; rv2 = 5; }
    };
    RegisterAction2<bit<32>, bit<8>, bit<16>, bit<8>>(second) add = {
        void apply(inout bit<32> value, out bit<16> rv1, out bit<8> rv2) { rv1 = 1; rv2 = 6; value = value + (bit<32>) meta.a; }
    };
    RegisterAction<bit<32>, bit<8>, bit<16>>(third) move = {
        void apply(inout bit<32> value, out bit<16> rv) { meta.a = 2; value = value + 1; rv = 3; }
    };
    RegisterAction2<bit<64>, bit<8>, bit<16>, bit<8>>(pairs) both = {
        void apply(inout bit<64> value, out bit<16> rv1, out bit<8> rv2) { value = value + (bit<64>) meta.a; rv1 = 7; rv2 = 8; }
    };
    apply {
        tm.ucast_egress_port = 1;
        meta.a = hdr.h.index;
        if (hdr.h.op == 1) {
            // The index is a result, too.
            hdr.h.value = count.execute(meta.a, meta.a);
        } else if (hdr.h.op == 2) {
            // The action reads a result's variable.
            hdr.h.value = add.execute(0, meta.a);
        } else if (hdr.h.op == 3) {
            // The action changes the index's variable.
            hdr.h.value = move.execute(meta.a);
        } else if (hdr.h.op == 4) {
            hdr.h.value = both.execute(1, meta.a);
        }
        hdr.h.index = meta.a;
    }
}
#include "skeleton.p4i"
