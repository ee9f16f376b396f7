// A header with @flexible fields fills whole bytes, on its way to egress and in its size.
#define OWN_HEADERS
#include "header.p4i"
struct part_t { bit<1> flag; bit<10> session; }
header bridge_t { bit<8> kind; @flexible part_t part; }
struct headers_t { bridge_t bridge; h_t h; }
struct meta_t { }
#define OWN_EGRESS_PARSER
#define OWN_EGRESS
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        hdr.bridge.setValid();
        hdr.bridge = { 3, { 1, 0x155 } };
    }
}
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); b.extract(hdr.bridge); b.extract(hdr.h); transition accept; } }
EGRESS(E) {
    apply {
        hdr.h.value = hdr.bridge.kind[3:0] ++ hdr.bridge.part.flag ++ 1w0 ++ hdr.bridge.part.session;
        hdr.h.index = (bit<8>)hdr.bridge.minSizeInBits() + (bit<8>)(bridge_t.minSizeInBytes());
        hdr.bridge.setInvalid();
    }
}
#include "skeleton.p4i"
