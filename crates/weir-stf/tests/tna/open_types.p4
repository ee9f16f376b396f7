// `_` as a type argument: known from constructor arguments, from a use, or of any width; calls may differ in it.
#include "header.p4i"
struct meta_t { bit<32> got; }
INGRESS(I) {
    Register<bit<16>, _>(256) cells;
    RegisterAction<_, _, bit<16>>(cells) next = {
        void apply(inout bit<16> cell, out bit<16> rv) { cell = cell + 1; rv = cell; }
    };
    Counter<bit<32>, _>(256, CounterType_t.PACKETS) seen;
    Meter<_>(256, MeterType_t.BYTES) paced;
    Hash<_>(HashAlgorithm_t.CRC16) hash;
    Register<_, _>(4) never;
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        seen.count(hdr.h.op);
        seen.count(hdr.h.value);
        seen.count(1);
        bit<8> color = paced.execute(hdr.h.index);
        if (hdr.h.op == 1) { hdr.h.value = next.execute(hdr.h.index); }
        else if (hdr.h.op == 2) { hdr.h.value = next.execute(hdr.h.value) + (bit<16>)color; }
        else if (hdr.h.op == 3) { hdr.h.value = next.execute(0); }
        else { bit<16> value = hash.get({ hdr.h.op, hdr.h.index }); hdr.h.value = value; }
    }
}
#include "skeleton.p4i"
