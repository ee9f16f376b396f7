// Headers that become valid after they were not: their fields are zero, however they became invalid.
// The program's own errors come before those of core.p4, and a packet without an error has NoError all the same.
error { TooOld, TooNew }
#include "frame.p4i"
header v_t { bit<8> n; varbit<16> v; }
header_union u_t { h_t one; v_t two; }
struct headers_t { h_t h; h_t[3] s; u_t u; v_t v; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) { 0x10 &&& 0xf0: two; 0x20 &&& 0xf0: one_of; 0x30 &&& 0xf0: varied; default: accept; }
    }
    state two { b.extract(hdr.s.next); b.extract(hdr.s.next); transition accept; }
    state one_of { b.extract(hdr.u.one); transition accept; }
    state varied { b.extract(hdr.v, 16); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        h_t gone;
        gone = hdr.h;
        bit<8> i = hdr.h.a;
        if (sm.parser_error != error.NoError) { hdr.h.c = 0xee; }
        if (hdr.h.op == 1) { hdr.h.setInvalid(); hdr.h.setValid(); }
        else if (hdr.h.op == 2) { hdr.h.setValid(); }
        else if (hdr.h.op == 3) { gone.setInvalid(); hdr.h = gone; hdr.h.setValid(); }
        else if (hdr.h.op == 4) { hdr.s[0].a = 9; hdr.s[0].setValid(); }
        else if (hdr.h.op == 0x11) { hdr.s.push_front(1); hdr.s[0].setValid(); }
        else if (hdr.h.op == 0x12) { hdr.s.pop_front(1); hdr.s[1].setValid(); }
        else if (hdr.h.op == 0x13) { hdr.s[i].setInvalid(); hdr.s[i].setValid(); }
        else if (hdr.h.op == 0x14) { hdr.s[i].setValid(); }
        else if (hdr.h.op == 0x21) { hdr.u.two.setValid(); hdr.u.one.setValid(); }
        else if (hdr.h.op == 0x31) { hdr.v.setInvalid(); hdr.v.setValid(); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
