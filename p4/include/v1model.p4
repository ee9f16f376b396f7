// The V1Model architecture: parser, checksum verification, ingress, egress, checksum update, deparser.
//
// Written for weir; it declares the same interface as the file of this name that comes with other
// compilers, so that programs, control planes and tools see the same names, types and order.

#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include "core.p4"

// A program chooses a version by defining V1MODEL_VERSION before it includes this file.
// From 20200408 on there is a type for ports, and indices of counters, meters and registers have a
// type of the program's choice.
#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

match_kind {
    range,     // between two bounds
    optional,  // equal, or anything
    selector   // input of an action selector's hash
}

const bit<32> __v1model_version = V1MODEL_VERSION;
const bool __v1model_version_is_known = static_assert(
    V1MODEL_VERSION == 20180101 || V1MODEL_VERSION == 20200408,
    "V1MODEL_VERSION must be 20180101 or 20200408");

#if V1MODEL_VERSION >= 20200408
typedef bit<9> PortId_t;
#endif

// What the architecture tells the program about a packet, and the other way round.
@metadata @name("standard_metadata")
struct standard_metadata_t {
#if V1MODEL_VERSION >= 20200408
    PortId_t ingress_port;  // where the packet came from
    PortId_t egress_spec;   // where it is to go, set in ingress
    PortId_t egress_port;   // where it goes, read in egress
#else
    bit<9> ingress_port;
    bit<9> egress_spec;
    bit<9> egress_port;
#endif
    bit<32> instance_type;  // normal, or a kind of copy
    bit<32> packet_length;  // in bytes
    // Of the queue, set when the packet enters (enq) and leaves (deq) it.
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;
    // In microseconds since the switch started.
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;    // the multicast group, 0 for none
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;   // which replica of a multicast packet
    bit<1> checksum_error;  // 1 after a failed verify_checksum
    error parser_error;
    @alias("intrinsic_metadata.priority")
    bit<3> priority;      // of the queue, set in ingress
}

// ------------------------------------------------------------------------------ counters and meters

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

// An array of counters.
extern counter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    counter(bit<32> size, CounterType type);
#if V1MODEL_VERSION >= 20200408
    void count(in I index);
#else
    void count(in bit<32> index);
#endif
}

// A counter for each entry of the table it is attached to.
extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

// What meters say.
#define V1MODEL_METER_COLOR_GREEN  0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED    2

// An array of two-rate three-colour meters.
extern meter
#if V1MODEL_VERSION >= 20200408
<I>
#endif
{
    meter(bit<32> size, MeterType type);
#if V1MODEL_VERSION >= 20200408
    void execute_meter<T>(in I index, out T result);
#else
    void execute_meter<T>(in bit<32> index, out T result);
#endif
}

// A meter for each entry of the table it is attached to.
extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

// ---------------------------------------------------------------------------------- other state

// An array of values that outlive the packet.
#if V1MODEL_VERSION >= 20200408
extern register<T, I>
#else
extern register<T>
#endif
{
    register(bit<32> size);
    @noSideEffects
#if V1MODEL_VERSION >= 20200408
    void read(out T result, in I index);
#else
    void read(out T result, in bit<32> index);
#endif
#if V1MODEL_VERSION >= 20200408
    void write(in I index, in T value);
#else
    void write(in bit<32> index, in T value);
#endif
}

// Action data shared between the entries of a table; a value of the property `implementation`.
extern action_profile {
    action_profile(bit<32> size);
}

// A random number from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

// Sends data to the control plane; `receiver` is not looked at.
extern void digest<T>(in bit<32> receiver, in T data);

// ------------------------------------------------------------------------------ hashes and checksums

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

@deprecated("Please use mark_to_drop(standard_metadata) instead.")
extern void mark_to_drop();

// Marks the packet to be dropped, unless a later assignment revives it.
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

// result = base + hash(data) % max
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

// Like action_profile, with groups of which a hash over the selector keys chooses a member.
extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

enum CloneType {
    I2E,
    E2E
}

@deprecated("Please use verify_checksum/update_checksum instead.")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// Both do nothing if the condition does not hold; a wrong checksum sets checksum_error.
extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

// The same over the data and the part of the packet that was not parsed.
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

// ----------------------------------------------------------------------------------------- copies

// Fields of the user's metadata annotated with @field_list(index) keep their values in copies made
// by the functions that take an index.

extern void clone(in CloneType type, in bit<32> session);

@deprecated("Please use 'resubmit_preserving_field_list' instead")
extern void resubmit<T>(in T data);
extern void resubmit_preserving_field_list(bit<8> index);

@deprecated("Please use 'recirculate_preserving_field_list' instead")
extern void recirculate<T>(in T data);
extern void recirculate_preserving_field_list(bit<8> index);

@deprecated("Please use 'clone_preserving_field_list' instead")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);

// ---------------------------------------------------------------------------------- miscellaneous

// Cuts the packet to a length in bytes when it leaves.
extern void truncate(in bit<32> length);

// For testing and verification.
extern void assert(in bool check);
extern void assume(in bool check);

// Writes to the log; {} stands for the fields of data in turn.
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// ------------------------------------------------------------------------------------ the pipeline

// H is the struct of headers, M that of the user's metadata.

parser Parser<H, M>(packet_in b,
                    out H parsedHdr,
                    inout M meta,
                    inout standard_metadata_t standard_metadata);

// Calls verify_checksum only.
control VerifyChecksum<H, M>(inout H hdr,
                             inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr,
                      inout M meta,
                      inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr,
                     inout M meta,
                     inout standard_metadata_t standard_metadata);

// Calls update_checksum only.
control ComputeChecksum<H, M>(inout H hdr,
                              inout M meta);

@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(Parser<H, M> p,
                       VerifyChecksum<H, M> vr,
                       Ingress<H, M> ig,
                       Egress<H, M> eg,
                       ComputeChecksum<H, M> ck,
                       Deparser<H> dep);

#endif
