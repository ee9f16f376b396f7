// Sub-parsers and sub-controls: instances, constructor parameters, direct application, arguments.
#include "frame.p4i"
header x_t { bit<8> x; }
struct headers_t { h_t h; x_t[3] x; }
struct meta_t { bit<8> seen; }
parser One(packet_in b, out x_t x, inout bit<8> seen)(bit<8> step) {
    bit<8> local = step;
    state start {
        b.extract(x);
        seen = seen + local;
        local = local + 100;
        transition select(x.x) { 0xff: reject; default: accept; }
    }
}
parser Two(packet_in b, out x_t x, out x_t y, inout bit<8> seen) {
    One(1) first;
    One(step = 10) second;
    state start {
        first.apply(b, x, seen);
        second.apply(b, y, seen);
        transition accept;
    }
}
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Two() two;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) { 1: both; 2: direct; default: accept; }
    }
    state both { two.apply(b, hdr.x[0], hdr.x[1], meta.seen); transition accept; }
    state direct { Two.apply(b, hdr.x[0], hdr.x[1], meta.seen); transition accept; }
}
control Count(inout bit<8> x)(bit<8> step) {
    bit<8> n = 0;
    action bump() { x = x + step; n = n + 1; }
    table t { key = { x: exact; } actions = { bump; NoAction; } default_action = bump(); }
    apply { t.apply(); x = x + n; }
}
control Plain(inout bit<8> x, in bit<8> by) { apply { x = x + by; } }
control Chosen(inout bit<8> x)(bool up, bit<8> by = 3) {
    apply { if (up) { x = x + by; } else { x = x - by; } }
}
control Inner(inout bit<8> x) { bit<8> v = 5; apply { x = x + v; v = v + 1; x = x + v; } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Count(1) one;
    Count(16) sixteen;
    Plain() plain;
    Chosen(true) up;
    Chosen(by = 7, up = false) down;
    Inner() inner;
    apply {
        if (hdr.h.op <= 2) { hdr.h.r = (bit<32>)meta.seen; if (sm.parser_error != error.NoError) { hdr.h.s = 1; } }
        else if (hdr.h.op == 3) { one.apply(hdr.h.a); }
        else if (hdr.h.op == 4) { sixteen.apply(hdr.h.a); one.apply(hdr.h.b); }
        else if (hdr.h.op == 5) { plain.apply(hdr.h.a, hdr.h.b); plain.apply(by = hdr.h.b, x = hdr.h.c); }
        else if (hdr.h.op == 6) { Plain.apply(hdr.h.a, 9); Plain.apply(hdr.h.a, 1); }
        else if (hdr.h.op == 7) { up.apply(hdr.h.a); down.apply(hdr.h.b); }
        // Locals begin anew with each application.
        else if (hdr.h.op == 8) { inner.apply(hdr.h.a); inner.apply(hdr.h.b); }
    }
}
#include "../v1model/skeleton.p4i"
