// The Tofino native architecture: up to four pipes, each of ingress and egress with a parser, a control
// and a deparser; between the two the traffic manager, which is not programmed.
//
// Written for weir; it declares the same interface as the file of this name that comes with the vendor's
// compiler.

#ifndef WEIR_TNA_P4
#define WEIR_TNA_P4

// Who asks for no architecture has chosen it by including this file.
#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 1
#endif
#if __TARGET_TOFINO__ != 1 && __TARGET_TOFINO__ != 2
#error tna.p4 is for __TARGET_TOFINO__ 1 and 2
#endif

#include <weir/tofino_widths.p4>
#define WEIR_REGISTER_CLEAR
#include <weir/tofino_common.p4>
#undef WEIR_REGISTER_CLEAR

const bit<16> PARSER_ERROR_DST_CONT = 16w0x0040;

// ------------------------------------------------------------------------------------------ metadata

// What ingress tells its deparser.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3>         drop_ctl;  // bit 0 the packet, bit 1 its copy to the CPU, bit 2 mirrors
    DigestType_t   digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t   mirror_type;
}

// In front of an egress packet.
@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding
    bit<(8 - PORT_ID_WIDTH % 8)> _pad0;
    PortId_t  egress_port;
    @padding
    bit<5>    _pad1;
    bit<19>   enq_qdepth;
    @padding
    bit<6>    _pad2;
    bit<2>    enq_congest_stat;
    @padding
    bit<14>   _pad3;
    bit<18>   enq_tstamp;
    @padding
    bit<5>    _pad4;
    bit<19>   deq_qdepth;
    @padding
    bit<6>    _pad5;
    bit<2>    deq_congest_stat;
    bit<8>    app_pool_congest_stat;
    @padding
    bit<14>   _pad6;
    bit<18>   deq_timedelta;
    bit<16>   egress_rid;
    @padding
    bit<7>    _pad7;
    bit<1>    egress_rid_first;
    @padding
    bit<(8 - QUEUE_ID_WIDTH % 8)> _pad8;
    QueueId_t egress_qid;
    @padding
    bit<5>    _pad9;
    bit<3>    egress_cos;
    @padding
    bit<7>    _pad10;
    bit<1>    deflection_flag;
    bit<16>   pkt_length;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl;
    MirrorType_t mirror_type;
    bit<1>       coalesce_flush;
    bit<7>       coalesce_length;
}

// In front of a generated packet, by what made the generator send it.

header pktgen_timer_header_t {
    @padding
    bit<3>  _pad1;
    bit<2>  pipe_id;
    bit<3>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding
    bit<3>   _pad1;
    bit<2>   pipe_id;
    bit<3>   app_id;
    @padding
    bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16>  packet_id;
}

header pktgen_recirc_header_t {
    @padding
    bit<3>  _pad1;
    bit<2>  pipe_id;
    bit<3>  app_id;
    bit<24> key;
    bit<16> packet_id;
}

// ------------------------------------------------------------------------------------------- externs

extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);

// A signed counter of eight bits, for loops.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // A field, turned right, cut to mask + 1 bits, and something added; no more than max before.
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<3> mask, in bit<8> add);
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

// adjust_byte_count is subtracted from the packet's length.

@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type);
    void count(@optional in bit<32> adjust_byte_count);
}

// red, yellow and green are the results instead of those of MeterColor_t.

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

// Reads a value, lets `apply` change it and give a result, and writes it back: as one step.
@noWarn("unused")
extern RegisterAction<T, I, U> {
    RegisterAction(Register<_, _> reg);
    U execute(in I index);
    // At an index that is one more each time.
    U execute_log();
    @synchronous(execute, execute_log)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute();
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv);
    U predicate(@optional in bool cmplo, @optional in bool cmphi);
}

// ---------------------------------------------------------------------------------------- the blocks

parser IngressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M ig_md,
    @optional out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

parser EgressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M eg_md,
    @optional out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control IngressT<H, M>(
    inout H hdr,
    inout M ig_md,
    @optional in ingress_intrinsic_metadata_t ig_intr_md,
    @optional in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    @optional inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm);

control EgressT<H, M>(
    inout H hdr,
    inout M eg_md,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control IngressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    @optional in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

control EgressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    @optional in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser);

@pkginfo(arch="TNA", version="2.0.1")
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);

// A parser for each group of ports: 18 of a pipe may differ.

#define WEIR_PARSERS(T)                                                                       \
    T<H, M> prsr0,            @optional T<H, M> prsr1,  @optional T<H, M> prsr2,              \
    @optional T<H, M> prsr3,  @optional T<H, M> prsr4,  @optional T<H, M> prsr5,              \
    @optional T<H, M> prsr6,  @optional T<H, M> prsr7,  @optional T<H, M> prsr8,              \
    @optional T<H, M> prsr9,  @optional T<H, M> prsr10, @optional T<H, M> prsr11,             \
    @optional T<H, M> prsr12, @optional T<H, M> prsr13, @optional T<H, M> prsr14,             \
    @optional T<H, M> prsr15, @optional T<H, M> prsr16, @optional T<H, M> prsr17
package IngressParsers<H, M>(WEIR_PARSERS(IngressParserT));
package EgressParsers<H, M>(WEIR_PARSERS(EgressParserT));
#undef WEIR_PARSERS

package MultiParserPipeline<IH, IM, EH, EM>(
    IngressParsers<IH, IM> ig_prsr,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParsers<EH, EM> eg_prsr,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser);

@pkginfo(arch="TNA", version="2.0.1")
@noWarn("unused")
package MultiParserSwitch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    MultiParserPipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional MultiParserPipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional MultiParserPipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional MultiParserPipeline<IH3, IM3, EH3, EM3> pipe3);

#endif
