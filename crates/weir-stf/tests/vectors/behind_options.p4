// A header behind one of variable length is read in many places, each of which computes where it is; sums
// of a bitmap's bits, of one that was changed meanwhile, and of two bitmaps.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> option_bits; }
header options_t { varbit<64> data; }
header body_t { bit<16> wanted; bit<16> other; bit<16> third; bit<8> sum; bit<8> flags; bit<32> last; }
header extra_t { bit<8> value; }
struct headers_t { h_t h; options_t options; extra_t extra; body_t body; }
struct meta_t { bit<8> sum; }

#define BITS(of) ((bit<8>) of[0:0] + (bit<8>) of[1:1] + (bit<8>) of[2:2] + (bit<8>) of[5:5])
#define TWICE(of) (((bit<8>) of[7:7] << 1) + ((bit<8>) of[8:8] << 1))

parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        b.extract(hdr.h);
        b.extract(hdr.options, (bit<32>) (hdr.h.option_bits & 0x38));
        b.extract(hdr.body);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.op[0:0] == 1) { meta.sum = BITS(hdr.body.wanted) + TWICE(hdr.body.wanted) + (bit<8>) hdr.body.wanted[15:15]; }
        if (hdr.h.op[1:1] == 1) { hdr.body.last[7:0] = BITS(hdr.body.other) + TWICE(hdr.body.third) + TWICE(hdr.body.other); }
        if (hdr.h.op[2:2] == 1) {
            bit<8> before = BITS(hdr.body.wanted);
            hdr.body.wanted = hdr.body.wanted ^ hdr.body.other;
            hdr.body.sum = before + BITS(hdr.body.wanted) + TWICE(hdr.body.other);
        }
        if (hdr.h.op[3:3] == 1 && hdr.body.flags[4:4] == 1) { meta.sum = meta.sum + (bit<8>) hdr.body.other[3:0]; }
        if (hdr.body.flags[3:3] == 1) { hdr.body.last[15:8] = meta.sum; }
        // With a header that some packets get, nothing is written to packets before they leave: what is read of them may be read later.
        if (hdr.body.flags[2:2] == 1) { hdr.extra.setValid(); hdr.extra.value = meta.sum; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        // What was read above is read once more, in blocks that only some packets reach.
        if (hdr.body.flags[0:0] == 1) { hdr.body.last[23:16] = BITS(hdr.body.other) + (bit<8>) hdr.body.other[9:9]; }
        if (hdr.body.flags[1:1] == 1) { hdr.body.last[31:24] = hdr.body.other[15:8] ^ hdr.body.sum; }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
