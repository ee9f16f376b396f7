// An action that is told what is learnt.
#define SECOND_CHIP
#include "../header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) cells;
    LearnAction<bit<16>, bit<8>, bit<16>, bit<16>>(cells) learn = {
        void apply(inout bit<16> value, in bit<16> digest, in bool learns, out bit<16> rv) { rv = digest; }
    };
    apply { tm.ucast_egress_port = 1; hdr.h.value = learn.execute(hdr.h.index); }
}
#include "../skeleton.p4i"
