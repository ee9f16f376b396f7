// Registers and their actions.
#include "header.p4i"
struct meta_t { }
struct pair_t { bit<16> first; bit<16> second; }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) plain;
    Register<bit<16>, bit<8>>(4, 0x1234) started;
    Register<pair_t, bit<8>>(4, { 1, 2 }) pairs;
    RegisterParam<bit<16>>(10) step;
    RegisterAction<bit<16>, bit<8>, bit<16>>(plain) add = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; value = value + hdr.h.value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(plain) by_step = {
        void apply(inout bit<16> value) { value = value + step.read(); }
    };
    RegisterAction<pair_t, bit<8>, bit<16>>(pairs) exchange = {
        void apply(inout pair_t value, out bit<16> rv) {
            bit<16> old = value.first;
            value.first = value.second;
            value.second = old;
            if (hdr.h.value == 0) { rv = value.first; }
        }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(started) append = {
        void apply(inout bit<16> value, out bit<16> rv) { value = hdr.h.value; rv = value + 1; }
    };
    RegisterAction<bit<16>, bit<8>, bit<4>>(plain) compare = {
        void apply(inout bit<16> value, out bit<4> rv) {
            rv = this.predicate(value == hdr.h.value, value > 0x100);
        }
    };
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = add.execute(hdr.h.index); }
        else if (hdr.h.op == 1) { by_step.execute(hdr.h.index); }
        else if (hdr.h.op == 2) { hdr.h.value = exchange.execute(hdr.h.index); }
        else if (hdr.h.op == 3) { hdr.h.value = append.execute_log(); }
        else if (hdr.h.op == 4) { hdr.h.value = plain.read(hdr.h.index); }
        else if (hdr.h.op == 5) { plain.write(hdr.h.index, hdr.h.value); }
        else if (hdr.h.op == 6) { hdr.h.value = (bit<16>)compare.execute(hdr.h.index); }
    }
}
#include "skeleton.p4i"
