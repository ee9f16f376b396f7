// An action that would never end.
#include "../header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) cells;
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) again = {
        void apply(inout bit<16> value, out bit<16> rv) {
            rv = 3;
            if (hdr.h.op == 9) { rv = this.execute(0); }
        }
    };
    apply {
        tm.ucast_egress_port = 1;
        hdr.h.value = again.execute(0);
    }
}
#include "../skeleton.p4i"
