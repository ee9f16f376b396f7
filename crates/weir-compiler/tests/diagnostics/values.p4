// Lists, structs, tuples and their types.
#include <core.p4>
header h_t { bit<8> x; bit<8> y; }
struct s_t { bit<8> x; bit<8> y; }
type bit<8> port_t;
control c(inout h_t h, inout s_t s, inout bit<8> a, inout port_t port) {
    action act() { }
    apply {
        s = { 1 }; //~ error[type-error] the value is { int }, but struct s_t is expected
        s = { 1, 2, 3 }; //~ error[type-error] the value is { int, int, int }, but struct s_t is expected
        s = { x = 1 }; //~ error[type-error] the value is { x = int }, but struct s_t is expected
        s = { x = 1, z = 2 }; //~ error[type-error] the value is { x = int, z = int }, but struct s_t is expected
        s = { x = 1, x = 2, y = 3 }; //~ error[duplicate] the field `x` is given twice
        s = { x = 1, y = 16w2 }; //~ error[type-error] the value is { x = int, y = bit<16> }, but struct s_t is expected
        s = { ..., 1 }; //~ error[invalid] `...` must be the last element
        s = { act, 1 }; //~ error[type-error] a list cannot hold action act
        s = {#}; //~ error[type-error] the value is {#}, but struct s_t is expected
        s = h; //~ error[type-error] the value is header h_t, but struct s_t is expected
        h = s; //~ error[type-error] the value is struct s_t, but header h_t is expected
        port = a; //~ error[type-error] the value is bit<8>, but port_t is expected
        a = port; //~ error[type-error] the value is port_t, but bit<8> is expected
        a = { 1 }; //~ error[type-error] the value is { int }, but bit<8> is expected
        tuple<bit<8>> t = { 1, 2 }; //~ error[type-error] the initial value is { int, int }, but tuple<bit<8>> is expected
        a = 1 .. 2; //~ error[syntax] expected `;` after the statement, found `..`
        bit<16> b = a; //~ error[type-error] the initial value is bit<8>, but bit<16> is expected
        bool p = 1; //~ error[type-error] the initial value is int, but bool is expected
        bit<8> d = "x"; //~ error[type-error] the initial value is string, but bit<8> is expected
        if (a) { } //~ error[type-error] the condition of `if` must be a bool, but it is bit<8>
        if (1) { } //~ error[type-error] the condition of `if` must be a bool, but it is int
        int<8> i = a; //~ error[type-error] the initial value is bit<8>, but int<8> is expected
    }
}
