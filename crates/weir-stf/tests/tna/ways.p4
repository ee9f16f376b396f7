// Two pipelines that share a register, each with an egress that tells where it is; two parsers in the second.
#include "header.p4i"
struct meta_t { bit<8> which; }
#define OWN_MAIN
Register<bit<16>, bit<1>>(1) seen;
#define OWN_INGRESS_PARSER
#define PARSER(name, number) INGRESS_PARSER(name) { \
    state start { b.extract(intrinsic); b.advance(PORT_METADATA_SIZE); meta.which = number; b.extract(hdr.h); \
                  transition select(hdr.h.op) { 9: second; default: accept; } } \
    state second { b.extract(hdr.more); transition accept; } }
PARSER(IP, 1)
PARSER(other, 2)
#define CONTROL(name, own) INGRESS(name) { \
    RegisterAction<bit<16>, bit<1>, bit<16>>(seen) count = { \
        void apply(inout bit<16> value, out bit<16> rv) { value = value + own; rv = value; } }; \
    apply { \
        tm.ucast_egress_port = hdr.h.value[8:0]; \
        tm.bypass_egress = hdr.h.op[7:7]; \
        hdr.h.value = count.execute(0); \
        hdr.h.index = meta.which; \
        if (from_parser.parser_err != 0) { hdr.h.setValid(); hdr.h = { 0xee, own, from_parser.parser_err }; tm.ucast_egress_port = 1; } } }
CONTROL(I, 1)
CONTROL(J, 16)
#include "skeleton.p4i"
EGRESS(F) { apply { hdr.h.op = 0x0f; } }
IngressParsers(prsr0 = IP()) one_parser;
IngressParsers(prsr0 = IP(), prsr1 = other()) two_parsers;
EgressParsers(prsr0 = EP()) egress_parsers;
EgressParsers(prsr0 = EP()) last_parsers;
MultiParserPipeline(one_parser, I(), ID(), egress_parsers, E(), ED()) first;
MultiParserPipeline(two_parsers, J(), ID(), last_parsers, F(), ED()) last;
MultiParserSwitch(first, last) main;
