// Action profiles and selectors, and tables that are as any other here.
#include "header.p4i"
struct meta_t { }
INGRESS(I) {
    ActionProfile(16) profile;
    Hash<bit<14>>(HashAlgorithm_t.IDENTITY) hash;
    ActionProfile(16) members;
    ActionSelector(members, hash, SelectorMode_t.FAIR, 8, 4) selector;
    Alpm(number_partitions = 2, subtrees_per_partition = 2) by_prefix;
    Atcam(2) by_part;
    action set(bit<16> value) { hdr.h.value = value; }
    action none() { hdr.h.value = 0; }
    table shared {
        key = { hdr.h.index: exact; }
        actions = { set; none; }
        default_action = none;
        implementation = profile;
        size = 16;
    }
    table chosen {
        key = { hdr.h.index: exact; hdr.h.value: selector; }
        actions = { set; none; }
        default_action = none;
        implementation = selector;
        size = 16;
    }
    table prefixes {
        key = { hdr.h.value: lpm; }
        actions = { set; none; }
        default_action = none;
        alpm = by_prefix;
        size = 16;
    }
    table parts {
        key = { hdr.h.index: atcam_partition_index; hdr.h.value: ternary; }
        actions = { set; none; }
        default_action = none;
        atcam = by_part;
        size = 16;
    }
    apply {
        tm.ucast_egress_port = 1;
        if (hdr.h.op == 0) { shared.apply(); }
        else if (hdr.h.op == 1) { chosen.apply(); }
        else if (hdr.h.op == 2) { prefixes.apply(); }
        else { parts.apply(); }
    }
}
#include "skeleton.p4i"
