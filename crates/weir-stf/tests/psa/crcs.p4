// Checksum with algorithms other than that of the Internet.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply { send_to_port(ostd, PORT(1)); }
}
#define OWN_EGRESS_DEPARSER
control ED(packet_out b, out none_t cloned, out none_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    Checksum<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc;
    Checksum<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc32;
    apply {
        bit<8> op = hdr.h.op;
        if (op == 6) {
            crc.update(hdr.h.index);
            crc.update({ hdr.h.value });
            hdr.h.value = crc.get();
        }
        if (op == 7) {
            crc32.update(hdr.h.index ++ hdr.h.value);
            crc32.clear();
            crc32.update(hdr.h.index ++ hdr.h.value);
            hdr.h.value = crc32.get()[31:16];
        }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
