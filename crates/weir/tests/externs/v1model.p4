// Calls that have no meaning where they stand.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
header h_t { bit<8> kind; bit<32> number; bit<64> tag; }
struct headers_t { h_t h; }
struct meta_t { bit<32> length; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_read() rest;
    siphash(1) hash;
    extern_status_t status;
    state start {
        packet.extract(hdr.h);
        busy_cycles(10);
        hash.compute_payload(rest, 0, hdr.h.tag, status); //~ warning[not-runnable] `siphash.compute_payload` accesses the payload, which begins where the parser ends: call it in a control
        @async { busy_cycles(10); } //~ warning[not-runnable] `busy_cycles` cannot be @async in a parser: call it in a control
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) seen;
    counter(16, CounterType.packets) packets;
    apply {
        @async { seen.read(hdr.h.number, 0); } //~ warning[not-runnable] `read` cannot be @async: it is an extern of the architecture, whose state other packets read and write
        @async { packets.count(1); } //~ warning[not-runnable] `count` cannot be @async: it is an extern of the architecture, whose state other packets read and write
        @sync { seen.write(0, hdr.h.number); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); @async { busy_cycles(10); } } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
