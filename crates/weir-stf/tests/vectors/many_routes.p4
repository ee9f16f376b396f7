// A table of many prefixes, looked up together with another one, and a narrower one of which the key is not there for every packet.
#include <core.p4>
#include <v1model.p4>
header route_t { bit<8> kind; bit<32> first; bit<32> second; }
struct headers_t { route_t route; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.route); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action put_kind(bit<8> kind) { hdr.route.kind = kind; }
    action put_first(bit<32> value) { hdr.route.first = value; }
    action put_second(bit<32> value) { hdr.route.second = value; }
    table kinds {
        key = { hdr.route.kind: exact; hdr.route.first: exact; }
        actions = { put_kind; NoAction; }
        default_action = NoAction;
    }
    table wide {
        key = { hdr.route.first: lpm; }
        actions = { put_first; NoAction; }
        default_action = NoAction;
        size = 131072;
    }
    table narrow {
        key = { hdr.route.second[29:4]: lpm; }
        actions = { put_second; NoAction; }
        default_action = NoAction;
        size = 131072;
    }
    apply {
        sm.egress_spec = 1;
        kinds.apply();
        wide.apply();
        if (hdr.route.kind < 200) { narrow.apply(); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.route); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
