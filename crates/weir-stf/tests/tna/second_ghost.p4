// A control that hears of queues: it keeps their lengths, and ingress looks.
#define SECOND_CHIP
#include "header.p4i"
struct meta_t { }
#define OWN_MAIN
Register<bit<16>, bit<11>>(2048) lengths;
Register<bit<32>, bit<1>>(2) messages;
INGRESS(I) {
    RegisterAction<bit<16>, bit<11>, bit<16>>(lengths) look = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; }
    };
    apply {
        tm.ucast_egress_port = (PortId_t)hdr.h.index;
        // Queue 0 of the port.
        hdr.h.value = look.execute(3w0 ++ hdr.h.index << 3);
        if (hdr.h.op == 1) { tm.qid = 2; }
    }
}
control G(in ghost_intrinsic_metadata_t message) {
    RegisterAction<bit<16>, bit<11>, bit<16>>(lengths) note = {
        void apply(inout bit<16> value) { value = message.qlength[15:0]; }
    };
    RegisterAction<bit<32>, bit<1>, bit<32>>(messages) count = {
        void apply(inout bit<32> value) { value = value + 1; }
    };
    apply {
        note.execute(message.qid);
        count.execute(message.pipe_id[0:0]);
    }
}
#include "skeleton.p4i"
Pipeline(IP(), I(), ID(), EP(), E(), ED(), G()) pipe;
Switch(pipe) main;
