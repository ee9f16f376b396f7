// A `main` that is only a part of a switch.
#include <tna.p4>
#include "../tofino/frame.p4"

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) main; //~ error[main] `main` is a `Pipeline`, which is no switch: a `main` of tna is a `Switch` or a `MultiParserSwitch`
