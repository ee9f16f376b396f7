// Value sets of parsers, of numbers and of structs with masks.
#include "header.p4i"
struct meta_t { bit<16> way; }
struct key_t { bit<8> op; @match(ternary) bit<8> index; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    value_set<bit<16>>(4) values;
    value_set<key_t>(4) keys;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        meta.way = 0;
        transition select(hdr.h.value) { values: by_value; default: other; }
    }
    state by_value { meta.way = 1; transition accept; }
    state other { transition select(hdr.h.op, hdr.h.index) { keys: by_key; default: accept; } }
    state by_key { meta.way = 2; transition accept; }
}
INGRESS(I) { apply { hdr.h.value = meta.way; tm.ucast_egress_port = 1; } }
#include "skeleton.p4i"
