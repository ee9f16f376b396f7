// A firewall between two ports: an ordered list of rules over the port of arrival, the IPv4 addresses,
// the protocol and the transport ports, with a counter for each rule. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<8> PROTOCOL_ICMP = 1;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    Ipv4Address src_addr;
    Ipv4Address dst_addr;
}

header ipv4_options_t {
    varbit<320> options;
}

header icmp_t {
    bit<8> type;
    bit<8> code;
    bit<16> checksum;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence_number;
    bit<32> acknowledgement_number;
    bit<4> data_offset;
    bit<4> reserved;
    bit<8> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent_pointer;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
    icmp_t icmp;
    tcp_t tcp;
    udp_t udp;
}

struct metadata_t {
    // As in OpenFlow 1.0, ICMP has its type for a source port and its code for a destination port.
    bit<16> src_port;
    bit<16> dst_port;
}

error {
    Ipv4VersionWrong,
    Ipv4HeaderTooShort
}

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.Ipv4VersionWrong);
        verify(hdr.ipv4.ihl >= 5, error.Ipv4HeaderTooShort);
        transition select(hdr.ipv4.ihl) {
            5: parse_transport;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) hdr.ipv4.ihl - 5) << 5);
        transition parse_transport;
    }

    // Only the first fragment has a transport header; in the others the ports are 0.
    state parse_transport {
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, PROTOCOL_ICMP): parse_icmp;
            (0, PROTOCOL_TCP): parse_tcp;
            (0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_icmp {
        packet.extract(hdr.icmp);
        meta.src_port = (bit<16>) hdr.icmp.type;
        meta.dst_port = (bit<16>) hdr.icmp.code;
        transition accept;
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        transition accept;
    }
}

control FirewallVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not parsed, 1: no entry, whatever the default action did, 2: neither IPv4 nor ARP.
    counter(3, CounterType.packets_and_bytes) not_matched;
    direct_counter(CounterType.packets_and_bytes) rule_packets;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Ports 0 and 1 are the two sides of the firewall, 2 and 3 those of a second one, and so on.
    action allow() {
        standard_metadata.egress_spec = standard_metadata.ingress_port ^ 1;
    }

    action deny() {
        drop();
    }

    // The rule with the highest priority decides. What no rule matches is denied, unless the control
    // plane makes `allow` the default.
    table rules {
        key = {
            standard_metadata.ingress_port: ternary;
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.dst_addr: ternary;
            hdr.ipv4.protocol: ternary;
            meta.src_port: range;
            meta.dst_port: range;
        }
        actions = { allow; deny; }
        default_action = deny;
        counters = rule_packets;
        size = 65536;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            not_matched.count(0);
            drop();
        } else if (hdr.ipv4.isValid()) {
            if (!rules.apply().hit) {
                not_matched.count(1);
            }
        } else if (hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            // Without ARP the two sides do not find each other.
            allow();
        } else {
            not_matched.count(2);
            drop();
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FirewallComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FirewallParser(), FirewallVerifyChecksum(), FirewallIngress(), FirewallEgress(), FirewallComputeChecksum(), FirewallDeparser()) main;
