// Something of everything that the runtime CLI has commands for.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers {
    ethernet_t ethernet;
}

struct metadata {
    bit<32> address;
    bit<16> hash;
}

parser Parse(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) types;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            types: accept;
            default: accept;
        }
    }
}

control Verify(inout headers hdr, inout metadata meta) {
    apply {}
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) totals;
    direct_counter(CounterType.packets_and_bytes) hits;
    meter(4, MeterType.packets) police;
    register<bit<32>>(4) last;
    action_selector(HashAlgorithm.crc16, 64, 16) paths;
    bit<32> before;
    bit<2> color;

    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst = mac;
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    action to(bit<9> port) {
        standard.egress_spec = port;
    }

    table lpm {
        key = { meta.address: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        support_timeout = true;
    }
    table acl {
        key = {
            hdr.ethernet.src: ternary;
            hdr.ethernet.type: range;
        }
        actions = { drop; NoAction; }
        counters = hits;
        default_action = NoAction();
    }
    table balance {
        key = {
            hdr.ethernet.dst: exact;
            hdr.ethernet.src: selector;
        }
        actions = { to; NoAction; }
        implementation = paths;
    }

    apply {
        totals.count(0);
        police.execute_meter((bit<32>)0, color);
        last.read(before, 0);
        last.write(0, before + 1);
        hash(meta.hash, HashAlgorithm.crc16_custom, (bit<16>)0, { hdr.ethernet.src }, (bit<32>)65536);
        meta.address = hdr.ethernet.dst[31:0];
        lpm.apply();
        acl.apply();
        balance.apply();
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers hdr, inout metadata meta) {
    apply {}
}

control Emit(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Compute(), Emit()) main;
