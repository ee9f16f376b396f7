// The IPv4 router for the Portable Switch Architecture: the tables of ../ipv4_router, a checksum that is corrected
// instead of summed anew, and headers to and from the control plane. See README.md beside this file.
#include <core.p4>
#include <psa.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;

// Before packets to the control plane: where they came in.
@controller_header("packet_in")
header packet_in_t {
    PortIdInHeader_t ingress_port;
}

// Before packets from the control plane: where they are to go out.
@controller_header("packet_out")
header packet_out_t {
    PortIdInHeader_t egress_port;
}

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

struct ingress_headers_t {
    packet_out_t packet_out;
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
}

struct ingress_metadata_t {
    Ipv4Address next_hop;
    PortId_t ingress_port;
    bool routed;
}

// All that egress looks at.
struct egress_headers_t {
    packet_in_t packet_in;
    ethernet_t ethernet;
}

struct egress_metadata_t {
    PortId_t ingress_port;
    bool routed;
}

// What ingress tells egress.
struct bridge_t {
    PortId_t ingress_port;
    bool routed;
}

struct none_t { }

error {
    Ipv4VersionWrong,
    Ipv4HeaderTooShort,
    Ipv4ChecksumWrong
}

parser RouterIngressParser(packet_in packet, out ingress_headers_t hdr, inout ingress_metadata_t meta,
                           in psa_ingress_parser_input_metadata_t istd, in none_t resubmitted, in none_t recirculated) {
    InternetChecksum() checksum;

    state start {
        transition select(istd.ingress_port) {
            PSA_PORT_CPU: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
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
        checksum.clear();
        checksum.add(hdr.ipv4);
        transition select(hdr.ipv4.ihl) {
            5: verify_checksum;
            default: parse_ipv4_options;
        }
    }

    state parse_ipv4_options {
        packet.extract(hdr.ipv4_options, ((bit<32>) hdr.ipv4.ihl - 5) << 5);
        checksum.add(hdr.ipv4_options);
        transition verify_checksum;
    }

    state verify_checksum {
        verify(checksum.get() == 0, error.Ipv4ChecksumWrong);
        transition accept;
    }
}

control RouterIngress(inout ingress_headers_t hdr, inout ingress_metadata_t meta, in psa_ingress_input_metadata_t istd,
                      inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<64>, bit<8>>(8, PSA_CounterType_t.PACKETS_AND_BYTES) refused;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) route_packets;

    action drop() {
        ingress_drop(ostd);
    }

    action to_cpu() {
        send_to_port(ostd, PSA_PORT_CPU);
    }

    // The next hop is a neighbour in the port's network: 0 stands for the destination itself.
    action route(Ipv4Address next_hop, PortId_t port) {
        route_packets.count();
        meta.next_hop = next_hop == 0 ? hdr.ipv4.dst_addr : next_hop;
        meta.routed = true;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        send_to_port(ostd, port);
    }

    action route_to_cpu() {
        route_packets.count();
        to_cpu();
    }

    action set_dst_mac(MacAddress mac) {
        hdr.ethernet.dst_addr = mac;
    }

    // Frames for this router carry the MAC address of the port they arrive at.
    table own_macs {
        key = {
            istd.ingress_port: exact;
            hdr.ethernet.dst_addr: exact;
        }
        actions = { NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { route; route_to_cpu; drop; }
        const default_action = drop;
        psa_direct_counter = route_packets;
        size = 1048576;
    }

    table neighbours {
        key = {
            ostd.egress_port: exact;
            meta.next_hop: exact;
        }
        actions = { set_dst_mac; to_cpu; drop; }
        const default_action = to_cpu;
        size = 65536;
    }

    apply {
        meta.ingress_port = istd.ingress_port;
        if (hdr.packet_out.isValid()) {
            send_to_port(ostd, psa_PortId_header_to_int(hdr.packet_out.egress_port));
            hdr.packet_out.setInvalid();
        } else if (hdr.ethernet.ether_type == ETHERTYPE_ARP) {
            to_cpu();
        } else if (istd.parser_error == error.Ipv4ChecksumWrong) {
            refused.count(1);
        } else if (!hdr.ipv4.isValid() || istd.parser_error != error.NoError) {
            refused.count(0);
        } else if (!own_macs.apply().hit) {
            refused.count(2);
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

control RouterIngressDeparser(packet_out packet, out none_t cloned, out none_t resubmitted, out bridge_t normal,
                              inout ingress_headers_t hdr, in ingress_metadata_t meta,
                              in psa_ingress_output_metadata_t istd) {
    InternetChecksum() checksum;

    apply {
        if (meta.routed) {
            // Only the TTL has changed: by one.
            checksum.set_state(~hdr.ipv4.header_checksum);
            checksum.subtract({ hdr.ipv4.ttl + 1, hdr.ipv4.protocol });
            checksum.add({ hdr.ipv4.ttl, hdr.ipv4.protocol });
            hdr.ipv4.header_checksum = checksum.get();
        }
        if (psa_normal(istd)) {
            normal = { meta.ingress_port, meta.routed };
        }
        packet.emit(hdr);
    }
}

parser RouterEgressParser(packet_in packet, out egress_headers_t hdr, inout egress_metadata_t meta,
                          in psa_egress_parser_input_metadata_t istd, in bridge_t normal, in none_t cloned_in_ingress,
                          in none_t cloned_in_egress) {
    state start {
        meta.ingress_port = normal.ingress_port;
        meta.routed = normal.routed;
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control RouterEgress(inout egress_headers_t hdr, inout egress_metadata_t meta, in psa_egress_input_metadata_t istd,
                     inout psa_egress_output_metadata_t ostd) {
    action set_src_mac(MacAddress mac) {
        hdr.ethernet.src_addr = mac;
    }

    table port_macs {
        key = { istd.egress_port: exact; }
        actions = { set_src_mac; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    apply {
        if (istd.egress_port == PSA_PORT_CPU) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = psa_PortId_int_to_header(meta.ingress_port);
        } else if (meta.routed) {
            port_macs.apply();
        }
    }
}

control RouterEgressDeparser(packet_out packet, out none_t cloned, out none_t recirculated, inout egress_headers_t hdr,
                             in egress_metadata_t meta, in psa_egress_output_metadata_t istd,
                             in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        packet.emit(hdr);
    }
}

IngressPipeline(RouterIngressParser(), RouterIngress(), RouterIngressDeparser()) ingress;
EgressPipeline(RouterEgressParser(), RouterEgress(), RouterEgressDeparser()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
