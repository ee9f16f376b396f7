#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>

extern void scan(payload_read data, string word, out bit<1> found);

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_t ethernet;
}

struct metadata_t { }

parser WordsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control WordsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control WordsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    payload_read() data;
    bit<1> found;

    apply {
        @async(order=flow, full=wait) {
            scan(data, "password", found);
        }
        if (found == 1) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = 2;
        }
    }
}

control WordsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control WordsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control WordsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(WordsParser(), WordsVerify(), WordsIngress(), WordsEgress(), WordsCompute(), WordsDeparser()) main;
