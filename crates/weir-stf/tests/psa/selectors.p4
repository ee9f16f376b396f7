// Action profiles and selectors, with an action for empty groups.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    action go(bit<8> port) { send_to_port(ostd, PORT(port)); }
    action drop() { ingress_drop(ostd); }
    ActionProfile(8) shared;
    ActionSelector(PSA_HashAlgorithm_t.IDENTITY, 8, 16) ecmp;
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 8, 16) plain;
    table p {
        key = { hdr.h.index : exact; }
        actions = { drop; go; NoAction; }
        psa_implementation = shared;
    }
    table q {
        key = { hdr.h.index : ternary; }
        actions = { go; drop; NoAction; }
        psa_implementation = shared;
    }
    table s {
        key = { hdr.h.index : exact; hdr.h.value : selector; }
        actions = { NoAction; go; drop; }
        psa_implementation = ecmp;
        psa_empty_group_action = go(77);
    }
    table n {
        key = { hdr.h.index : exact; hdr.h.value : selector; }
        actions = { NoAction; go; drop; }
        psa_implementation = plain;
    }
    apply {
        send_to_port(ostd, PORT(100));
        if (hdr.h.op == 0) { p.apply(); }
        if (hdr.h.op == 1) { q.apply(); }
        if (hdr.h.op == 2) { s.apply(); }
        if (hdr.h.op == 3) { n.apply(); }
    }
}
#include "skeleton.p4i"
