// What a packet generator makes leaves by port 5, without the generator's header. A packet at port 1 recirculates once.
#include <core.p4>
#include <tna.p4>

header generated_t {
    bit<48> number;
}

header word_t {
    bit<32> value;
}

struct headers_t {
    generated_t generated;
    word_t word;
}

struct none_t {
}

parser InParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        transition select(intrinsic.ingress_port) {
            68 &&& 0x7f: again;
            default: word;
        }
    }

    // What recirculates begins with 0xff, which no pipe and application are.
    state again {
        transition select(packet.lookahead<bit<8>>()) {
            0xff: word;
            default: generated;
        }
    }

    state generated {
        packet.extract(hdr.generated);
        transition accept;
    }

    state word {
        packet.extract(hdr.word);
        transition accept;
    }
}

control In(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
           in ingress_intrinsic_metadata_from_parser_t from_parser,
           inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
           inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        tm.bypass_egress = 1;
        if (hdr.generated.isValid()) {
            tm.ucast_egress_port = 5;
            hdr.generated.setInvalid();
        } else if (intrinsic.ingress_port == 1) {
            tm.ucast_egress_port = 68;
        } else {
            for_deparser.drop_ctl = 1;
        }
    }
}

control InDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                   in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

parser OutParser(packet_in packet, out headers_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        transition accept;
    }
}

control Out(inout headers_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
            in egress_intrinsic_metadata_from_parser_t from_parser,
            inout egress_intrinsic_metadata_for_deparser_t for_deparser,
            inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply {
    }
}

control OutDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                    in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(InParser(), In(), InDeparser(), OutParser(), Out(), OutDeparser()) pipe;
Switch(pipe) main;
