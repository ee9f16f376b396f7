// Entries of tables.
#include <core.p4>
match_kind { range, optional }
control c(inout bit<8> a, inout bit<16> b) {
    action one() { }
    action data(bit<8> v) { }
    table t1 { key = { a: exact; b: exact; } actions = { one; data; @defaultonly NoAction; }
        const entries = {
            1: one(); //~ error[type-error] the table has 2 key(s), but this entry has 1
            (1, 2, 3): one(); //~ error[type-error] the table has 2 key(s), but this entry has 3
            (1, 2): missing(); //~ error[not-found] there is no action `missing` here
            (1, 2): NoAction();
    //~^ error[keys] an entry with this key stands before
    //~^ error[type-error] `NoAction` is @defaultonly and cannot be the action of an entry
            (3, 4): data(); //~ error[type-error] the parameter `v` of `data` is not given
            (5, 6): data(16w1); //~ error[type-error] the argument is bit<16>, but bit<8> is expected
            (5, 6): one(); //~ error[keys] an entry with this key stands before
            (16w1, 2): one(); //~ error[type-error] this keyset is bit<16>, but it is compared with bit<8>
            (_, 1): one(); //~ error[invalid] an exact key needs a value
            (1 &&& 3, 7): one();
            (1..3, 8): one(); //~ error[invalid] a range cannot be matched by a key of kind exact
            (a, 9): one(); //~ error[invalid] the key of an entry must be a constant
        }
    }
    table t2 { key = { a: lpm; } actions = { one; } const entries = { 0x55 &&& 0x0f: one(); 1..2: one(); } }
    //~^ error[invalid] the mask of an lpm key must be ones followed by zeros
    //~^ error[invalid] a range cannot be matched by a key of kind lpm
    table t3 { key = { a: range; } actions = { one; } const entries = { 0x55 &&& 0x0f: one(); } } //~ error[invalid] a mask cannot be matched by a key of kind range
    table t4 { key = { a: optional; } actions = { one; } const entries = { 1..3: one(); } } //~ error[invalid] a range cannot be matched by a key of kind optional
    table t5 { key = { a: ternary; } actions = { one; } const entries = { priority = 5: 1: one(); } }
    //~^ error[invalid] `const entries` are matched in the order they are written and have no priorities
    table t6 { key = { a: exact; } actions = { one; } entries = { priority = 5: 1: one(); } } //~ error[unsupported] no key of this table is matched in a way that needs priorities
    table t7 { key = { a: ternary; } actions = { one; } entries = { 1: one(); priority = 5: 2: one(); } } //~ error[invalid] where one entry has a priority, the first one must have one
    table t8 { key = { a: ternary; } actions = { one; } entries = { priority = a: 1: one(); } } //~ error[expected] a priority must be a constant
    table t9 { actions = { one; } const entries = { 1: one(); } } //~ error[type-error] the table `t9` has no key, so it cannot have entries
    table t10 { actions = { one; } const entries = { 1: one(); } key = { a: exact; } } //~ error[type-error] the entries must come after the `key`
    table t11 { key = { a: exact; } const entries = { 1: one(); } actions = { one; } } //~ error[type-error] the entries must come after the `actions`
    apply { }
}
