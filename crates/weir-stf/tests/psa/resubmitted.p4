// Back to the ingress parser: as it was received, with metadata from the deparser, and not for ever.
#include "header.p4i"
struct meta_t { bit<8> rounds; bit<8> unset; }
header note_t { bit<16> mark; }
struct again_t { bit<8> rounds; note_t note; }
#define RESUBMIT_T again_t
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in again_t resubmitted, in none_t recirculated) {
    state start {
        meta.rounds = resubmitted.rounds;
        b.extract(hdr.h);
        transition select(istd.packet_path, resubmitted.note.isValid()) {
            (PSA_PacketPath_t.RESUBMIT, true): noted;
            default: accept;
        }
    }
    state noted {
        hdr.h.value = resubmitted.note.mark;
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        send_to_port(ostd, PORT(NUMBER(istd.ingress_port) + 1));
        if (meta.rounds < hdr.h.index) {
            meta.unset = 0x55;
            meta.rounds = meta.rounds + 1;
            hdr.h.op = 0xee;
            ostd.resubmit = true;
            // Resubmission comes before groups.
            ostd.multicast_group = GROUP(5);
        } else {
            if (meta.unset == 0 && !ostd.resubmit) { digit.apply(istd.packet_path, hdr.h.op); }
            hdr.h.index = meta.rounds;
        }
        // Dropping comes before resubmission.
        if (hdr.h.value == 0xdddd) { ingress_drop(ostd); }
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out none_t cloned, out again_t resubmitted, out none_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_resubmit(istd)) {
            resubmitted.rounds = meta.rounds;
            // In even rounds only: what was set in another round is gone.
            if (meta.rounds[0:0] == 0) {
                resubmitted.note.setValid();
                resubmitted.note.mark = 0xbe00 + (bit<16>)meta.rounds;
            }
        }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
