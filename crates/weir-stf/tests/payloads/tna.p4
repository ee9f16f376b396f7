// As v1.p4, on a Tofino.
#include <core.p4>
#include <tna.p4>
#include <weir/externs.p4>
extern void change(payload_resize data, in bit<8> how);
header h_t { bit<8> op; bit<8> how; bit<16> seen; }
header more_t { bit<16> value; }
header again_t { bit<64> unused; }
header mirror_t { bit<8> kind; }
struct headers_t { h_t h; more_t more; }
struct meta_t { again_t again; mirror_t mirror; MirrorId_t session; }
parser IP(packet_in b, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t i) {
    state start {
        b.extract(i);
        transition select(i.resubmit_flag) { 1: again; default: plain; }
    }
    state again { b.extract(meta.again); transition head; }
    state plain { b.advance(PORT_METADATA_SIZE); transition head; }
    state head {
        b.extract(hdr.h);
        transition select(b.lookahead<bit<16>>()) { 0xabcd: more; default: accept; }
    }
    state more { b.extract(hdr.more); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t i,
          in ingress_intrinsic_metadata_from_parser_t from, inout ingress_intrinsic_metadata_for_deparser_t d,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    payload_resize() data;
    apply {
        tm.ucast_egress_port = 1;
        if (!meta.again.isValid()) {
            change(data, hdr.h.how);
            if (hdr.h.op == 1) { tm.mcast_grp_a = 1; }
            if (hdr.h.op == 2) { d.mirror_type = 1; meta.session = 7; }
            if (hdr.h.op == 3) { d.resubmit_type = 1; }
            if (hdr.h.op == 4) { tm.copy_to_cpu = 1; }
        }
        if (hdr.more.isValid()) { hdr.h.seen = hdr.more.value; }
    }
}
control ID(packet_out b, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t d) {
    Mirror(1) mirror;
    Resubmit(1) resubmit;
    apply {
        if (d.mirror_type == 1) { mirror.emit<mirror_t>(meta.session, { 0xe0 }); }
        if (d.resubmit_type == 1) { resubmit.emit(); }
        b.emit(hdr);
    }
}
parser EP(packet_in b, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t e) {
    state start { b.extract(e); b.extract(hdr.h); transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t e,
          in egress_intrinsic_metadata_from_parser_t from, inout egress_intrinsic_metadata_for_deparser_t d,
          inout egress_intrinsic_metadata_for_output_port_t o) { apply { } }
control ED(packet_out b, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t d) {
    apply { b.emit(hdr.h); }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
