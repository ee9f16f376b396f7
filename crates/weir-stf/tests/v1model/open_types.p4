// `_` as a type argument, in the version of v1model whose externs have an index type.
#define V1MODEL_VERSION 20200408
#include "header.p4i"
struct meta_t { bit<8> color; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<16>, _>(8) last;
    counter<_>(8, CounterType.packets) seen;
    meter<_>(8, MeterType.packets) paced;
    apply {
        sm.egress_spec = 1;
        bit<16> before;
        last.read(before, hdr.h.index[2:0]);
        last.write(hdr.h.index[2:0], hdr.h.value);
        seen.count(hdr.h.index[2:0]);
        seen.count(hdr.h.value);
        paced.execute_meter(hdr.h.op, meta.color);
        hdr.h.value = before + (bit<16>)meta.color;
    }
}
#include "skeleton.p4i"
