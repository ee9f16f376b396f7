// Header unions: at most one member is valid.
#include "frame.p4i"
header x_t { bit<8> tag; bit<8> x; }
header y_t { bit<8> tag; bit<16> y; }
header_union u_t { x_t x; y_t y; }
struct headers_t { h_t h; u_t u; u_t v; u_t[2] w; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 30..39: stacked; default: one; } }
    state one {
        transition select(b.lookahead<bit<8>>()) { 0: x; 1: y; default: accept; }
    }
    state x { b.extract(hdr.u.x); transition accept; }
    state y { b.extract(hdr.u.y); transition accept; }
    state stacked {
        transition select(b.lookahead<bit<8>>()) { 0: sx; 1: sy; default: accept; }
    }
    state sx { b.extract(hdr.w.next.x); transition stacked; }
    state sy { b.extract(hdr.w.next.y); transition stacked; }
}
bit<32> validity(in headers_t hdr) {
    return (bit<32>)((bit<1>)hdr.u.isValid() ++ (bit<1>)hdr.u.x.isValid() ++ (bit<1>)hdr.u.y.isValid()
        ++ (bit<1>)hdr.v.isValid() ++ (bit<1>)hdr.v.x.isValid() ++ (bit<1>)hdr.v.y.isValid());
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) {
        } else if (hdr.h.op == 2) {
            hdr.u.y.setValid();
            hdr.u.y.tag = 1;
            hdr.u.y.y = 0x1234;
        } else if (hdr.h.op == 3) {
            hdr.v = hdr.u;
        } else if (hdr.h.op == 4) {
            // Assigning a header is like setValid or setInvalid.
            hdr.u.y = { 1, 0x5678 };
        } else if (hdr.h.op == 5) {
            hdr.u.x.setInvalid();
        } else if (hdr.h.op == 6) {
            hdr.v.y.setValid();
            hdr.v.y.y = 0xffff;
            hdr.v = hdr.u;
            hdr.u.x.setInvalid();
            hdr.u.y.setInvalid();
        } else if (hdr.h.op == 7) {
            hdr.v = hdr.u;
            if (hdr.v == hdr.u) { hdr.h.r = 1; }
            hdr.v.x.x = hdr.v.x.x + 1;
            if (hdr.v == hdr.u) { hdr.h.r = hdr.h.r + 2; }
            if (hdr.v != hdr.u) { hdr.h.r = hdr.h.r + 4; }
        } else if (hdr.h.op == 8) {
            u_t gone;
            if (gone.isValid()) { hdr.h.r = 1; }
            hdr.u = gone;
        } else if (hdr.h.op == 30) {
            u_t t = hdr.w[0];
            hdr.w[0] = hdr.w[1];
            hdr.w[1] = t;
        } else if (hdr.h.op == 31) {
            hdr.w.pop_front(1);
        } else if (hdr.h.op == 32) {
            hdr.w[(bit<1>)hdr.h.a].y.setValid();
            hdr.w[(bit<1>)hdr.h.a].y = { 1, 0xaaaa };
        }
        if (hdr.h.op < 30) { hdr.h.s = validity(hdr); }
    }
}
#define OWN_DEPARSER
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); b.emit(hdr.u); b.emit(hdr.v); b.emit(hdr.w); } }
#include "../v1model/skeleton.p4i"
