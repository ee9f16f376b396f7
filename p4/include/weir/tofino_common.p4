// What both Tofino architectures declare alike: tna.p4 and t2na.p4 include this file after the widths.

#ifndef WEIR_TOFINO_COMMON
#define WEIR_TOFINO_COMMON

#include <core.p4>

#define PACK_VERSION(a, b, c) (((a) << 24) + ((b) << 12) + (c))
#define COMPILER_VERSION PACK_VERSION(__p4c_major__, __p4c_minor__, __p4c_patchlevel__)

// ------------------------------------------------------------------------------- constants and enums

// Bits of parser_err.
const bit<16> PARSER_ERROR_OK           = 16w0x0000;
const bit<16> PARSER_ERROR_NO_MATCH     = 16w0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR  = 16w0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE    = 16w0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 16w0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW   = 16w0x0010;
const bit<16> PARSER_ERROR_SRC_EXT      = 16w0x0020;
const bit<16> PARSER_ERROR_PHV_OWNER    = 16w0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE   = 16w0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE     = 16w0x0400;
const bit<16> PARSER_ERROR_FCS          = 16w0x0800;

enum MeterType_t {
    PACKETS,
    BYTES
}

// Red is 3: both bits are set where a packet is over both rates.
enum bit<8> MeterColor_t {
    GREEN  = 8w0,
    YELLOW = 8w1,
    RED    = 8w3
}

enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

// Whether a group that loses a member spreads all flows anew or only that member's.
enum SelectorMode_t {
    FAIR,
    RESILIENT
}

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8,
    XOR16,
    XOR32,
    CRC8,
    CRC16,
    CRC32,
    CRC64,
    CUSTOM  // with a CRCPolynomial
}

// The function of a MathUnit.
enum MathOp_t {
    MUL,
    SQR,
    SQRT,
    DIV,
    RSQR,
    RSQRT
}

match_kind {
    range,                 // between two bounds
    selector,              // input of an action selector's hash
    atcam_partition_index  // the part of an algorithmic TCAM that is searched
}

error {
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

// ------------------------------------------------------------------------------------------- headers

// In front of an ingress packet.
@__intrinsic_metadata
header ingress_intrinsic_metadata_t {
    bit<1>   resubmit_flag;
    @padding
    bit<1>   _pad1;
    bit<2>   packet_version;
    @padding
    bit<(4 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t ingress_port;
    bit<48>  ingress_mac_tstamp;
}

// What ingress tells the traffic manager.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t           ucast_egress_port;
    bit<1>             bypass_egress;
    bit<1>             deflect_on_drop;
    bit<3>             ingress_cos;
    QueueId_t          qid;
    bit<3>             icos_for_copy_to_cpu;
    bit<1>             copy_to_cpu;
    bit<2>             packet_color;
    bit<1>             disable_ucast_cutthru;
    bit<1>             enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13>            level1_mcast_hash;
    bit<13>            level2_mcast_hash;
    L1ExclusionId_t    level1_exclusion_id;
    L2ExclusionId_t    level2_exclusion_id;
    bit<16>            rid;
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;  // nanoseconds
    bit<32> global_ver;
    bit<16> parser_err;     // PARSER_ERROR_*
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;
    bit<32> global_ver;
    bit<16> parser_err;
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;  // the packet begins with ptp_metadata_t
}

// Where the port writes the correction field, and which UDP checksum it mends. It is not transmitted.
header ptp_metadata_t {
    bit<8>  udp_cksum_byte_offset;
    bit<8>  cf_byte_offset;
    bit<48> updated_cf;
}

// ------------------------------------------------------------------------------------------- parsers

// The 16-bit ones' complement sum, in parsers and deparsers.
extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    // Whether there is an ERROR: the sum is not what a right checksum makes it. The parser writes the answer by
    // "or": several checksums verified into one destination say whether any of them is wrong.
    @assigned_by_or bool verify();
    // Everything extracted later is subtracted from the result.
    void subtract_all_and_deposit<T>(out T residual);
    bit<16> get();
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

// How ready the parser's buffer is to drop the packet when it is full.
extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

// Reads what the control plane says of the port.
extern T port_metadata_unpack<T>(packet_in pkt);

// ----------------------------------------------------------------------------------------- functions

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);
// `inout` and not `in`: an invalid field is another value than it was.
extern void invalidate<T>(inout T field);
extern bool is_validated<T>(in T field);
extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);

// ------------------------------------------------------------------------------- hashes and randomness

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

extern Random<W> {
    Random();
    W get();
}

// ---------------------------------------------------------------------- filters that smooth and drop

extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

// ----------------------------------------------------------------- registers, and what their actions use

// WEIR_REGISTER_CLEAR is what the second architecture has besides.
extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
    WEIR_REGISTER_CLEAR
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
    WEIR_REGISTER_CLEAR
}

// A number that the control plane may change and register actions read.
extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

#define WEIR_FOUR_BYTES bit<8>, bit<8>, bit<8>, bit<8>
// An approximation of a function, by a table of 16 values (from the last to the first) or by name: the
// factor times the operation, or a / b times it.
extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale,
             tuple<WEIR_FOUR_BYTES, WEIR_FOUR_BYTES, WEIR_FOUR_BYTES, WEIR_FOUR_BYTES> data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}
#undef WEIR_FOUR_BYTES

// -------------------------------------------------------------------------- how tables are implemented

// Values of the table property `implementation`.
extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   bit<32> max_group_size, bit<32> num_groups);
    // With a bit for each member that SelectorActions change.
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg,
                   bit<32> max_group_size, bit<32> num_groups);
    @deprecated("name the ActionProfile that the ActionSelector chooses from")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("name the ActionProfile that the ActionSelector chooses from")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

// Values of the table properties `atcam` and `alpm`, and of `implementation`.
extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

// ----------------------------------------------------------------------------------------- deparsers

// Copies of the packet, with a header before them.
extern Mirror {
    @deprecated("say which value of mirror_type the Mirror belongs to")
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

// The packet as it came, once more, with a header in place of the port's metadata.
extern Resubmit {
    @deprecated("say which value of resubmit_type the Resubmit belongs to")
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

// Messages to the control plane.
extern Digest<T> {
    @deprecated("say which value of digest_type the Digest belongs to")
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

#endif
