// A packet may take only so much arithmetic on wide values, whichever engine runs it.
#include "header.p4i"
struct meta_t { bit<2048> x; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.x = 3;
        for (bit<16> i = 0; i < hdr.h.value; i = i + 1) {
            meta.x = meta.x * meta.x + 1;
        }
        hdr.h.index = meta.x[7:0];
    }
}
#include "skeleton.p4i"
