// The measuring switch of "Using P4-INT on Tofino for measuring device performance characteristics
// in a network lab" (Mazigh et al.) on the device that it was built with: the second timestamp is
// that of the moment of transmission, which the port writes. Where packets leave for their receiver
// they can be restored, and the timestamps be reported. See README.md beside this file.
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
// The next protocol type of the shim: the UDP port says that there is INT.
const bit<2> MARKED_BY_UDP_PORT = 1;
const bit<4> INT_VERSION = 2;

const bit<4> REPORT_VERSION = 2;
const bit<4> REPORT_INNER_ONLY = 0;
const bit<4> REPORT_INNER_IPV4 = 4;
// Stands for a length that reaches to the end of the UDP datagram.
const bit<8> REPORT_LENGTH_OPEN = 0xFF;
// The mirror session of reports, and the kind of mirror that ingress makes.
const MirrorId_t REPORT_SESSION = 1;
const MirrorType_t REPORT_MIRROR = 1;

// What egress gets in front of a packet begins with its kind.
const bit<8> KIND_PLAIN = 0;
const bit<8> KIND_MEASURED = 1;
const bit<8> KIND_REPORT = 2;

// The records of earlier hops that a sink can take out.
#define MOST_RECORDS 16
const bit<8> RECORD_WORDS = 5;
// The words of INT without records.
const bit<8> HEADER_WORDS = 3;
// The most words that the shim can count.
const bit<8> MOST_INT_WORDS = 255;
// Ports and both timestamps, the ports being last here.
const bit<16> INSTRUCTIONS = 0x4C00;
const bit<8> MOST_WORDS = HEADER_WORDS + MOST_RECORDS * RECORD_WORDS;
// The value of a timestamp that is not available.
const Timestamp NO_TIMESTAMP = 0xFFFFFFFFFFFF;

const bit<16> ETHERNET_BYTES = 14;
const bit<16> IPV4_BYTES = 20;
const bit<16> UDP_BYTES = 8;
// Group header and individual header.
const bit<16> REPORT_BYTES = 12;
const bit<16> MIRROR_BYTES = 12;
// `pkt_length` counts the frame check sequence.
const bit<16> FRAME_CHECK_BYTES = 4;
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

// The bytes of the packet that the port writes and mends: the second timestamp behind Ethernet,
// IPv4, UDP, shim, header and the first one, and the UDP checksum.
const bit<8> TIMESTAMP_OFFSET = 66;
const bit<8> CHECKSUM_OFFSET = 40;

// From ingress to egress: whether the packet is measured.
header bridge_t {
    bit<8> kind;
}

// In front of a packet that a sink mirrors: what it would have added.
header mirror_t {
    bit<8> kind;
    Timestamp ingress_timestamp;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<1> measured;
    bit<1> hop_count_exceeded;
    bit<1> mtu_exceeded;
    bit<5> reserved;
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

struct headers_t {
    bridge_t bridge;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    int_shim_t int_shim;
    int_header_t int_header;
    int_metadata_t int_metadata;
    int_metadata_t[MOST_RECORDS] int_stack;
}

struct metadata_t {
    // Whether the packet comes from a host, which does not send INT.
    bool from_outside;
    bool forged;
    bool sink;
    // There are more records than a sink can take out, or part of one.
    bool not_removable;
    mirror_t mirror;
    // The sum as `rest`, without the records.
    bit<16> rest_of_removed;
    bool measured;
    // Lengths and checksums are to follow what has changed.
    bool changed;
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
    mirror_t mirror;
    // The outside of a report.
    ethernet_t report_ethernet;
    ipv4_t report_ipv4;
    udp_t report_udp;
    report_group_t report_group;
    report_individual_t report_individual;
    // The packet in the report.
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    int_shim_t int_shim;
    int_header_t int_header;
    int_metadata_t int_metadata;
}

struct egress_metadata_t {
    // The sum of all that the UDP checksum of a reported packet covers and egress does not change.
    bit<16> rest;
    bool has_checksum;
}

parser LabIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;
    Checksum() checksum_of_removed;
    ParserCounter() words;
    // The ports of hosts: what they send to the UDP port of INT is not INT.
    value_set<PortId_t>(512) outside_ports;

    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        meta.ipv4_checksum_error = false;
        transition select(intrinsic.ingress_port) {
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
        checksum_of_removed.subtract({ hdr.udp.checksum, hdr.udp.dst_port, hdr.udp.length, hdr.udp.length });
        transition select(meta.from_outside, hdr.udp.dst_port) {
            (false, INT_PORT): parse_int;
            (true, INT_PORT): parse_forged;
            default: parsed;
        }
    }

    // The sink would take bytes of the host's out of it.
    state parse_forged {
        meta.forged = true;
        transition accept;
    }

    // Metadata of earlier hops stays what it is, below ours.
    state parse_int {
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_header);
        udp_checksum.subtract(hdr.int_shim);
        udp_checksum.subtract(hdr.int_header);
        checksum_of_removed.subtract(hdr.int_shim);
        checksum_of_removed.subtract(hdr.int_header);
        words.set(hdr.int_shim.length);
        words.decrement(HEADER_WORDS);
        transition select(hdr.int_shim.type, hdr.int_shim.length, hdr.int_header.version) {
            (INT_TYPE_MD, HEADER_WORDS .. MOST_WORDS, INT_VERSION): find_record;
            (INT_TYPE_MD, HEADER_WORDS .. MOST_INT_WORDS, INT_VERSION): parse_unknown_stack;
        }
    }

    state find_record {
        transition select(words.is_zero(), words.is_negative()) {
            (true, false): parsed;
            (false, false): parse_record;
            default: parse_unknown_stack;
        }
    }

    state parse_record {
        packet.extract(hdr.int_stack.next);
        checksum_of_removed.subtract(hdr.int_stack.last);
        words.decrement(RECORD_WORDS);
        transition find_record;
    }

    state parse_unknown_stack {
        meta.not_removable = true;
        transition parsed;
    }

    state parsed {
        meta.rest = udp_checksum.get();
        meta.rest_of_removed = checksum_of_removed.get();
        transition accept;
    }
}

control LabIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                   in ingress_intrinsic_metadata_from_parser_t from_parser,
                   inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                   inout ingress_intrinsic_metadata_for_tm_t tm) {
    // 0: cut off, 1: wrong checksum, 2: a host sent to the UDP port of INT, 3: a sink cannot remove
    // INT.
    Counter<bit<64>, bit<2>>(4, CounterType_t.PACKETS_AND_BYTES) refused;
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

    action sink() {
        meta.sink = true;
    }

    // INT ends in front of these ports: those of hosts.
    table sink_ports {
        key = { tm.ucast_egress_port: exact; }
        actions = { sink; NoAction; }
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
        hdr.int_shim.next_protocol_type = MARKED_BY_UDP_PORT;
        hdr.int_shim.reserved = 0;
        hdr.int_shim.length = HEADER_WORDS;
        hdr.int_shim.original_dst_port = hdr.udp.dst_port;
        hdr.udp.dst_port = INT_PORT;
        hdr.int_header.setValid();
        hdr.int_header.version = INT_VERSION;
        hdr.int_header.discard = 0;
        hdr.int_header.hop_count_exceeded = 0;
        hdr.int_header.mtu_exceeded = 0;
        hdr.int_header.reserved = 0;
        hdr.int_header.hop_words = (bit<5>) RECORD_WORDS;
        hdr.int_header.remaining_hop_count = meta.hops;
        hdr.int_header.instructions = INSTRUCTIONS;
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
        hdr.int_shim.length = hdr.int_shim.length + RECORD_WORDS;
        hdr.int_header.remaining_hop_count = hdr.int_header.remaining_hop_count - 1;
        meta.added_bytes = meta.added_bytes + METADATA_BYTES;
        hdr.bridge.kind = KIND_MEASURED;
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
        } else if (length > (bit<17>) meta.mtu || hdr.int_shim.length > MOST_INT_WORDS - RECORD_WORDS) {
            not_measured.count(1);
            hdr.int_header.mtu_exceeded = 1;
        } else if (hdr.int_shim.length == HEADER_WORDS) {
            insert_metadata(1);
        } else {
            insert_metadata(0);
        }
        hdr.ipv4.total_length = hdr.ipv4.total_length + meta.added_bytes;
        hdr.udp.length = hdr.udp.length + meta.added_bytes;
        meta.changed = true;
        // A sender that does without a checksum does without it here, too.
        meta.has_checksum = hdr.udp.checksum != 0;
    }

    // Port and lengths are as they were before the first measurement. The report is a mirror of the
    // packet as it came, to which egress adds what would have been added here.
    action remove() {
        bit<16> bytes = ((bit<16>) hdr.int_shim.length + 1) << 2;
        meta.mirror.setValid();
        meta.mirror.kind = KIND_REPORT;
        meta.mirror.ingress_timestamp = intrinsic.ingress_mac_tstamp;
        meta.mirror.ingress_port = (bit<16>) intrinsic.ingress_port;
        meta.mirror.egress_port = (bit<16>) tm.ucast_egress_port;
        meta.mirror.measured = 0;
        if (hdr.int_metadata.isValid()) {
            meta.mirror.measured = 1;
        }
        meta.mirror.hop_count_exceeded = hdr.int_header.hop_count_exceeded;
        meta.mirror.mtu_exceeded = hdr.int_header.mtu_exceeded;
        meta.mirror.reserved = 0;
        hdr.udp.dst_port = hdr.int_shim.original_dst_port;
        hdr.udp.length = hdr.udp.length - bytes;
        hdr.ipv4.total_length = hdr.ipv4.total_length - bytes;
        hdr.int_shim.setInvalid();
        hdr.int_header.setInvalid();
        hdr.int_metadata.setInvalid();
        hdr.int_stack.pop_front(MOST_RECORDS);
        hdr.bridge.kind = KIND_PLAIN;
        meta.rest = meta.rest_of_removed;
        meta.changed = true;
        meta.has_checksum = hdr.udp.checksum != 0;
        for_deparser.mirror_type = REPORT_MIRROR;
    }

    apply {
        hdr.bridge.setValid();
        hdr.bridge.kind = KIND_PLAIN;
        if (from_parser.parser_err != PARSER_ERROR_OK) {
            refused.count(0);
            drop();
        } else if (meta.ipv4_checksum_error) {
            refused.count(1);
            drop();
        } else if (meta.forged) {
            refused.count(2);
            drop();
        } else if (wires.apply().hit && hdr.udp.isValid()) {
            sink_ports.apply();
            if (meta.sink && hdr.int_shim.isValid() && meta.not_removable) {
                refused.count(3);
                drop();
            } else {
                measured_ports.apply();
                // A sink starts no measurement: it would end at once.
                if (meta.measured && (hdr.int_shim.isValid() || !meta.sink)) {
                    mtus.apply();
                    if (meta.sink) {
                        // What is added here does not leave: it need not fit.
                        meta.mtu = 0xFFFF;
                    }
                    add_metadata();
                }
                if (meta.sink && hdr.int_shim.isValid()) {
                    remove();
                }
            }
        }
    }
}

control LabIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;
    Mirror(REPORT_MIRROR) report;

    apply {
        if (for_deparser.mirror_type == REPORT_MIRROR) {
            report.emit<mirror_t>(REPORT_SESSION, meta.mirror);
        }
        if (meta.changed) {
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

parser LabEgressParser(packet_in packet, out egress_headers_t hdr, out egress_metadata_t meta, out egress_intrinsic_metadata_t intrinsic) {
    Checksum() udp_checksum;

    state start {
        packet.extract(intrinsic);
        transition select(packet.lookahead<bit<8>>()) {
            KIND_REPORT: parse_mirror;
            default: parse_bridge;
        }
    }

    state parse_bridge {
        packet.extract(hdr.bridge);
        transition accept;
    }

    // Ingress has seen that all this is there.
    state parse_mirror {
        packet.extract(hdr.mirror);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.int_shim);
        packet.extract(hdr.int_header);
        udp_checksum.subtract({ hdr.udp.checksum, hdr.udp.length, hdr.udp.length });
        udp_checksum.subtract(hdr.int_shim);
        udp_checksum.subtract(hdr.int_header);
        meta.rest = udp_checksum.get();
        transition accept;
    }
}

// Makes a report of a mirrored packet: what the sink measured comes on top of its records, and the
// headers of a report in front.
control LabReport(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Register<bit<32>, bit<1>>(1) report_sequence;
    RegisterAction<bit<32>, bit<1>, bit<32>>(report_sequence) next_sequence = {
        void apply(inout bit<32> value, out bit<32> sequence) {
            sequence = value;
            value = value + 1;
        }
    };

    action drop() {
        for_deparser.drop_ctl = 1;
    }

    // The sink's time of departure is that of a packet without INT: it is not known here.
    action insert_metadata() {
        hdr.int_metadata.setValid();
        hdr.int_metadata.ingress_timestamp = hdr.mirror.ingress_timestamp;
        hdr.int_metadata.empty = 0;
        hdr.int_metadata.egress_timestamp = NO_TIMESTAMP;
        hdr.int_metadata.ingress_port = hdr.mirror.ingress_port;
        hdr.int_metadata.egress_port = hdr.mirror.egress_port;
        hdr.int_metadata.bottom_of_stack = 0;
        if (hdr.int_shim.length == HEADER_WORDS) {
            hdr.int_metadata.bottom_of_stack = 1;
        }
        hdr.int_metadata.reserved = 0;
        hdr.int_shim.length = hdr.int_shim.length + RECORD_WORDS;
        hdr.int_header.remaining_hop_count = hdr.int_header.remaining_hop_count - 1;
        hdr.ipv4.total_length = hdr.ipv4.total_length + METADATA_BYTES;
        hdr.udp.length = hdr.udp.length + METADATA_BYTES;
    }

    action report(bit<32> node_id, MacAddress src_mac, MacAddress dst_mac, Ipv4Address src_addr, Ipv4Address dst_addr,
                  bit<16> port) {
        // From the IPv4 header to the end of what the mirror session lets through.
        bit<16> inner_bytes = intrinsic.pkt_length - FRAME_CHECK_BYTES - MIRROR_BYTES - ETHERNET_BYTES;
        hdr.int_header.hop_count_exceeded = hdr.mirror.hop_count_exceeded;
        hdr.int_header.mtu_exceeded = hdr.mirror.mtu_exceeded;
        if (hdr.mirror.measured == 1) {
            insert_metadata();
            inner_bytes = inner_bytes + METADATA_BYTES;
        }
        meta.has_checksum = hdr.udp.checksum != 0;
        hdr.mirror.setInvalid();
        hdr.ethernet.setInvalid();
        hdr.report_ethernet.setValid();
        hdr.report_ethernet.dst_addr = dst_mac;
        hdr.report_ethernet.src_addr = src_mac;
        hdr.report_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = port;
        hdr.report_udp.dst_port = port;
        hdr.report_udp.length = UDP_BYTES + REPORT_BYTES + inner_bytes;
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
        hdr.report_group.sequence_number = (bit<22>) next_sequence.execute(0);
        hdr.report_group.node_id = node_id;
        hdr.report_individual.setValid();
        hdr.report_individual.report_type = REPORT_INNER_ONLY;
        hdr.report_individual.inner_type = REPORT_INNER_IPV4;
        // The payload is part of it, whose length need not be whole words.
        hdr.report_individual.report_length = REPORT_LENGTH_OPEN;
        hdr.report_individual.metadata_length = 0;
        hdr.report_individual.dropped = 0;
        hdr.report_individual.congested_queue = 0;
        hdr.report_individual.tracked_flow = 1;
        hdr.report_individual.intermediate = 0;
        hdr.report_individual.reserved = 0;
    }

    // Where reports go. Nowhere unless the control plane says so.
    table collector {
        actions = { report; drop; }
        default_action = drop;
        size = 1;
    }

    apply {
        collector.apply();
    }
}

control LabEgress(inout egress_headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t intrinsic,
                  in egress_intrinsic_metadata_from_parser_t from_parser,
                  inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                  inout egress_intrinsic_metadata_for_output_port_t for_port) {
    LabReport() report;

    apply {
        if (hdr.mirror.isValid()) {
            report.apply(hdr, meta, intrinsic, for_deparser);
        } else if (hdr.bridge.kind == KIND_MEASURED) {
            for_port.update_delay_on_tx = 1;
            hdr.ptp.setValid();
            hdr.ptp.udp_cksum_byte_offset = CHECKSUM_OFFSET;
            hdr.ptp.cf_byte_offset = TIMESTAMP_OFFSET;
            hdr.ptp.updated_cf = 0;
        }
        hdr.bridge.setInvalid();
    }
}

control LabEgressDeparser(packet_out packet, inout egress_headers_t hdr, in egress_metadata_t meta,
                          in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Checksum() report_checksum;
    Checksum() ipv4_checksum;
    Checksum() udp_checksum;

    apply {
        if (hdr.report_ipv4.isValid()) {
            hdr.report_ipv4.header_checksum = report_checksum.update({ hdr.report_ipv4.version, hdr.report_ipv4.ihl,
                hdr.report_ipv4.dscp, hdr.report_ipv4.ecn, hdr.report_ipv4.total_length, hdr.report_ipv4.identification,
                hdr.report_ipv4.flags, hdr.report_ipv4.fragment_offset, hdr.report_ipv4.ttl, hdr.report_ipv4.protocol,
                hdr.report_ipv4.src_addr, hdr.report_ipv4.dst_addr });
            hdr.ipv4.header_checksum = ipv4_checksum.update({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
                hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr });
        }
        if (meta.has_checksum) {
            hdr.udp.checksum = udp_checksum.update(data = { meta.rest, hdr.udp.length, hdr.udp.length, hdr.int_shim,
                hdr.int_header, hdr.int_metadata }, zeros_as_ones = true);
        }
        packet.emit(hdr);
    }
}

Pipeline(LabIngressParser(), LabIngress(), LabIngressDeparser(), LabEgressParser(), LabEgress(), LabEgressDeparser()) pipe;

Switch(pipe) main;
