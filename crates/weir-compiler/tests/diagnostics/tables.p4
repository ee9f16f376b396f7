// Tables: properties, keys, actions, defaults.
#include <core.p4>
header h_t { bit<8> x; }
control c(inout bit<8> a, inout h_t h, inout bool p) {
    action one() { }
    action data(bit<8> v) { }
    action bound(in bit<8> x, bit<8> v) { }
    table t1 { key = { a: exact; } key = { a: exact; } actions = { one; } } //~ error[duplicate] the property `key` is given twice
    table t2 { key = { a: exact; } } //~ error[expected] the table `t2` has no `actions` property
    table t3 { default_action = one(); actions = { one; } } //~ error[type-error] the default action must come after the `actions`
    table t4 { key = { a: exat; } actions = { one; } }
    table t5 { key = { a: sloppy; } actions = { one; } }
    table t6 { key = { 5: exact; h: exact; } actions = { one; } }
    //~^ error[type-error] a table key needs a width; this is an int
    //~^ error[type-error] a table key cannot have the type header h_t
    table t7 { actions = { one; one; missing; a; } }
    //~^ error[duplicate] the action `one` is listed twice
    //~^ error[type-error] `a` is not an action
    table t8 { actions = { data(5); } default_action = data(5); } //~ error[type-error] the parameter `v` is set by the control plane and cannot be given here
    table t9 { actions = { bound; } default_action = bound(a, 1); }
    //~^ error[uninitialized] the parameter `x` of the action `bound` must be given here
    //~^ error[type-error] this argument does not agree with the one in the list of actions
    table t10 { actions = { bound(a); } default_action = bound(h.x, 1); } //~ error[type-error] this argument does not agree with the one in the list of actions
    table t11 { actions = { one; } default_action = data(1); } //~ error[type-error] `data` is not in the actions of the table `t11`
    table t12 { actions = { data; } default_action = data; } //~ error[type-error] the parameter `v` of `data` is not given
    table t13 { actions = { data; } default_action = data(a); } //~ error[type-error] data of an action must be a constant here
    table t14 { actions = { data; } default_action = data(1, 2); } //~ error[type-error] `data` has 1 parameter(s), but 2 argument(s) are given
    table t15 { actions = { data; } default_action = data(16w1); } //~ error[type-error] the argument is bit<16>, but bit<8> is expected
    table t16 { actions = { one; } default_action = 5; } //~ error[type-error] the default action must be one of the table's actions
    table t17 { actions = { one; } default_action = a; } //~ error[type-error] `a` is not an action
    table t18 { actions = { one; } default_action = nothing(); }
    table t19 { actions = { @tableonly one; } default_action = one(); } //~ error[type-error] `one` is @tableonly and cannot be the default action
    table t20 { actions = { one; } size = -1; } //~ error[invalid] the size of a table cannot be negative
    table t21 { actions = { one; } size = true; } //~ error[type-error] the size of a table is a number, not bool
    table t22 { actions = { one; } size = a; } //~ error[expected] the size of a table must be a constant
    table t23 { actions = { one(1); } } //~ error[type-error] the action `one` has only 0 parameter(s)
    table t24 { key = { t24.apply().hit: exact; } actions = { one; } } //~ error[type-error] the table `t24` cannot refer to itself
    table t25 { key = 5; actions = { one; } } //~ error[syntax] expected `{` before the elements of the key, found integer `5`
    table t26 { actions = { bound(t1.apply().hit ? 8w1 : 2); } default_action = one(); }
    //~^ error[type-error] a table can be applied only in the apply block of a control
    //~^ error[type-error] `one` is not in the actions of the table `t26`
    // Other properties may name actions too.
    table t27 { actions = { data; } default_action = data(1); on_something = data(2); }
    table t28 { actions = { one; } default_action = one; on_something = data(1); } //~ error[type-error] `data` is not in the actions of the table `t28`
    table t29 { actions = { data; } default_action = data(1); on_something = data; } //~ error[type-error] the parameter `v` of `data` is not given
    apply { }
}
control d(inout bit<8> a) { table t { actions = { NoAction; } largest_priority_wins = 5; } apply { } } //~ error[type-error] `largest_priority_wins` is true or false
