// Two pipelines: ports of the first and third pipe take the first of them, the others the second.
#include "header.p4i"
struct meta_t { }
#define OWN_MAIN
INGRESS(I) { apply { tm.ucast_egress_port = (PortId_t)hdr.h.value; hdr.h.op = 1; } }
#include "skeleton.p4i"
INGRESS(J) { apply { tm.ucast_egress_port = (PortId_t)hdr.h.value; hdr.h.op = 2; } }
EGRESS(F) { apply { hdr.h.index = 2; } }
EGRESS(G) { apply { hdr.h.index = 1; } }
Pipeline(IP(), I(), ID(), EP(), G(), ED()) a;
Pipeline(IP(), J(), ID(), EP(), F(), ED()) z;
Switch(a, z) main;
