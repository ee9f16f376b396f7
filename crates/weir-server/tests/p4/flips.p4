// One packet looks up five tables and carries their five answers: a batch that gives all of them a new value is seen whole or as a mixture.
#include <core.p4>
#include <tna.p4>

header question_t {
    bit<16> exact_key;
    bit<16> lpm_key;
    bit<16> ternary_key;
    bit<16> member_key;
    bit<32> by_exact;
    bit<32> by_lpm;
    bit<32> by_ternary;
    bit<32> by_member;
    bit<32> by_default;
}

struct headers_t {
    question_t question;
}

struct none_t {
}

parser InParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.question);
        transition accept;
    }
}

control In(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t from_parser,
           inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    ActionProfile(64) profile;

    action set_exact(bit<32> value) { hdr.question.by_exact = value; }
    action set_lpm(bit<32> value) { hdr.question.by_lpm = value; }
    action set_ternary(bit<32> value) { hdr.question.by_ternary = value; }
    action set_member(bit<32> value) { hdr.question.by_member = value; }
    action set_default(bit<32> value) { hdr.question.by_default = value; }
    action refuse() { for_deparser.drop_ctl = 1; }

    table exact_keys {
        key = { hdr.question.exact_key: exact; }
        actions = { set_exact; refuse; }
        default_action = refuse;
        size = 4096;
    }

    table lpm_keys {
        key = { hdr.question.lpm_key: lpm; }
        actions = { set_lpm; refuse; }
        default_action = refuse;
        size = 4096;
    }

    table ternary_keys {
        key = { hdr.question.ternary_key: ternary; }
        actions = { set_ternary; refuse; }
        default_action = refuse;
        size = 4096;
    }

    table member_keys {
        key = { hdr.question.member_key: exact; }
        actions = { set_member; refuse; }
        implementation = profile;
        size = 64;
    }

    table no_keys {
        actions = { set_default; }
        default_action = set_default(0);
    }

    apply {
        tm.bypass_egress = 1;
        tm.ucast_egress_port = intrinsic.ingress_port;
        exact_keys.apply();
        lpm_keys.apply();
        ternary_keys.apply();
        member_keys.apply();
        no_keys.apply();
    }
}

control InDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                   in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
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
