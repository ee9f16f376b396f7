// A control that hears of queues.
#define SECOND_CHIP
#include "../header.p4i"
struct meta_t { }
#define OWN_MAIN
INGRESS(I) { apply { tm.ucast_egress_port = 1; } }
#include "../skeleton.p4i"
control ghost(in ghost_intrinsic_metadata_t message) { apply { } }
Pipeline(IP(), I(), ID(), EP(), E(), ED(), ghost()) pipe;
Switch(pipe) main;
