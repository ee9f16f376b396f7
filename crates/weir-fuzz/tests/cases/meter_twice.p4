// The keys of both lookups are known early, yet a packet's second comes before the first of the packet behind it.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> value; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_meter<bit<2>>(MeterType.bytes) rates;
    bit<2> color = 0;
    action go() { rates.read(color); }
    table t {
        key = { hdr.h.op : exact; }
        actions = { go; }
        const entries = { 1 : go(); }
        meters = rates;
    }
    apply {
        t.apply();
        hdr.h.value = (bit<8>)color;
        t.apply();
        hdr.h.value = hdr.h.value + (bit<8>)color;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
