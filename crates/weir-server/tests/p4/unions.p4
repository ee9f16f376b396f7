// Digests of a header union, of a header with a varbit and of one with a struct, and registers of them.
#include <core.p4>
#include <v1model.p4>

header kind_t { bit<8> kind; }
header short_t { bit<8> x; }
header long_t { bit<16> y; int<8> z; }
header_union either_t { short_t one; long_t two; }
header varying_t { bit<8> n; varbit<64> rest; }
struct pair_t { bit<4> a; int<4> b; }
header nested_t { pair_t pair; bit<8> n; }

struct headers {
    kind_t    kind;
    either_t  either;
    varying_t varying;
    nested_t  nested;
}
struct meta { }
struct seen_t {
    either_t  either;
    varying_t varying;
    nested_t  nested;
    bit<9>    port;
}

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(h.kind);
        transition select(h.kind.kind) {
            1: one;
            2: two;
            3: varying;
            4: nested;
            default: accept;
        }
    }
    state one { p.extract(h.either.one); transition accept; }
    state two { p.extract(h.either.two); transition accept; }
    state varying { p.extract(h.varying, 24); transition accept; }
    state nested { p.extract(h.nested); transition accept; }
}

control V(inout headers h, inout meta m) { apply { } }

control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    register<either_t>(2) unions;
    register<varying_t>(2) varbits;
    register<nested_t>(2) structs;
    apply {
        unions.write(0, h.either);
        varbits.write(0, h.varying);
        structs.write(0, h.nested);
        digest<seen_t>(1, { h.either, h.varying, h.nested, s.ingress_port });
        mark_to_drop(s);
    }
}

control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
