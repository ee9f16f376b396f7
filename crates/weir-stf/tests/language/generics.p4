// Generic functions, structs and headers.
#include "frame.p4i"
struct pair<A, B> { A first; B second; }
struct boxed<T> { T value; bit<8> count; }
header tagged<T> { bit<8> tag; T value; }
struct headers_t { h_t h; tagged<bit<8>> small; tagged<bit<16>> large; }
struct meta_t { boxed<pair<bit<8>, bit<16>>> deep; }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 1: both; default: accept; } }
    state both { b.extract(hdr.small); b.extract(hdr.large); transition accept; }
}
T choose<T>(in bool which, in T x, in T y) { if (which) { return x; } return y; }
void swap<T>(inout T x, inout T y) { T t = x; x = y; y = t; }
A first<A, B>(in pair<A, B> p) { return p.first; }
T twice<T>(in T x) { return choose(true, x, x); }
boxed<T> wrap<T>(in T x) { return { x, 1 }; }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 1) {
            hdr.small.value = hdr.small.value + 1;
            hdr.large.value = hdr.large.value + 1;
        } else if (hdr.h.op == 2) {
            hdr.h.r = choose(hdr.h.a == 1, 32w5, hdr.h.s);
            hdr.h.b = choose<bit<8>>(hdr.h.a == 1, 1, 2);
        } else if (hdr.h.op == 3) {
            swap(hdr.h.a, hdr.h.b);
            swap(hdr.h.r, hdr.h.s);
        } else if (hdr.h.op == 4) {
            pair<bit<8>, bit<16>> p = { hdr.h.a, 0x1234 };
            hdr.h.r = (bit<32>)first(p);
            pair<bit<8>, bit<16>> q = { 0, 0 };
            swap(p, q);
            hdr.h.s = (bit<32>)(p.first ++ q.first);
        } else if (hdr.h.op == 5) {
            hdr.h.r = (bit<32>)(twice(hdr.h.a) ++ twice<bit<16>>(7));
        } else if (hdr.h.op == 6) {
            meta.deep = wrap<pair<bit<8>, bit<16>>>({ hdr.h.a, 0x1234 });
            hdr.h.r = meta.deep.value.first ++ meta.deep.value.second ++ meta.deep.count;
            hdr.h.s = (bit<32>)wrap(hdr.h.b).value;
        }
    }
}
#include "../v1model/skeleton.p4i"
