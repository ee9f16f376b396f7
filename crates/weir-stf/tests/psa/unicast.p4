// Plain packets: what a parser is told, what metadata begins with, where packets go and what they lose on the way.
#include "header.p4i"
struct meta_t { bit<8> seen; }
struct bridge_t { bit<8> from; bit<16> value; }
#define NORMAL_T bridge_t
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        meta.seen = 0x77;
        if (hdr.h.op == 0) {
            // What ingress begins with.
            digit.apply(istd.packet_path, hdr.h.index);
            hdr.h.value = (ostd.drop ? 16w1 : 0) | (ostd.clone ? 16w2 : 0) | (ostd.resubmit ? 16w4 : 0)
                | (bit<16>)(bit<8>)(ClassOfServiceUint_t)ostd.class_of_service << 4
                | (bit<16>)(MulticastGroupUint_t)ostd.multicast_group << 8;
            send_to_port(ostd, PORT(1));
        } else if (hdr.h.op == 1) {
            // Nobody says where it goes.
        } else if (hdr.h.op == 2) {
            send_to_port(ostd, PORT(hdr.h.index));
        } else if (hdr.h.op == 3) {
            send_to_port(ostd, PORT(1));
            ingress_drop(ostd);
        } else if (hdr.h.op == 4) {
            // Headers are gone in egress but for what the deparser emits.
            hdr.h.setInvalid();
            send_to_port(ostd, PORT(1));
        } else if (hdr.h.op == 10) {
            // From the control plane to it.
            send_to_port(ostd, istd.ingress_port == PSA_PORT_CPU ? PORT(1) : PSA_PORT_CPU);
            digit.apply(istd.packet_path, hdr.h.index);
        } else {
            send_to_port(ostd, PORT(1));
        }
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out none_t cloned, out none_t resubmitted, out bridge_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_normal(istd)) { normal = { meta.seen, 0xabcd }; }
        b.emit(hdr);
    }
}
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in bridge_t normal, in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) {
            6: bridged;
            default: accept;
        }
    }
    state bridged {
        hdr.h.index = normal.from;
        hdr.h.value = normal.value;
        transition accept;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        if (hdr.h.op == 7) {
            // Metadata of ingress is not that of egress.
            digit.apply(istd.packet_path, hdr.h.index);
            hdr.h.value = meta.seen ++ 5w0 ++ (bit<1>)(ostd.drop ? 1w1 : 0) ++ (ostd.clone ? 1w1 : 0)
                ++ (istd.instance == (EgressInstance_t)(EgressInstanceUint_t)0 ? 1w0 : 1);
        }
        if (hdr.h.op == 8) { hdr.h.value = (bit<16>)NUMBER(istd.egress_port); }
        if (hdr.h.op == 9) { egress_drop(ostd); }
    }
}
#include "skeleton.p4i"
