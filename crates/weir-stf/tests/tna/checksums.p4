// Checksums that parsers verify and take apart, and that deparsers make.
#define OWN_HEADERS
#include "header.p4i"
header sum_t { bit<16> a; bit<16> b; bit<16> checksum; }
header tail_t { bit<16> c; }
struct headers_t { h_t h; sum_t sum; tail_t tail; }
struct meta_t { bit<16> rest; bit<16> got; bit<1> wrong; }
#define OWN_INGRESS_PARSER
#define OWN_INGRESS_DEPARSER
INGRESS_PARSER(IP) {
    Checksum() whole;
    Checksum() partial;
    state start {
        b.extract(intrinsic);
        b.advance(PORT_METADATA_SIZE);
        b.extract(hdr.h);
        b.extract(hdr.sum);
        whole.add(hdr.sum);
        meta.wrong = (bit<1>)whole.verify();
        partial.subtract({ hdr.sum.checksum });
        partial.subtract({ hdr.sum.a, hdr.sum.b });
        meta.got = partial.get();
        partial.subtract_all_and_deposit(meta.rest);
        transition select(hdr.h.op) { 2: parse_tail; default: accept; }
    }
    state parse_tail { b.extract(hdr.tail); transition accept; }
}
INGRESS(I) {
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
        hdr.h.value = (bit<16>)meta.wrong;
        if (hdr.h.op == 3) { hdr.h.value = meta.got; }
        if (hdr.h.op != 0) { hdr.sum.a = 0x1234; hdr.tail.c = 0x4321; }
    }
}
INGRESS_DEPARSER(ID) {
    Checksum() again;
    apply {
        if (hdr.h.op == 1) { hdr.sum.checksum = again.update({ hdr.sum.a, hdr.sum.b, meta.rest }); }
        if (hdr.h.op == 2) { hdr.sum.checksum = again.update({ hdr.sum.a, hdr.sum.b, hdr.tail.c, meta.rest }); }
        if (hdr.h.op == 4) { hdr.sum.checksum = again.update({ 16w0xffff }); }
        if (hdr.h.op == 5) { hdr.sum.checksum = again.update(data = { 16w0xffff }, zeros_as_ones = true); }
        b.emit(hdr);
    }
}
#include "skeleton.p4i"
