// Counters and meters, indexed and of table entries.
#include "header.p4i"
struct meta_t { }
bit<16> number(in PSA_MeterColor_t color) {
    return color == PSA_MeterColor_t.GREEN ? 16w1 : (color == PSA_MeterColor_t.YELLOW ? 16w2 : 3);
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) seen;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits;
    Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) by_index;
    Meter<bit<8>>(4, PSA_MeterType_t.BYTES) by_bytes;
    DirectMeter(PSA_MeterType_t.PACKETS) of_entry;
    action counted(bit<8> port) {
        hits.count();
        send_to_port(ostd, PORT(port));
    }
    action uncounted(bit<8> port) { send_to_port(ostd, PORT(port)); }
    action miss() { hits.count(); }
    table t {
        key = { hdr.h.index : exact; }
        actions = { counted; uncounted; miss; }
        default_action = miss;
        psa_direct_counter = hits;
    }
    action metered(bit<8> port) {
        hdr.h.value = of_entry.execute() == PSA_MeterColor_t.GREEN ? 16w1 : 2;
        send_to_port(ostd, PORT(port));
    }
    action aware() {
        hdr.h.value = of_entry.execute(PSA_MeterColor_t.RED) == PSA_MeterColor_t.RED ? 16w1 : 2;
    }
    table m {
        key = { hdr.h.index : exact; }
        actions = { metered; aware; NoAction; }
        psa_direct_meter = of_entry;
    }
    apply {
        send_to_port(ostd, PORT(0));
        seen.count(hdr.h.index);
        if (hdr.h.op == 0) {
            t.apply();
        } else if (hdr.h.op == 1) {
            hdr.h.value = number(by_index.execute(hdr.h.index));
        } else if (hdr.h.op == 2) {
            hdr.h.value = number(by_bytes.execute(hdr.h.index));
        } else if (hdr.h.op == 3) {
            m.apply();
        } else if (hdr.h.op == 4) {
            hdr.h.value = number(by_index.execute(hdr.h.index, PSA_MeterColor_t.YELLOW));
        } else if (hdr.h.op == 5) {
            hdr.h.value = number(by_index.execute(hdr.h.index, PSA_MeterColor_t.RED));
        } else if (hdr.h.op == 6) {
            hdr.more = hdr.h;
        }
    }
}
#define OWN_EGRESS
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    Counter<bit<32>, bit<8>>(1, PSA_CounterType_t.BYTES) sent;
    apply { sent.count(0); }
}
#include "skeleton.p4i"
