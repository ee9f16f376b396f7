// Packets are numbered at ingress and at egress. They come there straight, again by ports that lead back, and as copies.
#include "../tna/header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) {
    Register<bit<16>, bit<1>>(1) passed;
    RegisterAction<bit<16>, bit<1>, bit<16>>(passed) next = {
        void apply(inout bit<16> value, out bit<16> number) { value = value + 1; number = value; }
    };
    apply {
        hdr.h.value = next.execute(0);
        if (hdr.h.op == 7) { tm.mcast_grp_a = 7; }
        else if (hdr.h.op == 0) { tm.ucast_egress_port = 2; }
        else { tm.ucast_egress_port = (PortId_t)hdr.h.op; }
        hdr.h.op = 0;
    }
}
EGRESS(E) {
    Register<bit<8>, bit<1>>(1) passed;
    RegisterAction<bit<8>, bit<1>, bit<8>>(passed) next = {
        void apply(inout bit<8> value, out bit<8> number) { value = value + 1; number = value; }
    };
    apply { hdr.h.index = next.execute(0); }
}
#include "../tna/skeleton.p4i"
