// Two pipelines with the same ingress: each has tables, registers and counters of its own, whose names begin with its name.
// An absolute name is one within the pipeline, too.
#include "header.p4i"
struct meta_t { }
#define OWN_MAIN
INGRESS(I) {
    Register<bit<16>, bit<8>>(4) seen;
    Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS) counted;
    RegisterAction<bit<16>, bit<8>, bit<16>>(seen) next = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action mark(bit<8> with) { hdr.h.op = with; }
    table to { key = { hdr.h.op : exact; } actions = { send; NoAction; } default_action = NoAction; }
    @name(".marks") table marked { key = { hdr.h.op : exact; } actions = { mark; NoAction; } default_action = NoAction; }
    apply {
        to.apply();
        marked.apply();
        counted.count(hdr.h.index);
        hdr.h.value = next.execute(hdr.h.index);
    }
}
#include "skeleton.p4i"
EGRESS(F) { apply { hdr.h.index = 9; } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) left;
Pipeline(IP(), I(), ID(), EP(), F(), ED()) right;
Switch(left, right) main;
