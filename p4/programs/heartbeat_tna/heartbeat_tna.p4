// Notices within microseconds that a neighbour is gone, for TNA: the packet generator makes the heartbeats, registers count those that
// were not answered, and packets take another port meanwhile. See README.md beside this file.
#include <core.p4>
#include <tna.p4>

typedef bit<48> MacAddress;
typedef bit<8> Link;
typedef bit<8> Missed;

// A heartbeat is an Ethernet frame of this type, with the number of the link that it was sent on.
const bit<16> ETHERTYPE_HEARTBEAT = 0x88b5;
// Heartbeats in a row that may be missing.
const Missed LIMIT = 3;
// Applications of the generator: one has a timer, the other hears of ports that go down.
const bit<3> APP_HEARTBEAT = 1;
const bit<3> APP_PORT_DOWN = 2;
// Where generated packets come in.
const PortId_t GENERATOR = 68;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

struct headers_t {
    pktgen_timer_header_t timer;
    pktgen_port_down_header_t down;
    ethernet_t ethernet;
}

// What is to be done about the link of the packet.
enum bit<2> Link_t {
    NOTHING = 0,
    ASK = 1,
    ALIVE = 2,
    LOST = 3
}

struct metadata_t {
    Link_t about;
    Link link;
    PortId_t backup;
    Missed missed;
}

struct none_t {
}

parser BeatIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.about = Link_t.NOTHING;
        transition select(intrinsic.ingress_port) {
            GENERATOR: generated;
            default: parse_ethernet;
        }
    }

    state generated {
        transition select(packet.lookahead<bit<8>>()[2:0]) {
            APP_HEARTBEAT: parse_timer;
            APP_PORT_DOWN: parse_down;
        }
    }

    state parse_timer {
        packet.extract(hdr.timer);
        transition parse_ethernet;
    }

    state parse_down {
        packet.extract(hdr.down);
        transition parse_ethernet;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BeatIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                    in ingress_intrinsic_metadata_from_parser_t from_parser,
                    inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                    inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<32>, Link>(256, CounterType_t.PACKETS) rerouted;
    // Heartbeats that were sent on a link since one came in on it.
    Register<Missed, Link>(256, 0) missed;

    RegisterAction<Missed, Link, Missed>(missed) look = {
        void apply(inout Missed value, out Missed now) { now = value; }
    };
    RegisterAction<Missed, Link, Missed>(missed) ask = {
        void apply(inout Missed value, out Missed now) {
            value = value |+| 1;
            now = value;
        }
    };
    RegisterAction<Missed, Link, Missed>(missed) forgive = {
        void apply(inout Missed value, out Missed now) { value = 0; }
    };
    RegisterAction<Missed, Link, Missed>(missed) give_up = {
        void apply(inout Missed value, out Missed now) { value = 255; }
    };

    action drop() {
        for_deparser.drop_ctl = 1;
    }

    // The packet's number within the batch stands for a link.
    action send_on(PortId_t port, Link link) {
        tm.ucast_egress_port = port;
        meta.about = Link_t.ASK;
        meta.link = link;
        hdr.timer.setInvalid();
    }

    table links {
        key = { hdr.timer.packet_id: exact; }
        actions = { send_on; drop; }
        const default_action = drop;
        size = 256;
    }

    action is_alive(Link link) {
        meta.about = Link_t.ALIVE;
        meta.link = link;
        for_deparser.drop_ctl = 1;
    }

    table neighbours {
        key = { intrinsic.ingress_port: exact; }
        actions = { is_alive; drop; }
        const default_action = drop;
        size = 256;
    }

    action is_lost(Link link) {
        meta.about = Link_t.LOST;
        meta.link = link;
        for_deparser.drop_ctl = 1;
    }

    table lost_ports {
        key = { hdr.down.port_num: exact; }
        actions = { is_lost; drop; }
        const default_action = drop;
        size = 256;
    }

    action forward(PortId_t port, Link link, PortId_t backup) {
        tm.ucast_egress_port = port;
        meta.link = link;
        meta.backup = backup;
    }

    table stations {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        const default_action = drop;
        size = 1024;
    }

    apply {
        tm.bypass_egress = 1;
        if (hdr.timer.isValid()) {
            links.apply();
        } else if (hdr.down.isValid()) {
            lost_ports.apply();
        } else if (hdr.ethernet.ether_type == ETHERTYPE_HEARTBEAT) {
            neighbours.apply();
        } else {
            stations.apply();
        }
        if (for_deparser.drop_ctl == 0 || meta.about != Link_t.NOTHING) {
            if (meta.about == Link_t.ASK) {
                ask.execute(meta.link);
            } else if (meta.about == Link_t.ALIVE) {
                forgive.execute(meta.link);
            } else if (meta.about == Link_t.LOST) {
                give_up.execute(meta.link);
            } else {
                meta.missed = look.execute(meta.link);
                if (meta.missed > LIMIT) {
                    tm.ucast_egress_port = meta.backup;
                    rerouted.count(meta.link);
                }
            }
        }
    }
}

control BeatIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

parser BeatEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control BeatEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                   in egress_intrinsic_metadata_from_parser_t from_parser,
                   inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control BeatEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                           in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(BeatIngressParser(), BeatIngress(), BeatIngressDeparser(), BeatEgressParser(), BeatEgress(), BeatEgressDeparser()) pipe;

Switch(pipe) main;
