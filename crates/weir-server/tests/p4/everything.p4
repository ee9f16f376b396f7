// Everything that P4Runtime can write and read, in one program.
//
// The first byte of a packet says which table is asked, what follows is the key. Packets of the CPU port begin with the
// header `packet_out`.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU = 510;

enum Shade { DARK, LIGHT }

@p4runtime_translation("weir.test/name", string)
type bit<16> name_t;

@p4runtime_translation("weir.test/wide", bit<32>)
type bit<16> wide_t;

@controller_header("packet_out")
header out_t {
    bit<9> egress_port;
    @padding bit<7> pad;
}

@controller_header("packet_in")
header in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

header query_t {
    bit<8>  kind;
    bit<8>  hash;
    bit<32> key;
    bit<32> answer;
}

struct headers {
    out_t   from_cpu;
    in_t    to_cpu;
    query_t query;
}

struct seen_t {
    bit<32> key;
    bit<9>  port;
}

struct cell_t {
    bit<12> a;
    int<8>  b;
}

struct meta {
    bit<1> special;
    bit<2> color;
    name_t name;
    wide_t wide;
}

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    value_set<bit<8>>(4) specials;
    state start {
        transition select(s.ingress_port) {
            CPU: from_cpu;
            default: query;
        }
    }
    state from_cpu {
        p.extract(h.from_cpu);
        transition query;
    }
    state query {
        p.extract(h.query);
        m.name = (name_t) h.query.key[15:0];
        m.wide = (wide_t) h.query.key[15:0];
        transition select(h.query.kind) {
            specials: special;
            default: accept;
        }
    }
    state special {
        m.special = 1;
        transition accept;
    }
}

control V(inout headers h, inout meta m) { apply { } }

control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    action answer(bit<32> value) {
        h.query.answer = value;
        s.egress_spec = s.ingress_port;
    }
    action send(bit<9> port) { s.egress_spec = port; }
    action miss() { mark_to_drop(s); }
    action only_default() { h.query.answer = 0xdd; s.egress_spec = s.ingress_port; }

    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_meter<bit<2>>(MeterType.packets) lpm_meter;

    table exact_table {
        key = { h.query.key : exact @name("key"); }
        actions = { answer; send; miss; @defaultonly only_default; }
        default_action = miss();
        counters = exact_counter;
        size = 256;
    }
    action metered(bit<32> value) {
        lpm_meter.read(m.color);
        h.query.answer = value;
        s.egress_spec = s.ingress_port;
    }
    table lpm_table {
        key = { h.query.key : lpm @name("key"); }
        actions = { metered; miss; }
        default_action = miss();
        meters = lpm_meter;
    }
    table ternary_table {
        key = { h.query.key : ternary @name("key"); h.query.hash : exact @name("hash"); }
        actions = { answer; miss; }
        const default_action = miss();
    }
    table range_table {
        key = { h.query.key : range @name("key"); }
        actions = { answer; miss; }
        default_action = miss();
    }
    table optional_table {
        key = { h.query.key : optional @name("key"); h.query.hash : optional @name("hash"); }
        actions = { answer; miss; }
        default_action = miss();
    }
    table idle_table {
        key = { h.query.key : exact @name("key"); }
        actions = { answer; miss; }
        default_action = miss();
        support_timeout = true;
    }
    table const_table {
        key = { h.query.key : exact @name("key"); }
        actions = { answer; miss; }
        default_action = miss();
        const entries = { 1 : answer(0x11); 2 : answer(0x22); }
    }
    table initial_table {
        key = { h.query.key : exact @name("key"); }
        actions = { answer; miss; }
        default_action = miss();
        entries = { const 1 : answer(0x31); 2 : answer(0x32); }
    }
    table name_table {
        key = { m.name : exact @name("name"); }
        actions = { answer; miss; }
        default_action = miss();
    }
    table wide_table {
        key = { m.wide : exact @name("wide"); }
        actions = { answer; miss; }
        default_action = miss();
    }
    action_profile(16) profile;
    table profile_table {
        key = { h.query.key : exact @name("key"); }
        actions = { answer; miss; }
        implementation = profile;
    }
    @max_group_size(8) action_selector(HashAlgorithm.identity, 32, 8) selector;
    table selector_table {
        key = { h.query.key : exact @name("key"); h.query.hash : selector; }
        actions = { answer; miss; }
        implementation = selector;
    }
    table keyless_table {
        actions = { answer; miss; }
        default_action = miss();
    }

    counter(8, CounterType.packets_and_bytes) counts;
    meter(8, MeterType.packets) meters;
    register<bit<32>>(8) words;
    register<cell_t>(4) cells;
    register<bit<1>>(0x100000) bits;

    apply {
        if (h.from_cpu.isValid()) {
            s.egress_spec = h.from_cpu.egress_port;
            h.from_cpu.setInvalid();
        } else {
            switch (h.query.kind) {
                1: { exact_table.apply(); }
                2: { lpm_table.apply(); }
                3: { ternary_table.apply(); }
                4: { range_table.apply(); }
                5: { optional_table.apply(); }
                6: { idle_table.apply(); }
                7: { const_table.apply(); }
                8: { initial_table.apply(); }
                9: { profile_table.apply(); }
                10: { selector_table.apply(); }
                11: { keyless_table.apply(); }
                12: { name_table.apply(); }
                13: { wide_table.apply(); }
                20: { counts.count(h.query.key); miss(); }
                21: {
                    bit<2> color;
                    meters.execute_meter(h.query.key, color);
                    answer((bit<32>) color);
                }
                22: {
                    bit<32> word;
                    words.read(word, h.query.key);
                    words.write(h.query.key, word + 1);
                    answer(word);
                }
                23: {
                    cell_t cell;
                    cells.read(cell, h.query.key);
                    answer((bit<32>) cell.a);
                }
                24: {
                    bit<1> b;
                    bits.read(b, h.query.key);
                    answer((bit<32>) b);
                }
                30: { s.mcast_grp = h.query.key[15:0]; }
                31: { clone(CloneType.I2E, h.query.key); miss(); }
                32: {
                    seen_t seen;
                    seen.key = h.query.key;
                    seen.port = s.ingress_port;
                    digest<seen_t>(1, seen);
                    miss();
                }
                33: {
                    h.to_cpu.setValid();
                    h.to_cpu.ingress_port = s.ingress_port;
                    h.to_cpu.reason = h.query.key[6:0];
                    s.egress_spec = CPU;
                }
                default: { if (m.special == 1) { answer(0x5e); } else { miss(); } }
            }
        }
    }
}

control E(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply {
        if (s.egress_rid != 0) { h.query.answer = (bit<32>) s.egress_rid; }
    }
}

control C(inout headers h, inout meta m) { apply { } }

control D(packet_out p, in headers h) {
    apply {
        p.emit(h.to_cpu);
        p.emit(h.query);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
