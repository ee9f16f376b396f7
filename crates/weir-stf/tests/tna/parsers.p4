// A parser for each group of four ports; those that are not there are the first.
#include "header.p4i"
struct meta_t { bit<8> which; }
#define OWN_MAIN
#define PARSER(name, number) INGRESS_PARSER(name) { \
    state start { b.extract(intrinsic); b.advance(PORT_METADATA_SIZE); b.extract(hdr.h); \
                  meta.which = number; transition accept; } }
PARSER(first, 1)
PARSER(third, 3)
EGRESS_PARSER(of_egress) {
    state start { b.extract(intrinsic); b.extract(hdr.h); meta.which = 0x22; transition accept; }
}
INGRESS(I) { apply { tm.ucast_egress_port = (PortId_t)hdr.h.op; hdr.h.index = meta.which; } }
#define OWN_EGRESS
EGRESS(E) { apply { hdr.h.value = (bit<16>)meta.which; } }
#include "skeleton.p4i"
IngressParsers(prsr0 = first(), prsr2 = third()) ingress_parsers;
EgressParsers(prsr0 = EP(), prsr1 = of_egress()) egress_parsers;
MultiParserPipeline(ingress_parsers, I(), ID(), egress_parsers, E(), ED()) pipe;
MultiParserSwitch(pipe) main;
