// A question that headers answer.
#include "../header.p4i"
struct meta_t { }
INGRESS(I) {
    apply { if (is_validated(hdr.h.index)) { tm.ucast_egress_port = 1; } }
}
#include "../skeleton.p4i"
