// `_` as a type argument: any width where nothing says one, and what is no value at run time is none.
#include <tna.p4>
#include "../tofino/frame.p4"

control Properties(inout headers_t hdr, inout metadata_t md,
                   in ingress_intrinsic_metadata_t ig,
                   in ingress_intrinsic_metadata_from_parser_t prsr,
                   inout ingress_intrinsic_metadata_for_deparser_t dprsr,
                   inout ingress_intrinsic_metadata_for_tm_t tm)
{
    Register<bit<16>, _>(4) cells;
    RegisterAction<bit<16>, _, _>(cells) counts = { void apply(inout bit<16> cell) { cell = cell + 1; } };
    RegisterAction<bit<16>, _, bit<16>>(cells) leaves = {
        void apply(inout bit<16> cell, out bit<16> rv) { rv = cell; exit; } //~ error[invalid] `exit` can stand only in controls and actions
    };
    Register<_, _>(4, 5) started;
    Register<_, _>(4, "abc") texts; //~ error[type-error] the argument is string
    Counter<_, _>(4, CounterType_t.BYTES) seen;
    apply {
        counts.execute(0);
        seen.count(1);
        cells.write(0, leaves.execute(1) + started.read(0));
    }
}
