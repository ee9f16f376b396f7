// One pipe twice: its tables are there once.
#include <tna.p4>
#include "frame.p4"

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe, pipe) main;
