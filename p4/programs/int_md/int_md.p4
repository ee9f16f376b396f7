// An INT-MD node (In-band Network Telemetry 2.1) that routes IPv4: source, transit and sink by its
// tables, INT over TCP and UDP signalled by a DSCP value, reports in the Telemetry Report 2.0 format.
// See README.md beside this file.
#include <core.p4>
#include <v1model.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// The DSCP value that says that a packet carries INT: the whole domain has to keep it for that.
#ifndef INT_DSCP_VALUE
#define INT_DSCP_VALUE 0x17
#endif
const bit<6> INT_DSCP = INT_DSCP_VALUE;

const bit<4> INT_TYPE_MD = 1;
const bit<4> INT_VERSION = 2;
const bit<8> INT_HEADER_WORDS = 3;
// What a source adds before any metadata: the shim and the header.
const bit<16> INT_FIXED_BYTES = 16;

const bit<4> REPORT_VERSION = 2;
const bit<4> REPORT_TYPE_INT = 1;
const bit<4> REPORT_INNER_IPV4 = 4;

const bit<32> REPORT_SESSION = 1;
// standard_metadata.instance_type of a clone made in egress.
const bit<32> EGRESS_CLONE = 2;

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

header tcp_options_t {
    varbit<320> options;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

// Behind the TCP or UDP header. `length` counts 4-byte words and leaves out the shim itself.
header int_shim_t {
    bit<4> type;
    bit<2> next_protocol_type;
    bit<2> reserved;
    bit<8> length;
    bit<8> reserved_byte;
    bit<6> original_dscp;
    bit<2> reserved_end;
}

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

// What this node adds, in the order of the instruction bitmap.
header int_node_id_t {
    bit<32> node_id;
}

header int_level1_ports_t {
    bit<16> ingress_port;
    bit<16> egress_port;
}

header int_hop_latency_t {
    bit<32> nanoseconds;
}

header int_queue_t {
    bit<8> queue_id;
    bit<24> occupancy;
}

header int_timestamp_t {
    bit<64> nanoseconds;
}

header int_level2_ports_t {
    bit<32> ingress_port;
    bit<32> egress_port;
}

// One word that this node has nothing to say in.
header int_word_t {
    bit<32> value;
}

// What earlier nodes added.
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

header report_main_t {
    bit<16> metadata_bits;
    bit<16> domain_id;
    bit<16> domain_metadata_bits;
    bit<16> domain_metadata_status;
}

// INT in a packet: the shim, the header, what this node adds, what was there.
struct telemetry_t {
    int_shim_t shim;
    int_header_t md;
    int_node_id_t node_id;
    int_level1_ports_t level1_ports;
    int_hop_latency_t hop_latency;
    int_queue_t queue;
    int_timestamp_t ingress_timestamp;
    int_timestamp_t egress_timestamp;
    int_level2_ports_t level2_ports;
    int_word_t tx_utilization;
    int_word_t buffer;
    int_word_t reserved_9;
    int_word_t reserved_10;
    int_word_t reserved_11;
    int_word_t reserved_12;
    int_word_t reserved_13;
    int_word_t reserved_14;
    int_word_t checksum_complement;
    int_stack_t stack;
}

struct headers_t {
    // The outside of a report.
    ethernet_t report_ethernet;
    ipv4_t report_ipv4;
    udp_t report_udp;
    report_group_t report_group;
    report_individual_t report_individual;
    report_main_t report_main;
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv4_options_t ipv4_options;
    tcp_t tcp;
    tcp_options_t tcp_options;
    udp_t udp;
    telemetry_t telemetry;
    // What a sink has taken out, for the report. The deparser does not know it.
    telemetry_t removed_telemetry;
}

struct metadata_t {
    // Whether the packet comes from outside of the INT domain.
    bool from_outside;
    bool start_int;
    bit<5> start_hop_words;
    bit<8> start_hop_count;
    bit<16> start_instructions;
    bit<16> start_domain_id;
    bool sink;
    bit<32> node_id;
    bit<16> mtu;
    bit<8> hop_words;
    // For the transport checksum: Internet checksums of what was in the packet and of what is, and the
    // lengths that go with them.
    bit<16> removed_header;
    bit<16> removed_stack;
    bit<16> added;
    bit<16> checksum_before;
    bit<16> length_before;
    bit<16> length_after;
}

error {
    Ipv4VersionWrong,
    Ipv4HeaderTooShort,
    TcpHeaderTooShort,
    IntLengthWrong
}

parser IntParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // The ports that do not belong to the INT domain: those of hosts.
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

    // A fragment is never measured: its metadata would end up in the middle of a datagram.
    state parse_transport {
        transition select(hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0b000 &&& 0b001, 0, PROTOCOL_TCP): parse_tcp;
            (0b000 &&& 0b001, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        verify(hdr.tcp.data_offset >= 5, error.TcpHeaderTooShort);
        transition select(hdr.tcp.data_offset) {
            5: find_int;
            default: parse_tcp_options;
        }
    }

    state parse_tcp_options {
        packet.extract(hdr.tcp_options, ((bit<32>) hdr.tcp.data_offset - 5) << 5);
        transition find_int;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition find_int;
    }

    // What a host sends is not INT, whatever its DSCP value.
    state find_int {
        transition select(meta.from_outside, hdr.ipv4.dscp) {
            (false, INT_DSCP): parse_int_shim;
            default: accept;
        }
    }

    // Other types than INT-MD and other versions than 2 pass through untouched.
    state parse_int_shim {
        packet.extract(hdr.telemetry.shim);
        transition select(hdr.telemetry.shim.type, hdr.telemetry.shim.next_protocol_type) {
            (INT_TYPE_MD, 0): parse_int_header;
            default: accept;
        }
    }

    state parse_int_header {
        packet.extract(hdr.telemetry.md);
        verify(hdr.telemetry.shim.length >= INT_HEADER_WORDS, error.IntLengthWrong);
        transition select(hdr.telemetry.md.version) {
            INT_VERSION: parse_int_stack;
            default: accept;
        }
    }

    state parse_int_stack {
        packet.extract(hdr.telemetry.stack, ((bit<32>) hdr.telemetry.shim.length - 3) << 5);
        transition accept;
    }
}

control IntVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control IntIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: not parsed or not IPv4, 1: wrong checksum, 2: TTL at its end.
    counter(3, CounterType.packets_and_bytes) refused;
    direct_counter(CounterType.packets_and_bytes) watched_packets;
    bit<16> src_port = 0;
    bit<16> dst_port = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action route(MacAddress src_mac, MacAddress dst_mac, Port port) {
        hdr.ethernet.src_addr = src_mac;
        hdr.ethernet.dst_addr = dst_mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
    }

    // `hop_words` has to be what the instructions amount to: each hop adds exactly this much.
    action start_int(bit<5> hop_words, bit<8> hop_count, bit<16> instructions, bit<16> domain_id) {
        meta.start_int = true;
        meta.start_hop_words = hop_words;
        meta.start_hop_count = hop_count;
        meta.start_instructions = instructions;
        meta.start_domain_id = domain_id;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { route; drop; }
        const default_action = drop;
        size = 65536;
    }

    // The flows for which this node is the INT source.
    table watchlist {
        key = {
            standard_metadata.ingress_port: ternary;
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.dst_addr: ternary;
            hdr.ipv4.protocol: ternary;
            src_port: range;
            dst_port: range;
        }
        actions = { start_int; NoAction; }
        const default_action = NoAction;
        counters = watched_packets;
        size = 4096;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || !hdr.ipv4.isValid()) {
            refused.count(0);
            drop();
        } else if (standard_metadata.checksum_error == 1) {
            refused.count(1);
            drop();
        } else if (hdr.ipv4.ttl <= 1) {
            refused.count(2);
            drop();
        } else if (ipv4_lpm.apply().hit) {
            if (meta.from_outside && hdr.ipv4.dscp == INT_DSCP) {
                // Later nodes would take it for INT.
                hdr.ipv4.dscp = 0;
            }
            if (!hdr.telemetry.shim.isValid()) {
                if (hdr.tcp.isValid()) {
                    src_port = hdr.tcp.src_port;
                    dst_port = hdr.tcp.dst_port;
                    watchlist.apply();
                } else if (hdr.udp.isValid()) {
                    src_port = hdr.udp.src_port;
                    dst_port = hdr.udp.dst_port;
                    watchlist.apply();
                }
            }
        }
    }
}

// Adds this node's metadata, exactly the header's `hop_words`, or nothing.
control IntHop(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    // 0: the hop count was at its end, 1: it did not fit, 2: the header contradicts itself or asks for
    // what this node does not know.
    counter(3, CounterType.packets) nothing_added;
    bit<16> wanted = 0;

    // A word per instruction, one more for each of those that take two. Instructions of a domain are
    // not known here; where they make a hop longer, the sum differs.
    action count_words() {
        wanted = hdr.telemetry.md.instructions;
        meta.hop_words = (bit<8>) wanted[15:15] + (bit<8>) wanted[14:14] + (bit<8>) wanted[13:13]
            + (bit<8>) wanted[12:12] + ((bit<8>) wanted[11:11] << 1) + ((bit<8>) wanted[10:10] << 1)
            + ((bit<8>) wanted[9:9] << 1) + (bit<8>) wanted[8:8] + (bit<8>) wanted[7:7]
            + (bit<8>) wanted[6:6] + (bit<8>) wanted[5:5] + (bit<8>) wanted[4:4] + (bit<8>) wanted[3:3]
            + (bit<8>) wanted[2:2] + (bit<8>) wanted[1:1] + (bit<8>) wanted[0:0];
    }

    apply {
        count_words();
        bit<17> length = (bit<17>) hdr.ipv4.total_length + ((bit<17>) meta.hop_words << 2);
        if (hdr.telemetry.md.remaining_hop_count == 0) {
            hdr.telemetry.md.hop_count_exceeded = 1;
            nothing_added.count(0);
        } else if (meta.hop_words != (bit<8>) hdr.telemetry.md.hop_words) {
            nothing_added.count(2);
        } else if ((length > (bit<17>) meta.mtu && !meta.sink) || hdr.telemetry.shim.length > 255 - meta.hop_words) {
            hdr.telemetry.md.mtu_exceeded = 1;
            nothing_added.count(1);
        } else {
            hdr.telemetry.md.remaining_hop_count = hdr.telemetry.md.remaining_hop_count - 1;
            hdr.telemetry.shim.length = hdr.telemetry.shim.length + meta.hop_words;
            hdr.ipv4.total_length = length[15:0];
            // The architecture's clock counts microseconds; those of INT are nanoseconds.
            if (wanted[15:15] == 1) {
                hdr.telemetry.node_id.setValid();
                hdr.telemetry.node_id.node_id = meta.node_id;
            }
            if (wanted[14:14] == 1) {
                hdr.telemetry.level1_ports.setValid();
                hdr.telemetry.level1_ports.ingress_port = (bit<16>) standard_metadata.ingress_port;
                hdr.telemetry.level1_ports.egress_port = (bit<16>) standard_metadata.egress_port;
            }
            if (wanted[13:13] == 1) {
                hdr.telemetry.hop_latency.setValid();
                hdr.telemetry.hop_latency.nanoseconds = (bit<32>) (standard_metadata.egress_global_timestamp - standard_metadata.ingress_global_timestamp) * 1000;
            }
            if (wanted[12:12] == 1) {
                hdr.telemetry.queue.setValid();
                hdr.telemetry.queue.queue_id = (bit<8>) standard_metadata.priority;
                hdr.telemetry.queue.occupancy = (bit<24>) standard_metadata.enq_qdepth;
            }
            if (wanted[11:11] == 1) {
                hdr.telemetry.ingress_timestamp.setValid();
                hdr.telemetry.ingress_timestamp.nanoseconds = (bit<64>) standard_metadata.ingress_global_timestamp * 1000;
            }
            if (wanted[10:10] == 1) {
                hdr.telemetry.egress_timestamp.setValid();
                hdr.telemetry.egress_timestamp.nanoseconds = (bit<64>) standard_metadata.egress_global_timestamp * 1000;
            }
            // All ones from here on: this node has no such value.
            if (wanted[9:9] == 1) {
                hdr.telemetry.level2_ports.setValid();
                hdr.telemetry.level2_ports.ingress_port = 0xFFFFFFFF;
                hdr.telemetry.level2_ports.egress_port = 0xFFFFFFFF;
            }
            if (wanted[8:8] == 1) {
                hdr.telemetry.tx_utilization.setValid();
                hdr.telemetry.tx_utilization.value = 0xFFFFFFFF;
            }
            if (wanted[7:7] == 1) {
                hdr.telemetry.buffer.setValid();
                hdr.telemetry.buffer.value = 0xFFFFFFFF;
            }
            if (wanted[6:6] == 1) {
                hdr.telemetry.reserved_9.setValid();
                hdr.telemetry.reserved_9.value = 0xFFFFFFFF;
            }
            if (wanted[5:5] == 1) {
                hdr.telemetry.reserved_10.setValid();
                hdr.telemetry.reserved_10.value = 0xFFFFFFFF;
            }
            if (wanted[4:4] == 1) {
                hdr.telemetry.reserved_11.setValid();
                hdr.telemetry.reserved_11.value = 0xFFFFFFFF;
            }
            if (wanted[3:3] == 1) {
                hdr.telemetry.reserved_12.setValid();
                hdr.telemetry.reserved_12.value = 0xFFFFFFFF;
            }
            if (wanted[2:2] == 1) {
                hdr.telemetry.reserved_13.setValid();
                hdr.telemetry.reserved_13.value = 0xFFFFFFFF;
            }
            if (wanted[1:1] == 1) {
                hdr.telemetry.reserved_14.setValid();
                hdr.telemetry.reserved_14.value = 0xFFFFFFFF;
            }
            // Nothing to complement: the transport checksum itself is kept right.
            if (wanted[0:0] == 1) {
                hdr.telemetry.checksum_complement.setValid();
                hdr.telemetry.checksum_complement.value = 0xFFFFFFFF;
            }
        }
    }
}

// Makes a report of a clone that a sink made of a packet with its INT headers.
control IntReport(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(1) report_sequence;
    bit<32> sequence = 0;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    // Adds the headers of a report around the inner packet from its IPv4 header to the end of its INT
    // stack; the payload stays out of it. The inner Ethernet header makes room for the report's.
    action report(MacAddress src_mac, MacAddress dst_mac, Ipv4Address src_addr, Ipv4Address dst_addr, bit<16> port) {
        @atomic {
            report_sequence.read(sequence, 0);
            report_sequence.write(0, sequence + 1);
        }
        bit<16> inner_words = (bit<16>) hdr.ipv4.ihl + 1 + (bit<16>) hdr.telemetry.shim.length;
        if (hdr.tcp.isValid()) {
            inner_words = inner_words + (bit<16>) hdr.tcp.data_offset;
        } else {
            inner_words = inner_words + 2;
        }
        hdr.ethernet.setInvalid();
        hdr.report_ethernet.setValid();
        hdr.report_ethernet.dst_addr = dst_mac;
        hdr.report_ethernet.src_addr = src_mac;
        hdr.report_ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.report_ipv4.setValid();
        hdr.report_ipv4.version = 4;
        hdr.report_ipv4.ihl = 5;
        hdr.report_ipv4.dscp = 0;
        hdr.report_ipv4.ecn = 0;
        hdr.report_ipv4.total_length = 48 + (inner_words << 2);
        hdr.report_ipv4.identification = 0;
        hdr.report_ipv4.flags = 0b010;
        hdr.report_ipv4.fragment_offset = 0;
        hdr.report_ipv4.ttl = 64;
        hdr.report_ipv4.protocol = PROTOCOL_UDP;
        hdr.report_ipv4.src_addr = src_addr;
        hdr.report_ipv4.dst_addr = dst_addr;
        hdr.report_udp.setValid();
        hdr.report_udp.src_port = port;
        hdr.report_udp.dst_port = port;
        hdr.report_udp.length = 28 + (inner_words << 2);
        hdr.report_udp.checksum = 0;
        hdr.report_group.setValid();
        hdr.report_group.version = REPORT_VERSION;
        hdr.report_group.hardware_id = 0;
        hdr.report_group.sequence_number = sequence[21:0];
        hdr.report_group.node_id = meta.node_id;
        hdr.report_individual.setValid();
        hdr.report_individual.report_type = REPORT_TYPE_INT;
        hdr.report_individual.inner_type = REPORT_INNER_IPV4;
        // The main part is two words; 0xFF stands for as far as the UDP datagram goes.
        hdr.report_individual.report_length = inner_words > 252 ? 8w0xFF : (bit<8>) inner_words + 2;
        hdr.report_individual.metadata_length = 0;
        hdr.report_individual.dropped = 0;
        hdr.report_individual.congested_queue = 0;
        hdr.report_individual.tracked_flow = 1;
        hdr.report_individual.intermediate = 0;
        hdr.report_individual.reserved = 0;
        // All metadata, this node's too, is in the stack.
        hdr.report_main.setValid();
        hdr.report_main.metadata_bits = 0;
        hdr.report_main.domain_id = hdr.telemetry.md.domain_id;
        hdr.report_main.domain_metadata_bits = 0;
        hdr.report_main.domain_metadata_status = 0;
        truncate(62 + ((bit<32>) inner_words << 2));
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

control IntEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IntHop() hop;
    IntReport() report;

    action set_node(bit<32> node_id) {
        meta.node_id = node_id;
    }

    action set_mtu(bit<16> mtu) {
        meta.mtu = mtu;
    }

    action sink() {
        meta.sink = true;
    }

    // Who this node is.
    table node {
        actions = { set_node; }
        default_action = set_node(0);
    }

    // The longest IPv4 packet of a link.
    table mtus {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_mtu; }
        default_action = set_mtu(1500);
        size = 512;
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
        hdr.telemetry.shim.next_protocol_type = 0;
        hdr.telemetry.shim.reserved = 0;
        hdr.telemetry.shim.length = INT_HEADER_WORDS;
        hdr.telemetry.shim.reserved_byte = 0;
        hdr.telemetry.shim.original_dscp = hdr.ipv4.dscp;
        hdr.telemetry.shim.reserved_end = 0;
        hdr.telemetry.md.setValid();
        hdr.telemetry.md.version = INT_VERSION;
        hdr.telemetry.md.discard = 0;
        hdr.telemetry.md.hop_count_exceeded = 0;
        hdr.telemetry.md.mtu_exceeded = 0;
        hdr.telemetry.md.reserved = 0;
        hdr.telemetry.md.hop_words = meta.start_hop_words;
        hdr.telemetry.md.remaining_hop_count = meta.start_hop_count;
        hdr.telemetry.md.instructions = meta.start_instructions;
        hdr.telemetry.md.domain_id = meta.start_domain_id;
        hdr.telemetry.md.domain_instructions = 0;
        hdr.telemetry.md.domain_flags = 0;
        hdr.telemetry.stack.setValid();
        hdr.ipv4.dscp = INT_DSCP;
        hdr.ipv4.total_length = hdr.ipv4.total_length + INT_FIXED_BYTES;
    }

    // The packet as it was before it carried INT; a clone has the rest for the report.
    action remove_telemetry() {
        telemetry_t none;
        hdr.ipv4.dscp = hdr.telemetry.shim.original_dscp;
        hdr.ipv4.total_length = hdr.ipv4.total_length - (((bit<16>) hdr.telemetry.shim.length + 1) << 2);
        hdr.removed_telemetry = hdr.telemetry;
        hdr.telemetry = none;
        clone(CloneType.E2E, REPORT_SESSION);
    }

    action restore_telemetry() {
        telemetry_t none;
        bit<16> bytes;
        hdr.telemetry = hdr.removed_telemetry;
        hdr.removed_telemetry = none;
        bytes = ((bit<16>) hdr.telemetry.shim.length + 1) << 2;
        hdr.ipv4.dscp = INT_DSCP;
        hdr.ipv4.total_length = hdr.ipv4.total_length + bytes;
        if (hdr.udp.isValid()) {
            hdr.udp.length = hdr.udp.length + bytes;
        }
    }

    // The transport checksum by what has changed: the payload is not summed again. An Internet checksum
    // is the complement of a sum, so that of what was removed is what has to be added.
    action repair_tcp() {
        meta.checksum_before = ~hdr.tcp.checksum;
        hash(hdr.tcp.checksum, HashAlgorithm.csum16, 16w0,
            { meta.checksum_before, meta.removed_header, meta.removed_stack, meta.added,
              meta.length_before, meta.length_after }, 32w65536);
    }

    // The length counts twice: in the UDP header and in the pseudo header. A sender that does without a
    // checksum does without it here too.
    action repair_udp() {
        hdr.udp.length = hdr.udp.length + meta.length_before + 1 + meta.length_after;
        if (hdr.udp.checksum != 0) {
            meta.checksum_before = ~hdr.udp.checksum;
            hash(hdr.udp.checksum, HashAlgorithm.csum16, 16w0,
                { meta.checksum_before, meta.removed_header, meta.removed_stack, meta.added,
                  meta.length_before, meta.length_after, meta.length_before, meta.length_after }, 32w65536);
            if (hdr.udp.checksum == 0) {
                hdr.udp.checksum = 0xFFFF;
            }
        }
    }

    apply {
        node.apply();
        if (standard_metadata.instance_type == EGRESS_CLONE) {
            restore_telemetry();
            report.apply(hdr, meta, standard_metadata);
        } else {
            mtus.apply();
            sink_ports.apply();
            meta.length_before = ~hdr.ipv4.total_length;
            bool discard = false;
            bit<17> length_with_int = (bit<17>) hdr.ipv4.total_length + (bit<17>) INT_FIXED_BYTES;
            if (hdr.telemetry.stack.isValid()) {
                hash(meta.removed_header, HashAlgorithm.csum16, 16w0,
                    { hdr.telemetry.shim, hdr.telemetry.md }, 32w65536);
                if (meta.sink) {
                    hash(meta.removed_stack, HashAlgorithm.csum16, 16w0, { hdr.telemetry.stack }, 32w65536);
                }
            } else if (meta.start_int && (length_with_int <= (bit<17>) meta.mtu || meta.sink)) {
                insert_header();
            }
            if (hdr.telemetry.stack.isValid()) {
                hop.apply(hdr, meta, standard_metadata);
                if (meta.sink) {
                    discard = hdr.telemetry.md.discard == 1;
                    remove_telemetry();
                } else {
                    hash(meta.added, HashAlgorithm.csum16, 16w0,
                        { hdr.telemetry.shim, hdr.telemetry.md, hdr.telemetry.node_id,
                          hdr.telemetry.level1_ports, hdr.telemetry.hop_latency, hdr.telemetry.queue,
                          hdr.telemetry.ingress_timestamp, hdr.telemetry.egress_timestamp,
                          hdr.telemetry.level2_ports, hdr.telemetry.tx_utilization, hdr.telemetry.buffer,
                          hdr.telemetry.reserved_9, hdr.telemetry.reserved_10, hdr.telemetry.reserved_11,
                          hdr.telemetry.reserved_12, hdr.telemetry.reserved_13, hdr.telemetry.reserved_14,
                          hdr.telemetry.checksum_complement }, 32w65536);
                    meta.added = ~meta.added;
                }
                meta.length_after = hdr.ipv4.total_length;
                if (hdr.tcp.isValid()) {
                    repair_tcp();
                } else {
                    repair_udp();
                }
            }
            if (discard) {
                // The source made this packet for its telemetry only.
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control IntComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.report_ipv4.isValid(),
            { hdr.report_ipv4.version, hdr.report_ipv4.ihl, hdr.report_ipv4.dscp, hdr.report_ipv4.ecn,
              hdr.report_ipv4.total_length, hdr.report_ipv4.identification, hdr.report_ipv4.flags,
              hdr.report_ipv4.fragment_offset, hdr.report_ipv4.ttl, hdr.report_ipv4.protocol,
              hdr.report_ipv4.src_addr, hdr.report_ipv4.dst_addr },
            hdr.report_ipv4.header_checksum, HashAlgorithm.csum16);
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4_options.options },
            hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control IntDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.report_ethernet);
        packet.emit(hdr.report_ipv4);
        packet.emit(hdr.report_udp);
        packet.emit(hdr.report_group);
        packet.emit(hdr.report_individual);
        packet.emit(hdr.report_main);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ipv4_options);
        packet.emit(hdr.tcp);
        packet.emit(hdr.tcp_options);
        packet.emit(hdr.udp);
        packet.emit(hdr.telemetry);
    }
}

V1Switch(IntParser(), IntVerifyChecksum(), IntIngress(), IntEgress(), IntComputeChecksum(), IntDeparser()) main;
