// A question is answered by the table that its kind names: one table per kind of key, and what is written and read besides.
// With FULL there is what clients that know no alternatives among data (selectors) do not open, too.
#include <core.p4>
#include <tna.p4>

header question_t {
    bit<8> kind;
    bit<8> port;
    bit<32> key;
    bit<32> answer;
}

struct headers_t {
    question_t question;
}

struct seen_t {
    bit<32> key;
    bit<9> port;
    bit<8> kind;
}

struct pair_t {
    bit<32> low;
    bit<32> high;
}

struct none_t {
}

#ifdef FULL
struct port_t {
    bit<32> customer;
    bit<32> spare;
}
#endif

struct metadata_t {
    bit<8> special;
    bit<32> customer;
}

parser InParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t intrinsic) {
#ifdef FULL
    value_set<bit<8>>(4) specials;
#endif

    state start {
        packet.extract(intrinsic);
        meta.special = 0;
        meta.customer = 0;
#ifdef FULL
        port_t of_port = port_metadata_unpack<port_t>(packet);
        meta.customer = of_port.customer;
#else
        packet.advance(PORT_METADATA_SIZE);
#endif
        packet.extract(hdr.question);
#ifdef FULL
        transition select(hdr.question.kind) {
            specials: special;
            default: accept;
        }
#else
        transition accept;
#endif
    }

    state special {
        meta.special = 1;
        transition accept;
    }
}

control In(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t from_parser,
           inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<8>>(256, CounterType_t.PACKETS_AND_BYTES) by_kind;
    Meter<bit<8>>(256, MeterType_t.BYTES) rates;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) of_exact;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) of_lpm;
    DirectMeter(MeterType_t.PACKETS) of_ternary;
    Register<bit<32>, bit<8>>(256) last;
    Register<pair_t, bit<8>>(16, { 3, 0 }) pairs;
    RegisterAction<bit<32>, bit<8>, bit<32>>(last) remember = {
        void apply(inout bit<32> value, out bit<32> before) {
            before = value;
            value = hdr.question.key;
        }
    };
    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) both = {
        void apply(inout pair_t value, out bit<32> before) {
            before = value.low;
            value.high = value.high + 1;
        }
    };

    action answer(bit<32> value) {
        hdr.question.answer = value;
    }

    action answer_counted(bit<32> value) {
        of_exact.count();
        hdr.question.answer = value;
    }

    action answer_lpm(bit<32> value) {
        of_lpm.count();
        hdr.question.answer = value;
    }

    action answer_metered(bit<32> value) {
        hdr.question.answer = value + (bit<32>)of_ternary.execute();
    }

    action answer_both(bit<16> high, bit<16> low) {
        hdr.question.answer = high ++ low;
    }

    action refuse() {
        for_deparser.drop_ctl = 1;
    }

    action uncounted() {
        hdr.question.answer = 0;
    }

    table exact_keys {
        key = { hdr.question.key: exact; }
        actions = { answer_counted; uncounted; }
        default_action = uncounted;
        counters = of_exact;
        size = 131072;
    }

    table lpm_keys {
        key = { hdr.question.key: lpm; }
        actions = { answer_lpm; refuse; }
        default_action = refuse;
        counters = of_lpm;
        size = 1024;
    }

    table ternary_keys {
        key = { hdr.question.key: ternary; }
        actions = { answer_metered; uncounted; }
        default_action = uncounted;
        meters = of_ternary;
        size = 256;
    }

    table range_keys {
        key = { hdr.question.port: exact; hdr.question.key[15:0]: range; }
        actions = { answer; answer_both; refuse; }
        default_action = answer(9);
        size = 64;
    }

    table timed_keys {
        key = { hdr.question.key: exact; }
        actions = { answer; uncounted; }
        default_action = uncounted;
        idle_timeout = true;
        size = 64;
    }

    table fixed_keys {
        key = { hdr.question.key: exact; }
        actions = { answer; uncounted; }
        const default_action = uncounted;
        const entries = { 32w1: answer(11); }
        size = 4;
    }

#ifdef FULL
    ActionProfile(16) profile;
    Hash<bit<16>>(HashAlgorithm_t.CRC16) spread;
    ActionSelector(profile, spread, SelectorMode_t.FAIR, 4, 8) selector;
    ActionProfile(8) plain;
    Lpf<bit<16>, bit<8>>(4) smooth;
    Wred<bit<16>, bit<8>>(4, 0xd, 0xf) early;
    RegisterParam<bit<32>>(5) step;
    Register<bit<32>, bit<8>>(4) steps;
    RegisterAction<bit<32>, bit<8>, bit<32>>(steps) add = {
        void apply(inout bit<32> value, out bit<32> now) {
            value = value + step.read();
            now = value;
        }
    };

    action only_default() {
        hdr.question.answer = 77;
    }

    table scoped_keys {
        key = { hdr.question.key: exact; }
        actions = { answer; @defaultonly only_default; @tableonly uncounted; }
        default_action = only_default;
        size = 4;
    }

    table member_keys {
        key = { hdr.question.key: exact; }
        actions = { answer; answer_both; uncounted; }
        implementation = plain;
        size = 64;
    }

    table group_keys {
        key = { hdr.question.key: exact; hdr.question.port: selector; }
        actions = { answer; uncounted; }
        implementation = selector;
        size = 64;
    }
#endif

    apply {
        tm.bypass_egress = 1;
        tm.ucast_egress_port = intrinsic.ingress_port;
        by_kind.count(hdr.question.kind);
        if (hdr.question.kind == 1) {
            exact_keys.apply();
        } else if (hdr.question.kind == 2) {
            lpm_keys.apply();
        } else if (hdr.question.kind == 3) {
            ternary_keys.apply();
        } else if (hdr.question.kind == 4) {
            range_keys.apply();
        } else if (hdr.question.kind == 5) {
            hdr.question.answer = remember.execute(hdr.question.port);
        } else if (hdr.question.kind == 6) {
            hdr.question.answer = both.execute(hdr.question.port);
        } else if (hdr.question.kind == 7) {
            for_deparser.digest_type = 1;
        } else if (hdr.question.kind == 8) {
            hdr.question.answer = (bit<32>)rates.execute(hdr.question.port);
        } else if (hdr.question.kind == 9) {
            timed_keys.apply();
        } else if (hdr.question.kind == 10) {
            fixed_keys.apply();
        } else if (hdr.question.kind == 11) {
            tm.mcast_grp_a = (bit<16>)hdr.question.key;
            tm.ucast_egress_port = 0x1ff;
#ifdef FULL
        } else if (hdr.question.kind == 12) {
            member_keys.apply();
        } else if (hdr.question.kind == 13) {
            group_keys.apply();
        } else if (hdr.question.kind == 14) {
            hdr.question.answer = (bit<32>)smooth.execute(hdr.question.key[15:0], hdr.question.port);
        } else if (hdr.question.kind == 15) {
            hdr.question.answer = (bit<32>)early.execute(hdr.question.key[15:0], hdr.question.port);
        } else if (hdr.question.kind == 16) {
            hdr.question.answer = add.execute(hdr.question.port);
        } else if (hdr.question.kind == 17) {
            hdr.question.answer = meta.customer;
        } else if (hdr.question.kind == 18) {
            hdr.question.answer = (bit<32>)meta.special;
        } else if (hdr.question.kind == 19) {
            scoped_keys.apply();
#endif
        } else {
            refuse();
        }
    }
}

control InDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                   in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    Digest<seen_t>(1) seen;

    apply {
        if (for_deparser.digest_type == 1) {
            seen.pack({ hdr.question.key, 9w0x1ff, hdr.question.kind });
        }
        packet.emit(hdr);
    }
}

parser OutParser(packet_in packet, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control Out(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
            in egress_intrinsic_metadata_from_parser_t from_parser,
            inout egress_intrinsic_metadata_for_deparser_t for_deparser,
            inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control OutDeparser(packet_out packet, inout none_t hdr, in none_t meta,
                    in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(InParser(), In(), InDeparser(), OutParser(), Out(), OutDeparser()) pipe;

Switch(pipe) main;
