// A deparser that looks something up after it has emitted a header: packets of a vector wait there together.
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<8> kind; bit<8> number; }
header more_t { bit<32> value; }
struct headers_t { tag_t tag; more_t more; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.tag); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.more.setValid();
        hdr.more.value = (bit<32>) hdr.tag.number;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) {
    action more() { b.emit(hdr.more); }
    action no_more() { }
    table kinds {
        key = { hdr.tag.kind: exact; }
        actions = { more; no_more; }
        default_action = no_more;
        const entries = { 1: more(); }
    }
    apply {
        b.emit(hdr.tag);
        kinds.apply();
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
