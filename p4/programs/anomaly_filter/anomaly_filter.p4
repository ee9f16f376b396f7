// A filter that learns features of flows and lets a neural network score them: packets of anomalous
// flows are marked or dropped. See README.md beside this file.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

typedef bit<48> MacAddress;
typedef bit<32> Ipv4Address;
typedef bit<9> Port;

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// Cells for flows. A flow evicts another one of the same cell.
const bit<32> FLOWS = 65536;
// A flow has no score before this many packets: its means say nothing yet.
const bit<16> FIRST_PACKETS = 8;
// The class of anomalous flows in the output of the model.
const bit<8> ANOMALOUS = 1;

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
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> frag_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    Ipv4Address src_addr;
    Ipv4Address dst_addr;
}

header tcp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;
    bit<4> reserved;
    bit<5> other_flags;
    bit<1> rst;
    bit<1> syn;
    bit<1> fin;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
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
    tcp_t tcp;
    udp_t udp;
}

// The input of the model, in its order: train.py computes the same.
struct features_t {
    bit<16> packets;
    bit<16> length;       // of this packet: IPv4, in bytes
    bit<16> mean_length;
    bit<16> deviation;    // mean absolute deviation from the mean length
    bit<24> mean_gap;     // time between packets, in microseconds
    bit<16> syns;
    bit<16> resets;
    bit<1> is_tcp;
}

// What is kept of a flow. Means are moving averages with a weight of 1/8 for the newest value, in
// fixed point with three bits behind the point.
struct flow_t {
    bit<32> owner;
    bit<48> last;
    bit<16> packets;
    bit<32> mean_length;
    bit<32> deviation;
    bit<32> mean_gap;
    bit<16> syns;
    bit<16> resets;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> dst_port;
    bool has_ports;
    features_t features;
    bit<16> score;
}

parser FilterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.frag_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): tcp;
            (5, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }
    state tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src_port;
        meta.dst_port = hdr.tcp.dst_port;
        meta.has_ports = true;
        transition accept;
    }
    state udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src_port;
        meta.dst_port = hdr.udp.dst_port;
        meta.has_ports = true;
        transition accept;
    }
}

control FilterVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Brings what is known of the packet's flow up to date. All registers are accessed here, before the
// packet may wait.
control Observe(in headers_t hdr, inout metadata_t meta, in bit<48> now) {
    register<flow_t>(FLOWS) flows;

    apply {
        flow_t flow;
        bit<16> cell;
        bit<32> owner;
        hash(cell, HashAlgorithm.crc16, 16w0,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.src_port, meta.dst_port }, FLOWS);
        hash(owner, HashAlgorithm.crc32, 32w0,
            { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, meta.src_port, meta.dst_port }, 64w0x100000000);
        bit<16> syn = 0;
        bit<16> reset = 0;
        if (hdr.tcp.isValid()) {
            syn = (bit<16>) hdr.tcp.syn;
            reset = (bit<16>) hdr.tcp.rst;
        }
        bit<32> length = (bit<32>) hdr.ipv4.total_len;
        flows.read(flow, (bit<32>) cell);
        if (flow.owner != owner || flow.packets == 0) {
            flow = { owner, now, 1, length << 3, 0, 0, syn, reset };
        } else {
            bit<32> mean = flow.mean_length >> 3;
            bit<32> difference = length - mean;
            if (length < mean) {
                difference = mean - length;
            }
            bit<48> elapsed = now - flow.last;
            bit<32> gap = 0xffffff;
            if (elapsed < 0xffffff) {
                gap = (bit<32>) elapsed;
            }
            flow.mean_length = flow.mean_length - mean + length;
            flow.deviation = flow.deviation - (flow.deviation >> 3) + difference;
            if (flow.packets == 1) {
                flow.mean_gap = gap << 3;
            } else {
                flow.mean_gap = flow.mean_gap - (flow.mean_gap >> 3) + gap;
            }
            flow.last = now;
            flow.packets = flow.packets |+| 1;
            flow.syns = flow.syns |+| syn;
            flow.resets = flow.resets |+| reset;
        }
        flows.write((bit<32>) cell, flow);
        meta.features = {
            flow.packets,
            hdr.ipv4.total_len,
            (bit<16>) (flow.mean_length >> 3),
            (bit<16>) (flow.deviation >> 3),
            (bit<24>) (flow.mean_gap >> 3),
            flow.syns,
            flow.resets,
            (bit<1>) hdr.tcp.isValid()
        };
    }
}

control FilterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Observe() observe;
    onnx_model("anomaly_filter.onnx") model;
    direct_counter(CounterType.packets) scored;
    // Packets for which the model had no answer: they are forwarded.
    counter(1, CounterType.packets) without_score;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(Port port) {
        standard_metadata.egress_spec = port;
    }

    table stations {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        default_action = drop;
        size = 4096;
    }

    action pass() { }

    action mark(bit<6> dscp) {
        hdr.ipv4.dscp = dscp;
    }

    // What becomes of packets to an address, by their score in units of 1/65536.
    table policy {
        key = { hdr.ipv4.dst_addr: ternary; meta.score: range; }
        actions = { pass; mark; drop; }
        default_action = pass;
        counters = scored;
        size = 1024;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            drop();
            return;
        }
        if (!stations.apply().hit || !meta.has_ports) {
            return;
        }
        observe.apply(hdr, meta, standard_metadata.ingress_global_timestamp);
        if (meta.features.packets < FIRST_PACKETS) {
            return;
        }
        extern_status_t status;
        @async(order=flow) {
            model.score(meta.features, ANOMALOUS, meta.score, status);
        }
        if (status == extern_status_t.OK) {
            policy.apply();
        } else {
            without_score.count(0);
        }
    }
}

control FilterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control FilterComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FilterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

V1Switch(FilterParser(), FilterVerifyChecksum(), FilterIngress(), FilterEgress(), FilterComputeChecksum(), FilterDeparser()) main;
