// A table of many prefixes that is applied twice: for an address that an action chooses, and for one that is known from the beginning.
#include <core.p4>
#include <v1model.p4>
header route_t { bit<32> kind; bit<32> first; bit<32> second; bit<32> third; }
struct headers_t { route_t route; }
struct meta_t { bit<32> address; bit<32> value; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.route); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action choose(bit<32> address) { meta.address = address; }
    action take_first() { meta.address = hdr.route.first; }
    action put(bit<32> value) { meta.value = value; }
    table kinds {
        key = { hdr.route.kind: exact; hdr.route.third: exact; }
        actions = { choose; take_first; }
        default_action = take_first;
    }
    table prefixes {
        key = { meta.address: lpm; }
        actions = { put; }
        default_action = put(0);
        size = 131072;
    }
    apply {
        sm.egress_spec = 1;
        kinds.apply();
        prefixes.apply();
        hdr.route.kind = meta.value;
        meta.address = hdr.route.second;
        prefixes.apply();
        hdr.route.third = meta.value;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.route); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
