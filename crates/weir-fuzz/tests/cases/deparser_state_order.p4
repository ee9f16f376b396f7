// The deparser's register: packets that leave the compiled pipeline at end-of-ingress (here: by priority) come to it later.
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<8> kind; }
struct headers_t { tag_t tag; tag_t more; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.tag); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { sm.egress_spec = 1; hdr.more = hdr.tag; if (hdr.tag.kind == 1) { sm.priority = 3; } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) {
    register<bit<8>>(1) r;
    apply {
        bit<8> x;
        r.read(x, 0);
        r.write(0, x + 1);
        b.emit(hdr.tag);
        if (x == 1) { b.emit(hdr.more); }
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
