// A loop, keys that are too wide, state of both gresses, and a resubmission with too much data.
#include <core.p4>
#include <tna.p4>
#include "frame.p4i"
Register<bit<32>, bit<8>>(256) shared;
INGRESS(I) {
    RegisterAction<bit<32>, bit<8>, bit<32>>(shared) write = { void apply(inout bit<32> value) { value = 1; } };
    action set(bit<16> value) { hdr.h.value = value; }
    table wide { //~ warning[tofino-key-width] the keys of `I.wide` have 608 bits: a Tofino compares 528 in such a table
        key = {
            hdr.long.data: ternary;
            hdr.long.data ++ hdr.long.data ++ hdr.long.data ++ hdr.long.data ++ hdr.long.data ++ hdr.h.wide: ternary @name("all");
        }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    apply {
        tm.ucast_egress_port = 1;
        for (bit<8> i = 0; i < hdr.h.op; i = i + 1) { //~ warning[tofino-loop] a control with a loop: on a Tofino packets pass each stage once
            hdr.h.value = hdr.h.value + 3;
        }
        wide.apply();
        write.execute(hdr.h.index);
        if (hdr.h.op == 9) { for_deparser.resubmit_type = 2; }
    }
}
control LongDeparser(packet_out b, inout headers_t hdr, in none_t meta, in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Resubmit() resubmit;
    apply {
        if (for_deparser.resubmit_type == 2) {
            resubmit.emit(hdr.long); //~ warning[tofino-resubmit-size] a resubmitted packet brings along 64 bits, these are 96: the rest is lost
        }
        b.emit(hdr);
    }
}
EGRESS(E) {
    RegisterAction<bit<32>, bit<8>, bit<32>>(shared) read = { void apply(inout bit<32> value, out bit<32> rv) { rv = value; } };
    apply {
        hdr.h.wide = read.execute(hdr.h.index); //~ warning[tofino-both-gresses] `shared` is used in ingress and in egress
    }
}
Pipeline(IP(), I(), LongDeparser(), EP(), E(), ED()) pipe;
Switch(pipe) main;
