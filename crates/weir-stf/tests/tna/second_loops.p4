// A stack of counters, for loops within loops.
#define SECOND_CHIP
#define OWN_HEADERS
#include "header.p4i"
header item_t { bit<8> item; }
struct headers_t { h_t h; item_t[8] items; }
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    ParserCounter() counter;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        counter.set(hdr.h.op);
        transition outer;
    }
    state outer {
        transition select(counter.is_zero()) { true: accept; default: begin; }
    }
    state begin { counter.push(hdr.h.index); transition inner; }
    state inner { transition select(counter.is_zero()) { true: end; default: item; } }
    state item { b.extract(hdr.items.next); counter.decrement(1); transition inner; }
    state end { counter.pop(); counter.decrement(1); transition outer; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        if (hdr.items[5].isValid()) { hdr.h.value[7:0] = hdr.items[5].item; }
        if (hdr.items[6].isValid()) { hdr.h.value = 0xffff; }
    }
}
#include "skeleton.p4i"
