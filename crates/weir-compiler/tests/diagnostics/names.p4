// Names: unknown, declared twice, in the wrong place.
#include <core.p4>
const bit<8> LIMIT = 4;
const bit<8> LIMIT = 5; //~ error[duplicate] `LIMIT` is declared twice
header ether_t { bit<48> dst; bit<48> src; bit<48> dst; } //~ error[duplicate] the field `dst` is declared twice
struct all_t { ether_t ether; ethr_t other; }
error { Odd, Odd } //~ error[duplicate] the error `Odd` is declared twice
match_kind { fuzzy, exact } //~ error[duplicate] the match kind `exact` is declared twice
enum color { red, green, red } //~ error[duplicate] `red` is declared twice
bit<8> free = 1; //~ error[invalid] expected a constant or an instance at the top level, found the variable `free`
table loose { actions = { NoAction; } } //~ error[syntax] expected a declaration, found `table`
value_set<bit<8>>(4) values;
void f(in bit<8> x, in bit<8> x) { } //~ error[duplicate] `x` is declared twice
void g(in bit<8> x) { bit<8> x = 1; } //~ error[shadow] `x` has the name of a parameter
extern void h<T>(in T T); //~ error[duplicate] `T` is declared twice
action a(bit<8> v) { bit<8> v = 2; } //~ error[shadow] `v` has the name of a parameter
parser p(packet_in b, out all_t all) {
    state start { transition one; }
    state one { transition tow; }
    state two { transition accept; }
    state two { transition accept; } //~ error[duplicate] the state `two` is declared twice
    state accept { transition reject; } //~ error[invalid] the state `accept` is built in and cannot be declared
}
parser q(packet_in b) { state begin { transition accept; } } //~ error[invalid] the parser `q` has no state `start`
control c(inout all_t all, inout bit<8> x) {
    action inner() { x = LIMT; }
    apply {
        y = 1;
        all.ether.dts = 0; //~ error[type-error] header ether_t has no field `dts`
        all.ether.zzz = 0; //~ error[type-error] header ether_t has no field `zzz`
        innner();
        undeclared(x);
        x.foo = 1; //~ error[type-error] bit<8> has no member `foo`
        color k = color.gren; //~ error[type-error] enum color has no member `gren`
        error e = error.PacketToShort; //~ error[type-error] there is no error `PacketToShort`
        bit<8> z = color.red.x; //~ error[type-error] enum color has no member `x`
        x = all.ether.isvalid(); //~ error[type-error] header ether_t has no field `isvalid`
        bit<8> L = LIMIT;
    }
}
control d(inout missing_t x) { apply { } }
const bit<8> main = 1; //~ error[invalid] `main` must be an instance of a package
