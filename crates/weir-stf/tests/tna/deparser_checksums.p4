// Checksums that both deparsers make anew.
#define OWN_HEADERS
#include "header.p4i"
header sum_t { bit<16> a; bit<16> b; bit<16> checksum; }
struct headers_t { h_t h; sum_t sum; sum_t other; }
struct meta_t { }
#define OWN_INGRESS_PARSER
#define OWN_INGRESS_DEPARSER
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
#define OWN_EGRESS_DEPARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        b.extract(hdr.sum);
        transition select(hdr.h.op[1:1]) { 1: parse_other; default: accept; }
    }
    state parse_other { b.extract(hdr.other); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = hdr.h.op[0:0];
        hdr.sum.a = hdr.h.value;
    }
}
INGRESS_DEPARSER(ID) {
    Checksum() checksum;
    apply {
        hdr.sum.checksum = checksum.update({ hdr.sum.a, hdr.sum.b, hdr.other });
        b.emit(hdr);
    }
}
EGRESS_PARSER(EP) {
    state start { b.extract(intrinsic); b.extract(hdr.h); b.extract(hdr.sum); transition accept; }
}
EGRESS(E) { apply { hdr.sum.b = hdr.sum.checksum; } }
EGRESS_DEPARSER(ED) {
    Checksum() checksum;
    apply {
        hdr.sum.checksum = checksum.update(data = { hdr.sum.a, hdr.sum.b, hdr.h.index, 8w0 }, zeros_as_ones = true);
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
