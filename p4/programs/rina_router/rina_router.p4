// A RINA interior router that also routes IPv4: EFCP and IPv4 over Ethernet, with or without a VLAN tag
// on either side. The data plane of "A P4-Enabled RINA Interior Router for Software-Defined Data
// Centers" (Fernández, Giménez, Grasa, Bunch; 2020), section 3.1. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<16> EfcpAddress;
typedef bit<12> VlanId;
typedef bit<9> Port;
typedef bit<16> Group;

// The EtherType of EFCP is not registered. 0xD1F0 is what IRATI and rlite use for their shim over
// Ethernet; the prototype of the paper takes 0x0D1F (`-D EFCP_ETHERTYPE=0x0D1F`).
#ifndef EFCP_ETHERTYPE
#define EFCP_ETHERTYPE 0xD1F0
#endif

const bit<16> ETHERTYPE_EFCP = EFCP_ETHERTYPE;
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_ARP = 0x0806;
// IRATI frames the ARP of its shim so, rlite as plain ARP.
const bit<16> ETHERTYPE_RINA_ARP = 0x4305;

const Port CPU_PORT = 64;
const VlanId UNTAGGED = 0;

const bit<8> EFCP_VERSION = 1;
const bit<8> EFCP_LAYER_MANAGEMENT = 0x40;
const bit<8> EFCP_FLAG_ECN = 0x01;

// What the control plane gets in front of a packet, and puts in front of one that it sends.
@controller_header("packet_in")
header packet_in_t {
    Port ingress_port;
    bit<7> padding;
}

@controller_header("packet_out")
header packet_out_t {
    Port egress_port;
    bit<7> padding;
}

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    VlanId vlan_id;
    bit<16> ether_type;
}

header efcp_t {
    bit<8> version;
    EfcpAddress dst_addr;
    EfcpAddress src_addr;
    bit<8> qos_id;
    bit<16> dst_cep_id;
    bit<16> src_cep_id;
    bit<8> pdu_type;
    bit<8> flags;
    bit<16> length;
    bit<32> sequence_number;
    bit<16> checksum;
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
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
    vlan_t vlan;
    efcp_t efcp;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
}

struct metadata_t {
    // What the frame carries: the EtherType behind the VLAN tag if there is one.
    bit<16> payload_type;
    // The set of next hops of equal cost.
    Group group;
}

error {
    EfcpVersionWrong,
    EfcpPduTypeUnknown,
    Ipv4VersionWrong,
    Ipv4HeaderTooShort
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    // The frame behind it leaves as the control plane made it.
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.payload_type = hdr.ethernet.ether_type;
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_VLAN: parse_vlan;
            ETHERTYPE_EFCP: parse_efcp;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        meta.payload_type = hdr.vlan.ether_type;
        transition select(hdr.vlan.ether_type) {
            ETHERTYPE_EFCP: parse_efcp;
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_efcp {
        packet.extract(hdr.efcp);
        verify(hdr.efcp.version == EFCP_VERSION, error.EfcpVersionWrong);
        transition select(hdr.efcp.pdu_type) {
            EFCP_LAYER_MANAGEMENT: accept;
            0x80: accept; // data transfer
            0xC0: accept; // control: acknowledgement that answers a control PDU
            0xC1: accept; // acknowledgement
            0xC2: accept; // negative acknowledgement
            0xC4: accept; // flow control
            0xC5: accept; // acknowledgement and flow control
            0xC6: accept; // negative acknowledgement and flow control
            0xC9: accept; // selective acknowledgement
            0xCA: accept; // selective negative acknowledgement
            0xCD: accept; // selective acknowledgement and flow control
            0xCE: accept; // selective negative acknowledgement and flow control
            0xCF: accept; // rendezvous
            default: unknown_pdu_type;
        }
    }

    state unknown_pdu_type {
        verify(false, error.EfcpPduTypeUnknown);
        transition accept;
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
        // The checksum of EFCP covers the header, not what the PDU carries.
        verify_checksum(hdr.efcp.isValid(),
            { hdr.efcp.version, hdr.efcp.dst_addr, hdr.efcp.src_addr, hdr.efcp.qos_id, hdr.efcp.dst_cep_id,
              hdr.efcp.src_cep_id, hdr.efcp.pdu_type, hdr.efcp.flags, hdr.efcp.length,
              hdr.efcp.sequence_number },
            hdr.efcp.checksum, HashAlgorithm.csum16);
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not parsed (too short, version, unknown PDU type), 1: wrong checksum, 2: no protocol of ours,
    // 3: no route, 4: TTL at its end (not dropped: to the control plane).
    counter(5, CounterType.packets_and_bytes) refused;
    direct_counter(CounterType.packets_and_bytes) efcp_packets;
    direct_counter(CounterType.packets_and_bytes) ipv4_packets;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action to_cpu() {
        standard_metadata.egress_spec = CPU_PORT;
    }

    // Sets whether and how the frame is tagged on its way out, whatever it was on its way in.
    action encapsulate(VlanId vlan_id) {
        if (vlan_id == UNTAGGED) {
            hdr.vlan.setInvalid();
            hdr.ethernet.ether_type = meta.payload_type;
        } else {
            if (!hdr.vlan.isValid()) {
                hdr.vlan.setValid();
                hdr.vlan.priority = 0;
                hdr.vlan.drop_eligible = 0;
            }
            hdr.vlan.vlan_id = vlan_id;
            hdr.vlan.ether_type = meta.payload_type;
            hdr.ethernet.ether_type = ETHERTYPE_VLAN;
        }
    }

    action efcp_forward(VlanId vlan_id, MacAddress dst_mac, Port port) {
        encapsulate(vlan_id);
        hdr.ethernet.dst_addr = dst_mac;
        standard_metadata.egress_spec = port;
    }

    // Several next hops: `next_hops` chooses one by the connection.
    action efcp_multipath(Group group) {
        meta.group = group;
    }

    action ipv4_forward(VlanId vlan_id, MacAddress dst_mac, Port port) {
        encapsulate(vlan_id);
        hdr.ethernet.dst_addr = dst_mac;
        standard_metadata.egress_spec = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    // The addresses of this router's own IPC processes.
    table own_addresses {
        key = { hdr.efcp.dst_addr: exact; }
        actions = { NoAction; }
        const default_action = NoAction;
        size = 64;
    }

    table efcp_exact {
        key = { hdr.efcp.dst_addr: exact; }
        actions = { efcp_forward; efcp_multipath; to_cpu; drop; }
        const default_action = drop;
        counters = efcp_packets;
        size = 65536;
    }

    // A set of next hops is shared by all destinations behind it, so that a lost link changes few
    // entries. A connection keeps its next hop: its PDUs arrive in order.
    action_selector(HashAlgorithm.crc16, 4096, 16) next_hop_selector;
    table next_hops {
        key = {
            meta.group: exact;
            hdr.efcp.dst_addr: selector;
            hdr.efcp.src_addr: selector;
            hdr.efcp.qos_id: selector;
            hdr.efcp.dst_cep_id: selector;
            hdr.efcp.src_cep_id: selector;
        }
        actions = { efcp_forward; drop; }
        const default_action = drop;
        implementation = next_hop_selector;
        size = 1024;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { ipv4_forward; to_cpu; drop; }
        const default_action = drop;
        counters = ipv4_packets;
        size = 1048576;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            refused.count(0);
            drop();
        } else if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.checksum_error == 1) {
            refused.count(1);
            drop();
        } else if (hdr.efcp.isValid()) {
            // Layer management with address 0 comes from a neighbour that does not know our address
            // yet: it enrolls. Layer management of others is forwarded like everything else.
            if (hdr.efcp.pdu_type == EFCP_LAYER_MANAGEMENT && (hdr.efcp.dst_addr == 0 || own_addresses.apply().hit)) {
                to_cpu();
            } else {
                switch (efcp_exact.apply().action_run) {
                    efcp_multipath: {
                        if (!next_hops.apply().hit) {
                            refused.count(3);
                        }
                    }
                    drop: {
                        refused.count(3);
                    }
                    default: {
                    }
                }
            }
        } else if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ttl <= 1) {
                // The control plane answers with ICMP time exceeded.
                refused.count(4);
                to_cpu();
            } else if (!ipv4_lpm.apply().hit) {
                refused.count(3);
            }
        } else if (meta.payload_type == ETHERTYPE_ARP || meta.payload_type == ETHERTYPE_RINA_ARP) {
            to_cpu();
        } else {
            refused.count(2);
            drop();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets) marked;

    action set_src_mac(MacAddress mac) {
        hdr.ethernet.src_addr = mac;
    }

    // Marks PDUs that found more than this many packets in their queue. The checksum is computed
    // after this.
    action mark_above(bit<19> packets) {
        if (standard_metadata.enq_qdepth > packets) {
            hdr.efcp.flags = hdr.efcp.flags | EFCP_FLAG_ECN;
            marked.count((bit<32>) standard_metadata.egress_port);
        }
    }

    action mark_never() {
    }

    table port_macs {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_src_mac; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    // The default is for all ports that have no threshold of their own: half of a full queue.
    table ecn_thresholds {
        key = { standard_metadata.egress_port: exact; }
        actions = { mark_above; mark_never; }
        default_action = mark_above(32);
        size = 512;
    }

    apply {
        if (standard_metadata.egress_port == CPU_PORT) {
            // The control plane gets the frame and where it came from.
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.padding = 0;
        } else if (hdr.ethernet.isValid()) {
            port_macs.apply();
            if (hdr.efcp.isValid()) {
                ecn_thresholds.apply();
            }
        }
    }
}

control RouterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.efcp.isValid(),
            { hdr.efcp.version, hdr.efcp.dst_addr, hdr.efcp.src_addr, hdr.efcp.qos_id, hdr.efcp.dst_cep_id,
              hdr.efcp.src_cep_id, hdr.efcp.pdu_type, hdr.efcp.flags, hdr.efcp.length,
              hdr.efcp.sequence_number },
            hdr.efcp.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.vlan);
        packet.emit(hdr.efcp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
    }
}

V1Switch(RouterParser(), RouterVerifyChecksum(), RouterIngress(), RouterEgress(), RouterComputeChecksum(), RouterDeparser()) main;
