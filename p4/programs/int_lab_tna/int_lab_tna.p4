// The measuring switch of "Using P4-INT on Tofino for measuring device performance characteristics in a network lab"
// (Mazigh et al.) on the device that it was built with: the second timestamp is that of the moment of transmission, which
// the port writes. See README.md beside this file.
#include <core.p4>
#include <tna.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
// Nanoseconds; they wrap after 78 hours.
typedef bit<48> Timestamp;

// This UDP destination port says that a packet carries INT. None is assigned.
#ifndef INT_UDP_PORT
#define INT_UDP_PORT 5000
#endif
// How many nodes may add their metadata to a packet.
#ifndef INT_HOPS
#define INT_HOPS 8
#endif

const bit<16> INT_PORT = INT_UDP_PORT;
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<4> INT_TYPE_MD = 1;
const bit<4> INT_VERSION = 2;

const bit<16> SHIM_BYTES = 4;
const bit<16> HEADER_BYTES = 12;
const bit<16> METADATA_BYTES = 20;

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

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header int_shim_t {
    bit<4> type;
    bit<2> next_protocol_type;
    bit<2> reserved;
    bit<8> length;
    bit<16> original_dst_port;
}

// The header of INT-MD 2.1. There are no instructions: every node adds the same metadata, and the
// bitmap says what that amounts to (ports and both timestamps).
header int_header_t {
    bit<4> version;
    bit<1> discard;
    bit<1> hop_count_exceeded;
    bit<1> mtu_exceeded;
    bit<12> reserved;
    bit<5> hop_words;
    bit<8> remaining_hop_count;
    bit<16> instructions;
    bit<16> domain_id;
    bit<16> domain_instructions;
    bit<16> domain_flags;
}

// The egress timestamp is written by the port, when it sends the packet.
header int_metadata_t {
    Timestamp ingress_timestamp;
    bit<16> empty;
    Timestamp egress_timestamp;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<1> bottom_of_stack;
    bit<15> reserved;
}

// The bytes of the packet that the port writes and mends: the second timestamp behind Ethernet, IPv4, UDP, shim, header
// and the first one, and the UDP checksum.
const bit<8> TIMESTAMP_OFFSET = 66;
const bit<8> CHECKSUM_OFFSET = 40;

// From ingress to egress: whether the packet is measured.
header bridge_t {
    bit<1> measured;
    bit<7> reserved;
}

struct headers_t {
    bridge_t bridge;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    int_shim_t int_shim;
    int_header_t int_header;
    int_metadata_t int_metadata;
}

struct metadata_t {
    bool measured;
    // The packet's UDP checksum is to be mended.
    bool has_checksum;
    bool ipv4_checksum_error;
    // How many hops may still be added where this switch is the first.
    bit<8> hops;
    bit<16> mtu;
    bit<16> added_bytes;
    // The sum of all that UDP's checksum covers and ingress does not change.
    bit<16> rest;
}

struct egress_headers_t {
    ptp_metadata_t ptp;
    bridge_t bridge;
}

struct none_t {
}

parser LabIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.ipv4_checksum_error = false;
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Packets with options and fragments are forwarded, not measured.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl) {
            (4, 5): parse_plain_ipv4;
            (4, 6 .. 15): accept;
        }
    }

    state parse_plain_ipv4 {
        ipv4_checksum.add(hdr.ipv4);
        meta.ipv4_checksum_error = ipv4_checksum.verify();
        transition select(hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0b000 &&& 0b001, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    // The length is in the header and in the pseudo header.
    state parse_udp {
        packet.extract(hdr.udp);
        udp_checksum.subtract({ hdr.udp.checksum, hdr.udp.dst_port, hdr.udp.length, hdr.udp.length });
        transition select(hdr.udp.dst_port) {
            INT_PORT: parse_int;
            default: parsed;
        }
    }

    // Metadata of earlier hops stays what it is: payload below ours.
    state parse_int {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_header);
        udp_checksum.subtract(hdr.int_shim);
        udp_checksum.subtract(hdr.int_header);
        transition select(hdr.int_shim.type, hdr.int_shim.length, hdr.int_header.version) {
            (INT_TYPE_MD, 3 .. 255, INT_VERSION): parsed;
        }
    }

    state parsed {
        meta.rest = udp_checksum.get();
        transition accept;
    }
}

control LabIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t tm) {
    // 0: cut off, 1: wrong checksum.
    Counter<bit<64>, bit<1>>(2, CounterType_t.PACKETS_AND_BYTES) refused;
    // 0: not measured because the hop count was at its end, 1: because it did not fit in the MTU.
    Counter<bit<64>, bit<1>>(2, CounterType_t.PACKETS) not_measured;

    action drop() {
        for_deparser.drop_ctl = 1;
    }

    action forward(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    action measure() {
        meta.measured = true;
        meta.hops = INT_HOPS;
    }

    action measure_hops(bit<8> hops) {
        meta.measured = true;
        meta.hops = hops;
    }

    // The switch is wired, not routed: a port's packets go out of one other port.
    table wires {
        key = { intrinsic.ingress_port: exact; }
        actions = { forward; drop; }
        const default_action = drop;
        size = 512;
    }

    // Packets of these ports are measured if they are UDP.
    table measured_ports {
        key = { intrinsic.ingress_port: exact; }
        actions = { measure; measure_hops; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    action set_mtu(bit<16> mtu) {
        meta.mtu = mtu;
    }

    // The longest IPv4 packet of a link.
    table mtus {
        key = { tm.ucast_egress_port: exact; }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = 512;
    }

    action insert_header() {
        hdr.int_shim.setValid();
        hdr.int_shim.type = INT_TYPE_MD;
        hdr.int_shim.next_protocol_type = 1;
        hdr.int_shim.reserved = 0;
        hdr.int_shim.length = 3;
        hdr.int_shim.original_dst_port = hdr.udp.dst_port;
        hdr.udp.dst_port = INT_PORT;
        hdr.int_header.setValid();
        hdr.int_header.version = INT_VERSION;
        hdr.int_header.discard = 0;
        hdr.int_header.hop_count_exceeded = 0;
        hdr.int_header.mtu_exceeded = 0;
        hdr.int_header.reserved = 0;
        hdr.int_header.hop_words = 5;
        hdr.int_header.remaining_hop_count = meta.hops;
        hdr.int_header.instructions = 0x4C00;
        hdr.int_header.domain_id = 0;
        hdr.int_header.domain_instructions = 0;
        hdr.int_header.domain_flags = 0;
        meta.added_bytes = meta.added_bytes + SHIM_BYTES + HEADER_BYTES;
    }

    action insert_metadata(bit<1> bottom_of_stack) {
        hdr.int_metadata.setValid();
        hdr.int_metadata.ingress_timestamp = intrinsic.ingress_mac_tstamp;
        hdr.int_metadata.empty = 0;
        hdr.int_metadata.egress_timestamp = 0;
        hdr.int_metadata.ingress_port = (bit<16>) intrinsic.ingress_port;
        hdr.int_metadata.egress_port = (bit<16>) tm.ucast_egress_port;
        hdr.int_metadata.bottom_of_stack = bottom_of_stack;
        hdr.int_metadata.reserved = 0;
        hdr.int_shim.length = hdr.int_shim.length + 5;
        hdr.int_header.remaining_hop_count = hdr.int_header.remaining_hop_count - 1;
        meta.added_bytes = meta.added_bytes + METADATA_BYTES;
        hdr.bridge.measured = 1;
    }

    action add_metadata() {
        bit<17> length = (bit<17>) hdr.ipv4.total_length + (bit<17>) METADATA_BYTES;
        if (!hdr.int_shim.isValid()) {
            if (length + (bit<17>) (SHIM_BYTES + HEADER_BYTES) > (bit<17>) meta.mtu) {
                not_measured.count(1);
            } else if (meta.hops == 0) {
                not_measured.count(0);
            } else {
                insert_header();
                insert_metadata(1);
            }
        } else if (hdr.int_header.remaining_hop_count == 0) {
            not_measured.count(0);
            hdr.int_header.hop_count_exceeded = 1;
        } else if (length > (bit<17>) meta.mtu || hdr.int_shim.length > 250) {
            not_measured.count(1);
            hdr.int_header.mtu_exceeded = 1;
        } else if (hdr.int_shim.length == 3) {
            insert_metadata(1);
        } else {
            insert_metadata(0);
        }
        hdr.ipv4.total_length = hdr.ipv4.total_length + meta.added_bytes;
        hdr.udp.length = hdr.udp.length + meta.added_bytes;
        // A sender that does without a checksum does without it here, too.
        meta.has_checksum = hdr.udp.checksum != 0;
    }

    apply {
        hdr.bridge.setValid();
        hdr.bridge.measured = 0;
        hdr.bridge.reserved = 0;
        if (from_parser.parser_err != PARSER_ERROR_OK) {
            refused.count(0);
            drop();
        } else if (meta.ipv4_checksum_error) {
            refused.count(1);
            drop();
        } else {
            wires.apply();
            if (hdr.udp.isValid()) {
                measured_ports.apply();
                if (meta.measured) {
                    mtus.apply();
                    add_metadata();
                }
            }
        }
    }
}

control LabIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;

    apply {
        if (meta.measured) {
            hdr.ipv4.header_checksum = ipv4_checksum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
                hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr });
        }
        // The payload is not summed again: its sum is what the parser has left of the old checksum.
        if (meta.has_checksum) {
            hdr.udp.checksum = udp_checksum.update(data = { meta.rest, hdr.udp.dst_port, hdr.udp.length, hdr.udp.length,
                hdr.int_shim, hdr.int_header, hdr.int_metadata }, zeros_as_ones = true);
        }
        packet.emit(hdr);
    }
}

parser LabEgressParser(packet_in packet, out egress_headers_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.extract(hdr.bridge);
        transition accept;
    }
}

control LabEgress(inout egress_headers_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                  inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply {
        if (hdr.bridge.measured == 1) {
            for_port.update_delay_on_tx = 1;
            hdr.ptp.setValid();
            hdr.ptp.udp_cksum_byte_offset = CHECKSUM_OFFSET;
            hdr.ptp.cf_byte_offset = TIMESTAMP_OFFSET;
            hdr.ptp.updated_cf = 0;
        }
        hdr.bridge.setInvalid();
    }
}

control LabEgressDeparser(packet_out packet, inout egress_headers_t hdr, in none_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(LabIngressParser(), LabIngress(), LabIngressDeparser(), LabEgressParser(), LabEgress(), LabEgressDeparser()) pipe;

Switch(pipe) main;
