// Packets that send digests and log, some of them around a call that needs room behind the packet.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
extern void change(payload_resize data, in bit<8> how);
header h_t { bit<8> number; }
struct headers_t { h_t h; }
struct meta_t { }
struct digest_t { bit<8> number; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_resize() data;
    apply {
        sm.egress_spec = 1;
        if (hdr.h.number & 3 == 1) { change(data, 2); }
        digest<digest_t>(1, { hdr.h.number });
        log_msg("{}", { hdr.h.number });
        if (hdr.h.number & 5 == 5) { change(data, 3); }
        log_msg("{} again", { hdr.h.number });
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.number & 1 == 0) { digest<digest_t>(1, { hdr.h.number + 100 }); }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
