// A program of the first architecture, built for the second chip: its identifiers are wider.
#define __TARGET_TOFINO__ 2
#include <tna.p4>
#include "frame.p4"

const bit<7> WIDER = (QueueId_t) 100;
const bool CHECKED = static_assert(PORT_METADATA_SIZE == 192, "port metadata");

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
