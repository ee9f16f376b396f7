// Loops within each other that look into tables: packets of a vector take different numbers of turns, some without end.
#include <core.p4>
#include <v1model.p4>
header walk_t { bit<8> rounds; bit<8> turns; bit<8> step; bit<8> node; bit<32> cost; }
struct headers_t { walk_t walk; }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.walk); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action go(bit<8> node, bit<32> cost) { hdr.walk.node = node; hdr.walk.cost = hdr.walk.cost + cost; }
    action stay() { hdr.walk.cost = hdr.walk.cost + 1; }
    action toll(bit<32> cost) { hdr.walk.cost = hdr.walk.cost ^ cost; }
    table links {
        key = { hdr.walk.node: exact; }
        actions = { go; stay; }
        default_action = stay;
        const entries = { 0: go(1, 100); 1: go(2, 1000); 2: go(4, 7); 4: go(0, 9); 5: go(6, 3); }
    }
    table tolls {
        key = { hdr.walk.node: ternary; }
        actions = { toll; }
        default_action = toll(5);
        const entries = { 2 &&& 3: toll(0x10101010); }
    }
    apply {
        sm.egress_spec = 1;
        for (bit<8> round = 0; round < (hdr.walk.rounds & 3); round = round + 1) {
            for (bit<8> turn = 0; turn < hdr.walk.turns; turn = turn + hdr.walk.step) {
                if (links.apply().miss) { break; }
            }
            tolls.apply();
        }
        links.apply();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.walk); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
