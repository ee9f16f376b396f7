#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header payload_t {
    bit<32> address;
}

struct headers_t {
    ethernet_t e;
    payload_t p;
}

struct metadata_t {
    bit<8> stage;
}

parser P(packet_in packet, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        packet.extract(h.e);
        packet.extract(h.p);
        transition accept;
    }
}

control V(inout headers_t h, inout metadata_t m) {
    apply { }
}

control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action next(bit<8> stage) {
        m.stage = stage;
    }

    action to(bit<9> port) {
        s.egress_spec = port;
    }

    action flood() {
        s.mcast_grp = 1;
    }

    table by_mac {
        key = { h.e.dst: exact; }
        actions = { next; to; flood; NoAction; }
        default_action = NoAction;
    }

    table by_prefix {
        key = { h.p.address: lpm; }
        actions = { next; NoAction; }
        default_action = NoAction;
    }

    table by_mask {
        key = { h.e.type: ternary; }
        actions = { to; NoAction; }
        default_action = NoAction;
    }

    table by_range {
        key = { h.e.type: range; }
        actions = { to; NoAction; }
        default_action = NoAction;
    }

    apply {
        by_mac.apply();
        by_prefix.apply();
        if (m.stage == 2) {
            by_mask.apply();
            by_range.apply();
        }
    }
}

control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { }
}

control C(inout headers_t h, inout metadata_t m) {
    apply { }
}

control D(packet_out packet, in headers_t h) {
    apply {
        packet.emit(h);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
