// InternetChecksum in parsers and deparsers.
#include "header.p4i"
error { BadSum }
struct meta_t { }
#define OWN_INGRESS_PARSER
parser IP(packet_in b, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in none_t recirculated) {
    InternetChecksum() ck;
    state start {
        b.extract(hdr.h);
        transition select(hdr.h.op) {
            1: verified;
            default: accept;
        }
    }
    state verified {
        ck.add({ hdr.h.op, hdr.h.index });
        ck.add(hdr.h.value);
        verify(ck.get() == 0, error.BadSum);
        transition accept;
    }
}
control I(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        send_to_port(ostd, PORT(1));
        if (istd.parser_error == error.BadSum) { ingress_drop(ostd); }
    }
}
#define OWN_EGRESS_DEPARSER
control ED(packet_out b, out none_t cloned, out none_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() ck;
    InternetChecksum() other;
    apply {
        bit<8> op = hdr.h.op;
        if (op == 2) {
            ck.clear();
            ck.add({ hdr.h.index ++ 8w0, hdr.h.value });
            hdr.h.value = ck.get();
        }
        if (op == 3) {
            // What was added and is taken away again counts for nothing.
            ck.add({ 16w0xffee, 16w0x1234 });
            ck.subtract(16w0xffee);
            hdr.h.value = ck.get_state();
        }
        if (op == 4) {
            // State goes from one to the other.
            ck.add(hdr.h.value);
            other.set_state(ck.get_state());
            other.add(16w1);
            hdr.h.value = other.get_state();
        }
        if (op == 5) {
            // An incremental change of a checksum: what changed is taken away and added.
            ck.set_state(~hdr.h.value);
            ck.subtract(8w0 ++ hdr.h.index);
            ck.add(16w0x77);
            hdr.h.index = 0x77;
            hdr.h.value = ck.get();
        }
        if (op == 8) {
            // Headers that are not there count for nothing.
            ck.add({ hdr.h.value, hdr.more, hdr.h });
            hdr.h.value = ck.get();
        }
        if (op == 9) {
            // What is no whole number of words is filled up with zeros.
            ck.add(hdr.h.index);
            ck.add({ hdr.h.value, hdr.h.index });
            hdr.h.value = ck.get_state();
        }
        if (op == 10) {
            // Zero has two forms, which stay what they are.
            ck.subtract(hdr.h.value);
            hdr.h.value = ck.get();
        }
        if (op == 11) {
            ck.add(hdr.h);
            ck.subtract({ hdr.h.op, hdr.h.index, hdr.h.value });
            hdr.h.value = ck.get();
        }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
