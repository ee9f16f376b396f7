// Rarer mistakes.
#include <core.p4>
header h_t { bit<8> x; }
struct s_t { bit<8> isValid; }
extern box_t { box_t(); void open(); }
extern gen_t<T> { gen_t(); }
control sub(inout bit<8> x) { apply { } }
struct pair<T> { T a; }
typedef pair<pair<bit<8>>> nested_t; //~ error[type-error] `pair` cannot be a type argument of itself
enum bit<8> k_t { a = 1 ++ 2 } //~ error[type-error] the operands of `++` need a known width
bit<8> changes(in bit<8> x) { return x; }
enum bit<8> m_t { a = changes(1) } //~ error[type-error] the value of an enum member must be a constant number
parser p(packet_in b, inout bit<8> a, out h_t h) {
    value_set<bit<8>>(4) vs;
    state start { a = vs; act(); transition accept; }
    //~^ error[type-error] the value is set<bit<8>>, a set and not a value
    //~^ error[not-found] there is no function or action `act` here
}
action act() { }
parser q(packet_in b, inout bit<8> a) {
    bit<8>[a] odd; //~ error[type-error] the size of a stack must be a constant known to the compiler
    state start { act(); transition accept; } //~ error[type-error] the action `act` cannot be called in a parser
}
void f() { act(); box_t(); }
    //~^ error[type-error] the action `act` cannot be called here: only in the apply block of a control or in an action
    //~^ error[invalid] nothing can be instantiated here: declare an instance outside
control c(inout bit<8> a, inout h_t[4] hs, inout bit<16> b) {
    action data(in bit<8> x) { }
    table t { key = { a: exact; } actions = { NoAction; } }
    table u { actions = { data(changes(a)); } default_action = data(changes(a)); }
    apply {
        hs[(a == 1 ? 1 : 2)].x = 1; //~ error[type-error] the width of the result is not known; give one of the numbers a width
        a[3:0] += 8w1; //~ error[type-error] the operands of `+` have different widths: 4 and 8 bits
        b = 16w1;
        a |= b; //~ error[type-error] the operands of `|` have different widths: 8 and 16 bits
        hs = {}; //~ error[type-error] the value is {}, but header h_t[4] is expected
    }
}
