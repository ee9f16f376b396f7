// A field is compared as wide as it was made: bits that are not in the packet are zero.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<7> number; bit<1> flag; bit<8> op; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        sm.egress_spec = (bit<9>) hdr.h.flag;
        transition select(sm.egress_spec[8:2], (bit<16>) hdr.h.op) {
            (7w0x10 &&& 7w0x10, _): accept;
            (_, 16w0x0107): other;
            (7w0 &&& 7w0x10, 16w0x0007 &&& 16w0x0f07): even;
            default: accept;
        }
    }
    state other { sm.egress_spec = 8; transition accept; }
    state even { sm.egress_spec = sm.egress_spec + 4; transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
