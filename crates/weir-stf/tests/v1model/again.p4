// Resubmission and recirculation.
#include "header.p4i"
struct meta_t {
    @field_list(1) bit<8> kept;
    bit<8> lost;
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.instance_type == 0) {
            meta.kept = 0x44;
            meta.lost = 0x55;
            hdr.h.value = 0xffff;
            if (hdr.h.op == 1) { resubmit_preserving_field_list(1); }
            if (hdr.h.op == 2) { resubmit<tuple<bit<8>>>({ meta.lost }); }
            if (hdr.h.op == 5) { resubmit_preserving_field_list(1); mark_to_drop(sm); }
            sm.egress_spec = 1;
        } else {
            hdr.h.index = sm.instance_type[7:0];
            hdr.h.value = meta.kept ++ meta.lost;
            if (hdr.h.op == 7) { resubmit_preserving_field_list(1); }
            if (hdr.h.op == 8) { hdr.h.value = sm.packet_length[15:0]; }
            sm.egress_spec = 2;
        }
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 1) {
            if (hdr.h.op == 3 || hdr.h.op == 7) { recirculate_preserving_field_list(1); }
            if (hdr.h.op == 4) { recirculate<tuple<bit<8>>>({ meta.lost }); }
            if (hdr.h.op == 6) { recirculate_preserving_field_list(1); mark_to_drop(sm); }
            if (hdr.h.op == 8) { truncate(5); recirculate_preserving_field_list(1); }
        }
    }
}
#include "skeleton.p4i"
