// Packages of the second Tofino architecture with blocks missing or in the wrong place.
#include <t2na.p4>
#include "../tofino/frame.p4"

control NoGhost(inout headers_t hdr) { apply {} }

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser(), NoGhost()) a; //~ error[type-error] the argument is control NoGhost, but control GhostT is expected for the block `ghost` of `Pipeline`
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser()) b; //~ error[uninitialized] `Pipeline`: the parameter `egress` has no value
Switch(IngressParser()) main; //~ error[type-error] the argument is parser IngressParser, but package Pipeline
