// A loop of the ingress parser that takes nothing from the packet, and need not end.
#include "header.p4i"
struct meta_t { }
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in none_t recirculated) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 2: again; 5: step; default: accept; } }
    // Two basic blocks each time, so that 32,768 times are too many.
    state step { hdr.h.value = hdr.h.value - 1; transition select(hdr.h.value) { 0: accept; default: back; } }
    state back { transition select(hdr.h.index) { 0: step; default: accept; } }
    state again { transition select(hdr.h.index) { 0 .. 127: again; default: accept; } }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        PortId_t port = PORT(1);
        if (istd.parser_error == error.ParserTimeout) { port = PORT(15); }
        send_to_port(ostd, port);
    }
}
#include "skeleton.p4i"
