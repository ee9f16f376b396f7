// Clones of both kinds; op says what ingress (high digit) and egress (low digit) do.
#include "header.p4i"
enum bit<8> Lists { one = 1, both = 2 }
struct meta_t {
    @field_list(Lists.one, Lists.both) bit<8> one;
    @field_list(2) bit<8> two;
    bit<8> none;
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        meta.one = 0x11;
        meta.two = 0x22;
        meta.none = 0x33;
        sm.egress_spec = 1;
        if (hdr.h.op[7:4] == 1) { clone_preserving_field_list(CloneType.I2E, 7, 1); }
        if (hdr.h.op[7:4] == 2) { clone_preserving_field_list(CloneType.I2E, 7, (bit<8>)Lists.both); }
        if (hdr.h.op[7:4] == 3) { clone(CloneType.I2E, 7); }
        if (hdr.h.op[7:4] == 4) { clone(CloneType.I2E, 9); clone_preserving_field_list(CloneType.I2E, 7, 1); }
        if (hdr.h.op[7:4] == 5) { clone_preserving_field_list(CloneType.I2E, 7, 1); mark_to_drop(sm); }
        if (hdr.h.op[7:4] == 6) { clone3(CloneType.I2E, 7, { meta.two }); }
        hdr.h.value = 0xeeee;
        meta.one = meta.one + 1;
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 1 || sm.instance_type == 2) {
            hdr.h.index = sm.instance_type[7:0];
            hdr.h.value = meta.one ++ meta.two;
            if (sm.instance_type == 1) { hdr.h.op = meta.none; }
        } else if (hdr.h.op[3:0] == 1) {
            hdr.h.op = 0xaa;
            clone_preserving_field_list(CloneType.E2E, 8, 2);
        } else if (hdr.h.op[3:0] == 2) {
            clone_preserving_field_list(CloneType.E2E, 8, 1);
            mark_to_drop(sm);
        }
    }
}
#include "skeleton.p4i"
