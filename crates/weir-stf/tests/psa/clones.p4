// Clones of both kinds; op says what ingress (high digit) and egress (low digit) do.
#include "header.p4i"
struct meta_t { bit<16> carried; }
struct i2e_t { bit<16> value; }
struct e2e_t { bit<16> value; }
#define I2E_T i2e_t
#define E2E_T e2e_t
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
        meta.carried = hdr.h.value + 1;
        ostd.clone_session_id = SESSION(7);
        if (hdr.h.op[7:4] == 1) { ostd.clone = true; }
        if (hdr.h.op[7:4] == 2) { ostd.clone = true; ingress_drop(ostd); }
        if (hdr.h.op[7:4] == 3) { ostd.clone = true; ostd.clone_session_id = PSA_CLONE_SESSION_TO_CPU; }
        if (hdr.h.op[7:4] == 4) { ostd.clone = true; ostd.clone = false; }
        if (hdr.h.op[7:4] == 5 && istd.packet_path == PSA_PacketPath_t.NORMAL) {
            ostd.clone = true;
            ostd.resubmit = true;
        }
        hdr.h.value = 0xeeee;
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out i2e_t cloned, out none_t resubmitted, out none_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        if (psa_clone_i2e(istd)) { cloned.value = meta.carried; }
        b.emit(hdr);
    }
}
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in none_t normal, in i2e_t cloned_in_ingress, in e2e_t cloned_in_egress) {
    state start {
        b.extract(hdr.h);
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_I2E: from_ingress;
            PSA_PacketPath_t.CLONE_E2E: from_egress;
            default: accept;
        }
    }
    state from_ingress {
        meta.carried = cloned_in_ingress.value;
        transition accept;
    }
    state from_egress {
        meta.carried = cloned_in_egress.value;
        transition accept;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    path_digit() digit;
    apply {
        if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E || istd.packet_path == PSA_PacketPath_t.CLONE_E2E) {
            // Path, what the deparser handed over, and of the packet whether ingress has been at it.
            digit.apply(istd.packet_path, hdr.h.op);
            hdr.h.op = hdr.h.op | (hdr.h.value == 0xeeee ? 8w0xe0 : 0);
            hdr.h.value = meta.carried;
        } else if (hdr.h.op[3:0] == 1) {
            ostd.clone = true;
            ostd.clone_session_id = SESSION(8);
            hdr.h.index = 0xaa;
        } else if (hdr.h.op[3:0] == 2) {
            ostd.clone = true;
            ostd.clone_session_id = SESSION(8);
            egress_drop(ostd);
        }
    }
}
#define OWN_EGRESS_DEPARSER
control ED(packet_out b, out e2e_t cloned, out none_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        if (psa_clone_e2e(istd)) { cloned.value = 8w0xc0 ++ hdr.h.index; }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
