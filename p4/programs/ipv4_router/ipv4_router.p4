// An IPv4 router: longest-prefix match, TTL, header checksum, MAC rewrite, ARP and control traffic to
// the CPU port. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const Port CPU_PORT = 64;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
}

struct metadata_t {
    Ipv4Address next_hop;
}

error {
    Ipv4VersionWrong,
    Ipv4HeaderTooShort
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
            5: accept;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) hdr.ipv4.ihl - 5) << 5);
        transition accept;
    }
}

control RouterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(8, CounterType.packets_and_bytes) refused;
    direct_counter(CounterType.packets_and_bytes) route_packets;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_cpu() {
        standard_metadata.egress_spec = CPU_PORT;
    }

    // The next hop is a neighbour in the port's network: 0 stands for the destination itself.
    action route(Ipv4Address next_hop, Port port) {
        meta.next_hop = next_hop == 0 ? hdr.ipv4.dst_addr : next_hop;
        standard_metadata.egress_spec = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action set_dst_mac(MacAddress mac) {
        hdr.ethernet.dst_addr = mac;
    }

    // Frames for this router carry the MAC address of the port they arrive at.
    table own_macs {
        key = {
            standard_metadata.ingress_port: exact;
            hdr.ethernet.dst_addr: exact;
        }
        actions = { NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { route; to_cpu; drop; }
        const default_action = drop;
        counters = route_packets;
        size = 1048576;
    }

    table neighbours {
        key = {
            standard_metadata.egress_spec: exact;
            meta.next_hop: exact;
        }
        actions = { set_dst_mac; to_cpu; drop; }
        const default_action = to_cpu;
        size = 65536;
    }

    apply {
        if (hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            to_cpu();
        } else if (!hdr.ipv4.isValid() || standard_metadata.parser_error != error.NoError) {
            refused.count(0);
            drop();
        } else if (standard_metadata.checksum_error == 1) {
            refused.count(1);
            drop();
        } else if (!own_macs.apply().hit) {
            refused.count(2);
            drop();
        } else if (hdr.ipv4.ttl <= 1) {
            // The control plane answers with ICMP time exceeded.
            refused.count(3);
            to_cpu();
        } else {
            switch (ipv4_lpm.apply().action_run) {
                route: { neighbours.apply(); }
                default: { }
            }
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_src_mac(MacAddress mac) {
        hdr.ethernet.src_addr = mac;
    }

    table port_macs {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_src_mac; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    apply {
        if (standard_metadata.egress_port != CPU_PORT) {
            port_macs.apply();
        }
    }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(), RouterDeparser()) main;
