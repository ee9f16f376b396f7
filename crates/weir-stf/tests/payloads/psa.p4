// As v1.p4, in PSA.
#include <core.p4>
#include <psa.p4>
#include <weir/externs.p4>
extern void change(payload_resize data, in bit<8> how);
header h_t { bit<8> op; bit<8> how; bit<16> seen; }
header more_t { bit<16> value; }
struct headers_t { h_t h; more_t more; }
struct meta_t { }
struct none_t { }
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t i,
          in none_t resubmitted, in none_t recirculated) {
    state start {
        b.extract(hdr.h);
        transition select(b.lookahead<bit<16>>()) { 0xabcd: more; default: accept; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t i,
          inout psa_ingress_output_metadata_t o) {
    payload_resize() data;
    apply {
        send_to_port(o, (PortId_t) 1);
        if (i.packet_path != PSA_PacketPath_t.RESUBMIT) {
            change(data, hdr.h.how);
            if (hdr.h.op == 1) { multicast(o, (MulticastGroup_t) 1); }
            if (hdr.h.op == 2) { o.clone = true; o.clone_session_id = (CloneSessionId_t) 7; }
            if (hdr.h.op == 3) { o.resubmit = true; }
            if (hdr.h.op == 4) { o.class_of_service = (ClassOfService_t) 2; }
        }
        if (hdr.more.isValid()) { hdr.h.seen = hdr.more.value; }
    }
}
control ID(packet_out b, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers_t hdr,
           in meta_t meta, in psa_ingress_output_metadata_t o) {
    apply { b.emit(hdr); }
}
parser EP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t i, in none_t normal,
          in none_t cloned_i, in none_t cloned_e) {
    state start { b.extract(hdr.h); transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t i,
          inout psa_egress_output_metadata_t o) { apply { } }
control ED(packet_out b, out none_t cloned, out none_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t o, in psa_egress_deparser_input_metadata_t d) {
    apply { b.emit(hdr.h); }
}
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
