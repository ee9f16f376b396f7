// Parsers: select on tuples, masks, ranges and sets, lookahead, advance, conditions, loops.
#include "frame.p4i"
error { Odd }
header x_t { bit<8> x; bit<16> y; }
header bits_t { bit<3> a; bit<5> b; int<8> c; bool d; bit<7> e; }
struct pair_t { bit<8> x; bit<16> y; }
struct set_t { @match(exact) bit<8> x; @match(ternary) bit<8> y; }
struct headers_t { h_t h; x_t x; bits_t bits; }
struct meta_t { bit<8> path; bit<32> value; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<set_t>(4) ports;
    value_set<bit<8>>(4) known;
    bit<8> count = 3;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) {
            1: select_one; 2: select_two; 3: look; 4: look_header; 5: skip; 6: check; 7: unaligned;
            8: branch; 9: sets; 10: loop; 11: wide; 12: keys; 13: sized;
        }
    }
    state select_one {
        transition select(hdr.h.a) {
            1: p1;
            0x10 &&& 0xf0: p2;
            0x30..0x3f: p3;
            0x40..0x40: p4;
            0x12: p5;
            default: p6;
        }
    }
    state select_two {
        transition select(hdr.h.a, hdr.h.b ++ hdr.h.c) {
            (1, 0x0203): p1;
            (1, _): p2;
            (_, 0x0300 &&& 0xff00): p3;
            (2..4, 0x0400..0x04ff): p4;
            default: p5;
        }
    }
    state look {
        bit<8> first = b.lookahead<bit<8>>();
        bit<16> both = b.lookahead<bit<16>>();
        meta.value = 8w0 ++ first ++ both;
        transition p1;
    }
    state look_header {
        x_t x = b.lookahead<x_t>();
        pair_t p = b.lookahead<pair_t>();
        meta.value = 8w0 ++ p.x ++ x.y;
        meta.path = x.isValid() ? 8w1 : 2;
        b.extract(hdr.x);
        transition accept;
    }
    state skip {
        b.advance(8);
        bit<8> n = b.lookahead<bit<8>>();
        b.advance((bit<32>)n);
        meta.value = (bit<32>)b.lookahead<bit<8>>();
        transition p1;
    }
    state check {
        verify(hdr.h.a != 1, error.Odd);
        meta.path = 1;
        b.extract(hdr.x);
        verify(hdr.x.x != 1, error.NoMatch);
        meta.path = 2;
        transition select(hdr.h.b) { 1: reject; default: accept; }
    }
    state unaligned {
        b.extract(hdr.bits);
        meta.value = (bit<8>)hdr.bits.a ++ (bit<8>)hdr.bits.b ++ (bit<8>)hdr.bits.c ++ 7w0 ++ (bit<1>)hdr.bits.d;
        transition p1;
    }
    state branch {
        if (hdr.h.a > 4) { meta.path = 7; b.extract(hdr.x); } else { meta.path = 8; }
        transition accept;
    }
    state sets {
        transition select(hdr.h.a, hdr.h.b) { (known, 1): p1; ports: p2; (_, known): p3; default: p4; }
    }
    state loop {
        count = count - 1;
        meta.value = meta.value + 1;
        transition select(count) { 0: p1; default: loop; }
    }
    state wide {
        transition select(hdr.h.r ++ hdr.h.s ++ hdr.h.r ++ hdr.h.s) {
            0x00000001000000020000000100000002: p1;
            0xff000000000000000000000000000000 &&& 0xff000000000000000000000000000000: p2;
            default: p3;
        }
    }
    state keys {
        // Signed ranges, booleans and several kinds together.
        transition select((int<8>)hdr.h.a, hdr.h.b == 1) {
            (-5..5, true): p1;
            (-128..-100, _): p2;
            (_, false): p3;
            default: p4;
        }
    }
    state sized { meta.value = b.length(); transition p1; }
    state p1 { meta.path = 1; transition accept; }
    state p2 { meta.path = 2; transition accept; }
    state p3 { meta.path = 3; transition accept; }
    state p4 { meta.path = 4; transition accept; }
    state p5 { meta.path = 5; transition accept; }
    state p6 { meta.path = 6; transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.c = meta.path;
        hdr.h.r = meta.value;
        if (sm.parser_error == error.Odd) { hdr.h.s = 1; }
        else if (sm.parser_error == error.NoMatch) { hdr.h.s = 2; }
        else if (sm.parser_error == error.PacketTooShort) { hdr.h.s = 3; }
        else if (sm.parser_error == error.NoError) { hdr.h.s = 0; }
    }
}
#include "../v1model/skeleton.p4i"
