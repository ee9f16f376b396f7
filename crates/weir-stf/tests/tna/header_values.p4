// Externs and the packet that give headers as values: they are valid, and validity is no part of the data.
#define OWN_HEADERS
#include "header.p4i"
header port_t { bit<16> number; bit<48> rest; }
struct headers_t { h_t h; }
struct meta_t { port_t port; h_t next; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        meta.port = port_metadata_unpack<port_t>(b);
        meta.next = b.lookahead<h_t>();
        b.extract(hdr.h);
        transition accept;
    }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.h.index = 6w0 ++ (bit<1>)meta.next.isValid() ++ (bit<1>)meta.port.isValid();
        if (hdr.h.op == 0) { hdr.h.value = meta.port.number; } else { hdr.h.value = meta.next.value + 1; }
    }
}
#include "skeleton.p4i"
