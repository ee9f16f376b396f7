// A control that is told of queues, and an ingress that sees what it is told.
#include <t2na.p4>
#include "frame.p4"

control Ghost(in ghost_intrinsic_metadata_t gh) {
    Register<bit<32>, bit<11>>(2048) lengths;
    RegisterAction<bit<32>, bit<11>, bit<32>>(lengths) keep = {
        void apply(inout bit<32> value, out bit<32> rv) {
            value = (bit<32>) gh.qlength;
            rv = value;
        }
    };
    apply { keep.execute(gh.qid); }
}

control Seeing(inout headers_t hdr, inout metadata_t md,
               in ingress_intrinsic_metadata_t ig,
               in ingress_intrinsic_metadata_from_parser_t prsr,
               inout ingress_intrinsic_metadata_for_deparser_t dprsr,
               inout ingress_intrinsic_metadata_for_tm_t tm,
               in ghost_intrinsic_metadata_t gh)
{
    apply { tm.qid = (QueueId_t) gh.pipe_id; }
}

Pipeline(IngressParser(), Seeing(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser(), Ghost()) pipe;
Switch(pipe) main;
