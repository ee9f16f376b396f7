// `verify` is true for an error, and the parser writes it by "or".
#define OWN_HEADERS
#include "header.p4i"
header sum_t { bit<16> a; bit<16> checksum; }
struct headers_t { h_t h; sum_t first; sum_t second; }
struct meta_t { bool any; bool first; bool second; bit<1> bit_any; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    Checksum() one;
    Checksum() two;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        meta.any = false;
        meta.bit_any = 0;
        b.extract(hdr.h);
        b.extract(hdr.first);
        one.add(hdr.first);
        meta.first = one.verify();
        meta.any = one.verify();
        meta.bit_any = (bit<1>)one.verify();
        b.extract(hdr.second);
        two.add(hdr.second);
        meta.second = two.verify();
        meta.any = two.verify();
        meta.bit_any = (bit<1>)two.verify();
        transition accept;
    }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.h.value = 12w0 ++ meta.bit_any ++ (bit<1>)meta.any ++ (bit<1>)meta.second ++ (bit<1>)meta.first;
    }
}
#define OWN_EGRESS_PARSER
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); transition accept; } }
#include "skeleton.p4i"
