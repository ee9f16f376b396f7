// Through the port of recirculation: as the egress deparser made it, with metadata.
#include "header.p4i"
struct meta_t { bit<8> rounds; }
struct again_t { bit<8> rounds; }
#define RECIRCULATE_T again_t
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in again_t recirculated) {
    state start {
        meta.rounds = recirculated.rounds;
        b.extract(hdr.h);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        send_to_port(ostd, PORT(2));
        if (meta.rounds < hdr.h.index) {
            send_to_port(ostd, PSA_PORT_RECIRCULATE);
            if (hdr.h.op == 7) { multicast(ostd, GROUP(5)); }
            if (hdr.h.op == 8) { ostd.resubmit = istd.packet_path == PSA_PacketPath_t.RECIRCULATE; }
        } else {
            digit.apply(istd.packet_path, hdr.h.op);
            hdr.h.index = meta.rounds;
            hdr.h.value = hdr.h.value ^ (bit<16>)NUMBER(istd.ingress_port);
        }
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        if (istd.egress_port == PSA_PORT_RECIRCULATE) {
            hdr.h.value = hdr.h.value + 1;
            if (hdr.h.op == 9) { egress_drop(ostd); }
        }
    }
}
#define OWN_EGRESS_DEPARSER
control ED(packet_out b, out none_t cloned, out again_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        if (psa_recirculate(istd, edstd)) { recirculated.rounds = (bit<8>)hdr.h.value; }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
