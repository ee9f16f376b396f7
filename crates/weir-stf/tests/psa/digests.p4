// Messages to the control plane, and assertions.
#include "header.p4i"
struct meta_t { bit<16> port; }
struct small_t { bit<8> op; }
struct learned_t { bit<8> index; bit<16> port; h_t whole; }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
        meta.port = (bit<16>)NUMBER(istd.ingress_port);
        if (hdr.h.op == 2) { ingress_drop(ostd); }
        if (hdr.h.op == 3) { assert(hdr.h.value != 0); }
        if (hdr.h.op == 4) { assume(hdr.h.value != 0); }
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<learned_t>() learned;
    Digest<small_t>() small;
    apply {
        if (hdr.h.op == 1 || hdr.h.op == 2) {
            learned.pack({ hdr.h.index, meta.port, hdr.h });
            small.pack({ hdr.h.op });
        }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
