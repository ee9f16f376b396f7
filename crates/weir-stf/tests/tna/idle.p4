// Tables whose entries time out, on either chip.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    action set(bit<16> value) { hdr.h.value = value; }
#ifdef SECOND_CHIP
    IdleTimeout() idle;
#endif
    table timed {
        key = { hdr.h.index: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
#ifdef SECOND_CHIP
        idle_timeout = idle;
#else
        idle_timeout = true;
#endif
    }
    table untimed {
        key = { hdr.h.op: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
        idle_timeout = false;
    }
    apply { tm.ucast_egress_port = 1; timed.apply(); untimed.apply(); }
}
#include "skeleton.p4i"
