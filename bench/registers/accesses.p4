// What accesses to registers cost. A packet has an index for each of four of them, and what they answer is written into it.
// -D ACCESSES=0..4 says how many are made, -D KIND_… how; -D SIZE=N how many cells a register has.
#include <core.p4>
#include <tna.p4>

#ifndef ACCESSES
#define ACCESSES 1
#endif
#ifndef SIZE
#define SIZE 4096
#endif

header ethernet_t { bit<48> dst_addr; bit<48> src_addr; bit<16> ether_type; }
header work_t { bit<32> i0; bit<32> i1; bit<32> i2; bit<32> i3; bit<32> r0; bit<32> r1; bit<32> r2; bit<32> r3; }
struct headers_t { ethernet_t ethernet; work_t work; }
struct none_t { }

parser IngressParser(packet_in packet, out headers_t hdr, out none_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start {
        packet.extract(intrinsic);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        packet.extract(hdr.work);
        transition accept;
    }
}

#if defined(KIND_MATH)
#define APPLY value = unit.execute(value) + hdr.work.i0; rv = value;
#elif defined(KIND_PREDICATE)
#define APPLY value = value + 1; rv = this.predicate(value == hdr.work.i0, value > 1000);
#else
#define APPLY value = value + 1; rv = value;
#endif

#if defined(KIND_DIRECT)
#define ACCESS(n) DirectRegister<bit<32>>(0) cells##n; \
    DirectRegisterAction<bit<32>, bit<32>>(cells##n) access##n = { void apply(inout bit<32> value, out bit<32> rv) { APPLY } }; \
    action hit##n() { hdr.work.r##n = access##n.execute(); } \
    table t##n { key = { hdr.work.i##n: exact; } actions = { hit##n; NoAction; } registers = cells##n; \
                 const default_action = NoAction; size = 8192; }
#define DO(n) t##n.apply();
#elif defined(KIND_TABLE)
// The tables of KIND_DIRECT without registers.
#define ACCESS(n) action hit##n() { hdr.work.r##n = hdr.work.i##n; } \
    table t##n { key = { hdr.work.i##n: exact; } actions = { hit##n; NoAction; } const default_action = NoAction; size = 8192; }
#define DO(n) t##n.apply();
#else
#define ACCESS(n) Register<bit<32>, bit<32>>(SIZE) cells##n; \
    RegisterAction<bit<32>, bit<32>, bit<32>>(cells##n) access##n = { void apply(inout bit<32> value, out bit<32> rv) { APPLY } };
#define DO(n) hdr.work.r##n = access##n.execute(hdr.work.i##n);
#endif

control Ingress(inout headers_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t intrinsic,
                in ingress_intrinsic_metadata_from_parser_t from_parser,
                inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
                inout ingress_intrinsic_metadata_for_tm_t tm) {
#if defined(KIND_MATH)
    MathUnit<bit<32>>(MathOp_t.SQRT, 1) unit;
#endif
#if ACCESSES > 0
    ACCESS(0)
#endif
#if ACCESSES > 1
    ACCESS(1)
#endif
#if ACCESSES > 2
    ACCESS(2)
#endif
#if ACCESSES > 3
    ACCESS(3)
#endif
    apply {
        tm.ucast_egress_port = 1;
        tm.bypass_egress = 1;
#if ACCESSES > 0
        DO(0)
#endif
#if ACCESSES > 1
        DO(1)
#endif
#if ACCESSES > 2
        DO(2)
#endif
#if ACCESSES > 3
        DO(3)
#endif
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { packet.emit(hdr); }
}

parser EgressParser(packet_in packet, out headers_t hdr, out none_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start { packet.extract(intrinsic); transition accept; }
}

control Egress(inout headers_t hdr, inout none_t meta, in egress_intrinsic_metadata_t intrinsic,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in none_t meta,
                       in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
