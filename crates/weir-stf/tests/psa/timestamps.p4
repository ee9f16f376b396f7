// Microseconds, when each parser begins, and what waits in a queue.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
        ostd.class_of_service = CLASS(hdr.h.op);
        hdr.h.value = (bit<16>)(TimestampUint_t)istd.ingress_timestamp;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        hdr.h.op = (bit<8>)(ClassOfServiceUint_t)istd.class_of_service;
        hdr.h.index = (bit<8>)(TimestampUint_t)istd.egress_timestamp;
    }
}
#include "skeleton.p4i"
