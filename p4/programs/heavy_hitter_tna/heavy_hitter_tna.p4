// Finds flows with many packets, for TNA: two rows of counters that flows share (a count-min sketch), and a digest for a
// flow whose counters have both reached a threshold. See README.md beside this file.
#include <core.p4>
#include <tna.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<12> Cell;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
const bit<32> CELLS = 4096;
const DigestType_t HEAVY = 1;

// Of a port's queues: heavy flows wait for the others.
const QueueId_t QUEUE_OF_HEAVY = 0;
const QueueId_t QUEUE_OF_OTHERS = 1;

header ethernet_t {
    MacAddress dst_addr;
    MacAddress src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> diffserv;
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

// The first four bytes of TCP and UDP.
header ports_t {
    bit<16> src_port;
    bit<16> dst_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<1> first_reached;
    bit<1> second_reached;
    bit<1> was_reported;
}

struct none_t {
}

struct heavy_t {
    Ipv4Address src_addr;
    Ipv4Address dst_addr;
    bit<8> protocol;
    bit<16> src_port;
    bit<16> dst_port;
}

parser HitterIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Of fragments only the first has ports.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_ports;
            (5, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control HitterIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
                      in ingress_intrinsic_metadata_from_parser_t from_parser,
                      inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                      inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<1>>(2, CounterType_t.PACKETS_AND_BYTES) packets;
    RegisterParam<bit<32>>(1000) threshold;

    // Two hashes that have nothing to do with each other: flows that share a cell of one row do not share one of the other.
    CRCPolynomial<bit<32>>(0x1edc6f41, true, false, false, 0xffffffff, 0xffffffff) castagnoli;
    Hash<Cell>(HashAlgorithm_t.CRC32) first_hash;
    Hash<Cell>(HashAlgorithm_t.CUSTOM, castagnoli) second_hash;

    Register<bit<32>, Cell>(CELLS) first_row;
    Register<bit<32>, Cell>(CELLS) second_row;
    Register<bit<1>, Cell>(CELLS) reported;

    RegisterAction<bit<32>, Cell, bit<1>>(first_row) count_first = {
        void apply(inout bit<32> value, out bit<1> reached) {
            value = value |+| 1;
            if (value >= threshold.read()) {
                reached = 1;
            }
        }
    };

    RegisterAction<bit<32>, Cell, bit<1>>(second_row) count_second = {
        void apply(inout bit<32> value, out bit<1> reached) {
            value = value |+| 1;
            if (value >= threshold.read()) {
                reached = 1;
            }
        }
    };

    RegisterAction<bit<1>, Cell, bit<1>>(reported) report = {
        void apply(inout bit<1> value, out bit<1> before) {
            before = value;
            value = 1;
        }
    };

    action forward(PortId_t port) {
        tm.ucast_egress_port = port;
    }

    // The switch is wired, not routed: a port's packets go out of one other port.
    table wires {
        key = { intrinsic.ingress_port: exact; }
        actions = { forward; NoAction; }
        const default_action = NoAction;
        size = 512;
    }

    apply {
        wires.apply();
        tm.bypass_egress = 1;
        tm.qid = QUEUE_OF_OTHERS;
        if (hdr.ports.isValid()) {
            Cell first = first_hash.get({ hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, hdr.ports });
            Cell second = second_hash.get({ hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, hdr.ports });
            meta.first_reached = count_first.execute(first);
            meta.second_reached = count_second.execute(second);
            if (meta.first_reached == 1 && meta.second_reached == 1) {
                tm.qid = QUEUE_OF_HEAVY;
                meta.was_reported = report.execute(first);
                if (meta.was_reported == 0) {
                    for_deparser.digest_type = HEAVY;
                }
            }
        }
        packets.count(tm.qid[0:0]);
    }
}

control HitterIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                              in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<heavy_t>(HEAVY) heavy;

    apply {
        if (for_deparser.digest_type == HEAVY) {
            heavy.pack({ hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, hdr.ports.src_port, hdr.ports.dst_port });
        }
        packet.emit(hdr);
    }
}

parser HitterEgressParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control HitterEgress(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
                     in egress_intrinsic_metadata_from_parser_t from_parser,
                     inout egress_intrinsic_metadata_for_deparser_t for_deparser,
                     inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control HitterEgressDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                             in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(HitterIngressParser(), HitterIngress(), HitterIngressDeparser(), HitterEgressParser(), HitterEgress(), HitterEgressDeparser()) pipe;

Switch(pipe) main;
