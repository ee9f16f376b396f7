// The calling convention where names, overlaps, rejections and exits make it visible: what is copied out, and in which
// order.
#include "frame.p4i"
struct headers_t { h_t h; }
struct meta_t { bit<8> i; bit<8> seen; }
error { Refused }
void outs(out bit<8> x, out bit<8> y) { x = 0xaa; y = 0xbb; }
void change(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; }
// Assigns before it rejects.
parser Sub(packet_in b, inout bit<8> x, inout bit<8> y) {
    state start { x = x + 1; y = y + 2; transition select(x) { 0x11: refuse; 0x21: short; default: accept; } }
    state refuse { verify(false, error.Refused); transition accept; }
    state short { b.advance(4096); transition accept; }
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Sub() sub;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) { 8: apart; 9: alike; default: accept; }
    }
    // The parameters are two variables, or one.
    state apart { sub.apply(b, hdr.h.a, hdr.h.b); transition accept; }
    state alike { sub.apply(b = b, y = hdr.h.a, x = hdr.h.a); transition accept; }
}
control Named(inout bit<8> x, inout bit<8> y, in bit<8> how) {
    apply {
        x = 1;
        y = 2;
        if (how == 1) { exit; }
        x = 3;
        if (how == 2) { return; }
        y = 4;
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Named() named;
    action both(out bit<8> x, out bit<8> y) { x = 5; y = 6; }
    action stop(out bit<8> x, inout bit<8> y) { x = 7; y = 8; exit; }
    table t { actions = { both(y = hdr.h.r[7:0], x = hdr.h.r[7:0]); } default_action = both(y = hdr.h.r[7:0], x = hdr.h.r[7:0]); }
    register<bit<8>>(4) reg;
    apply {
        hdr.h.s = (bit<1>)(sm.parser_error == error.Refused) ++ 31w0;
        if (sm.parser_error == error.PacketTooShort) { hdr.h.s[0:0] = 1; }
        if (hdr.h.op == 1) { outs(y = hdr.h.a, x = hdr.h.a); outs(x = hdr.h.b, y = hdr.h.b); }
        else if (hdr.h.op == 2) { change(y = hdr.h.a, x = hdr.h.a); change(x = hdr.h.b, y = hdr.h.b); }
        else if (hdr.h.op == 3) { both(y = hdr.h.a, x = hdr.h.a); both(x = hdr.h.b, y = hdr.h.b); }
        else if (hdr.h.op == 4) { t.apply(); }
        else if (hdr.h.op == 5) { named.apply(how = hdr.h.b, y = hdr.h.a, x = hdr.h.a); hdr.h.c = 0xcc; }
        else if (hdr.h.op == 6) { stop(y = hdr.h.a, x = hdr.h.a); }
        else if (hdr.h.op == 7) {
            // The index is read again after it was written: the second argument is taken first.
            meta.i = 1;
            reg.write(0, 3);
            reg.read(index = (bit<32>)meta.i - 1, result = meta.i);
            hdr.h.a = meta.i;
        }
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
