// Packages of the Tofino architectures with the wrong blocks.
#include <tna.p4>
#include "../tofino/frame.p4"

struct other_t {}
control NoMetadata(inout headers_t hdr, inout metadata_t md,
                   in ingress_intrinsic_metadata_from_parser_t prsr) { apply {} }
parser OtherHeaders(packet_in pkt, out other_t hdr, out metadata_t md) { state start { transition accept; } }

Pipeline(IngressParser(), NoMetadata(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) a; //~ error[type-error] the argument is control NoMetadata, but control IngressT<struct headers_t, struct metadata_t> is expected for the block `ingress` of `Pipeline`
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), EgressDeparser(), Egress()) b; //~ error[type-error] the argument is control EgressDeparser, but control EgressT<struct headers_t, struct metadata_t> is expected for the block `egress` of `Pipeline`
//~^ error[type-error] the argument is control Egress, but control EgressDeparserT<struct headers_t, struct metadata_t> is expected for the block `egress_deparser` of `Pipeline`
Pipeline(OtherHeaders(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) c; //~ error[type-error] the argument is control Ingress, but control IngressT<struct other_t, struct metadata_t> is expected
//~^ error[type-error] the argument is control IngressDeparser, but control IngressDeparserT<struct other_t, struct metadata_t> is expected
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress()) d; //~ error[uninitialized] `Pipeline`: the parameter `egress_deparser` has no value
IngressParsers(EgressParser()) e; //~ error[type-error] the argument is parser EgressParser, but parser IngressParserT<struct headers_t, struct metadata_t> is expected for the block `prsr0` of `IngressParsers`
Switch(Ingress()) main; //~ error[type-error] the argument is control Ingress, but package Pipeline<_, _, _, _> is expected for the block `pipe0` of `Switch`
