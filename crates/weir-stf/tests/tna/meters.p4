// Meters: colours, their numbers, bytes that do not count.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Meter<bit<8>>(4, MeterType_t.BYTES) bytes;
    Meter<bit<8>>(4, MeterType_t.PACKETS, 0xa, 0xb, 0xc) named;
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = (bit<16>)bytes.execute(hdr.h.index); }
        if (hdr.h.op == 1) { hdr.h.value = (bit<16>)bytes.execute(index = hdr.h.index, adjust_byte_count = 4); }
        if (hdr.h.op == 2) { hdr.h.value = (bit<16>)named.execute(hdr.h.index); }
        if (hdr.h.op == 3) {
            hdr.h.value = (bit<16>)named.execute(index = hdr.h.index, color = (MeterColor_t)hdr.h.value[7:0]);
        }
    }
}
#include "skeleton.p4i"
