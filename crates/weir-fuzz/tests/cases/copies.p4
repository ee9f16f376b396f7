// Clones leave before the packets behind their original do anything: the register is shared by all of them.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> seen; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 2;
        if (hdr.h.op == 1) {
            clone(CloneType.I2E, 1);
        }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(1) count;
    apply {
        bit<8> n;
        count.read(n, 0);
        n = n + 1;
        count.write(0, n);
        hdr.h.seen = n;
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
