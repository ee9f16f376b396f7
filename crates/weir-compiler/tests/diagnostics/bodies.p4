// Bodies where none may be; what cannot stand in a control; places for `exit` and table application.
#include <core.p4>
extern abs_t { abs_t(); abstract bit<8> run(in bit<8> x); }
extern box_t { box_t(); bit<8> get(); }
control sub(inout bit<8> x) { apply { } }
bit<8> outer(in bit<8> x) { return x; }
abs_t() good = { bit<8> run(in bit<8> x) { return this.run(x); } };
abs_t() calls = { bit<8> run(in bit<8> x) { box_t() inner; return x; } }; //~ error[invalid] `inner`: nothing can be instantiated in a function, method or action
control user(inout bit<8> x) {
    sub() s = { bit<8> run(in bit<8> y) { return 1; } }; //~ error[type-error] only an instance of an extern may have a body
    abs_t() applies = { bit<8> run(in bit<8> y) { t.apply(); return y; } }; //~ error[not-found] there is no name `t` here
    action one() { }
    table t { key = { x: exact; } actions = { one; } }
    action recurse() { recurse(); } //~ error[not-found] there is no function or action `recurse` here
    table u { key = { outer(x): exact; u.apply().hit: exact; } actions = { one; } } //~ error[type-error] the table `u` cannot refer to itself
    apply { box_t.get(); box_t().get(); outer(x); sub().apply(x); recurse(1); }
    //~^ error[type-error] `get` is called on an instance, but this is extern box_t itself
    //~^ error[type-error] `recurse`: 1 argument(s) are given, but there are 0 parameter(s)
}
bit<8> self(in bit<8> x) { return self(x); } //~ error[not-found] there is no function or action `self` here
bit<8> early(in bit<8> x) { return late(x); } //~ error[not-found] there is no function or action `late` here
bit<8> late(in bit<8> x) { return early(x); }
struct loop_t { loop_t next; } //~ error[not-found] there is no type `loop_t` here
