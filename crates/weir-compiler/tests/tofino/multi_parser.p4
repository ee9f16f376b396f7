// A parser for some ports and another one for the rest.
#include <tna.p4>
#include "frame.p4"

parser Blind(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        md = {0, 0};
        transition accept;
    }
}

IngressParsers(IngressParser(), Blind()) ingress_parsers;
EgressParsers(EgressParser()) egress_parsers;
MultiParserPipeline(ingress_parsers, Ingress(), IngressDeparser(), egress_parsers, Egress(), EgressDeparser()) pipe;
MultiParserSwitch(pipe) main;
