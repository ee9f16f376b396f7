// Externs that are declared or made in another way than they are implemented.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<32> number; }
struct headers_t { h_t h; }
struct meta_t { }
extern void busy_cycles(in bit<16> cycles);
extern sequence {
    sequence(bit<32> associations);
    void next(in bit<32> association, out bit<32> number);
}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    sequence(1) numbers;
    sequence(0) none; //~ warning[not-runnable] `I.none`: `sequence` can have from 1 to 1048576 associations
    apply {
        @async { busy_cycles(10); } //~ warning[not-runnable] `busy_cycles` is declared in another way than its implementation: parameter `cycles` of `busy_cycles` is `in bit<16>` here, but `in bit<32>` is expected: `void busy_cycles(in bit<32> cycles)`
        numbers.next(0, hdr.h.number); //~ warning[not-runnable] `sequence.next` is declared in another way than its implementation: `next` has 2 parameters here; expected is `void next(in bit<32> association, out bit<32> number, out extern_status_t status)`
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
