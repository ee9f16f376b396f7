// Clone sessions as the control plane may set them, and tables whose entries time out.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    table timed {
        key = { hdr.h.index : exact; }
        actions = { NoAction; }
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
    }
    table untimed {
        key = { hdr.h.index : exact; }
        actions = { NoAction; }
        psa_idle_timeout = PSA_IdleTimeout_t.NO_TIMEOUT;
    }
    apply {
        send_to_port(ostd, PORT(9));
        ostd.clone = true;
        ostd.clone_session_id = SESSION(7);
        timed.apply();
        untimed.apply();
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        hdr.h.index = (bit<8>)(EgressInstanceUint_t)istd.instance;
        hdr.h.value = (bit<16>)(bit<8>)(ClassOfServiceUint_t)istd.class_of_service;
    }
}
#include "skeleton.p4i"
