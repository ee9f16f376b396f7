// The driver may have to parse again, and a random number would be another one then.
#include "../header.p4i"
struct meta_t { bit<16> number; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    Random<bit<16>>() random;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        meta.number = random.get();
        transition accept;
    }
}
INGRESS(I) { apply { tm.ucast_egress_port = 1; hdr.h.value = meta.number; } }
#include "../skeleton.p4i"
