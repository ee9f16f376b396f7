// State and tables that a packet comes to more than once.
#include <core.p4>
#include <tna.p4>
#include "frame.p4i"
INGRESS(I) {
    Register<bit<32>, bit<8>>(256) cells;
    Register<bit<32>, bit<8>>(256) others;
    Counter<bit<32>, bit<8>>(256, CounterType_t.PACKETS) packets;
    RegisterAction<bit<32>, bit<8>, bit<32>>(cells) add = { void apply(inout bit<32> value, out bit<32> rv) { value = value + 1; rv = value; } };
    RegisterAction<bit<32>, bit<8>, bit<32>>(cells) clear = { void apply(inout bit<32> value) { value = 0; } };
    RegisterAction<bit<32>, bit<8>, bit<32>>(others) once = { void apply(inout bit<32> value) { value = 0; } };
    action set(bit<16> value) { hdr.h.value = value; }
    table numbers {
        key = { hdr.h.value: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    apply {
        tm.ucast_egress_port = 1;
        hdr.h.wide = add.execute(hdr.h.index);
        // Only one of two ways: that is once.
        if (hdr.h.op == 0) { once.execute(hdr.h.index); packets.count(0); } else { once.execute(0); }
        if (hdr.h.wide > 100) {
            clear.execute(hdr.h.index); //~ warning[tofino-access-twice] a packet may come to the Register `I.cells` twice: on a Tofino it can once
        }
        numbers.apply();
        numbers.apply(); //~ warning[tofino-table-twice] a packet may be looked up in `I.numbers` twice
        packets.count(1); //~ warning[tofino-access-twice] a packet may come to the Counter `I.packets` twice
    }
}
EGRESS(E) { apply { } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
