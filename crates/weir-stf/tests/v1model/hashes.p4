// Every hash algorithm over the same 11 bytes.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<32> result; bit<4> a; bit<12> b; bit<40> c; bit<16> d; }
header absent_t { bit<32> x; }
struct headers_t { h_t h; absent_t absent; }
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        bit<32> all = 0xffffffff;
        if (hdr.h.op == 0) { hash(hdr.h.result, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 64w0x100000000); }
        if (hdr.h.op == 1) { hash(hdr.h.result, HashAlgorithm.crc16, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 64w0x100000000); }
        if (hdr.h.op == 2) { hash(hdr.h.result, HashAlgorithm.identity, 32w0, { hdr.h.c }, all); }
        if (hdr.h.op == 3) { hash(hdr.h.result, HashAlgorithm.csum16, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, all); }
        if (hdr.h.op == 4) { hash(hdr.h.result, HashAlgorithm.xor16, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, all); }
        if (hdr.h.op == 5) { hash(hdr.h.result, HashAlgorithm.crc32_custom, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 64w0x100000000); }
        if (hdr.h.op == 6) { hash(hdr.h.result, HashAlgorithm.crc16_custom, 32w7, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 32w10); }
        if (hdr.h.op == 7) { hash(hdr.h.result, HashAlgorithm.crc32, 32w9, { hdr.h.a }, 32w0); }
        if (hdr.h.op == 8) { hash(hdr.h.result, HashAlgorithm.random, 32w16, { hdr.h.a }, 32w16); }
        if (hdr.h.op == 9) { hash(hdr.h.result, HashAlgorithm.xor16, 32w0, { hdr.absent, hdr.h.d }, all); }
    }
}
#include "skeleton.p4i"
