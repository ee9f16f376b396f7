// Two pipes whose packets have different headers.
#include <tna.p4>
#include "frame.p4"

struct no_headers_t {}

parser OtherParser(packet_in pkt, out no_headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        md = port_metadata_unpack<metadata_t>(pkt);
        transition accept;
    }
}

control OtherIngress(inout no_headers_t hdr, inout metadata_t md, in ingress_intrinsic_metadata_t ig,
                     in ingress_intrinsic_metadata_from_parser_t prsr,
                     inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                     inout ingress_intrinsic_metadata_for_tm_t tm)
{
    apply {
        tm.ucast_egress_port = DEVPORT_PIPE(ig.ingress_port) ++ 7w1;
        tm.bypass_egress = 1;
    }
}

control OtherDeparser(packet_out pkt, inout no_headers_t hdr, in metadata_t md) {
    apply {}
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) first;
Pipeline(OtherParser(), OtherIngress(), OtherDeparser(), EgressParser(), Egress(), EgressDeparser()) second;
Switch(first, second) main;
