// Answers a packet of nine bytes with what custom CRCs make of them, at the port where it came in. Defined are CRC16, CRC32 or both:
// which of them the program uses.
#include <core.p4>
#include <v1model.p4>

header text_t { bit<72> text; }
header sum16_t { bit<16> sum; }
header sum32_t { bit<32> sum; }
struct headers { text_t text; sum16_t sum16; sum32_t sum32; }
struct meta { }

parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.text); transition accept; }
}
control V(inout headers h, inout meta m) { apply { } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = s.ingress_port;
#ifdef CRC16
        h.sum16.setValid();
        hash(h.sum16.sum, HashAlgorithm.crc16_custom, 16w0, { h.text.text }, 32w0x10000);
#endif
#ifdef CRC32
        h.sum32.setValid();
        hash(h.sum32.sum, HashAlgorithm.crc32_custom, 32w0, { h.text.text }, 64w0x100000000);
#endif
#ifdef UNREAD
        bit<32> unread;
        hash(unread, HashAlgorithm.crc32_custom, 32w0, { h.text.text }, 64w0x100000000);
#endif
        h.text.setInvalid();
    }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.sum16); p.emit(h.sum32); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
