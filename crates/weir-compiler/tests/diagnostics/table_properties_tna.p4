// Values of table properties that the architecture does not take there.
#include <tna.p4>
#include "../tofino/frame.p4"

control Properties(inout headers_t hdr, inout metadata_t md,
                   in ingress_intrinsic_metadata_t ig,
                   in ingress_intrinsic_metadata_from_parser_t prsr,
                   inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                   inout ingress_intrinsic_metadata_for_tm_t tm)
{
    Register<bit<16>, bit<8>>(16) register;
    Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS) counter;
    Random<bit<8>>() random;
    ActionProfile(16) profile;
    Atcam(16) atcam;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) direct;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) twice;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) nowhere;
    DirectCounter<bit<32>>(CounterType_t.PACKETS) silent; //~ warning[unattached] the DirectCounter `Properties.silent` is attached to no table
    DirectMeter(MeterType_t.BYTES) meter;
    DirectRegister<bit<16>>() cells;
    DirectRegisterAction<bit<16>, bit<16>>(cells) step = {
        void apply(inout bit<16> value) { value = value + 1; }
    };

    action count_elsewhere() { direct.count(); } //~ warning[no-entry] this is in no action of the table that `Properties.direct` is attached to: it does nothing
    action count_nowhere() { nowhere.count(); } //~ warning[no-entry] `Properties.nowhere` is attached to no table: this does nothing
    action run_nowhere() { step.execute(); } //~ warning[no-entry] `Properties.cells` is attached to no table: this does nothing
    action color() { md.color = (bit<8>)meter.execute(); }

    table t1 { key = { md.hash : exact; } actions = { NoAction; } implementation = register; } //~ error[type-error] the property `implementation` takes an instance of `ActionProfile`, `ActionSelector`, `Atcam`, `Alpm`, but this is an instance of `Register`
    table t2 { key = { md.hash : exact; } actions = { NoAction; } counters = counter; } //~ error[type-error] the property `counters` takes an instance of `DirectCounter`, but this is an instance of `Counter`
    table t3 { key = { md.hash : exact; } actions = { NoAction; } meters = direct; } //~ error[type-error] the property `meters` takes an instance of `DirectMeter`, but this is an instance of `DirectCounter`
    table t4 { key = { md.hash : exact; } actions = { NoAction; } registers = meter; } //~ error[type-error] the property `registers` takes an instance of `DirectRegister`, but this is an instance of `DirectMeter`
    table t5 { key = { md.hash : exact; } actions = { NoAction; } filters = random; } //~ error[type-error] the property `filters` takes an instance of `DirectLpf`, `DirectWred`, `Lpf`, `Wred`, but this is an instance of `Random`
    table t6 { key = { md.hash : exact; } actions = { NoAction; } idle_timeout = 5; } //~ error[type-error] the property `idle_timeout` takes `true` or `false` or an instance of `IdleTimeout`, but this is the number 5
    table t7 { key = { md.hash : exact; } actions = { NoAction; } alpm = atcam; } //~ error[type-error] the property `alpm` takes an instance of `Alpm`, but this is an instance of `Atcam`
    table t8 { key = { md.hash : exact; } actions = { NoAction; } counters = NoAction(); } //~ error[type-error] the property `counters` takes an instance of `DirectCounter`, but this is an action
    table t9 { key = { md.hash : exact; } actions = { NoAction; } implementatoin = profile; } //~ warning[unknown-property] tna has no table property `implementatoin`: it has no effect
    table t10 { key = { md.hash : exact; } actions = { NoAction; } colour = 5; } //~ warning[unknown-property] tna has no table property `colour`: it has no effect
    table t11 { key = { md.hash : exact; } actions = { NoAction; } @for_another_tool colour = 5; }
    table t12 { key = { md.hash : exact; } actions = { NoAction; color; } counters = twice; meters = meter; }
    table t13 { key = { md.hash : exact; } actions = { NoAction; } counters = twice; } //~ error[invalid] `Properties.twice` is attached to two tables: a DirectCounter has a value per entry of one table
    table t14 { key = { md.hash : exact; } actions = { NoAction; } counters = direct; }
    table t15 { key = { md.hash : exact; } actions = { count_elsewhere; count_nowhere; run_nowhere; } }

    apply {
        t1.apply(); t2.apply(); t3.apply(); t4.apply(); t5.apply(); t6.apply(); t7.apply(); t8.apply();
        t9.apply(); t10.apply(); t11.apply(); t12.apply(); t13.apply(); t14.apply(); t15.apply();
        md.color = random.get();
        counter.count(0);
        md.hash = register.read(0);
    }
}

Pipeline(IngressParser(), Properties(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
