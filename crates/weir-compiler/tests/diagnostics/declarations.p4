// Types, constants, enums and what their parts may be.
#include <core.p4>
extern box_t { box_t(); void open(); }
const box_t A = 1; //~ error[type-error] a constant cannot have the type extern box_t
const void B = 1; //~ error[syntax] expected a type, found `void`
const bit<8> C = 16w1; //~ error[type-error] the initial value is bit<16>, but bit<8> is expected
const bit<8> D = 256; //~ warning[overflow] 256 does not fit into bit<8> and becomes 0
const bit<4> E = -9;
const int<8> F = 200; //~ warning[overflow] 200 does not fit into int<8> and becomes -56
header h1 { varbit<8> a; varbit<8> b; } //~ error[type-error] a header has at most one varbit field
header h2 { tuple<bit<8>> a; } //~ error[type-error] the field `a` of a header cannot have the type tuple<bit<8>>
header h3 { h1 a; } //~ error[type-error] the field `a` of a header cannot have the type header h1
header_union u1 { bit<8> a; } //~ error[type-error] the field `a` of a header union cannot have the type bit<8>
struct s1 { int a; } //~ error[type-error] the field `a` of a struct cannot have the type int
struct s2 { box_t a; } //~ error[type-error] the field `a` of a struct cannot have the type extern box_t
enum bit<8> e1 { a = 1, b } //~ error[type-error] a member of an enum with a representation needs a value
enum e2 { a = 1 } //~ error[type-error] an enum without a representation cannot give its members values
enum bit<8> e3 { a = 256 } //~ error[type-error] 256 does not fit into bit<8>
enum bool e4 { a = true } //~ error[type-error] an enum is represented by bit<W> or int<W>, not by bool
type bit<8> port_t;
enum port_t e5 { a = 1 } //~ error[type-error] an enum is represented by bit<W> or int<W>, not by a `type`
enum bit<8> e6 { a = true } //~ error[type-error] the value of the member is bool, but bit<8> is expected
typedef void nothing_t; //~ error[syntax] expected a type, found `void`
type h1 new_h; //~ error[type-error] `type` makes a new type of bool, bit<W> or int<W>, not of header h1
typedef bit<-1> negative_t; //~ error[invalid] a width cannot be negative, this is -1
typedef bit<100000> wide_t; //~ error[overlimit] 100000 bits are too many: the limit is 65536
typedef int<0> none_t; //~ error[invalid] a signed number has at least 1 bit, this is 0
typedef bit<(C == 1)> odd_t; //~ error[expected] a width must be a constant known to the compiler
typedef h1[5000] long_t; //~ error[overlimit] 5000 elements are too many: the limit is 4096
typedef h1[-1] short_t; //~ error[overlimit] the size of a stack cannot be negative, this is -1
typedef error[4] errors_t; //~ error[type-error] a stack holds headers or header unions, not error
typedef tuple<void> tuple_t; //~ error[type-error] a tuple cannot hold void
typedef list<box_t> list_t; //~ error[type-error] a list cannot hold extern box_t
typedef C not_a_type; //~ error[type-error] `C` is not a type
struct pair<A, B> { A a; B b; } //~ error[type-error] the field `a` of struct pair<void, bit<8>> cannot have the type void
struct p1 { pair p; } //~ error[type-error] the generic type struct pair<_, _> needs type arguments
struct p2 { pair<bit<8>> p; } //~ error[type-error] `pair` has 2 type parameter(s), but 1 argument(s) are given
struct p3 { bit<8> x; }
struct p4 { p3<bit<8>> p; } //~ error[type-error] `p3` has 0 type parameter(s), but 1 argument(s) are given
header holds<T> { T v; } //~ error[type-error] the field `v` of header holds<tuple<bit<8>>> cannot have the type tuple<bit<8>>
struct p5 { holds<tuple<bit<8>>> p; }
struct p6 { pair<void, bit<8>> p; }
const pair<bit<8>, _> G = { 1, 2 }; //~ error[type-error] the type struct pair<bit<8>, _> must be written without `_` here
bit<8> value(in bit<8> x) { return x; }
const bit<8> H = value(1); //~ error[type-error] the value of a constant must be known to the compiler
extern self_t { self_t(); void m(in self_t other); } //~ error[unsupported] the methods of `self_t` cannot mention `self_t` itself
extern odd_t2 { other_t(); void odd_t2(); void m(); void m(); }
    //~^ error[syntax] method `other_t` has no result type
    //~^ error[invalid] a constructor has no result type
    //~^ error[duplicate] `m` is declared twice with the same parameters
