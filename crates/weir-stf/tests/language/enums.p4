// Enums with and without representation, errors, `type` and `typedef`.
#include "frame.p4i"
enum plain { zero, one, two }
enum bit<8> kind { none = 0, some = 5, many = 0xfe }
enum int<8> signed { down = -1, level = 0, up = 1 }
type bit<8> port_t;
typedef bit<8> byte_t;
header k_t { kind k; bit<8> rest; }
struct headers_t { h_t h; k_t k; }
struct meta_t { plain p; kind k; port_t port; error e; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 1: more; default: accept; } }
    state more {
        b.extract(hdr.k);
        transition select(hdr.k.k) {
            kind.some: is_some;
            kind.many: is_many;
            default: accept;
        }
    }
    state is_some { meta.p = plain.one; transition accept; }
    state is_many { meta.p = plain.two; transition accept; }
}
plain after(in plain p) { if (p == plain.zero) { return plain.one; } return plain.two; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) {
            hdr.h.r = meta.p == plain.zero ? 32w0 : meta.p == plain.one ? 32w1 : 32w2;
            // A value that is no member is kept.
            hdr.h.s = (bit<32>)(bit<8>)hdr.k.k;
            hdr.k.k = kind.some;
        } else if (hdr.h.op == 2) {
            meta.k = (kind)hdr.h.a;
            if (meta.k == kind.many) { hdr.h.r = 1; }
            hdr.h.s = (bit<32>)((bit<8>)meta.k + 1);
        } else if (hdr.h.op == 3) {
            meta.p = after(after(meta.p));
            hdr.h.r = meta.p == plain.two ? 32w1 : 0;
        } else if (hdr.h.op == 4) {
            // Members convert to their representation by themselves.
            bit<8> x = kind.many;
            hdr.h.r = (bit<32>)x;
            hdr.h.s = (bit<32>)(int<32>)(int<8>)signed.down;
        } else if (hdr.h.op == 5) {
            meta.port = (port_t)hdr.h.a;
            port_t other = meta.port;
            if (other == (port_t)(bit<8>)7) { hdr.h.r = 7; }
            byte_t y = (bit<8>)other + 1;
            hdr.h.s = (bit<32>)y;
        } else if (hdr.h.op == 6) {
            if (meta.e == error.NoError) { hdr.h.r = 1; }
            meta.e = error.NoMatch;
            if (meta.e != error.NoError) { hdr.h.s = 1; }
        } else if (hdr.h.op == 7) {
            signed v = (signed)(int<8>)hdr.h.a;
            hdr.h.r = v == signed.down ? 32w1 : v == signed.up ? 32w2 : 32w3;
            hdr.h.s = (int<8>)v < 0 ? 32w1 : 0;
        }
    }
}
#include "../v1model/skeleton.p4i"
