// Bodies of register actions that name what their control was applied to: one instance, applied with other arguments
// each time, directly, by actions, through tables, and by an action that another one executes.
#include "header.p4i"
struct meta_t { bit<16> got; bit<16> local; }
// The parameters of one application are not those of another one; the register is the same.
control Add(in bit<16> by, inout bit<16> seen, out bit<16> got) {
    bit<16> twice = by << 1;
    const bit<16> one = 1;
    Register<bit<16>, _>(4) cells;
    RegisterAction<bit<16>, _, bit<16>>(cells) add = {
        void apply(inout bit<16> cell, out bit<16> rv) { cell = cell + by; seen = seen + one; rv = cell; }
    };
    RegisterAction<bit<16>, _, bit<16>>(cells) double = {
        void apply(inout bit<16> cell, out bit<16> rv) { cell = cell + twice; rv = by; }
    };
    action adds() { got = add.execute(0); }
    action doubles(bit<2> which) { got = double.execute(which); }
    table t {
        key = { by : exact; }
        actions = { adds; doubles; }
        const default_action = adds;
        const entries = { 7 : doubles(0); }
    }
    apply { t.apply(); }
}
// What is captured may itself be captured by an instance one deeper.
control Outer(in bit<16> x, inout bit<16> seen, out bit<16> got) {
    Add() inner;
    apply {
        if (x == 3) { inner.apply(x, seen, got); } else { inner.apply(x + 10, seen, got); }
    }
}
INGRESS(I) {
    Add() sum;
    Outer() outer;
    Outer() other;
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        meta.got = 0;
        if (hdr.h.op == 0) { sum.apply(5, hdr.h.value, meta.got); }
        else if (hdr.h.op == 1) { sum.apply(700, hdr.h.value, meta.got); }
        else if (hdr.h.op == 2) { sum.apply(by = 7, got = meta.got, seen = hdr.h.value); }
        else if (hdr.h.op == 3) { sum.apply(hdr.h.value, hdr.h.value, meta.got); }
        else if (hdr.h.op == 4) { outer.apply(3, hdr.h.value, meta.got); }
        else if (hdr.h.op == 5) { outer.apply(4, hdr.h.value, meta.got); }
        else if (hdr.h.op == 6) { other.apply(4, hdr.h.value, meta.got); }
        else if (hdr.h.op == 7) {
            sum.apply(1, hdr.h.value, meta.got);
            sum.apply(2, hdr.h.value, meta.got);
            sum.apply(meta.got, hdr.h.value, meta.got);
        }
        hdr.h.op = 0;
        hdr.h.index = meta.got[7:0];
        hdr.more.setValid();
        hdr.more.value = meta.got;
    }
}
#include "skeleton.p4i"
