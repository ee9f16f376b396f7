// Statements.
#include <core.p4>
enum plain { one, two }
struct s_t { bit<8> x; }
header h_t { bit<8> x; }
control c(inout bit<8> a, inout bit<16> b, inout s_t s, inout plain k, inout h_t[3] hs) {
    action act() { }
    action other() { }
    table t { actions = { act; NoAction; } }
    apply {
        switch (a) { 1: { } 1: { } 300: { } default: { } default: { } }
    //~^ error[invalid] the label stands twice
    //~^ warning[overflow] 300 does not fit into bit<8> and becomes 44
    //~^ error[invalid] a switch has at most one default
    //~^ error[invalid] nothing may follow the default of a switch
        switch (a) { default: { } 1: { } } //~ error[invalid] nothing may follow the default of a switch
        switch (a) { 16w1: { } b: { } a: { } }
    //~^ error[type-error] the label is bit<16>, but bit<8> is expected
    //~^ error[type-error] the label is bit<16>, but bit<8> is expected
    //~^ error[type-error] a label must be a constant
        switch (s) { 1: { } } //~ error[type-error] a switch cannot be on struct s_t: only on numbers, enums, errors and action_run
        switch (k) { plain.one: { } 2: { } } //~ error[type-error] the label is int, but enum plain is expected
        switch (t.apply().action_run) { act: { } act: { } other: { } 1: { } nothing: { } default: { } }
    //~^ error[invalid] the label `act` stands twice
    //~^ error[type-error] `other` is not an action of the table
    //~^ error[type-error] a label of a switch on action_run is the name of an action or `default`
    //~^ error[type-error] `nothing` is not an action of the table
        for (bit<8> i in a) { } //~ error[type-error] a loop goes over a range, a list or a stack, not over bit<8>
        for (bit<16> i in 8w0..3) { } //~ error[type-error] the loop goes over bit<8>, but its variable is bit<16>
        for (bit<8> i in hs) { } //~ error[type-error] the loop goes over header h_t, but its variable is bit<8>
        for (bit<8> i in { 16w1, 8w2 }) { } //~ error[type-error] an element is bit<16>, but the loop variable is bit<8>
        for (b in 8w0..3) { } //~ error[syntax] expected an assignment or a call, found `in`
        for (5 in 8w0..3) { } //~ error[syntax] expected a statement, found integer `5`
        for (bit<8> i = 0; a; i = i + 1) { } //~ error[type-error] the condition of `for` must be a bool, but it is bit<8>
        a = 1; b = a; //~ error[type-error] the value is bit<8>, but bit<16> is expected
    }
}
