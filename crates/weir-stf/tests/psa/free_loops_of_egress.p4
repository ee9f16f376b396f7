// A loop of the egress parser that takes nothing from the packet, and need not end.
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in none_t normal, in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 2: again; default: accept; } }
    state again { transition select(hdr.h.index) { 0 .. 127: again; default: accept; } }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply { if (istd.parser_error == error.ParserTimeout) { hdr.h.value = 15; } }
}
#include "skeleton.p4i"
