// The measuring switch of "Using P4-INT on Tofino for measuring device performance characteristics in a
// network lab" (Mazigh et al.): it puts its timestamps into UDP packets on their way into a device under
// test, and again when they come back. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;
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

// The 16 bits between the timestamps are there because the MAC of a Tofino, which writes the second
// one, needs them free.
header int_metadata_t {
    Timestamp ingress_timestamp;
    bit<16> empty;
    Timestamp egress_timestamp;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<1> bottom_of_stack;
    bit<15> reserved;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    int_shim_t int_shim;
    int_header_t int_header;
    int_metadata_t int_metadata;
}

struct metadata_t {
    bool measured;
    // How many hops may still be added where this switch is the first.
    bit<8> hops;
    bit<16> mtu;
    bit<16> checksum_before;
    bit<16> checksum_of_removed;
    bit<16> checksum_of_added;
    bit<16> added_bytes;
}

error {
    Ipv4VersionWrong,
    IntHeaderWrong
}

parser LabParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Packets with options and fragments are forwarded, not measured.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4, error.Ipv4VersionWrong);
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0b000 &&& 0b001, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INT_PORT: parse_int;
            default: accept;
        }
    }

    // Metadata of earlier hops stays what it is: payload below ours.
    state parse_int {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_header);
        verify(hdr.int_shim.type == INT_TYPE_MD && hdr.int_shim.length >= 3 && hdr.int_header.version == INT_VERSION,
            error.IntHeaderWrong);
        transition accept;
    }
}

control LabVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control LabIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not parsed, 1: wrong checksum.
    counter(2, CounterType.packets_and_bytes) refused;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(Port port) {
        standard_metadata.egress_spec = port;
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
        key = { standard_metadata.ingress_port: exact; }
        actions = { forward; drop; }
        const default_action = drop;
        size = 512;
    }

    // Packets of these ports are measured if they are UDP.
    table measured_ports {
        key = { standard_metadata.ingress_port: exact; }
        actions = { measure; measure_hops; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            refused.count(0);
            drop();
        } else if (standard_metadata.checksum_error == 1) {
            refused.count(1);
            drop();
        } else {
            wires.apply();
            if (hdr.udp.isValid()) {
                measured_ports.apply();
            }
        }
    }
}

control LabEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not measured because the hop count was at its end, 1: because it did not fit in the MTU.
    counter(2, CounterType.packets) not_measured;

    action set_mtu(bit<16> mtu) {
        meta.mtu = mtu;
    }

    // The longest IPv4 packet of a link.
    table mtus {
        key = { standard_metadata.egress_port: exact; }
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
        // The architecture's clock counts microseconds.
        hdr.int_metadata.ingress_timestamp = standard_metadata.ingress_global_timestamp * 1000;
        hdr.int_metadata.empty = 0;
        hdr.int_metadata.egress_timestamp = standard_metadata.egress_global_timestamp * 1000;
        hdr.int_metadata.ingress_port = (bit<16>) standard_metadata.ingress_port;
        hdr.int_metadata.egress_port = (bit<16>) standard_metadata.egress_port;
        hdr.int_metadata.bottom_of_stack = bottom_of_stack;
        hdr.int_metadata.reserved = 0;
        hdr.int_shim.length = hdr.int_shim.length + 5;
        hdr.int_header.remaining_hop_count = hdr.int_header.remaining_hop_count - 1;
        meta.added_bytes = meta.added_bytes + METADATA_BYTES;
    }

    // Lengths, and the checksum by what has changed: the payload is not summed again. A sender that
    // does without a checksum does without it here too.
    action repair_udp() {
        hdr.ipv4.total_length = hdr.ipv4.total_length + meta.added_bytes;
        hdr.udp.length = hdr.udp.length + meta.added_bytes;
        hash(meta.checksum_of_added, HashAlgorithm.csum16, 16w0,
            { hdr.udp.dst_port, hdr.int_shim, hdr.int_header, hdr.int_metadata, meta.added_bytes, meta.added_bytes },
            32w65536);
        if (hdr.udp.checksum != 0) {
            // An Internet checksum is the complement of a sum, so that of what was removed is what
            // has to be added.
            meta.checksum_before = ~hdr.udp.checksum;
            meta.checksum_of_added = ~meta.checksum_of_added;
            hash(hdr.udp.checksum, HashAlgorithm.csum16, 16w0,
                { meta.checksum_before, meta.checksum_of_removed, meta.checksum_of_added }, 32w65536);
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
    }

    apply {
        if (meta.measured) {
            mtus.apply();
            bit<17> length = (bit<17>) hdr.ipv4.total_length + (bit<17>) METADATA_BYTES;
            hash(meta.checksum_of_removed, HashAlgorithm.csum16, 16w0,
                { hdr.udp.dst_port, hdr.int_shim, hdr.int_header }, 32w65536);
            if (!hdr.int_shim.isValid()) {
                if (length + (bit<17>) (SHIM_BYTES + HEADER_BYTES) > (bit<17>) meta.mtu) {
                    not_measured.count(1);
                } else if (meta.hops == 0) {
                    not_measured.count(0);
                } else {
                    insert_header();
                    insert_metadata(1);
                    repair_udp();
                }
            } else {
                if (hdr.int_header.remaining_hop_count == 0) {
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
                repair_udp();
            }
        }
    }
}

control LabComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.udp.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control LabDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(LabParser(), LabVerifyChecksum(), LabIngress(), LabEgress(), LabComputeChecksum(), LabDeparser()) main;
