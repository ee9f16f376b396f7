// Tables with keys of a selector that they do not have, beside a small key and alone: those keys select nothing.
#include "header.p4i"
struct meta_t { }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<16> value) { hdr.h.value = value; }
    action go(bit<9> port) { sm.egress_spec = port; }
    table values {
        key = { hdr.h.index: exact; hdr.h.value: selector; }
        actions = { set; NoAction; }
        const entries = { 3: set(0x1234); }
        default_action = NoAction;
    }
    table ports {
        key = { hdr.h.op: selector; }
        actions = { go; }
        default_action = go(2);
    }
    apply { values.apply(); ports.apply(); }
}
#include "skeleton.p4i"
