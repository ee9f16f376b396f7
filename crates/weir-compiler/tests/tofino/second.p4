// What the second architecture adds.
#include <t2na.p4>
#include "frame.p4"

struct keyed_t {
    bit<16> key;
    bit<16> value;
}

parser Nested(packet_in pkt, out headers_t hdr, out metadata_t md, out ingress_intrinsic_metadata_t ig) {
    ParserCounter() counter;
    state start {
        pkt.extract(ig);
        md = {0, 0};
        counter.push(8w3);
        counter.push(md.color, 255, 0, 8w7, 1, true);
        counter.pop();
        transition accept;
    }
}

control Adding(inout headers_t hdr, inout metadata_t md,
               in ingress_intrinsic_metadata_t ig,
               in ingress_intrinsic_metadata_from_parser_t prsr,
               inout ingress_intrinsic_metadata_for_deparser_t dprsr,
               inout ingress_intrinsic_metadata_for_tm_t tm)
{
    Counter<bit<64>, PortId_t>(512, CounterType_t.BYTES, true) counter;
    Meter<PortId_t>(512, MeterType_t.BYTES, true) meter;
    IdleTimeout() idle;
    Register<bit<16>, bit<10>>(1024) values;
    Register<keyed_t, bit<10>>(1024) keyed;
    Register<bit<128>, bit<10>>(1024) wide;
    DirectRegister<bit<16>>() direct_values;

    RegisterAction<bit<16>, bit<10>, bit<16>>(values) queue = {
        void apply(inout bit<16> value, out bit<16> rv) {
            rv = value;
            value = md.hash;
        }
        void overflow(inout bit<16> value, out bit<16> rv) { rv = 0xffff; }
        void underflow(inout bit<16> value, out bit<16> rv) { rv = 0; }
    };
    RegisterAction<bit<16>, bit<10>, bit<16>>(values) sweeper = {
        void apply(inout bit<16> value) { value = 0; }
    };
    RegisterAction2<keyed_t, bit<10>, bit<16>, bit<16>>(keyed) two = {
        void apply(inout keyed_t value, out bit<16> key, out bit<16> kept) {
            key = value.key;
            kept = value.value;
        }
    };
    RegisterAction3<keyed_t, bit<10>, bit<16>, bit<16>, bit<8>>(keyed) three = {
        void apply(inout keyed_t value, out bit<16> key, out bit<16> kept, out bit<8> where) {
            key = value.key;
            kept = value.value;
            where = this.address<bit<8>>();
        }
    };
    RegisterAction4<keyed_t, bit<10>, bit<16>, bit<16>, bit<8>, bit<8>>(keyed) four = {
        void apply(inout keyed_t value, out bit<16> key, out bit<16> kept, out bit<8> where, out bit<8> what) {
            key = value.key;
            kept = value.value;
            where = this.address<bit<8>>();
            what = this.predicate<bit<8>>(value.key == 0);
        }
    };
    DirectRegisterAction<bit<16>, bit<16>>(direct_values) direct_one = {
        void apply(inout bit<16> value, out bit<16> rv) { rv = value; }
    };
    DirectRegisterAction2<bit<16>, bit<16>, bit<8>>(direct_values) direct_two = {
        void apply(inout bit<16> value, out bit<16> rv, out bit<8> low) {
            rv = value;
            low = value[7:0];
        }
    };
    LearnAction<keyed_t, bit<10>, bit<16>, bit<16>>(keyed) learn = {
        void apply(inout keyed_t value, in bit<16> digest, in bool learn, out bit<16> rv) {
            if (learn) {
                value.key = digest;
            }
            rv = value.value;
        }
    };
    MinMaxAction<bit<128>, bit<10>, bit<16>>(wide) least = {
        void apply(inout bit<128> value, out bit<16> rv) {
            rv = this.min16(value, 0xff);
        }
    };

    action from_entry() {
        bit<8> low;
        md.hash = direct_one.execute();
        md.hash = direct_two.execute(low);
        md.color = low;
    }
    table direct {
        key = { hdr.ethernet.dst : exact; }
        actions = { from_entry; }
        registers = direct_values;
    }

    apply {
        bit<16> second;
        bit<8> third;
        bit<8> fourth;
        counter.count(ig.ingress_port);
        md.color = meter.execute(ig.ingress_port);
        md.hash = queue.enqueue() + queue.dequeue() + queue.push() + queue.pop();
        sweeper.sweep();
        values.clear(0);
        md.hash = two.execute(1, second);
        md.hash = three.execute(1, second, third);
        md.hash = four.execute(1, second, third, fourth);
        md.hash = learn.execute(1);
        md.hash = least.execute(1);
        direct.apply();
        dprsr.mirror_type = 9;
        dprsr.mirror_egress_port = ig.ingress_port;
        dprsr.pktgen = 1;
    }
}

control Generating(packet_out pkt, inout headers_t hdr, in metadata_t md,
                   in ingress_intrinsic_metadata_for_deparser_t dprsr)
{
    Pktgen() generator;
    apply {
        if (dprsr.pktgen == 1) {
            generator.emit(hdr.ethernet);
        }
        pkt.emit(hdr);
    }
}

Pipeline(Nested(), Adding(), Generating(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
