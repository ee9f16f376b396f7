// A header that is written to and emitted, and never comes into the packet: neither are the bytes of its varbit.
#include <core.p4>
#include <v1model.p4>

header plain_t { bit<8> first; }
header long_t { bit<8> length; varbit<24> rest; }
struct headers { plain_t plain; long_t long; }
struct meta { }

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start {
        p.extract(h.plain);
        transition accept;
    }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply {
        h.long.length = h.plain.first + 1;
        h.plain.first = h.long.length;
        s.egress_spec = s.ingress_port;
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.plain); p.emit(h.long); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
