// Registers of numbers and of structs, with and without initial values.
#include "header.p4i"
struct meta_t { }
struct pair_t { bit<8> a; bit<24> b; }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Register<bit<16>, bit<8>>(4) plain;
    Register<bit<16>, bit<8>>(4, 0x1234) started;
    Register<pair_t, bit<8>>(2) pairs;
    apply {
        send_to_port(ostd, PORT(1));
        if (hdr.h.op == 0) { hdr.h.value = plain.read(hdr.h.index); }
        if (hdr.h.op == 1) { plain.write(hdr.h.index, hdr.h.value); }
        if (hdr.h.op == 2) { plain.write(hdr.h.index, plain.read(hdr.h.index) + hdr.h.value); }
        if (hdr.h.op == 3) { hdr.h.value = started.read(hdr.h.index); }
        if (hdr.h.op == 4) { started.write(hdr.h.index, hdr.h.value); }
        if (hdr.h.op == 5) {
            pair_t pair = pairs.read(hdr.h.index);
            pair.a = pair.a + 1;
            pair.b = pair.b + (bit<24>)hdr.h.value;
            pairs.write(hdr.h.index, pair);
            hdr.h.value = pair.a ++ pair.b[7:0];
        }
    }
}
#include "skeleton.p4i"
