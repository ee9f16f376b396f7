// Errors of both parsers, value sets, lookahead; the payload is what the parser has not taken.
#include "header.p4i"
error { Refused }
struct meta_t { }
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in none_t recirculated) {
    value_set<bit<8>>(4) special;
    state start {
        transition select(b.lookahead<bit<8>>()) {
            special: by_set;
            0x0f: refused;
            0 .. 0xef: plain;
        }
    }
    state plain {
        b.extract(hdr.h);
        transition accept;
    }
    state by_set {
        b.extract(hdr.h);
        hdr.h.index = 0x5e;
        transition accept;
    }
    state refused {
        b.extract(hdr.h);
        verify(false, error.Refused);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
        if (istd.parser_error == error.PacketTooShort) { send_to_port(ostd, PORT(2)); }
        if (istd.parser_error == error.NoMatch) { send_to_port(ostd, PORT(3)); }
        if (istd.parser_error == error.Refused) { send_to_port(ostd, PORT(4)); }
    }
}
#define OWN_EGRESS_PARSER
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in none_t normal, in none_t cloned_in_ingress, in none_t cloned_in_egress) {
    state start {
        b.extract(hdr.h);
        verify(hdr.h.op != 7, error.Refused);
        transition accept;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        if (istd.parser_error == error.Refused) { hdr.h.value = 0xbad1; }
        if (istd.parser_error == error.PacketTooShort) { egress_drop(ostd); }
    }
}
#include "skeleton.p4i"
