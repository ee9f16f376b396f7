// A match kind that weir refuses, with the reason.
#include <t2na.p4>
#include "../tofino/frame.p4"

control Keys(inout headers_t hdr, inout metadata_t md,
             in ingress_intrinsic_metadata_t ig,
             in ingress_intrinsic_metadata_from_parser_t prsr,
             inout ingress_intrinsic_metadata_for_deparser_t dprsr,
             inout ingress_intrinsic_metadata_for_tm_t tm)
{
    table hashed { key = { md.hash : dleft_hash; } actions = { NoAction; } } //~ error[unsupported] weir has no tables with the match kind `dleft_hash`: what digest the hardware makes of a key is not published; a `RegisterAction` on a `Hash` does the same
    apply { hashed.apply(); }
}

Pipeline(IngressParser(), Keys(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
