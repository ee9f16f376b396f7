// Habits of other languages, and names that programs define themselves.
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> x; bit<8> y; }
struct headers { h_t a; }
struct meta { }
parser P(packet_in p, out headers hd, inout meta m, inout standard_metadata_t sm) {
    state start {
        p.extract(hd.a);
        transition select(hd.a.x) {
            1, 2: pair; //~ error[syntax] a case of `select` has one keyset, found `,` and another = help: write a case for each value: `A: state; B: state;`
            3: pair;
            default: accept;
        }
    }
    state pair {
        transition select(hd.a.x, hd.a.y) {
            1, 2: accept; //~ error[syntax] a case of `select` has one keyset, found `,` and another = help: the values for several expressions stand in parentheses: `(A, B): state;`
            default: reject;
        }
    }
}
control I(inout headers h, inout meta m, inout standard_metadata_t sm) {
    apply {
        if (h.a.x == 1) {
            h.a.x = 2;
        } elseif (h.a.x == 2) { //~ error[syntax] expected `else if`, found name `elseif` = help: write two words: `else if (…) { … }`
            h.a.x = 3;
        } elif (h.a.x == 3) h.a.x = 4; //~ error[syntax] expected `else if`, found name `elif`
        else {
            h.a.x = 5;
        }
        if (h.a.x = 5) { h.a.y = 1; }
        //~^ error[syntax] expected a comparison in the condition, found the assignment `=` = help: values are compared with `==`
        if (h.a.x == 1 && (h.a.y = 5)) { h.a.y = 1; }
        //~^ error[syntax] expected a comparison in the condition, found the assignment `=`
        switch (h.a.x) {
            1, 2: { h.a.x = 3; } //~ error[syntax] a case of `switch` has one label, found `,` and another = help: write the labels one after the other, each with its colon: `A: B: { … }`
            3: { h.a.x = 4; }
        }
    }
}
control V(inout headers h, inout meta m) { apply { } }
control E(inout headers h, inout meta m, inout standard_metadata_t sm) { apply { } }
control C(inout headers h, inout meta m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
