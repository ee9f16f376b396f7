// @keys names the constructor parameter that is the number of keys.
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct meta_t { }
@keys("count") extern good { good(bit<32> count); }
@keys("number") extern unknown_parameter { unknown_parameter(bit<32> count); } //~ error[invalid] @keys names the constructor parameter that is the number of keys: `@keys("PARAMETER")`
@keys extern no_parameter { no_parameter(bit<32> count); } //~ error[invalid] @keys names
@keys("name") extern a_string { a_string(string name); } //~ error[invalid] @keys names
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    good(4) first;
    unknown_parameter(4) second;
    no_parameter(4) third;
    a_string("four") fourth;
    apply { }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
