// Values of table properties that the architecture does not take there.
#include <core.p4>
#include <psa.p4>

struct empty_t {}
header h_t { bit<8> x; }
struct headers_t { h_t h; }

parser IP(packet_in buffer, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
          in empty_t resubmitted, in empty_t recirculated) { state start { buffer.extract(hdr.h); transition accept; } }
control I(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Register<bit<8>, bit<8>>(16) reg;
    Counter<bit<32>, bit<8>>(16, PSA_CounterType_t.PACKETS) array;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) direct;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) nowhere;
    DirectMeter(PSA_MeterType_t.PACKETS) meter; //~ warning[unattached] the DirectMeter `I.meter` is attached to no table

    action count() { nowhere.count(); } //~ warning[no-entry] `I.nowhere` is attached to no table: this does nothing
    table t1 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_implementation = reg; } //~ error[type-error] the property `psa_implementation` takes an instance of `ActionProfile`, `ActionSelector`, but this is an instance of `Register`
    table t2 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_direct_counter = array; } //~ error[type-error] the property `psa_direct_counter` takes an instance of `DirectCounter`, but this is an instance of `Counter`
    table t3 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_direct_meter = direct; } //~ error[type-error] the property `psa_direct_meter` takes an instance of `DirectMeter`, but this is an instance of `DirectCounter`
    table t4 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_idle_timeout = true; } //~ error[type-error] the property `psa_idle_timeout` takes a member of `PSA_IdleTimeout_t`, but this is `true`
    table t5 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_empty_group_action = 5; } //~ error[type-error] the property `psa_empty_group_action` takes an action of the table, but this is the number 5
    table t6 { key = { hdr.h.x : exact; } actions = { NoAction; } implementation = reg; } //~ warning[unknown-property] psa has no table property `implementation`: it has no effect
    table t7 { key = { hdr.h.x : exact; } actions = { NoAction; count; } psa_direct_counter = direct; }
    table t8 { key = { hdr.h.x : exact; } actions = { NoAction; } psa_direct_counter = direct; } //~ error[invalid] `I.direct` is attached to two tables: a DirectCounter has a value per entry of one table
    apply { t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply(); }
}
control ID(packet_out packet, out empty_t clone_i2e, out empty_t resubmitted, out empty_t normal, inout headers_t hdr,
           in empty_t meta, in psa_ingress_output_metadata_t istd) { apply { packet.emit(hdr); } }
parser EP(packet_in buffer, out headers_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd,
          in empty_t normal, in empty_t clone_i2e, in empty_t clone_e2e) { state start { transition accept; } }
control E(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) { apply {} }
control ED(packet_out packet, out empty_t clone_e2e, out empty_t recirculated, inout headers_t hdr, in empty_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) { apply {} }

IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
