// A wire between ports 1 and 2 for ESP. Other packets of IPv4 leave at port 3, so that they are
// counted; what is not IPv4 is dropped.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<96> addresses; bit<16> type; }
header ipv4_t { bit<72> before; bit<8> protocol; bit<80> after; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct meta_t { }

parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start {
        p.extract(h.ethernet);
        transition select(h.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 { p.extract(h.ipv4); transition accept; }
}
control V(inout headers_t h, inout meta_t m) { apply { } }
control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    apply {
        if (!h.ipv4.isValid()) {
            mark_to_drop(s);
        } else if (h.ipv4.protocol != 50) {
            s.egress_spec = 3;
        } else {
            s.egress_spec = 3 - s.ingress_port;
        }
    }
}
control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout meta_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.ethernet); p.emit(h.ipv4); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
