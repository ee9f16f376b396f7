// Sums of what is no whole words, and residual sums of what the parser goes over without extracting it.
#include "header.p4i"
struct meta_t { bit<16> got; bit<16> rest; }
#define OWN_INGRESS_PARSER
INGRESS_PARSER(IP) {
    Checksum() sum;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        sum.add({ hdr.h.value, hdr.h.index });
        sum.subtract({ hdr.h.op });
        meta.got = sum.get();
        sum.subtract_all_and_deposit(meta.rest);
        b.advance(32);
        transition select(hdr.h.op) { 0: accept; default: another; }
    }
    state another { b.extract(hdr.more); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.more.setValid();
        hdr.more = { from_parser.parser_err[7:0], 0, meta.got };
        hdr.h.value = meta.rest;
    }
}
#include "skeleton.p4i"
