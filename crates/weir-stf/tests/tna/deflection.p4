// Packets that go elsewhere when their queue is full.
#include "header.p4i"
struct meta_t { }
#define OWN_EGRESS
INGRESS(I) { apply { tm.ucast_egress_port = 2; tm.deflect_on_drop = hdr.h.op[0:0]; } }
EGRESS(E) { apply { hdr.h.index = (bit<8>)intrinsic.deflection_flag; } }
#include "skeleton.p4i"
