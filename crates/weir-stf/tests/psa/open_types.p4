// `_` as a type argument of PSA's externs.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Register<bit<16>, _>(4) last;
    Counter<bit<32>, _>(4, PSA_CounterType_t.PACKETS) seen;
    apply {
        send_to_port(ostd, PORT(1));
        bit<16> before = last.read(hdr.h.index);
        last.write(hdr.h.index, hdr.h.value);
        seen.count(hdr.h.index);
        seen.count(hdr.h.value[1:0]);
        hdr.h.value = before;
    }
}
#include "skeleton.p4i"
