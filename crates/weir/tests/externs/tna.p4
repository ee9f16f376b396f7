// Calls in a register action, which is one atomic step.
#include <core.p4>
#include <tna.p4>
#include <weir/externs.p4>
header h_t { bit<8> kind; bit<32> number; bit<64> tag; }
struct headers_t { h_t h; }
struct meta_t { }
parser IngressParser(packet_in packet, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t i) {
    state start {
        packet.extract(i);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.h);
        transition accept;
    }
}
control Ingress(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t i,
                in ingress_intrinsic_metadata_from_parser_t ip, inout ingress_intrinsic_metadata_for_deparser_t id,
                inout ingress_intrinsic_metadata_for_tm_t it) {
    payload_read() rest;
    siphash(1) hash;
    Register<bit<32>, bit<32>>(16) seen;
    RegisterAction<bit<32>, bit<32>, bit<32>>(seen) mark = {
        void apply(inout bit<32> value, out bit<32> result) {
            bit<64> tag;
            extern_status_t status;
            hash.compute_payload(rest, 0, tag, status);
            //~^ warning[tofino-nested-call] an extern is called within `Ingress.mark`: a Tofino's stateful unit
            //~^ warning[not-runnable] `siphash.compute_payload` cannot be called in a method: methods run as one atomic step
            value = tag[31:0];
            result = value;
        }
    };
    apply {
        hdr.h.number = mark.execute(0);
        it.ucast_egress_port = 1;
    }
}
control IngressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t id) {
    apply { packet.emit(hdr); }
}
parser EgressParser(packet_in packet, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t e) {
    state start {
        packet.extract(e);
        packet.extract(hdr.h);
        transition accept;
    }
}
control Egress(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t e,
               in egress_intrinsic_metadata_from_parser_t ep, inout egress_intrinsic_metadata_for_deparser_t ed,
               inout egress_intrinsic_metadata_for_output_port_t eo) {
    apply { @async { busy_cycles(10); } }
}
control EgressDeparser(packet_out packet, inout headers_t hdr, in meta_t meta,
                       in egress_intrinsic_metadata_for_deparser_t ed) {
    apply { packet.emit(hdr); }
}
Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
