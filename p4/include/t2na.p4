// The second Tofino native architecture: what tna.p4 is to the first chip, with wider fields, a ghost
// control that hears of queues, and register actions with more than one result.
//
// Written for weir; it declares the same interface as the file of this name that comes with the vendor's
// compiler.

#ifndef WEIR_T2NA_P4
#define WEIR_T2NA_P4

// Who asks for no architecture has chosen it by including this file.
#ifndef __TARGET_TOFINO__
#define __TARGET_TOFINO__ 2
#endif
#if __TARGET_TOFINO__ != 2
#error t2na.p4 is for __TARGET_TOFINO__ 2
#endif

#include <weir/tofino_widths.p4>
#define WEIR_REGISTER_CLEAR void clear(in T value, @optional in T busy);
#include <weir/tofino_common.p4>
#undef WEIR_REGISTER_CLEAR

const bit<16> PARSER_ERROR_CSUM_MBE = 16w0x1000;

match_kind {
    dleft_hash
}

// ------------------------------------------------------------------------------------------ metadata

// How the copy is queued that a Mirror makes, where mirror_io_select asks for it.
#define WEIR_MIRROR_FIELDS             \
    bit<1>    mirror_io_select;        \
    bit<13>   mirror_hash;             \
    bit<3>    mirror_ingress_cos;      \
    bit<1>    mirror_deflect_on_drop;  \
    bit<1>    mirror_multicast_ctrl;   \
    PortId_t  mirror_egress_port;      \
    QueueId_t mirror_qid;              \
    bit<8>    mirror_coalesce_length;  \
    bit<32>   adv_flow_ctl;            \
    bit<14>   mtu_trunc_len;           \
    bit<1>    mtu_trunc_err_f;

// What ingress tells its deparser.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3>         drop_ctl;  // bit 0 the packet, bit 1 its copy to the CPU, bit 2 mirrors
    DigestType_t   digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t   mirror_type;
    WEIR_MIRROR_FIELDS
    bit<1>         pktgen;
    bit<14>        pktgen_address;
    bit<10>        pktgen_length;
}

// A message of the traffic manager on one of its queues.
@__intrinsic_metadata @__ghost_metadata
header ghost_intrinsic_metadata_t {
    bit<1>  ping_pong;
    bit<18> qlength;
    bit<11> qid;
    bit<2>  pipe_id;
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
    bit<32>   enq_tstamp;
    @padding
    bit<5>    _pad3;
    bit<19>   deq_qdepth;
    @padding
    bit<6>    _pad4;
    bit<2>    deq_congest_stat;
    bit<8>    app_pool_congest_stat;
    bit<32>   deq_timedelta;
    bit<16>   egress_rid;
    @padding
    bit<7>    _pad5;
    bit<1>    egress_rid_first;
    @padding
    bit<(8 - QUEUE_ID_WIDTH % 8)> _pad6;
    QueueId_t egress_qid;
    @padding
    bit<5>    _pad7;
    bit<3>    egress_cos;
    @padding
    bit<7>    _pad8;
    bit<1>    deflection_flag;
    bit<16>   pkt_length;
    @padding
    bit<8>    _pad9;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3>       drop_ctl;
    MirrorType_t mirror_type;
    bit<1>       coalesce_flush;
    bit<7>       coalesce_length;
    WEIR_MIRROR_FIELDS
}
#undef WEIR_MIRROR_FIELDS

// In front of a generated packet, by what made the generator send it.

header pktgen_timer_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    @padding
    bit<2>   _pad1;
    bit<2>   pipe_id;
    bit<4>   app_id;
    @padding
    bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16>  packet_id;
}

header pktgen_recirc_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_deparser_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<8>  _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    @padding
    bit<2>  _pad1;
    bit<2>  pipe_id;
    bit<4>  app_id;
    @padding
    bit<40> _pad2;
}

// ------------------------------------------------------------------------------------------- externs

extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);

// Value of the table property `idle_timeout`.
extern IdleTimeout {
    IdleTimeout();
}

// Asks for a packet of the generator.
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}

// A stack of signed counters of eight bits, for loops within loops.
extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // A field, turned right, cut to mask + 1 bits, and something added; no more than max before.
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add);
    // update_with_top: what is popped later changes by what this one did.
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

// adjust_byte_count is subtracted from the packet's length. With true_egress_accounting counters and
// meters of egress see a packet as it is sent, not as ingress ended.

@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type, @optional bool true_egress_accounting);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type, @optional bool true_egress_accounting);
    void count(@optional in bit<32> adjust_byte_count);
}

// red, yellow and green are the results instead of those of MeterColor_t.

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type, @optional bool true_egress_accounting);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green,
          @optional bool true_egress_accounting);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type, @optional bool true_egress_accounting);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green,
                @optional bool true_egress_accounting);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

// ---------------------------------------------------------------------------------- register actions
//
// All read a value, let `apply` change it and give results, and write it back: as one step. The first
// result is that of the call, the others are its arguments. The types with a number at the end have so
// many results of types of their own.

// Which of eight or sixteen parts of a value is the least or greatest, of those that the mask names.
#define WEIR_MINMAX                                                            \
    bit<8> min8<I>(in I val, in bit<16> mask, @optional out bit<4> index);     \
    bit<8> max8<I>(in I val, in bit<16> mask, @optional out bit<4> index);     \
    bit<16> min16<I>(in I val, in bit<8> mask, @optional out bit<3> index);    \
    bit<16> max16<I>(in I val, in bit<8> mask, @optional out bit<3> index);
// The same with a number that is added to the index afterwards.
#define WEIR_MINMAX_POSTMOD(N)                                                 \
    bit<8> min8(in bit<128> val, in bit<16> mask, @optional out bit<4> index,  \
                @optional in int<N> postmod);                                  \
    bit<8> max8(in bit<128> val, in bit<16> mask, @optional out bit<4> index,  \
                @optional in int<N> postmod);                                  \
    bit<16> min16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, \
                  @optional in int<N> postmod);                                \
    bit<16> max16(in bit<128> val, in bit<8> mask, @optional out bit<3> index, \
                  @optional in int<N> postmod);
// Where the value is, and what comparisons said of it: of the action's result type, or of any.
#define WEIR_RESULTS                                                           \
    U address(@optional bit<1> subword);                                       \
    U predicate(@optional in bool cmp0, @optional in bool cmp1,                \
                @optional in bool cmp2, @optional in bool cmp3);
#define WEIR_RESULTS_OF_ANY                                                    \
    U address<U>(@optional bit<1> subword);                                    \
    U predicate<U>(@optional in bool cmp0, @optional in bool cmp1,             \
                   @optional in bool cmp2, @optional in bool cmp3);
#define WEIR_FURTHER @optional out U rv2, @optional out U rv3, @optional out U rv4

extern RegisterAction<T, H, U> {
    RegisterAction(Register<_, _> reg);
    U execute(@optional in H index, WEIR_FURTHER);
    // At an index that is one more each time.
    U execute_log(WEIR_FURTHER);
    // The array as a queue and as a stack.
    U enqueue(WEIR_FURTHER);
    U dequeue(WEIR_FURTHER);
    U push(WEIR_FURTHER);
    U pop(WEIR_FURTHER);
    // All values, in the background.
    void sweep(@optional in U busy);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop, sweep)
    abstract void apply(inout T value, @optional out U rv1, WEIR_FURTHER);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, @optional out U rv1, WEIR_FURTHER);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, @optional out U rv1, WEIR_FURTHER);
    WEIR_RESULTS
    WEIR_MINMAX
}

extern RegisterAction2<T, H, U1, U2> {
    RegisterAction2(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2);
    U1 execute_log(out U2 rv2);
    U1 enqueue(out U2 rv2);
    U1 dequeue(out U2 rv2);
    U1 push(out U2 rv2);
    U1 pop(out U2 rv2);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern RegisterAction3<T, H, U1, U2, U3> {
    RegisterAction3(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    U1 execute_log(out U2 rv2, out U3 rv3);
    U1 enqueue(out U2 rv2, out U3 rv3);
    U1 dequeue(out U2 rv2, out U3 rv3);
    U1 push(out U2 rv2, out U3 rv3);
    U1 pop(out U2 rv2, out U3 rv3);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern RegisterAction4<T, H, U1, U2, U3, U4> {
    RegisterAction4(Register<_, _> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    U1 execute_log(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 enqueue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 dequeue(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 push(out U2 rv2, out U3 rv3, out U4 rv4);
    U1 pop(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute, execute_log, enqueue, dequeue, push, pop)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(enqueue, push)
    @optional abstract void overflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(dequeue, pop)
    @optional abstract void underflow(@optional inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern DirectRegisterAction<T, U> {
    DirectRegisterAction(DirectRegister<T> reg);
    U execute(WEIR_FURTHER);
    @synchronous(execute)
    abstract void apply(inout T value, @optional out U rv, WEIR_FURTHER);
    WEIR_RESULTS
    WEIR_MINMAX
}

extern DirectRegisterAction2<T, U1, U2> {
    DirectRegisterAction2(DirectRegister<T> reg);
    U1 execute(out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern DirectRegisterAction3<T, U1, U2, U3> {
    DirectRegisterAction3(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern DirectRegisterAction4<T, U1, U2, U3, U4> {
    DirectRegisterAction4(DirectRegister<T> reg);
    U1 execute(out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

// LearnActions are told the digest of what is to be learnt, and whether it is.

extern LearnAction<T, H, D, U> {
    LearnAction(Register<T, H> reg);
    U execute(in H index, WEIR_FURTHER);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn, @optional out U rv1, WEIR_FURTHER);
    WEIR_RESULTS
    WEIR_MINMAX
}

extern LearnAction2<T, H, D, U1, U2> {
    LearnAction2(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn,
                        out U1 rv1, out U2 rv2);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern LearnAction3<T, H, D, U1, U2, U3> {
    LearnAction3(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn,
                        out U1 rv1, out U2 rv2, out U3 rv3);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

extern LearnAction4<T, H, D, U1, U2, U3, U4> {
    LearnAction4(Register<T, H> reg);
    U1 execute(in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout T value, in D digest, in bool learn,
                        out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX
}

// MinMaxActions see 128 bits of the array at once.

extern MinMaxAction<T, H, U> {
    MinMaxAction(Register<T, _> reg);
    U execute(@optional in H index, WEIR_FURTHER);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, @optional out U rv1, WEIR_FURTHER);
    WEIR_RESULTS
    WEIR_MINMAX_POSTMOD(8)
}

extern MinMaxAction2<T, H, U1, U2> {
    MinMaxAction2(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX_POSTMOD(9)
}

extern MinMaxAction3<T, H, U1, U2, U3> {
    MinMaxAction3(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX_POSTMOD(9)
}

extern MinMaxAction4<T, H, U1, U2, U3, U4> {
    MinMaxAction4(Register<T, _> reg);
    U1 execute(@optional in H index, out U2 rv2, out U3 rv3, out U4 rv4);
    @synchronous(execute)
    abstract void apply(inout bit<128> value, out U1 rv1, out U2 rv2, out U3 rv3, out U4 rv4);
    WEIR_RESULTS_OF_ANY
    WEIR_MINMAX_POSTMOD(9)
}

#undef WEIR_FURTHER
#undef WEIR_RESULTS_OF_ANY
#undef WEIR_RESULTS
#undef WEIR_MINMAX_POSTMOD
#undef WEIR_MINMAX

// ---------------------------------------------------------------------------------------- the blocks

parser IngressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M ig_md,
    out ingress_intrinsic_metadata_t ig_intr_md,
    @optional out ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional out ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr);

parser EgressParserT<H, M>(
    packet_in pkt,
    out H hdr,
    out M eg_md,
    out egress_intrinsic_metadata_t eg_intr_md,
    @optional out egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    @optional out egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr);

control IngressT<H, M>(
    inout H hdr,
    inout M ig_md,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_intr_md_from_prsr,
    inout ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    inout ingress_intrinsic_metadata_for_tm_t ig_intr_md_for_tm,
    @optional in ghost_intrinsic_metadata_t gh_intr_md);

// Runs for each message on a queue, without a packet.
control GhostT(in ghost_intrinsic_metadata_t gh_intr_md);

control EgressT<H, M>(
    inout H hdr,
    inout M eg_md,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr,
    inout egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    inout egress_intrinsic_metadata_for_output_port_t eg_intr_md_for_oport);

control IngressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in ingress_intrinsic_metadata_for_deparser_t ig_intr_md_for_dprsr,
    @optional in ingress_intrinsic_metadata_t ig_intr_md);

control EgressDeparserT<H, M>(
    packet_out pkt,
    inout H hdr,
    in M metadata,
    in egress_intrinsic_metadata_for_deparser_t eg_intr_md_for_dprsr,
    @optional in egress_intrinsic_metadata_t eg_intr_md,
    @optional in egress_intrinsic_metadata_from_parser_t eg_intr_md_from_prsr);

package Pipeline<IH, IM, EH, EM>(
    IngressParserT<IH, IM> ingress_parser,
    IngressT<IH, IM> ingress,
    IngressDeparserT<IH, IM> ingress_deparser,
    EgressParserT<EH, EM> egress_parser,
    EgressT<EH, EM> egress,
    EgressDeparserT<EH, EM> egress_deparser,
    @optional GhostT ghost);

@pkginfo(arch="T2NA", version="1.0.1")
@noWarn("unused")
package Switch<IH0, IM0, EH0, EM0, IH1, IM1, EH1, EM1, IH2, IM2, EH2, EM2, IH3, IM3, EH3, EM3>(
    Pipeline<IH0, IM0, EH0, EM0> pipe0,
    @optional Pipeline<IH1, IM1, EH1, EM1> pipe1,
    @optional Pipeline<IH2, IM2, EH2, EM2> pipe2,
    @optional Pipeline<IH3, IM3, EH3, EM3> pipe3);

#endif
