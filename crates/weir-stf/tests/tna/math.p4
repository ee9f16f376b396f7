// Functions by a table of sixteen values.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<16>, bit<8>>(16) cells;
    MathUnit<bit<16>>(MathOp_t.SQR, 1) square;
    MathUnit<bit<16>>(MathOp_t.SQRT, 1) root;
    MathUnit<bit<16>>(MathOp_t.DIV, 1000) quotient;
    MathUnit<bit<16>>(MathOp_t.MUL, 3, 2) by_half_more;
    // x / 4, of which the four highest bits are known: the exponent is that of x, and two less.
    MathUnit<bit<16>>(false, 0, -5, { 15, 14, 13, 12, 11, 10, 9, 8, 0, 0, 0, 0, 0, 0, 0, 0 }) quarter;
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) squared = {
        void apply(inout bit<16> value, out bit<16> rv) { value = square.execute(hdr.h.value); rv = value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) rooted = {
        void apply(inout bit<16> value, out bit<16> rv) { value = root.execute(hdr.h.value); rv = value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) divided = {
        void apply(inout bit<16> value, out bit<16> rv) { value = quotient.execute(hdr.h.value); rv = value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) more = {
        void apply(inout bit<16> value, out bit<16> rv) { value = by_half_more.execute(hdr.h.value); rv = value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) quartered = {
        void apply(inout bit<16> value, out bit<16> rv) { value = quarter.execute(hdr.h.value); rv = value; }
    };
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { hdr.h.value = squared.execute(0); }
        if (hdr.h.op == 1) { hdr.h.value = rooted.execute(1); }
        if (hdr.h.op == 2) { hdr.h.value = divided.execute(2); }
        if (hdr.h.op == 3) { hdr.h.value = more.execute(3); }
        if (hdr.h.op == 4) { hdr.h.value = quartered.execute(4); }
    }
}
#include "skeleton.p4i"
