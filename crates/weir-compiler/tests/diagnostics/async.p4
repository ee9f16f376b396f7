// Annotations that say whether packets wait for extern calls.
#include <core.p4>
#include <v1model.p4>
#include <weir/externs.p4>
header h_t { bit<8> kind; bit<32> number; }
struct headers_t { h_t h; }
struct meta_t { }
@async(order=flow, full=wait) extern void slow(in bit<32> number);
@async(order=fast) extern void wrong_order(); //~ error[invalid] the order is none, flow or port
extern keeper {
    keeper();
    @async(full=always) void wrong_full(); //~ error[invalid] the policy when full is inline, wait or drop
    @sync("now") void wrong_sync(); //~ error[invalid] @sync takes no arguments
    @async void right();
}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    payload_write() data;
    payload_resize() whole;
    keeper() k;
    bit<32> length;
    extern_status_t status;
    action sets() { hdr.h.kind = 1; }
    action waits() { @async { busy_cycles(10); } }
    action calls() { busy_cycles(10); }
    @async action annotated() { busy_cycles(11); } //~ error[invalid] @async stands at a block, or at the declaration of an extern function or method
    table t { key = { hdr.h.kind: exact; } actions = { sets; waits; calls; } default_action = sets(); }
    apply {
        t.apply();
        @async { busy_cycles(1); if (hdr.h.kind == 1) { slow(2); } }
        @async(order=port, full=drop, deparser="D", parser="P") { busy_cycles(2); }
        @sync { k.right(); slow(3); }
        @async { calls(); }
        @async(order=fast) { busy_cycles(3); } //~ error[invalid] the order is none, flow or port
        @async(order="flow") { busy_cycles(3); } //~ error[invalid] @async takes `order=none|flow|port`, `full=inline|wait|drop`, `deparser="NAME"` and `parser="NAME"`
        @async(full=block) { busy_cycles(4); } //~ error[invalid] the policy when full is inline, wait or drop
        @async(depth=5) { busy_cycles(5); } //~ error[invalid] @async takes `order=none|flow|port`,
        @async(order) { busy_cycles(6); } //~ error[expected] an argument of @async is `name=value`
        @async[order="flow"] { busy_cycles(6); } //~ error[invalid] @async takes its arguments in parentheses
        @async @sync { busy_cycles(7); } //~ error[duplicate] @sync stands beside @async
        @async @async { busy_cycles(8); } //~ error[duplicate] @async stands beside @async
        @sync(order=flow) { busy_cycles(9); } //~ error[invalid] @sync takes no arguments
        @async { hdr.h.kind = 1; } //~ error[invalid] @async needs an extern call in its block
        @sync { sets(); } //~ error[invalid] @sync needs an extern call in its block
        @async(deparser="Missing") { busy_cycles(10); } //~ error[not-found] there is no deparser `Missing`
        @async(deparser="P") { busy_cycles(11); } //~ error[not-found] there is no deparser `P`
        @async(parser="D") { busy_cycles(12); } //~ error[not-found] there is no parser `D`
        @async(deparser="D") { lz4_compress(whole, length, status); } //~ error[unsupported] a deparser or parser around a call that accesses the payload is not supported: the payload begins behind the headers that were extracted
        annotated();
        @sync for (bit<8> i in 8w0 .. 3) { busy_cycles(13); } //~ error[invalid] @sync stands at a block, or at the declaration of an extern function or method
        wrong_order();
        k.wrong_full();
        k.wrong_sync();
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
