// Answers a packet of nine bytes with what six hashes make of them, at the port where it came in.
// The comments say what the calculations are called.
#include <core.p4>
#include <v1model.p4>

header text_t { bit<72> text; }
header sums_t {
    bit<32> first;
    bit<32> plain;
    bit<32> second;
    bit<32> third;
    bit<16> narrow;
    bit<16> checksum;
}
struct headers { text_t text; sums_t sums; }
struct meta { bit<32> base; bit<1> never; }

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.text); transition accept; }
}
// calc_5: checks come last, whatever their place.
control V(inout headers h, inout meta m) {
    apply { verify_checksum(m.never == 1, { h.text.text }, h.sums.checksum, HashAlgorithm.crc16_custom); }
}
#define SUM(to, algorithm) hash(to, HashAlgorithm.algorithm, 32w0, { h.text.text }, 64w0x100000000)
// calc and calc_0: one line of the text is two calls.
#define BOTH SUM(h.sums.first, crc32_custom); SUM(h.sums.plain, crc32)
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    // calc_1: two uses of one call.
    action second() {
        BOTH;
        hash(h.sums.second, HashAlgorithm.crc32_custom, 32w0, { h.text.text }, 64w0x100000000);
    }
    action unused() { hash(h.sums.second, HashAlgorithm.crc16_custom, 32w0, { h.text.text }, 64w2); }
    apply {
        s.egress_spec = s.ingress_port;
        h.sums.setValid();
        if (s.ingress_port == 1) { second(); } else { second(); }
        // calc_2: machine code leaves this one to the host, as the base is not known.
        hash(h.sums.third, HashAlgorithm.crc32_custom, m.base, { h.text.text }, 64w0x100000000);
        // calc_3
        hash(h.sums.narrow, HashAlgorithm.crc16_custom, 16w0, { h.text.text }, 32w0x10000);
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
// calc_4
control C(inout headers h, inout meta m) {
    apply { update_checksum(true, { h.text.text }, h.sums.checksum, HashAlgorithm.crc16_custom); }
}
control D(packet_out p, in headers h) { apply { p.emit(h.sums); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
