// A table with a direct counter and a direct meter, and actions that execute one of them, both or none.
#include <core.p4>
#include <psa.p4>

header key_t { bit<32> key; }
struct headers { key_t h; }
struct empty { }

parser IP(packet_in p, out headers h, inout empty m, in psa_ingress_parser_input_metadata_t i, in empty r, in empty c) {
    state start {
        p.extract(h.h);
        transition accept;
    }
}

control I(inout headers h, inout empty m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS_AND_BYTES) counted;
    DirectMeter(PSA_MeterType_t.PACKETS) metered;
    action count() { counted.count(); }
    action police() { o.drop = metered.execute() == PSA_MeterColor_t.RED; }
    action both() {
        counted.count();
        police();
    }
    action neither() { ingress_drop(o); }
    table t {
        key = { h.h.key : exact @name("key"); }
        actions = { count; police; both; neither; }
        default_action = neither();
        psa_direct_counter = counted;
        psa_direct_meter = metered;
    }
    apply { t.apply(); }
}

control ID(packet_out p, out empty c, out empty r, out empty n, inout headers h, in empty m, in psa_ingress_output_metadata_t i) {
    apply { p.emit(h.h); }
}

parser EP(packet_in p, out headers h, inout empty m, in psa_egress_parser_input_metadata_t i, in empty n, in empty c2, in empty c3) {
    state start { transition accept; }
}

control E(inout headers h, inout empty m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) { apply { } }

control ED(packet_out p, out empty c, out empty r, inout headers h, in empty m, in psa_egress_output_metadata_t i,
           in psa_egress_deparser_input_metadata_t d) {
    apply { }
}

IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
