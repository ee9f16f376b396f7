// How wide the identifiers of the Tofino architectures are. __TARGET_TOFINO__ says for which chip, not for
// which architecture: a program of the first architecture may be built for the second chip.

#ifndef WEIR_TOFINO_WIDTHS
#define WEIR_TOFINO_WIDTHS

#include <core.p4>

#define PORT_ID_WIDTH            9
#define MULTICAST_GROUP_ID_WIDTH 16
#define DIGEST_TYPE_WIDTH        3
#define RESUBMIT_TYPE_WIDTH      3
#define REPLICATION_ID_WIDTH     16
#define L1_EXCLUSION_ID_WIDTH    16
#define L2_EXCLUSION_ID_WIDTH    9
#if __TARGET_TOFINO__ == 1
#define QUEUE_ID_WIDTH           5
#define MIRROR_TYPE_WIDTH        3
#define MIRROR_ID_WIDTH          10
#define WEIR_PORT_METADATA_SIZE  32w64
#else
#define QUEUE_ID_WIDTH           7
#define MIRROR_TYPE_WIDTH        4
#define MIRROR_ID_WIDTH          8
#define WEIR_PORT_METADATA_SIZE  32w192
#endif

typedef bit<PORT_ID_WIDTH>            PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<QUEUE_ID_WIDTH>           QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH>        MirrorType_t;
typedef bit<MIRROR_ID_WIDTH>          MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH>      ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH>        DigestType_t;
typedef bit<REPLICATION_ID_WIDTH>     ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH>    L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH>    L2ExclusionId_t;
typedef error                         ParserError_t;
#if __TARGET_TOFINO__ != 1
typedef MirrorType_t                  CloneId_t;
#endif

// Bits between the intrinsic header of an ingress packet and the packet itself.
const bit<32> PORT_METADATA_SIZE = WEIR_PORT_METADATA_SIZE;

// The number of a port is that of its pipe, two bits, and that of the port in the pipe, seven.
#define DEVPORT_PIPE_MASK  0x180
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT_MASK  0x7f
#define DEVPORT_PORT(port) (port)[6:0]

#endif
