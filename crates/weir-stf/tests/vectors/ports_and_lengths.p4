// The port that a packet names, which leaves as it came, longer, shorter or not at all.
#include <core.p4>
#include <v1model.p4>
header wish_t { bit<8> what; bit<8> port; }
header more_t { bit<24> more; }
struct headers_t { more_t more; wish_t wish; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.wish); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = (bit<9>) hdr.wish.port;
        if (hdr.wish.what == 1) { hdr.more = { 5 }; }
        if (hdr.wish.what == 2) { hdr.wish.setInvalid(); }
        if (hdr.wish.what == 3) { mark_to_drop(sm); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.more); b.emit(hdr.wish); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
