// A counter below the last one that follows it: what is read within an inner loop counts for the outer one as well.
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
        // All items; op says whether they count here.
        transition select(hdr.h.op) { 0: alone; default: following; }
    }
    state alone { counter.push(hdr.h.value[7:0]); transition part; }
    state following { counter.push(hdr.h.value[7:0], true); transition part; }
    // Of these so many by a counter of their own.
    state part { counter.push(hdr.h.index); transition inner; }
    state inner { transition select(counter.is_zero()) { true: end; default: item; } }
    state item { b.extract(hdr.items.next); counter.decrement(1); transition inner; }
    state end { counter.pop(); transition outer; }
    state outer { transition select(counter.is_zero()) { true: accept; default: other; } }
    state other { b.extract(hdr.items.next); counter.decrement(1); transition outer; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.h.value = 0;
        if (hdr.items[2].isValid()) { hdr.h.value = 3; }
        if (hdr.items[3].isValid()) { hdr.h.value = 4; }
        if (hdr.items[4].isValid()) { hdr.h.value = 5; }
    }
}
#include "skeleton.p4i"
