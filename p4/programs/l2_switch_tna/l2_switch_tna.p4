// A learning Ethernet switch for TNA: a table of source addresses, a table of destination addresses, and digests by which
// the control plane fills both. See README.md beside this file.
#include <core.p4>
#include <tna.p4>

typedef bit<48> MacAddress;

// The multicast group with all ports, and the id of its node.
const bit<16> FLOOD_GROUP = 1;
const bit<16> FLOOD_RID = 1;
const DigestType_t LEARN = 1;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    PortId_t ingress_port;
}

struct none_t {
}

// What the control plane learns: this address is behind this port.
struct learned_t {
    MacAddress mac;
    PortId_t port;
}

parser SwitchIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.ingress_port = intrinsic.ingress_port;
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t tm) {
    // 0: too short, 1: group address as source, 2: link-local destination, 3: back where it came from.
    Counter<bit<64>, bit<2>>(4, CounterType_t.PACKETS_AND_BYTES) refused;

    action drop() {
        for_deparser.drop_ctl = 1;
    }

    action learn() {
        for_deparser.digest_type = LEARN;
    }

    // A station that shows up at another port has moved: it is learned again.
    action known(PortId_t port) {
        if (intrinsic.ingress_port != port) {
            learn();
        }
    }

    action forward(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    // To all ports of the group but those of the list that is called as the port of arrival: that port itself.
    action flood() {
        tm.mcast_grp_a = FLOOD_GROUP;
        tm.rid = FLOOD_RID;
        tm.level2_exclusion_id = intrinsic.ingress_port;
    }

    // An address that has not been heard for a while is forgotten: every hit restarts the entry's idle timeout, and the
    // control plane is told when it runs out.
    table source_macs {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { known; learn; }
        const default_action = learn;
        idle_timeout = true;
        size = 1048576;
    }

    table destination_macs {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; flood; drop; }
        default_action = flood;
        size = 1048576;
    }

    apply {
        // What leaves is what came; there is nothing for egress to do.
        tm.bypass_egress = 1;
        if (from_parser.parser_err != PARSER_ERROR_OK) {
            refused.count(0);
            drop();
        } else if (hdr.ethernet.src_addr[40:40] == 1) {
            // Nobody's own address is a group address.
            refused.count(1);
            drop();
        } else if (hdr.ethernet.dst_addr[47:4] == 0x0180C200000) {
            // 01-80-C2-00-00-0X is for the link (pause, LLDP, spanning tree); no bridge forwards it.
            refused.count(2);
            drop();
        } else {
            source_macs.apply();
            switch (destination_macs.apply().action_run) {
                forward: {
                    if (tm.ucast_egress_port == intrinsic.ingress_port) {
                        refused.count(3);
                        drop();
                    }
                }
                default: { }
            }
        }
    }
}

control SwitchIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                              in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<learned_t>(LEARN) learned;

    apply {
        if (for_deparser.digest_type == LEARN) {
            learned.pack({ hdr.ethernet.src_addr, meta.ingress_port });
        }
        packet.emit(hdr);
    }
}

parser SwitchEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control SwitchEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control SwitchEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                             in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(SwitchIngressParser(), SwitchIngress(), SwitchIngressDeparser(), SwitchEgressParser(), SwitchEgress(), SwitchEgressDeparser()) pipe;

Switch(pipe) main;
