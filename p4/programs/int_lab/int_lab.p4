// The measuring switch of "Using P4-INT on Tofino for measuring device performance characteristics
// in a network lab" (Mazigh et al.): it puts its timestamps into UDP packets on their way into a
// device under test, and again when they come back. Where they leave for their receiver they can be
// restored, and the timestamps be reported. See README.md beside this file.
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
// The next protocol type of the shim: the UDP port says that there is INT.
const bit<2> MARKED_BY_UDP_PORT = 1;
const bit<4> INT_VERSION = 2;

const bit<4> REPORT_VERSION = 2;
const bit<4> REPORT_INNER_ONLY = 0;
const bit<4> REPORT_INNER_IPV4 = 4;
// Stands for a length that reaches to the end of the UDP datagram.
const bit<8> REPORT_LENGTH_OPEN = 0xFF;

const bit<32> REPORT_SESSION = 1;
// Metadata that a clone keeps, for its report.
#define REPORT_FIELDS 1
// standard_metadata.instance_type of a clone made in egress.
const bit<32> EGRESS_CLONE = 2;

const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
// Group header and individual header.
const bit<16> REPORT_BYTES = 12;
const bit<8> RECORD_WORDS = 5;
// The words of INT without records.
const bit<8> HEADER_WORDS = 3;
// The most words that the shim can count.
const bit<8> MOST_INT_WORDS = 255;
// Ports and both timestamps, the ports being last here.
const bit<16> INSTRUCTIONS = 0x4C00;
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

// The metadata of earlier hops.
header int_stack_t {
    varbit<8064> metadata;
}

header report_group_t {
    bit<4> version;
    bit<6> hardware_id;
    bit<22> sequence_number;
    bit<32> node_id;
}

header report_individual_t {
    bit<4> report_type;
    bit<4> inner_type;
    bit<8> report_length;
    bit<8> metadata_length;
    bit<1> dropped;
    bit<1> congested_queue;
    bit<1> tracked_flow;
    bit<1> intermediate;
    bit<4> reserved;
}

// INT in a packet: the shim, the header, what this switch adds, what was there.
struct telemetry_t {
    int_shim_t shim;
    int_header_t md;
    int_metadata_t metadata;
    int_stack_t stack;
}

struct headers_t {
    // The outside of a report.
    ethernet_t report_ethernet;
    ipv4_t report_ipv4;
    udp_t report_udp;
    report_group_t report_group;
    report_individual_t report_individual;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    telemetry_t telemetry;
    // What a sink has taken out, for the report. The deparser does not know it.
    telemetry_t removed_telemetry;
}

struct metadata_t {
    // Whether the packet comes from a host, which does not send INT.
    bool from_outside;
    bool forged;
    bool measured;
    bool sink;
    // The UDP checksum of the packet with INT, for the report.
    @field_list(REPORT_FIELDS) bit<16> checksum_with_int;
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
    // The ports of hosts: what they send to the UDP port of INT is not INT.
    value_set<Port>(512) outside_ports;

    state start {
        transition select(standard_metadata.ingress_port) {
            outside_ports: from_outside;
            default: parse_ethernet;
        }
    }

    state from_outside {
        meta.from_outside = true;
        transition parse_ethernet;
    }

    state parse_ethernet {
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
        transition select(meta.from_outside, hdr.udp.dst_port) {
            (false, INT_PORT): parse_int;
            (true, INT_PORT): forged;
            default: accept;
        }
    }

    // The sink would take bytes of the host's out of it.
    state forged {
        meta.forged = true;
        transition accept;
    }

    // Metadata of earlier hops stays what it is, below ours.
    state parse_int {
        packet.extract(hdr.telemetry.shim);
        packet.extract(hdr.telemetry.md);
        verify(hdr.telemetry.shim.type == INT_TYPE_MD && hdr.telemetry.shim.length >= HEADER_WORDS
            && hdr.telemetry.md.version == INT_VERSION, error.IntHeaderWrong);
        packet.extract(hdr.telemetry.stack, (bit<32>) (hdr.telemetry.shim.length - HEADER_WORDS) << 5);
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
    // 0: not parsed, 1: wrong checksum, 2: a host sent to the UDP port of INT.
    counter(3, CounterType.packets_and_bytes) refused;

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
        } else if (meta.forged) {
            refused.count(2);
            drop();
        } else {
            wires.apply();
            if (hdr.udp.isValid()) {
                measured_ports.apply();
            }
        }
    }
}

// Takes INT out of a packet: port, lengths and checksum are as they were before the first
// measurement.
control LabSink(inout headers_t hdr, inout metadata_t meta) {
    apply {
        telemetry_t none;
        bit<16> bytes = ((bit<16>) hdr.telemetry.shim.length + 1) << 2;
        meta.checksum_with_int = hdr.udp.checksum;
        // The length counts twice: in the UDP header and in the pseudo header.
        hash(meta.checksum_of_removed, HashAlgorithm.csum16, 16w0,
            { hdr.udp.dst_port, hdr.telemetry.shim, hdr.telemetry.md, hdr.telemetry.metadata,
              hdr.telemetry.stack, bytes, bytes }, 32w65536);
        hdr.udp.dst_port = hdr.telemetry.shim.original_dst_port;
        hdr.udp.length = hdr.udp.length - bytes;
        hdr.ipv4.total_length = hdr.ipv4.total_length - bytes;
        if (hdr.udp.checksum != 0) {
            meta.checksum_before = ~hdr.udp.checksum;
            hash(hdr.udp.checksum, HashAlgorithm.csum16, 16w0,
                { meta.checksum_before, meta.checksum_of_removed, hdr.udp.dst_port }, 32w65536);
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
        hdr.removed_telemetry = hdr.telemetry;
        hdr.telemetry = none;
        clone_preserving_field_list(CloneType.E2E, REPORT_SESSION, REPORT_FIELDS);
    }
}

// Makes a report of the clone: the packet with INT, from its IPv4 header to the end of the stack.
control LabReport(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1) report_sequence;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action restore_telemetry() {
        telemetry_t none;
        bit<16> bytes;
        hdr.telemetry = hdr.removed_telemetry;
        hdr.removed_telemetry = none;
        bytes = ((bit<16>) hdr.telemetry.shim.length + 1) << 2;
        hdr.udp.dst_port = INT_PORT;
        hdr.udp.length = hdr.udp.length + bytes;
        hdr.udp.checksum = meta.checksum_with_int;
        hdr.ipv4.total_length = hdr.ipv4.total_length + bytes;
    }

    action report(bit<32> node_id, MacAddress src_mac, MacAddress dst_mac, Ipv4Address src_addr, Ipv4Address dst_addr,
                  bit<16> port) {
        bit<32> sequence;
        bit<16> inner_words;
        @atomic {
            report_sequence.read(sequence, 0);
            report_sequence.write(0, sequence + 1);
        }
        restore_telemetry();
        inner_words = ((IPV4_BYTES + UDP_BYTES + SHIM_BYTES) >> 2) + (bit<16>) hdr.telemetry.shim.length;
        hdr.ethernet.setInvalid();
        hdr.report_ethernet.setValid();
        hdr.report_ethernet.dst_addr = dst_mac;
        hdr.report_ethernet.src_addr = src_mac;
        hdr.report_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = port;
        hdr.report_udp.dst_port = port;
        hdr.report_udp.length = UDP_BYTES + REPORT_BYTES + (inner_words << 2);
        hdr.report_udp.checksum = 0;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.dscp = 0;
        hdr.report_ipv4.ecn = 0;
        hdr.report_ipv4.total_length = IPV4_BYTES + hdr.report_udp.length;
        hdr.report_ipv4.identification = 0;
        // May not be fragmented, so that the identification may be 0.
        hdr.report_ipv4.flags = 0b010;
        hdr.report_ipv4.fragment_offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.protocol = PROTOCOL_UDP;
        hdr.report_ipv4.src_addr = src_addr;
        hdr.report_ipv4.dst_addr = dst_addr;
        hdr.report_group.setValid();
        hdr.report_group.version = REPORT_VERSION;
        hdr.report_group.hardware_id = 0;
        hdr.report_group.sequence_number = sequence[21:0];
        hdr.report_group.node_id = node_id;
        hdr.report_individual.setValid();
        hdr.report_individual.report_type = REPORT_INNER_ONLY;
        hdr.report_individual.inner_type = REPORT_INNER_IPV4;
        hdr.report_individual.report_length = REPORT_LENGTH_OPEN;
        if (inner_words < (bit<16>) REPORT_LENGTH_OPEN) {
            hdr.report_individual.report_length = (bit<8>) inner_words;
        }
        hdr.report_individual.metadata_length = 0;
        hdr.report_individual.dropped = 0;
        hdr.report_individual.congested_queue = 0;
        hdr.report_individual.tracked_flow = 1;
        hdr.report_individual.intermediate = 0;
        hdr.report_individual.reserved = 0;
        truncate((bit<32>) (ETHERNET_BYTES + hdr.report_ipv4.total_length));
    }

    // Where reports go. Nowhere unless the control plane says so.
    table collector {
        actions = { report; drop; }
        default_action = drop;
    }

    apply {
        collector.apply();
    }
}

control LabEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    LabSink() remove;
    LabReport() report;
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

    action sink() {
        meta.sink = true;
    }

    // INT ends in front of these ports: those of hosts.
    table sink_ports {
        key = { standard_metadata.egress_port: exact; }
        actions = { sink; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    action insert_header() {
        hdr.telemetry.shim.setValid();
        hdr.telemetry.shim.type = INT_TYPE_MD;
        hdr.telemetry.shim.next_protocol_type = MARKED_BY_UDP_PORT;
        hdr.telemetry.shim.reserved = 0;
        hdr.telemetry.shim.length = HEADER_WORDS;
        hdr.telemetry.shim.original_dst_port = hdr.udp.dst_port;
        hdr.udp.dst_port = INT_PORT;
        hdr.telemetry.md.setValid();
        hdr.telemetry.md.version = INT_VERSION;
        hdr.telemetry.md.discard = 0;
        hdr.telemetry.md.hop_count_exceeded = 0;
        hdr.telemetry.md.mtu_exceeded = 0;
        hdr.telemetry.md.reserved = 0;
        hdr.telemetry.md.hop_words = (bit<5>) RECORD_WORDS;
        hdr.telemetry.md.remaining_hop_count = meta.hops;
        hdr.telemetry.md.instructions = INSTRUCTIONS;
        hdr.telemetry.md.domain_id = 0;
        hdr.telemetry.md.domain_instructions = 0;
        hdr.telemetry.md.domain_flags = 0;
        meta.added_bytes = meta.added_bytes + SHIM_BYTES + HEADER_BYTES;
    }

    action insert_metadata(bit<1> bottom_of_stack) {
        hdr.telemetry.metadata.setValid();
        // The architecture's clock counts microseconds.
        hdr.telemetry.metadata.ingress_timestamp = standard_metadata.ingress_global_timestamp * 1000;
        hdr.telemetry.metadata.empty = 0;
        hdr.telemetry.metadata.egress_timestamp = standard_metadata.egress_global_timestamp * 1000;
        hdr.telemetry.metadata.ingress_port = (bit<16>) standard_metadata.ingress_port;
        hdr.telemetry.metadata.egress_port = (bit<16>) standard_metadata.egress_port;
        hdr.telemetry.metadata.bottom_of_stack = bottom_of_stack;
        hdr.telemetry.metadata.reserved = 0;
        hdr.telemetry.shim.length = hdr.telemetry.shim.length + RECORD_WORDS;
        hdr.telemetry.md.remaining_hop_count = hdr.telemetry.md.remaining_hop_count - 1;
        meta.added_bytes = meta.added_bytes + METADATA_BYTES;
    }

    // Lengths, and the checksum by what has changed: the payload is not summed again. A sender that
    // does without a checksum does without it here too.
    action repair_udp() {
        hdr.ipv4.total_length = hdr.ipv4.total_length + meta.added_bytes;
        hdr.udp.length = hdr.udp.length + meta.added_bytes;
        hash(meta.checksum_of_added, HashAlgorithm.csum16, 16w0,
            { hdr.udp.dst_port, hdr.telemetry.shim, hdr.telemetry.md, hdr.telemetry.metadata,
              meta.added_bytes, meta.added_bytes }, 32w65536);
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

    action measure() {
        bit<17> length = (bit<17>) hdr.ipv4.total_length + (bit<17>) METADATA_BYTES;
        hash(meta.checksum_of_removed, HashAlgorithm.csum16, 16w0,
            { hdr.udp.dst_port, hdr.telemetry.shim, hdr.telemetry.md }, 32w65536);
        if (!hdr.telemetry.shim.isValid()) {
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
            if (hdr.telemetry.md.remaining_hop_count == 0) {
                not_measured.count(0);
                hdr.telemetry.md.hop_count_exceeded = 1;
            } else if (length > (bit<17>) meta.mtu || hdr.telemetry.shim.length > MOST_INT_WORDS - RECORD_WORDS) {
                not_measured.count(1);
                hdr.telemetry.md.mtu_exceeded = 1;
            } else if (hdr.telemetry.shim.length == HEADER_WORDS) {
                insert_metadata(1);
            } else {
                insert_metadata(0);
            }
            repair_udp();
        }
    }

    apply {
        if (standard_metadata.instance_type == EGRESS_CLONE) {
            report.apply(hdr, meta, standard_metadata);
        } else {
            sink_ports.apply();
            // A sink starts no measurement: it would end at once.
            if (meta.measured && (hdr.telemetry.shim.isValid() || !meta.sink)) {
                mtus.apply();
                if (meta.sink) {
                    // What is added here does not leave: it need not fit.
                    meta.mtu = 0xFFFF;
                }
                measure();
            }
            if (meta.sink && hdr.telemetry.shim.isValid()) {
                remove.apply(hdr, meta);
            }
        }
    }
}

control LabComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.report_ipv4.isValid(),
            { hdr.report_ipv4.version, hdr.report_ipv4.ihl, hdr.report_ipv4.dscp, hdr.report_ipv4.ecn,
              hdr.report_ipv4.total_length, hdr.report_ipv4.identification, hdr.report_ipv4.flags,
              hdr.report_ipv4.fragment_offset, hdr.report_ipv4.ttl, hdr.report_ipv4.protocol,
              hdr.report_ipv4.src_addr, hdr.report_ipv4.dst_addr },
            hdr.report_ipv4.header_checksum, HashAlgorithm.csum16);
        update_checksum(hdr.udp.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control LabDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report_ethernet);
        packet.emit(hdr.report_ipv4);
        packet.emit(hdr.report_udp);
        packet.emit(hdr.report_group);
        packet.emit(hdr.report_individual);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.telemetry);
    }
}

V1Switch(LabParser(), LabVerifyChecksum(), LabIngress(), LabEgress(), LabComputeChecksum(), LabDeparser()) main;
