#include "tofino/intrinsic_metadata.p4"
#define SIZE 512
header_type ethernet_t {
    //~^ error[p4-14] this is P4_14, but weir compiles P4_16 = help: p4c translates it: `p4test --std p4-14 OLD.p4 --pp NEW.p4`
    fields {
        dstAddr : 48;
        etherType : 16;
    }
}
header ethernet_t ethernet;
metadata ethernet_t m;
parser start {
    extract(ethernet);
    return select(latest.etherType) { 0x800 : parse_ipv4; default: ingress; }
}
action fwd(port) { modify_field(standard_metadata.egress_spec, port); }
table t { reads { ethernet.dstAddr : exact; } actions { fwd; } size : SIZE; }
control ingress { apply(t); }
control egress { }
