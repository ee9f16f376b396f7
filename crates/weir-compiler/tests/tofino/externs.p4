// What controls use, of both architectures alike.
#ifdef SECOND
#include <t2na.p4>
#else
#include <tna.p4>
#endif
#include "frame.p4"

struct pair_t {
    bit<32> low;
    bit<32> high;
}

control Using(inout headers_t hdr, inout metadata_t md,
              in ingress_intrinsic_metadata_t ig,
              in ingress_intrinsic_metadata_from_parser_t prsr,
              inout ingress_intrinsic_metadata_for_deparser_t dprsr,
              inout ingress_intrinsic_metadata_for_tm_t tm)
{
    CRCPolynomial<bit<16>>(16w0x8005, true, false, false, 16w0, 16w0) polynomial;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, polynomial) custom;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) crc;
    Random<bit<8>>() random;

    Counter<bit<64>, PortId_t>(512, CounterType_t.PACKETS_AND_BYTES) counter;
    DirectCounter<bit<64>>(CounterType_t.BYTES) direct_counter;
    Meter<PortId_t>(512, MeterType_t.BYTES) meter;
    Meter<PortId_t>(512, MeterType_t.PACKETS, 8w2, 8w1, 8w0) own_colors;
    DirectMeter(MeterType_t.PACKETS) direct_meter;
    Lpf<bit<16>, PortId_t>(512) lpf;
    DirectLpf<bit<16>>() direct_lpf;
    Wred<bit<16>, PortId_t>(512, 8w1, 8w0) wred;
    DirectWred<bit<16>>(8w1, 8w0) direct_wred;

    Register<bit<16>, PortId_t>(512, 7) plain;
    Register<pair_t, PortId_t>(512) pairs;
    DirectRegister<bit<16>>() direct_register;
    RegisterParam<bit<16>>(9) limit;
    MathUnit<bit<16>>(MathOp_t.MUL, 1, 4) quarter;
    MathUnit<bit<16>>(true, 2s0, -6, {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}) table_unit;
    RegisterAction<bit<16>, PortId_t, bit<16>>(plain) bounded = {
        void apply(inout bit<16> value, out bit<16> rv) {
            if (value < limit.read()) {
                value = value |+| 1;
            } else {
                value = quarter.execute(value) + table_unit.execute(value);
            }
            rv = value;
        }
    };
    RegisterAction<pair_t, PortId_t, bit<1>>(pairs) silent = {
        void apply(inout pair_t value) {
            value.low = value.low + 1;
        }
    };
    RegisterAction<pair_t, PortId_t, bit<8>>(pairs) predicate = {
        void apply(inout pair_t value, out bit<8> rv) {
            rv = this.predicate(value.low > 3, value.high == 0);
        }
    };
    DirectRegisterAction<bit<16>, bit<16>>(direct_register) direct_action = {
        void apply(inout bit<16> value, out bit<16> rv) {
            rv = value;
            value = md.hash;
        }
    };

    ActionProfile(64) profile;
    Hash<bit<32>>(HashAlgorithm_t.CRC32) spread;
    Register<bit<1>, bit<6>>(64) alive;
    ActionSelector(profile, spread, SelectorMode_t.RESILIENT, alive, 8, 8) selector;
    SelectorAction(selector) die = {
        void apply(inout bit<1> value, out bit<1> rv) {
            value = 0;
            rv = 0;
        }
    };
    ActionProfile(32) shared_profile;
    Alpm(number_partitions = 1024, subtrees_per_partition = 2) alpm;
    Atcam(number_partitions = 16) atcam;

    action send(PortId_t port) { tm.ucast_egress_port = port; }
    action counted() { direct_counter.count(); }
    action metered() { md.color = direct_meter.execute(color = MeterColor_t.GREEN); }
    action smoothed() { md.hash = direct_lpf.execute(md.hash); }
    action dropped_early() { md.color = direct_wred.execute(md.hash); }
    action registered() { md.hash = direct_action.execute(); }

    table selected {
        key = {
            hdr.ethernet.type : exact;
            md.hash : selector;
        }
        actions = { send; }
        implementation = selector;
    }
    table profiled {
        key = { hdr.ethernet.type : range; }
        actions = { send; NoAction; }
        implementation = shared_profile;
        default_action = NoAction;
    }
    table routed {
        key = { hdr.ethernet.dst : lpm; }
        actions = { send; NoAction; }
        alpm = alpm;
        idle_timeout = true;
        default_action = NoAction;
    }
    table partitioned {
        key = {
            md.hash : atcam_partition_index;
            hdr.ethernet.dst : ternary;
        }
        actions = { send; NoAction; }
        atcam = atcam;
        default_action = NoAction;
    }
    table counts {
        key = { hdr.ethernet.src : exact; }
        actions = { counted; }
        counters = direct_counter;
    }
    table meters_of_entries {
        key = { hdr.ethernet.src : exact; }
        actions = { metered; }
        meters = direct_meter;
    }
    table smooths {
        key = { hdr.ethernet.src : exact; }
        actions = { smoothed; }
        filters = direct_lpf;
    }
    table drops_early {
        key = { hdr.ethernet.src : exact; }
        actions = { dropped_early; }
        filters = direct_wred;
    }
    table registers_of_entries {
        key = { hdr.ethernet.src : exact; }
        actions = { registered; }
        registers = direct_register;
        proxy_hash = Hash<bit<16>>(HashAlgorithm_t.CRC16);
    }

    apply {
        md.hash = custom.get({hdr.ethernet.src}) ^ crc.get({hdr.ethernet.dst});
        md.color = random.get();
        counter.count(ig.ingress_port);
        counter.count(ig.ingress_port, sizeInBytes(hdr.ethernet));
        md.color = meter.execute(ig.ingress_port);
        md.color = own_colors.execute(ig.ingress_port, MeterColor_t.YELLOW, 4);
        md.hash = lpf.execute(md.hash, ig.ingress_port);
        md.color = wred.execute(md.hash, ig.ingress_port);
        md.hash = max(md.hash, min(bounded.execute(ig.ingress_port), plain.read(ig.ingress_port)));
        plain.write(ig.ingress_port, md.hash);
        bounded.execute_log();
        silent.execute(ig.ingress_port);
        md.color = predicate.execute(ig.ingress_port);
        die.execute(3);
        selected.apply();
        profiled.apply();
        routed.apply();
        partitioned.apply();
        counts.apply();
        meters_of_entries.apply();
        smooths.apply();
        drops_early.apply();
        registers_of_entries.apply();
        if (is_validated(hdr.ethernet.type)) {
            invalidate(hdr.ethernet.type);
        }
        bit<32> shifted = sizeInBits(hdr.ethernet);
        funnel_shift_right(shifted, 32w1, 32w2, 3);
        tm.rid = shifted[15:0];
        if (prsr.parser_err != PARSER_ERROR_OK) {
            dprsr.drop_ctl = 1;
        }
    }
}

Pipeline(IngressParser(), Using(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
