// A parser that counts.
#define OWN_HEADERS
#include "header.p4i"
header item_t { bit<8> item; }
struct headers_t { h_t h; item_t[4] items; }
struct meta_t { bit<1> last; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    ParserCounter() counter;
    ParserPriority() priority;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        priority.set(3);
        transition select(hdr.h.op) { 0: plain; 1: computed; 2: signed; default: accept; }
    }
    state plain { counter.set(hdr.h.index); transition next; }
    // Turned right by 4, three bits of it, and one more; no more than 0x30 before.
    state computed { counter.set(hdr.h.index, 8w0x30, 4, 2, 1); transition next; }
    state signed {
        counter.set(hdr.h.index);
        counter.decrement(1);
        transition select(counter.is_negative()) { true: accept; default: next; }
    }
    state next { transition select(counter.is_zero()) { true: accept; default: item; } }
    state item { b.extract(hdr.items.next); counter.decrement(1); transition next; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.h.value = 0;
        if (hdr.items[0].isValid()) { hdr.h.value = hdr.h.value + 1; }
        if (hdr.items[1].isValid()) { hdr.h.value = hdr.h.value + 1; }
        if (hdr.items[2].isValid()) { hdr.h.value = hdr.h.value + 1; }
        if (hdr.items[3].isValid()) { hdr.h.value = hdr.h.value + 1; }
    }
}
#include "skeleton.p4i"
