// Instances, abstract methods, packages.
#include <core.p4>
header h_t { bit<8> x; }
extern box_t { box_t(); void open(); }
extern generic_t<T> { generic_t(); T get(); }
extern abs_t { abs_t(); abstract bit<8> run(in bit<8> x); }
control sub(inout bit<8> x) { apply { } }
control ctype(inout bit<8> x);
package pack_t(ctype c);
package opt_t<T>(ctype c, T v = 1);
sub() top; //~ error[invalid] `top`: parsers and controls cannot be instantiated at the top level
bit<8>() nothing; //~ error[type-error] there are no instances of bit<8>: only of externs, parsers, controls and packages
generic_t() open_generic; //~ error[type-error] the type arguments of `generic_t` are not known; write them between `<` and `>`
abs_t() no_body; //~ error[type-error] `run` is abstract and needs a body
abs_t() wrong = { bit<16> run(in bit<8> x) { return 1; } bit<8> walk(in bit<8> x) { return 1; } };
    //~^ error[type-error] `run` does not agree with the abstract method
    //~^ error[type-error] the extern has no abstract method `walk`
abs_t() none = { }; //~ error[type-error] the abstract method `run` has no body
box_t() with_body = { bit<8> run(in bit<8> x) { return 1; } }; //~ error[type-error] an instance of an extern without abstract methods cannot have a body
control other(inout bit<16> x) { apply { } }
control user(inout bit<8> x) {
    sub() s = { bit<8> run(in bit<8> y) { return 1; } };
    parser inner(packet_in b) { state start { transition accept; } } //~ error[syntax] expected a declaration or `apply`, found `parser`
    apply { } //~ error[syntax] expected the name of a function, or `(` and the arguments of an instance, found `{`
}
control taker(inout bit<8> x)(abs_t a) { apply { } }
control giver(inout bit<8> x) { taker(abs_t()) t; apply { t.apply(x); } } //~ error[type-error] extern abs_t has abstract methods, so an instance needs a name and a body
pack_t(other()) p1; //~ error[type-error] the argument is control other, but control ctype is expected
pack_t(sub) p2; //~ error[syntax] expected a value, found type `sub`
pack_t() p3; //~ error[uninitialized] `pack_t`: the parameter `c` has no value
pack_t(box_t()) p4; //~ error[type-error] the argument is extern box_t, but control ctype is expected
const bit<8> n = 1;
pack_t(sub()) main;
