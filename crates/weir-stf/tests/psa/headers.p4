// Headers of egress and headers of ingress: what the one does to its own, the other never sees, but by the packet.
#include <core.p4>
#include <psa.p4>
header tag_t { bit<8> kind; bit<16> value; }
header body_t { bit<8> op; bit<24> data; }
struct headers_t { tag_t tag; body_t body; }
struct meta_t { bool tagged; }
struct bridge_t { bool tagged; }
struct none_t { }
#define NORMAL_T bridge_t
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in none_t recirculated) {
    state start {
        transition select(b.lookahead<bit<8>>()) {
            0xf0 .. 0xff: tagged;
            default: body;
        }
    }
    state tagged {
        b.extract(hdr.tag);
        transition body;
    }
    state body {
        b.extract(hdr.body);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, (PortId_t) 1);
        // Values of a header that is taken away are not in the packet.
        if (hdr.tag.kind == 0xf1) { hdr.tag.setInvalid(); }
        if (hdr.tag.kind == 0xf2) { hdr.body.setInvalid(); }
        if (hdr.body.op == 3) { hdr.body.data = hdr.body.data + 1; }
        meta.tagged = hdr.tag.isValid();
        // The egress parser is told something else than what is true.
        if (hdr.body.op == 4) { meta.tagged = !meta.tagged; }
    }
}
#define OWN_INGRESS_DEPARSER
control ID(packet_out b, out none_t cloned, out none_t resubmitted, out bridge_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t istd) {
    apply {
        normal.tagged = meta.tagged;
        b.emit(hdr.tag);
        b.emit(hdr.body);
    }
}
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in bridge_t normal, in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start {
        transition select(normal.tagged) {
            true: tagged;
            default: body;
        }
    }
    state tagged {
        b.extract(hdr.tag);
        transition body;
    }
    state body {
        b.extract(hdr.body);
        transition accept;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        // A tag of its own begins with zeros.
        if (hdr.body.op == 1 && !hdr.tag.isValid()) {
            hdr.tag.setValid();
            hdr.tag.kind = 0xee;
        }
        if (hdr.body.op == 2) { hdr.tag.setInvalid(); }
        if (hdr.body.op == 3) { hdr.body.data = hdr.body.data + 0x10; }
    }
}
#include "skeleton.p4i"
