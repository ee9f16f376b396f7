// Variables, parameters, directions, l-values.
#include <core.p4>
extern box_t { box_t(); void open(); }
control sub(inout bit<8> x) { apply { } }
package pack_t(sub s); //~ error[type-error] a parameter cannot have the type control sub
void f1(in int x) { } //~ error[type-error] a parameter of type int has no direction
void f2(in box_t x) { } //~ error[type-error] a parameter of type extern box_t has no direction
void f3(sub x) { } //~ error[type-error] a parameter cannot have the type control sub
void f4(pack_t x) { } //~ error[type-error] a parameter cannot be a package
void f5(in void x) { } //~ error[syntax] expected a type, found `void`
int f6() { return 1; } //~ error[type-error] a function cannot return int
void f7(out bit<8> x = 1) { } //~ error[invalid] an `out` or `inout` parameter cannot have a default value
void f8(@optional in bit<8> x) { } //~ error[invalid] an optional parameter is allowed only where there is no body: in externs, packages, parser and control types
extern void f9(@optional in bit<8> x = 1); //~ error[invalid] an optional parameter cannot have a default value
action a1(bit<8> x, in bit<8> y) { } //~ error[type-error] the parameters of an action that the control plane sets (those without direction) come last
action a2(int x) { } //~ error[type-error] an action cannot have a parameter of type int
action a3(box_t x) { } //~ error[type-error] an action cannot have a parameter of an extern type
control c1(inout bit<8> x)(in bit<8> y) { apply { } } //~ error[invalid] a constructor parameter has no direction: its argument is known to the compiler
bit<8> nothing(in bit<8> x) { if (x == 1) { return 1; } } //~ error[type-error] `nothing` does not return a value on every path
void result(in bit<8> x) { return x; } //~ error[type-error] there is no result type, so no value can be returned
bit<8> none(in bit<8> x) { return; } //~ error[type-error] a value of type bit<8> must be returned
control c(in bit<8> x, inout bit<8> y, inout tuple<bit<8>, bit<8>> t) {
    const bit<8> LIMIT = 4;
    apply {
        x = 1; //~ error[type-error] this cannot be assigned to
        LIMIT = 3; //~ error[type-error] this cannot be assigned to
        4 = y; //~ error[syntax] expected a statement, found integer `4`
        y + 1 = 2; //~ error[syntax] expected an assignment or a call, found `+`
        box_t b; //~ error[type-error] a variable cannot have the type extern box_t
        int i; //~ error[type-error] a variable cannot have the type int
        string s; //~ error[type-error] a variable cannot have the type string
        sub k; //~ error[type-error] a variable cannot have the type control sub
        y; //~ error[syntax] expected an assignment or a call, found `;`
        break; //~ error[invalid] `break` can stand only in a loop
        continue; //~ error[invalid] `continue` can stand only in a loop
        action inner() { } //~ error[syntax] expected a statement, found `action`
    }
}
parser p(packet_in b, inout bit<8> y) {
    state start {
        return; //~ error[syntax] expected a statement of a parser state, `transition` or `}`, found `return`
        exit;
        switch (y) { 1: { } }
        transition accept;
    }
}
bit<8> leaves(in bit<8> x) { exit; } //~ error[invalid] `exit` can stand only in controls and actions
extern void defaulted(in bit<8> x = leaves(1)); //~ error[type-error] a default value must be known to the compiler
