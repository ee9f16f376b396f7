// An extern that nothing implements.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<32> number; }
struct headers_t { h_t h; }
struct meta_t { }
extern void of_nobody(in bit<32> number);
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        @async { of_nobody(1); } //~ warning[not-runnable] v1model has no extern function `of_nobody` with 1 arguments, and none was registered under that name
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
