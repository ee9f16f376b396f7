// What a packet comes to for the first time behind a branch.
#include <core.p4>
#include <tna.p4>
#include "frame.p4i"
INGRESS(I) {
    Register<bit<32>, bit<8>>(256) cells;
    RegisterAction<bit<32>, bit<8>, bit<32>>(cells) clear = { void apply(inout bit<32> value) { value = 0; } };
    Register<bit<32>, bit<8>>(256) others;
    RegisterAction<bit<32>, bit<8>, bit<32>>(others) ask = { void apply(inout bit<32> value, out bit<32> rv) { rv = value; } };
    Register<bit<32>, bit<8>>(256) sums;
    RegisterAction<bit<32>, bit<8>, bit<32>>(sums) add = {
        void apply(inout bit<32> value) {
            value = value + ask.execute(0); //~ warning[tofino-nested-call] an extern is called within `I.add`
        }
    };
    table numbers {
        key = { hdr.h.value: exact; }
        actions = { NoAction; }
        default_action = NoAction;
    }
    apply {
        tm.ucast_egress_port = 1;
        add.execute(0);
        if (hdr.h.op == 1) {
            clear.execute(0);
            numbers.apply();
        }
        clear.execute(1); //~ warning[tofino-access-twice] a packet may come to the Register `I.cells` twice
        numbers.apply(); //~ warning[tofino-table-twice] a packet may be looked up in `I.numbers` twice
    }
}
EGRESS(E) { apply { } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
