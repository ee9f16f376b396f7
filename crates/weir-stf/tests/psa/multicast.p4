// Groups: copies that differ in port and instance, each of which is parsed for itself.
#include "header.p4i"
struct meta_t { }
struct bridge_t { bit<16> value; }
#define NORMAL_T bridge_t
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        ostd.class_of_service = CLASS(hdr.h.op);
        send_to_port(ostd, PORT(9));
        multicast(ostd, GROUP(hdr.h.index));
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out none_t cloned, out none_t resubmitted, out bridge_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        normal.value = hdr.h.value;
        b.emit(hdr);
    }
}
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in bridge_t normal, in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start {
        b.extract(hdr.h);
        hdr.h.value = normal.value + (bit<16>)NUMBER(istd.egress_port);
        transition accept;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        digit.apply(istd.packet_path, hdr.h.op);
        hdr.h.op = (bit<4>)(ClassOfServiceUint_t)istd.class_of_service ++ hdr.h.op[3:0];
        hdr.h.index = (bit<8>)(EgressInstanceUint_t)istd.instance;
        if (NUMBER(istd.egress_port) == 8) { egress_drop(ostd); }
    }
}
#include "skeleton.p4i"
