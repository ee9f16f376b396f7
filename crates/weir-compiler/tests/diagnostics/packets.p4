// Parsers: states, selects, extraction, emission.
#include <core.p4>
header h_t { bit<8> x; }
header v_t { bit<8> l; varbit<8> x; }
struct s_t { h_t h; v_t v; bit<8> m; }
extern bit<8> now();
control sub(inout bit<8> x) { apply { } }
parser p(packet_in b, out s_t s, inout bit<8> a, inout bool q) {
    value_set<bit<8>>(4) vs;
    value_set<h_t>(4) vh; //~ error[type-error] a value_set cannot hold header h_t
    value_set<bit<8>>(a) vn; //~ error[expected] the size of a value_set must be a constant
    action act() { } //~ error[syntax] expected a state or a declaration, found `action`
    state start {
        b.extract(s); //~ error[type-error] only a header can be extracted, not struct s_t
        b.extract(s.m); //~ error[type-error] only a header can be extracted, not bit<8>
        b.extract(s.v); //~ error[type-error] a header with a varbit field cannot be extracted without its length
        b.extract(s.h, 8); //~ error[type-error] the header has no varbit field, so its length is known
        a = b.lookahead<v_t>().l; //~ error[type-error] lookahead reads a fixed number of bits, but header v_t has a varbit
        b.advance(q); //~ error[type-error] the argument is bool, but bit<32> is expected
        sub.apply(a); //~ error[type-error] a control can be applied only in the apply block of a control
        transition select(a, q) {
            1: accept; //~ error[type-error] 2 expressions are compared, but this is int
            (1, 2, 3): accept; //~ error[type-error] 2 expression(s) are compared, but the keyset has 3
            (1, 2): accept; //~ error[type-error] this keyset is int, but it is compared with bool
            (16w1, true): accept; //~ error[type-error] this keyset is bit<16>, but it is compared with bit<8>
            (a, true): accept;
            (a..5, true): accept; //~ error[invalid] the bounds of a range and the value and mask of a `&&&` must be constants
            (1 &&& a, true): accept; //~ error[invalid] the bounds of a range and the value and mask of a `&&&` must be constants
            (now(), true): accept; //~ error[type-error] a keyset cannot call functions
            (q, true): accept; //~ error[type-error] this keyset is bool, but it is compared with bit<8>
            vs: accept; //~ error[type-error] 2 expressions are compared, but this is set<bit<8>>
            (1..8w3, true): accept;
            (1, true): nowhere;
        }
    }
    state two {
        transition select(5) { 1: accept; } //~ error[type-error] the width of a selected expression must be known; give the constant a width
    }
    state three {
        transition select(s) { 1: accept; } //~ error[type-error] an expression of type struct s_t cannot be used in a select
    }
    state four {
        sub() k; //~ error[invalid] `k`: nothing can be instantiated in a parser state
        transition select(a) { 4w1 .. 8w2: accept; q .. q: accept; }
    //~^ error[type-error] `..` needs two numbers of one type, not bit<4> and bit<8>
    //~^ error[type-error] `..` needs two numbers of one type, not bool and bool
    }
}
control d(packet_out b, in s_t s, in bit<8> a) { apply { b.emit(a); b.emit(s); } } //~ error[type-error] only headers, and stacks, unions and structs of them, can be emitted, not bit<8>
