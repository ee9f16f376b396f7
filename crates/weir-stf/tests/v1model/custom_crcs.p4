// CRCs with parameters of the control plane beside those without, and the validity of a header as a key.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> op; bit<8> index; bit<16> value; }
header sums_t { bit<32> custom32; bit<32> crc32; bit<16> custom16; bit<16> crc16; }
header text_t { bit<72> text; }
struct headers_t { h_t h; text_t text; sums_t sums; }
struct meta_t { }
#define OWN_PARSER
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.h); transition select(hdr.h.op) { 0: parse_text; default: accept; } }
    state parse_text { b.extract(hdr.text); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action mark(bit<8> with) { hdr.h.index = with; }
    table t { key = { hdr.text.isValid() : exact; } actions = { mark; NoAction; } default_action = NoAction; }
    apply {
        sm.egress_spec = 1;
        t.apply();
        hdr.sums.setValid();
        hash(hdr.sums.custom32, HashAlgorithm.crc32_custom, 32w0, { hdr.text.text }, 64w0x100000000);
        hash(hdr.sums.crc32, HashAlgorithm.crc32, 32w0, { hdr.text.text }, 64w0x100000000);
        hash(hdr.sums.custom16, HashAlgorithm.crc16_custom, 16w0, { hdr.text.text }, 32w0x10000);
        hash(hdr.sums.crc16, HashAlgorithm.crc16, 16w0, { hdr.text.text }, 32w0x10000);
        hdr.text.setInvalid();
        if (hdr.h.op != 0) { hdr.sums.setInvalid(); }
    }
}
#include "skeleton.p4i"
