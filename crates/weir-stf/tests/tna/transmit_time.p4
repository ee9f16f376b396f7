// The time at which a packet leaves, written by its port behind egress.
#define OWN_HEADERS
#include "header.p4i"
header time_t { bit<16> checksum; bit<48> time; }
struct headers_t { ptp_metadata_t ptp; h_t h; time_t times; }
struct meta_t { }
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS(I) { apply { tm.ucast_egress_port = 2; } }
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); b.extract(hdr.h); b.extract(hdr.times); transition accept; } }
EGRESS(E) {
    apply {
        for_port.update_delay_on_tx = hdr.h.op[0:0];
        if (hdr.h.op[0:0] == 1) {
            hdr.ptp.setValid();
            hdr.ptp = { hdr.h.index, 6, (bit<48>)hdr.h.value };
            if (hdr.h.op == 3) { hdr.ptp.cf_byte_offset = 200; }
        }
    }
}
EGRESS_DEPARSER(ED) { apply { b.emit(hdr); } }
#include "skeleton.p4i"
