// Annotations that mean something on the chip and nothing here, and hashes that are not as symmetric as they say.
#include <core.p4>
#include <tna.p4>
@not_parsed header h_t { bit<16> a; bit<16> b; @byte_pack(1) bit<8> c; bit<8> d; } //~ warning[annotation] @not_parsed has no effect: the parser extracts the header
//~^ warning[annotation] @byte_pack has no effect: fields lie as the header declares them
struct headers_t { h_t h; }
struct meta_t { }
parser IP(packet_in b, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t intrinsic) {
    state start { b.extract(intrinsic); b.advance(PORT_METADATA_SIZE); transition taken; }
    @terminate_parsing state taken { b.extract(hdr.h); transition accept; } //~ warning[annotation] @terminate_parsing has no effect: the parser goes on as the program says
}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t intrinsic,
          in ingress_intrinsic_metadata_from_parser_t from_parser,
          inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    @symmetric("hdr.h.a", "hdr.h.b") Hash<bit<16>>(HashAlgorithm_t.CRC16) right;
    @symmetric("hdr.h.a", "hdr.h.x") Hash<bit<16>>(HashAlgorithm_t.CRC16) absent;
    @symmetric("hdr.h.a", "hdr.h.c") Hash<bit<16>>(HashAlgorithm_t.CRC16) uneven;
    @symmetric("hdr.h.a") Hash<bit<16>>(HashAlgorithm_t.CRC16) single;
    @symmetric("hdr.h.a", "hdr.h.b") @symmetric("hdr.h.b", "hdr.h.a") Hash<bit<16>>(HashAlgorithm_t.CRC16) twice;
    @pa_solitary("ingress", "hdr.h.a") @mine("of the user") Register<bit<16>, _>(4) cells;
    apply {
        hdr.h.a = right.get({ hdr.h.a, hdr.h.b });
        hdr.h.a = absent.get({ hdr.h.a, hdr.h.b }); //~ warning[symmetric] this hash is not symmetric: there is no field `hdr.h.x`, which its @symmetric names, or the two differ in width
        hdr.h.a = uneven.get({ hdr.h.a, hdr.h.c }); //~ warning[symmetric] this hash is not symmetric: there is no field `hdr.h.c`, which its @symmetric names, or the two differ in width
        hdr.h.a = single.get({ hdr.h.a }); //~ warning[symmetric] this hash is not symmetric as its @symmetric says: it takes two fields, each in one pair
        hdr.h.a = twice.get({ hdr.h.a, hdr.h.b }); //~ warning[symmetric] this hash is not symmetric as its @symmetric says: it takes two fields, each in one pair
        tm.ucast_egress_port = 1;
        cells.write(0, hdr.h.a);
    }
}
control ID(packet_out b, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { b.emit(hdr); }
}
parser EP(packet_in b, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t intrinsic) {
    state start { b.extract(intrinsic); transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t intrinsic,
          in egress_intrinsic_metadata_from_parser_t from_parser,
          inout egress_intrinsic_metadata_for_deparser_t for_deparser,
          inout egress_intrinsic_metadata_for_output_port_t for_port) { apply { } }
control ED(packet_out b, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t for_deparser) {
    apply { b.emit(hdr); }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
