// Calls: arguments, names, type arguments, what can be called where.
#include <core.p4>
header h_t { bit<8> x; }
struct s_t { bit<8> x; }
extern box_t<T> { box_t(bit<8> size); T get(in bit<8> i); void put(in T v); }
extern none_t { void m(); }
extern dual_t { dual_t(); void m(in bit<8> a); void m(in bit<16> b); }
extern void ext<T>(in T v);
extern T make<T>();
extern void two(in bit<8> a, out bit<8> b);
extern void lit(bit<8> a);
extern void over(in bit<8> a);
extern void over(in bit<8> a, in bit<8> b);
T same<T>(in T v) { return v; }
void plain(in bit<8> v, out bit<8> r) { r = v; }
void fixed(bit<8> v) { }
control sub(inout bit<8> x) { apply { } }
control subs(inout bit<8> x)(bit<8> by) { apply { } }
control proto(inout bit<8> x);
parser subp(packet_in b) { state start { transition accept; } }
control c(inout bit<8> a, inout bit<16> b, inout h_t h, inout s_t s) {
    box_t<bit<8>>(4) box;
    box_t<bit<8>>(a) box2; //~ error[type-error] the argument for `size` must be known to the compiler
    box_t<bit<8>>() box3; //~ error[uninitialized] `box_t`: the parameter `size` has no value
    none_t() none; //~ error[type-error] extern none_t has no constructor
    dual_t() dual;
    sub() inst;
    subs() inst2; //~ error[uninitialized] `subs`: the parameter `by` has no value
    proto() inst3; //~ error[type-error] control proto is a type without a body and cannot be instantiated
    bit<8>() inst4; //~ error[type-error] there are no instances of bit<8>: only of externs, parsers, controls and packages
    action act(in bit<8> x, bit<8> y) { }
    action apply_in() { t.apply(); inst.apply(a); sub() k; }
    //~^ error[not-found] there is no name `t` here
    //~^ error[type-error] a control can be applied only in the apply block of a control
    //~^ error[invalid] `k`: nothing can be instantiated in a function, method or action
    table t { key = { a: exact; } actions = { act(a); NoAction; } }
    action late() { t.apply(); inst.apply(a); }
    //~^ error[type-error] a table cannot be applied in an action or function: only in the apply block of a control
    //~^ error[type-error] a control can be applied only in the apply block of a control
    apply {
        plain(a); //~ error[uninitialized] `plain`: the parameter `r` has no value
        plain(a, a, a); //~ error[type-error] `plain`: 3 argument(s) are given, but there are 2 parameter(s)
        plain(v = a, q = a); //~ error[type-error] `plain`: there is no parameter `q`
        plain(v = a, v = a); //~ error[duplicate] the argument `v` is given twice
        plain(a, r = a); //~ error[invalid] either all arguments have names or none has
        plain(a, 1); //~ error[type-error] the argument for `r` must be a variable: the parameter is `out`
        plain(b, a); //~ error[type-error] the argument is bit<16>, but bit<8> is expected
        plain(_, a); //~ error[type-error] `_` can stand only for an `out` parameter, not for `v`
        plain(s, a); //~ error[type-error] the argument is struct s_t, but bit<8> is expected
        plain(act, a); //~ error[type-error] action act cannot be an argument
        plain({ 1 }, a); //~ error[type-error] the argument is { int }, but bit<8> is expected
        fixed(a); //~ error[type-error] the argument `v` must be known to the compiler
        lit(a); //~ error[type-error] the argument `a` must be known to the compiler
        over(); //~ error[type-error] no `over` fits these arguments
        over(a, a, a); //~ error[type-error] no `over` fits these arguments
        same<bit<8>, bit<8>>(a); //~ error[type-error] `same` has 1 type parameter(s), but 2 argument(s) are given
        same(1); //~ error[type-error] the type parameter `T` of `same` would be int, which has no values at run time
        same<void>(a); //~ error[type-error] void cannot be a type argument
        ext(1); //~ error[type-error] the type parameter `T` of `ext` would be int, which has no width
        ext("x"); //~ error[type-error] the type parameter `T` of `ext` would be string, but its parameter has a direction
        ext({ x = 1 }); //~ error[type-error] the type parameter `T` of `ext` cannot be inferred from a struct without a type; cast it
        make(); //~ error[type-error] the type of the result cannot be inferred
        a = make();
        act<bit<8>>(a, 1); //~ error[type-error] an action has no type parameters
        act(a); //~ error[uninitialized] `act`: the parameter `y` has no value
        t(a); //~ error[type-error] `t` cannot be called
        inst(a); //~ error[type-error] `inst` cannot be called
        t.apply(a); //~ error[type-error] `apply` of a table takes no arguments
        inst.apply(); //~ error[uninitialized] `apply`: the parameter `x` has no value
        inst.apply(1); //~ error[type-error] the argument for `x` must be a variable: the parameter is `inout`
        subs.apply(a); //~ error[type-error] `control subs` has constructor parameters and must be instantiated first
        proto.apply(a); //~ error[invalid] control proto has no body and cannot be applied
        box.get(b); //~ error[type-error] the argument is bit<16>, but bit<8> is expected
        box.gett(a); //~ error[type-error] extern box_t has no method `gett`
        box.zzzzz(a); //~ error[type-error] extern box_t has no method `zzzzz`
        dual.m(a); //~ error[duplicate] it is not clear which `dual_t.m` is meant
        dual.m(c = a); //~ error[type-error] no `dual_t.m` fits these arguments
        verify(a == 1, error.NoError); //~ error[type-error] `verify` can be called only in a parser
        s_t(1); //~ error[type-error] struct s_t has no constructor
        sub();
        subp.apply(a);
    //~^ error[type-error] a parser can be applied only in a state of a parser
    //~^ error[type-error] the argument is bit<8>, but extern packet_in is expected
        sub() other; //~ error[invalid] `other`: nothing can be instantiated in an apply block
        a = t.apply().action_run; //~ error[type-error] `action_run` can stand only as the whole expression of a switch
        a = t.apply().foo; //~ error[type-error] the result of apply has hit, miss and action_run, but not `foo`
        (a + 1)(); //~ error[type-error] bit<8> cannot be called
        box_t<bit<8>>.get(a); //~ error[type-error] `get` is called on an instance, but this is extern box_t<bit<8>> itself
        static_assert(false, "too small"); //~ error[expected] too small
        static_assert(1 == 2); //~ error[expected] static_assert failed
        static_assert(a == 1); //~ error[type-error] the argument `check` must be known to the compiler
    }
}
void body(inout bit<8> a) { act2(); sub.apply(a); box_t<bit<8>>(1) x; }
    //~^ error[not-found] there is no function or action `act2` here
    //~^ error[type-error] a control can be applied only in the apply block of a control
    //~^ error[invalid] `x`: nothing can be instantiated in a function, method or action
