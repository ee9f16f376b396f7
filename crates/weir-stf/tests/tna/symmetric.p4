// @symmetric: exchanging the two fields, of each pair at once or alone, does not change the hash.
#define OWN_HEADERS
#include "header.p4i"
header pair_t { bit<16> src; bit<16> dst; bit<8> from; bit<8> to; bit<8> proto; }
struct headers_t { h_t h; pair_t pair; }
struct meta_t { }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    state start { b.extract(intrinsic); b.advance(PORT_METADATA_SIZE); b.extract(hdr.h); b.extract(hdr.pair); transition accept; }
}
control Hashed(in headers_t h, out bit<16> value) {
    @symmetric("hdr.pair.src", "hdr.pair.dst") @symmetric("hdr.pair.from", "hdr.pair.to")
    Hash<bit<16>>(HashAlgorithm_t.IDENTITY) hash;
    apply { value = (bit<16>)hash.get({ h.pair.from, h.pair.src, h.pair.dst, h.pair.to }); }
}
INGRESS(I) {
    @symmetric("hdr.pair.src", "hdr.pair.dst") Hash<bit<64>>(HashAlgorithm_t.IDENTITY) all;
    Hashed() hashed;
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        if (hdr.h.op == 0) { hdr.h.value = all.get({ hdr.pair.src, hdr.pair.dst })[31:16]; }
        else if (hdr.h.op == 1) { hdr.h.value = all.get({ hdr.pair.src, hdr.pair.dst })[15:0]; }
        else { hashed.apply(hdr, hdr.h.value); }
        hdr.pair.setInvalid();
    }
}
#define OWN_EGRESS_PARSER
EGRESS_PARSER(EP) { state start { b.extract(intrinsic); transition accept; } }
#include "skeleton.p4i"
