#include <v1model.p4>
// `second` is looked up together with `first`, and counts only packets that `first` has not made leave.
header h_t {
    bit<32> a;
    bit<32> b;
}
struct headers_t {
    h_t h;
}
struct meta_t {
}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) passed;
    direct_counter(CounterType.packets_and_bytes) hits;
    action leave() {
        mark_to_drop(sm);
        exit;
    }
    action send(bit<9> port) {
        sm.egress_spec = port;
    }
    table first {
        key = { hdr.h.a : exact @name("a"); }
        actions = { leave; NoAction; }
        default_action = NoAction;
    }
    table second {
        key = { hdr.h.b : exact @name("b"); }
        actions = { send; NoAction; }
        default_action = NoAction;
        counters = hits;
    }
    apply {
        first.apply();
        passed.count(1);
        second.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
