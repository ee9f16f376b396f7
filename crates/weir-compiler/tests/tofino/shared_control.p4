// Two pipes with the same controls, and one that is made in place.
#include <tna.p4>
#include "frame.p4"

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) first;
Switch(first, first, Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser())) main;
