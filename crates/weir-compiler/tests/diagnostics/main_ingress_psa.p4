// A `main` that is only a part of a switch.
#include <core.p4>
#include <psa.p4>

struct empty_t {}
struct headers_t {}

parser P(packet_in buffer, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
         in empty_t resubmitted, in empty_t recirculated) { state start { transition accept; } }
control C(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) { apply {} }
control D(packet_out packet, out empty_t clone_i2e, out empty_t resubmitted, out empty_t normal, inout headers_t hdr,
          in empty_t meta, in psa_ingress_output_metadata_t istd) { apply {} }

IngressPipeline(P(), C(), D()) main; //~ error[main] `main` is a `IngressPipeline`, which is no switch: a `main` of psa is a `PSA_Switch`
