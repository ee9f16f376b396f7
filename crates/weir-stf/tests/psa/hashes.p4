// Every algorithm of Hash, over three bytes or over some of their bits; random numbers.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Hash<bit<16>>(PSA_HashAlgorithm_t.IDENTITY) identity;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32_CUSTOM) crc32_custom;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc16;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16_CUSTOM) crc16_custom;
    Hash<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) csum16;
    Hash<bit<32>>(PSA_HashAlgorithm_t.TARGET_DEFAULT) by_default;
    Random<bit<16>>(10, 12) few;
    Random<bit<8>>(7, 7) one;
    apply {
        send_to_port(ostd, PORT(1));
        bit<24> data = hdr.h.index ++ hdr.h.value;
        bit<8> op = hdr.h.op;
        if (op == 0) { hdr.h.value = identity.get_hash(data); }
        if (op == 1) { hdr.h.value = crc32.get_hash(data)[31:16]; }
        if (op == 2) { hdr.h.value = crc32.get_hash(data)[15:0]; }
        if (op == 3) { hdr.h.value = crc16.get_hash({ hdr.h.index, hdr.h.value }); }
        if (op == 4) { hdr.h.value = csum16.get_hash(data); }
        if (op == 5) { hdr.h.value = (crc32_custom.get_hash(data) ^ by_default.get_hash(data))[15:0]; }
        if (op == 6) { hdr.h.value = crc16_custom.get_hash(data); }
        // base + hash % max
        if (op == 7) { hdr.h.value = identity.get_hash(16w100, data, 16w10); }
        if (op == 8) { hdr.h.value = identity.get_hash(16w100, data, 16w0); }
        // What is no whole byte is filled up in front.
        if (op == 9) { hdr.h.value = identity.get_hash({ hdr.h.index[3:0] }); }
        if (op == 10) { hdr.h.value = few.read(); }
        if (op == 11) { hdr.h.value = 0x100 + (bit<16>)one.read(); }
        // Headers that are not there count for nothing.
        if (op == 12) { hdr.h.value = csum16.get_hash({ hdr.h.value, hdr.h }); }
    }
}
#include "skeleton.p4i"
