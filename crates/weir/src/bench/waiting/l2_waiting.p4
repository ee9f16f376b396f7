// The benchmark of "The Price for Asynchronous Execution of Extern Functions in Programmable
// Software Data Planes": two exact tables, and an extern for some of the packets.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t {
    bit<1>  do_extern;
    bit<32> cycles;
}

parser BenchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control BenchVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BenchIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    INSTANCES

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port, bit<1> do_extern, bit<32> cycles) {
        standard_metadata.egress_spec = port;
        meta.do_extern = do_extern;
        meta.cycles = cycles;
    }

    table smac {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { NoAction; drop; }
        default_action = drop;
        size = 1024;
    }

    table dmac {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        default_action = drop;
        size = 1024;
    }

    apply {
        smac.apply();
        dmac.apply();
        if (meta.do_extern == 1) {
            @async(order=none) { CALL; }
        }
    }
}

control BenchEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control BenchCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control BenchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(BenchParser(), BenchVerify(), BenchIngress(), BenchEgress(), BenchCompute(), BenchDeparser()) main;
