// Twenty-two actions, each of which executes the one before twice.
#include "../header.p4i"
struct meta_t { }
#define ACTION(name, body) RegisterAction<bit<32>, bit<8>, bit<32>>(cells) name = { \
        void apply(inout bit<32> value, out bit<32> rv) { body rv = value; } };
#define NEXT(name, before) ACTION(name, value = before.execute(0) + before.execute(1);)
INGRESS(I) {
    Register<bit<32>, bit<8>>(8) cells;
    ACTION(a0, value = value + 1;)
    NEXT(a1, a0) NEXT(a2, a1) NEXT(a3, a2) NEXT(a4, a3) NEXT(a5, a4) NEXT(a6, a5) NEXT(a7, a6) NEXT(a8, a7)
    NEXT(b1, a8) NEXT(b2, b1) NEXT(b3, b2) NEXT(b4, b3) NEXT(b5, b4) NEXT(b6, b5) NEXT(b7, b6) NEXT(b8, b7)
    NEXT(c1, b8) NEXT(c2, c1) NEXT(c3, c2) NEXT(c4, c3) NEXT(c5, c4) NEXT(c6, c5)
    apply {
        tm.ucast_egress_port = 1;
        hdr.h.value = (bit<16>) c6.execute(0);
    }
}
#include "../skeleton.p4i"
