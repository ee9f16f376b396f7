// Registers of several types, and reads and writes beyond the end.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<16>>(4) narrow;
    register<bit<160>>(2) wide;
    register<int<8>>(1) signed;
    register<bit<1>>(4) flags;
    apply {
        bit<16> old = 0xdead;
        bit<160> long;
        int<8> small;
        if (hdr.h.op == 0) {
            narrow.read(old, (bit<32>)hdr.h.index);
            narrow.write((bit<32>)hdr.h.index, hdr.h.value);
            hdr.h.value = old;
        } else if (hdr.h.op == 1) {
            wide.read(long, 1);
            long = (long << 16) | (bit<160>)hdr.h.value;
            wide.write(1, long);
            hdr.h.value = long[159:144];
        } else if (hdr.h.op == 2) {
            signed.read(small, 0);
            small = small - 1;
            signed.write(0, small);
            hdr.h.value = (bit<16>)(int<16>)small;
        } else {
            bit<1> f;
            flags.read(f, (bit<32>)hdr.h.index);
            flags.write((bit<32>)hdr.h.index, ~f);
            hdr.h.value = (bit<16>)f;
        }
    }
}
#include "skeleton.p4i"
