// What the tests of the Python package need: every match kind, registers, meters, clones, groups,
// packets to and from the controller.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header wide_t {
    bit<256> value;
    int<8> small;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    wide_t wide;
}

struct metadata_t {
    bit<2> color;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU: controller;
            default: ethernet;
        }
    }
    state controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x9999: wide;
            default: accept;
        }
    }
    state wide {
        packet.extract(hdr.wide);
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) seen;
    register<bit<32>>(16) last_length;
    meter(4, MeterType.packets) limits;
    direct_counter(CounterType.packets) rule_hits;

    action to(bit<9> port) {
        std.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std);
    }
    action flood() {
        std.mcast_grp = 7;
    }
    action copy(bit<9> port) {
        std.egress_spec = port;
        clone(CloneType.I2E, 5);
    }
    action punt() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = std.ingress_port;
        hdr.packet_in.reason = 3;
        std.egress_spec = CPU;
    }

    table rules {
        key = {
            hdr.ethernet.dst_addr: ternary;
            hdr.ethernet.ether_type: range;
            std.ingress_port: optional;
        }
        actions = { to; drop; flood; copy; punt; }
        default_action = drop;
        counters = rule_hits;
        support_timeout = true;
    }

    table wide {
        key = { hdr.wide.value: exact; hdr.wide.small: exact; }
        actions = { to; NoAction; }
        const default_action = NoAction;
    }

    apply {
        seen.count((bit<32>) std.ingress_port & 3);
        last_length.write((bit<32>) std.ingress_port & 15, std.packet_length);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.wide.isValid()) {
            wide.apply();
        } else {
            limits.execute_meter<bit<2>>(0, meta.color);
            if (meta.color == 2) {
                mark_to_drop(std);
            } else {
                rules.apply();
            }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.wide);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
