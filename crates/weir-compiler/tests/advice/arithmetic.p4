// Operations that the units of a Tofino do not have, and registers that do not fit theirs.
#include <core.p4>
#include <tna.p4>
#include "frame.p4i"
INGRESS(I) {
    Register<bit<48>, bit<8>>(256) odd; //~ warning[tofino-register-width] the cells of `I.odd` have [48] bits
    Register<bit<16>, bit<8>>(256) cells;
    RegisterAction<bit<16>, bit<8>, bit<16>>(cells) thrice = { //~ warning[tofino-comparisons] `I.thrice` compares 3 times: a Tofino's stateful unit can 2 times
        void apply(inout bit<16> value, out bit<16> rv) {
            if (value > 10) { rv = 1; }
            if (value > hdr.h.value) { rv = 2; }
            if (value == 7) { rv = 3; }
            // That does not depend on the cell.
            if (hdr.h.op == 3) { value = 0; }
        }
    };
    RegisterAction<bit<48>, bit<8>, bit<48>>(odd) look = { void apply(inout bit<48> value, out bit<48> rv) { rv = value; } };
    apply {
        tm.ucast_egress_port = 1;
        hdr.h.value = hdr.h.value / 4;
        hdr.h.value = hdr.h.value * 8;
        hdr.h.wide = hdr.h.wide << 3;
        hdr.h.value = hdr.h.value / 10; //~ warning[tofino-arithmetic] this divides by a number that is no constant power of two
        hdr.h.wide = hdr.h.wide % hdr.long.data[31:0]; //~ warning[tofino-arithmetic] this divides by
        hdr.h.value = hdr.h.value * (bit<16>)hdr.h.op; //~ warning[tofino-arithmetic] this multiplies by
        hdr.h.value = hdr.h.value >> hdr.h.op; //~ warning[tofino-arithmetic] this shifts by a number that is no constant
        hdr.h.value = thrice.execute(hdr.h.index);
        hdr.long.data[47:0] = look.execute(hdr.h.index);
    }
}
EGRESS(E) { apply { } }
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
