// What only parsers and deparsers use.
#include <tna.p4>
#include "frame.p4"

header mirror_h { bit<8> why; }
header resubmit_h { bit<64> data; }
struct seen_t { bit<48> src; PortId_t port; }

parser Counting(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    ParserCounter() counter;
    ParserPriority() priority;
    Checksum() sum;
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) {
            1: again;
            default: first;
        }
    }
    state again {
        pkt.advance(PORT_METADATA_SIZE);
        transition first;
    }
    state first {
        md = {0, 0};
        priority.set(3);
        counter.set(8w3);
        transition loop;
    }
    state loop {
        counter.decrement(1);
        transition select(counter.is_zero(), counter.is_negative()) {
            (false, false): loop;
            default: rest;
        }
    }
    state rest {
        counter.set(md.color, 255, 0, 7, 1);
        counter.increment(8w2);
        pkt.extract(hdr.ethernet);
        sum.add(hdr.ethernet);
        sum.subtract({hdr.ethernet.type});
        sum.subtract_all_and_deposit(md.hash);
        md.color = sum.verify() ? 8w1 : 0;
        transition accept;
    }
}

control Sending(packet_out pkt, inout headers_t hdr, in metadata_t md,
                in ingress_intrinsic_metadata_for_deparser_t dprsr,
                in ingress_intrinsic_metadata_t ig)
{
    Mirror(1) mirror;
    Resubmit(2) resubmit;
    Digest<seen_t>(3) digest;
    Checksum() sum;
    apply {
        if (dprsr.mirror_type == 1) {
            mirror.emit(10w5);
            mirror.emit<mirror_h>(10w5, {md.color});
        }
        if (dprsr.resubmit_type == 2) {
            resubmit.emit();
            resubmit.emit<resubmit_h>({0});
        }
        if (dprsr.digest_type == 3) {
            digest.pack({hdr.ethernet.src, ig.ingress_port});
        }
        hdr.ethernet.type = sum.update({hdr.ethernet.dst, hdr.ethernet.src}) ^ sum.get();
        hdr.ethernet.type = sum.update({hdr.ethernet.dst}, true);
        pkt.emit(hdr);
    }
}

Pipeline(Counting(), Ingress(), Sending(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
