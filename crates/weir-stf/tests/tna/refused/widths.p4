// An action that does not fit its register.
#include "../header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) cells;
    RegisterAction<bit<24>, bit<8>, bit<16>>(cells) act = {
        void apply(inout bit<24> value, out bit<16> rv) { rv = value[15:0]; }
    };
    apply { tm.ucast_egress_port = 1; hdr.h.value = act.execute(hdr.h.index); }
}
#include "../skeleton.p4i"
