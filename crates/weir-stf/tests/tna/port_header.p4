// What the control plane says of a port, as a header: that it is valid is no bit of it.
#include "header.p4i"
header port_t { bit<16> number; bit<8> kind; bit<40> rest; }
struct meta_t { port_t port; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic);
        meta.port = port_metadata_unpack<port_t>(b);
        b.extract(hdr.h);
        transition accept;
    }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        if (meta.port.isValid()) { hdr.h.value = meta.port.number; hdr.h.index = meta.port.kind; }
    }
}
#include "skeleton.p4i"
