// Register actions of the plain kind: a read, what the program says, a write.
#include "header.p4i"
struct meta_t { }
struct pair_t { bit<16> first; bit<48> second; }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4, 0x10) cells;
    Register<pair_t, bit<8>>(256) pairs;
    RegisterParam<bit<16>>(3) step;
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) add = {
        void apply(inout bit<16> value, out bit<16> rv) {
            value = value + step.read();
            if (value > hdr.h.value) { value = 0; }
            rv = value;
        }
    };
    RegisterAction<pair_t, bit<8>, bit<48>>(pairs) latest = {
        void apply(inout pair_t value, out bit<48> rv) {
            rv = value.second;
            value.first = value.first |+| 1;
            value.second = (bit<48>)hdr.h.value;
        }
    };
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        if (hdr.h.op == 0) { hdr.h.value = add.execute(hdr.h.index); }
        if (hdr.h.op == 1) { hdr.h.value = latest.execute(hdr.h.index)[15:0]; }
        if (hdr.h.op == 2) { hdr.h.value = cells.read(hdr.h.index); }
    }
}
#include "skeleton.p4i"
