// Operators and their operands.
#include <core.p4>
header h_t { bit<8> x; varbit<8> v; }
struct s_t { bit<8> x; }
control c(inout bit<8> a, inout bit<16> b, inout int<8> s, inout bool p, inout h_t h, inout s_t st, inout error e) {
    action act() { }
    table t { actions = { act; } default_action = act(); }
    apply {
        a = a + b; //~ error[type-error] the operands of `+` have different widths: 8 and 16 bits
        a = a + s; //~ error[type-error] one operand of `+` is signed and the other is not
        a = a + p; //~ error[type-error] `+` is not defined on bit<8> and bool
        a = p & 1; //~ error[type-error] `&` is not defined on bool and int
        p = a && p; //~ error[type-error] `&&` takes booleans, but this is bit<8>
        p = !a; //~ error[type-error] `!` cannot be applied to bit<8>
        a = ~p; //~ error[type-error] `~` cannot be applied to bool
        a = -p; //~ error[type-error] `-` cannot be applied to bool
        a = ~1; //~ error[invalid] `~` needs a number of known width
        a = 1 |+| 2; //~ error[invalid] `|+|` needs numbers of known width
        s = s / 2; //~ error[type-error] `/` is not defined on signed numbers
        a = a / 0; //~ error[expr] division by zero
        a = a % 0; //~ error[expr] modulo by zero
        a = a / -1; //~ error[type-error] division is not defined for negative numbers
        a = (bit<8>)(1 / 0); //~ error[expr] division by zero
        a = (bit<8>)(-4 / 2); //~ error[invalid] division is not defined for negative numbers
        a = a << s; //~ error[type-error] the right operand of `<<` must be unsigned (bit<W>) or a constant
        a = a << -1; //~ error[type-error] the distance of `<<` cannot be negative
        a = a << p; //~ error[expected] the distance of `<<` must be a number, but it is bool
        a = p << 1; //~ error[type-error] the left operand of `<<` must be a number, but it is bool
        a = 1 << a; //~ error[type-error] an int can be shifted only by a constant; give the left operand of `<<` a width
        a = a << 8; //~ warning[overflow] shifting 8 bits by 8 leaves nothing
        s = s >> 9; //~ warning[overflow] shifting 8 bits by 9 leaves only the sign
        b = a ++ 1; //~ error[type-error] the operands of `++` need a known width
        b = a ++ p; //~ error[type-error] `++` is not defined on bit<8> and bool
        p = a == b; //~ error[type-error] bit<8> cannot be compared with bit<16>
        p = a == p; //~ error[type-error] bit<8> cannot be compared with bool
        p = h == 1; //~ error[type-error] header h_t cannot be compared with int
        p = { x = 1 } == { x = 1 }; //~ error[type-error] the type of what is compared is not known; cast one side
        p = act == act; //~ error[type-error] values of type action act cannot be compared
        p = a < p; //~ error[type-error] `<` is not defined on bit<8> and bool
        p = e < e; //~ error[type-error] `<` is not defined on error and error
        a = p ? a : b; //~ error[type-error] the two values of `?:` have different types, bit<8> and bit<16>
        a = a ? 1 : 2; //~ error[type-error] the condition of `?:` must be a bool, but it is bit<8>
        a = p ? act : act; //~ error[type-error] `?:` cannot choose action act
        p = (p ? 1 : 2) == a; //~ error[type-error] the width of the result is not known; give one of the numbers a width
        a += b; //~ error[type-error] the operands of `+` have different widths: 8 and 16 bits
        a = (bit<8>)p; //~ error[type-error] bool cannot be cast to bit<8>
        a = (bit<8>)(int<16>)s; //~ error[type-error] int<16> cannot be cast to bit<8>
        p = (bool)2; //~ error[invalid] only 0 and 1 can be cast to bool, not 2
        p = (bool)a; //~ error[invalid] bit<8> cannot be cast to bool
        a = (bit<8>)h; //~ error[type-error] header h_t cannot be cast to bit<8>
        a = 8w256; //~ warning[overflow] 256 does not fit into 8 bits and is cut off
        s = 8s128; //~ warning[overflow] 128 is negative as a signed number of 8 bits
        a = (bit<8>)65537w1; //~ error[overlimit] 65537 bits are too many: the limit is 65536
        s = (int<8>)0s0; //~ error[invalid] a signed number has at least 1 bit
        a = this; //~ error[invalid] `this` can stand only in the body of an abstract method
        a = (bit<8>)(1 << 100000); //~ error[overlimit] the result has more than 65536 bits
        p = t.apply(); //~ error[type-error] the value is result of t.apply(), which is no value
        a = act; //~ error[type-error] the value is action act, which is no value
        a = "text"; //~ error[type-error] the value is string, but bit<8> is expected
        a = act(); //~ error[type-error] the value is void, which is no value
    }
}
