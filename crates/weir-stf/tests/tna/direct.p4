// What belongs to the entries of a table.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) counts;
    DirectRegister<bit<16>>(7) seen;
    DirectRegisterAction<bit<16>, bit<16>>(seen) see = {
        void apply(inout bit<16> value, out bit<16> rv) { value = value + 1; rv = value; }
    };
    DirectMeter(MeterType_t.PACKETS) limit;
    DirectLpf<bit<16>>() smooth;
    DirectWred<bit<16>>(1, 0) early;
    action count(bit<8> less) { counts.count((bit<32>)less); hdr.h.value = 0xc0; }
    action uncounted() { }
    table counted {
        key = { hdr.h.index: exact; }
        actions = { count; uncounted; }
        const default_action = uncounted;
        counters = counts;
        size = 16;
    }
    action remember() { hdr.h.value = see.execute(); }
    table remembered {
        key = { hdr.h.index: exact; }
        actions = { remember; }
        default_action = remember;
        registers = seen;
        size = 16;
    }
    action police() { hdr.h.value = (bit<16>)limit.execute(); }
    action pass() { hdr.h.value = 0xff; }
    table policed {
        key = { hdr.h.index: ternary; }
        actions = { police; pass; }
        const default_action = pass;
        meters = limit;
        size = 16;
    }
    action filter() { hdr.h.value = smooth.execute(hdr.h.value); }
    table filtered {
        key = { hdr.h.index: exact; }
        actions = { filter; pass; }
        const default_action = pass;
        filters = smooth;
        size = 16;
    }
    action drop_early() { hdr.h.value = (bit<16>)early.execute(hdr.h.value); }
    table dropped {
        key = { hdr.h.index: exact; }
        actions = { drop_early; pass; }
        const default_action = pass;
        filters = early;
        size = 16;
    }
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { counted.apply(); }
        else if (hdr.h.op == 1) { remembered.apply(); }
        else if (hdr.h.op == 2) { policed.apply(); }
        else if (hdr.h.op == 3) { filtered.apply(); }
        else { dropped.apply(); }
    }
}
#include "skeleton.p4i"
