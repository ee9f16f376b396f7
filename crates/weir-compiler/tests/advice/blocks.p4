// Externs in blocks that a Tofino does not have them in.
#include <core.p4>
#include <tna.p4>
#include "frame.p4i"
INGRESS(I) {
    Mirror(1) mirror;
    Checksum() sum;
    apply {
        tm.ucast_egress_port = 1;
        for_deparser.mirror_type = 1;
        mirror.emit<h_t>(1, hdr.h); //~ warning[tofino-block] `I.mirror` is a Mirror, which a Tofino has in the deparser only, and this is the ingress
        hdr.h.value = sum.update({ hdr.h.wide }); //~ warning[tofino-block] `I.sum` is a Checksum, which a Tofino has in the parser or the deparser only
    }
}
EGRESS(E) { apply { } }
control EgressDeparser(packet_out b, inout headers_t hdr, in none_t meta, in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<h_t>() digest;
    Counter<bit<32>, bit<8>>(8, CounterType_t.PACKETS) count;
    Mirror(1) mirror;
    apply {
        digest.pack(hdr.h); //~ warning[tofino-block] `EgressDeparser.digest` is a Digest, which a Tofino has in the ingress deparser only, and this is the egress deparser
        count.count(1); //~ warning[tofino-block] `EgressDeparser.count` is a Counter, which a Tofino has in the control only
        if (for_deparser.mirror_type == 1) { mirror.emit<h_t>(1, hdr.h); }
        b.emit(hdr);
    }
}
Pipeline(IP(), I(), ID(), EP(), E(), EgressDeparser()) pipe;
Switch(pipe) main;
