#include <v1model.p4>
header h0_t {
    bit<25> f0;
    bit<64> f1;
    bit<32> f2;
    bit<7> f3;
    bit<16> f4;
}
header h2_t {
    bit<16> f0;
}
struct headers_t {
    h0_t first;
    h0_t h0;
    h2_t[1] h1;
}
struct meta_t {
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.first);
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply {
    }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
            hdr.first.f2 = (-((bit<32>)(-32s1149642341)));
            hdr.h0.setValid();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(true, { hdr.first.f2[24:0], hdr.first.f3, hdr.first.f4, hdr.h1[0].f0, (-((bit<25>)hdr.first.f3)) }, hdr.h0.f4, HashAlgorithm.csum16);
    }
}
control D(packet_out b, in headers_t hdr) {
    action act_26(bit<63> p0) {
    }
    table table_31 {
        key = { ((bit<5>)hdr.h0.f4) : exact @name("k0"); }
        actions = { act_26; }
    }
    apply {
        table_31.apply();
    }
}
V1Switch(P(), V(), I(), E(), C(), D()) main;
