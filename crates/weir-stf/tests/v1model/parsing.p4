// What parsers tell of packets they do not like, and value sets.
#include <core.p4>
#include <v1model.p4>
error { TooOld, TooNew }
header h_t { bit<8> op; bit<8> index; bit<16> value; }
header s_t { bit<8> x; }
header v_t { bit<8> len; varbit<32> data; }
struct headers_t { h_t h; s_t[2] s; v_t v; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<bit<8>>(4) known;
    value_set<tuple<bit<8>, bit<16>>>(4) pairs;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op, hdr.h.index) {
            (1, _): stack;
            (2, _): versions;
            (3, 0..9): accept;
            (4, _): variable;
            (5, _): sets;
            (6, _): endless;
            (7, _): skip;
            (8, _): stop;
        }
    }
    state stack { b.extract(hdr.s.next); transition stack; }
    state versions {
        verify(hdr.h.index > 4, error.TooOld);
        verify(hdr.h.index < 6, error.TooNew);
        transition accept;
    }
    state variable {
        bit<8> len = b.lookahead<bit<8>>();
        b.extract(hdr.v, (bit<32>)len);
        transition accept;
    }
    state sets {
        transition select(hdr.h.index, hdr.h.value) {
            (known, 1): found_one;
            pairs: found_two;
            default: accept;
        }
    }
    state found_one { sm.egress_spec = 101; transition accept; }
    state found_two { sm.egress_spec = 102; transition accept; }
    state endless { transition endless; }
    state skip { b.advance((bit<32>)hdr.h.index); transition accept; }
    state stop { transition reject; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.parser_error == error.NoError) { sm.egress_spec = sm.egress_spec + 1; }
        else if (sm.parser_error == error.PacketTooShort) { sm.egress_spec = 11; }
        else if (sm.parser_error == error.NoMatch) { sm.egress_spec = 12; }
        else if (sm.parser_error == error.StackOutOfBounds) { sm.egress_spec = 13; }
        else if (sm.parser_error == error.HeaderTooShort) { sm.egress_spec = 14; }
        else if (sm.parser_error == error.ParserTimeout) { sm.egress_spec = 15; }
        else if (sm.parser_error == error.ParserInvalidArgument) { sm.egress_spec = 16; }
        else if (sm.parser_error == error.TooOld) { sm.egress_spec = 21; }
        else if (sm.parser_error == error.TooNew) { sm.egress_spec = 22; }
    }
}
#include "skeleton.p4i"
