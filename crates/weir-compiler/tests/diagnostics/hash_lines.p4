// Lines that begin with `#`: skipped with a warning, or a misspelt directive.
# what cpp for assembler skips, as does the reference compiler //~ warning[preprocessor] this line begins with `#` and is no directive: it is skipped
########  //~ warning[preprocessor] this line begins with `#` and is no directive
#inlcude <nothing.p4> //~ error[preprocessor] there is no directive `#inlcude`
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
