// Hashes with every algorithm, and with polynomials of the program's own. "123456789" is what catalogues check with.
#define OWN_HEADERS
#include "header.p4i"
header op_t { bit<8> op; }
header text_t { bit<72> text; }
header result_t { bit<64> hash; }
struct headers_t { op_t h; text_t text; result_t result; }
struct meta_t { }
#define OWN_INGRESS_PARSER
#define OWN_EGRESS_PARSER
INGRESS_PARSER(IP) {
    state start {
        b.extract(intrinsic); b.advance(PORT_METADATA_SIZE); b.extract(hdr.h); b.extract(hdr.text); transition accept;
    }
}
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); transition accept; } }
INGRESS(I) {
    Hash<bit<64>>(HashAlgorithm_t.IDENTITY) identity;
    Hash<bit<64>>(HashAlgorithm_t.RANDOM) random;
    Hash<bit<8>>(HashAlgorithm_t.XOR8) xor8;
    Hash<bit<16>>(HashAlgorithm_t.XOR16) xor16;
    Hash<bit<32>>(HashAlgorithm_t.XOR32) xor32;
    Hash<bit<8>>(HashAlgorithm_t.CRC8) crc8;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) crc16;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) crc32;
    Hash<bit<64>>(HashAlgorithm_t.CRC64) crc64;
    // CRC-16/CCITT-FALSE, CRC-32C and CRC-8 wider than it is, by zeros and by itself.
    CRCPolynomial<bit<16>>(0x1021, false, false, false, 0xffff, 0) ccitt;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, ccitt) of_ccitt;
    CRCPolynomial<bit<32>>(0x1edc6f41, true, false, false, 0xffffffff, 0xffffffff) castagnoli;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, castagnoli) of_castagnoli;
    CRCPolynomial<bit<8>>(0x07, false, false, true, 0, 0) extended;
    Hash<bit<20>>(HashAlgorithm_t.CUSTOM, extended) of_extended;
    Hash<bit<20>>(HashAlgorithm_t.CRC8) wide;
    Hash<bit<6>>(HashAlgorithm_t.IDENTITY) narrow;
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.result.setValid();
        if (hdr.h.op == 0) { hdr.result.hash = identity.get({ hdr.text.text[71:8] }); }
        else if (hdr.h.op == 1) { hdr.result.hash = random.get({ hdr.text.text }) ^ random.get({ hdr.text.text }); }
        else if (hdr.h.op == 2) { hdr.result.hash = (bit<64>)xor8.get({ hdr.text.text }); }
        else if (hdr.h.op == 3) { hdr.result.hash = (bit<64>)xor16.get({ hdr.text.text }); }
        else if (hdr.h.op == 4) { hdr.result.hash = (bit<64>)xor32.get({ hdr.text.text }); }
        else if (hdr.h.op == 5) { hdr.result.hash = (bit<64>)crc8.get({ hdr.text.text }); }
        else if (hdr.h.op == 6) { hdr.result.hash = (bit<64>)crc16.get({ hdr.text.text }); }
        else if (hdr.h.op == 7) { hdr.result.hash = (bit<64>)crc32.get({ hdr.text.text }); }
        else if (hdr.h.op == 8) { hdr.result.hash = crc64.get({ hdr.text.text }); }
        else if (hdr.h.op == 9) { hdr.result.hash = (bit<64>)of_ccitt.get({ hdr.text.text }); }
        else if (hdr.h.op == 10) { hdr.result.hash = (bit<64>)of_castagnoli.get({ hdr.text.text[71:32], hdr.text.text[31:0] }); }
        else if (hdr.h.op == 11) { hdr.result.hash = (bit<64>)of_extended.get({ hdr.text.text }); }
        else if (hdr.h.op == 12) { hdr.result.hash = (bit<64>)wide.get({ hdr.text.text }); }
        else if (hdr.h.op == 13) { hdr.result.hash = (bit<64>)narrow.get({ hdr.text.text[7:5], 2w1, hdr.text.text[1:0] }); }
        hdr.text.setInvalid();
    }
}
#include "skeleton.p4i"
