// What register actions of the second chip do besides.
#define SECOND_CHIP
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) cells;
    Register<bit<16>, bit<8>>(3) queue;
    Register<bit<16>, bit<8>>(16) many;
    Register<bit<16>, bit<8>>(4) stack;
    RegisterAction2<bit<16>, bit<8>, bit<16>, bit<8>>(cells) two = {
        void apply(inout bit<16> value, out bit<16> rv1, out bit<8> rv2) { value = value + 1; rv1 = value; rv2 = 0x22; }
    };
    RegisterAction4<bit<16>, bit<8>, bit<16>, bit<8>, bit<8>, bit<8>>(cells) four = {
        void apply(inout bit<16> value, out bit<16> rv1, out bit<8> rv2, out bit<8> rv3, out bit<8> rv4) {
            rv1 = this.address<bit<16>>(); rv2 = 2; rv3 = 3; rv4 = 4;
        }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(queue) put = {
        void apply(inout bit<16> value, out bit<16> rv) { value = hdr.h.value; rv = 1; }
        void overflow(inout bit<16> value, out bit<16> rv) { rv = 0xffff; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(queue) take = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; }
        void underflow(inout bit<16> value, out bit<16> rv) { rv = 0xeeee; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(stack) push = {
        void apply(inout bit<16> value, out bit<16> rv) { value = hdr.h.value; rv = 1; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(stack) pop = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) zero = {
        void apply(inout bit<16> value) { value = value + 0x100; }
    };
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) compare = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = this.predicate(true, false, true, false); }
    };
    MinMaxAction2<bit<16>, bit<8>, bit<16>, bit<8>>(many) least = {
        void apply(inout bit<128> value, out bit<16> rv1, out bit<8> rv2) {
            bit<3> at;
            rv1 = this.min16(value, 0x0f, at);
            rv2 = (bit<8>)at;
        }
    };
    MinMaxAction<bit<16>, bit<8>, bit<16>>(many) greatest = {
        void apply(inout bit<128> value, out bit<16> rv1) { rv1 = this.max16(value, 0xff); value[15:0] = 0xaaaa; }
    };
    apply {
        tm.ucast_egress_port = 1;
        bit<8> second;
        bit<8> third;
        bit<8> fourth;
        if (hdr.h.op == 0) { hdr.h.value = two.execute(hdr.h.index, second); hdr.h.index = second; }
        else if (hdr.h.op == 1) { hdr.h.value = four.execute(hdr.h.index, second, third, fourth); hdr.h.index = second + third * fourth; }
        else if (hdr.h.op == 2) { hdr.h.value = put.enqueue(); }
        else if (hdr.h.op == 3) { hdr.h.value = take.dequeue(); }
        else if (hdr.h.op == 4) { hdr.h.value = push.push(); }
        else if (hdr.h.op == 5) { hdr.h.value = pop.pop(); }
        else if (hdr.h.op == 6) { zero.sweep(); }
        else if (hdr.h.op == 7) { hdr.h.value = compare.execute(0); }
        else if (hdr.h.op == 8) { hdr.h.value = least.execute(hdr.h.index, second); hdr.h.index = second; }
        else if (hdr.h.op == 9) { hdr.h.value = greatest.execute(hdr.h.index); }
        else if (hdr.h.op == 10) { cells.clear(hdr.h.value); }
    }
}
#include "skeleton.p4i"
