// Fields, elements and bits.
#include <core.p4>
header h_t { bit<8> x; }
header v_t { varbit<8> x; }
header_union u_t { h_t h; v_t v; }
struct s_t { h_t h; h_t[4] hs; u_t u; tuple<bit<8>, bit<8>> t; }
enum plain { one }
control c(inout s_t s, inout bit<8> a, inout bit<2> i, inout int<8> n, inout bool p) {
    apply {
        s.hs[4].x = 1; //~ error[type-error] the stack has 4 elements, so there is none at 4
        s.hs[-1].x = 1; //~ error[type-error] the index -1 is negative
        s.hs[p].x = 1; //~ error[type-error] an index must be a number, but it is bool
        s.hs[i].x = 1;
        a = s.t[2]; //~ error[type-error] the tuple has 2 elements, so there is none at 2
        a = s.t[i]; //~ error[type-error] the index of a tuple must be a constant
        a = a[0]; //~ error[type-error] only stacks and tuples can be indexed, not bit<8>
        a = (bit<8>)a[8:0]; //~ error[type-error] the value has 8 bits, so there is no bit 8
        a = (bit<8>)a[0:1]; //~ error[type-error] the first index of a slice is the higher one, but 0 is less than 1
        a = (bit<8>)a[1:-1]; //~ error[type-error] the bit index -1 is negative
        a = (bit<8>)a[i:0]; //~ error[type-error] the bounds of a slice must be constants
        a = (bit<8>)p[0:0]; //~ error[type-error] bits can be taken only from bit<W> and int<W>, not from bool
        a = (bit<8>)5[1:0]; //~ error[type-error] bits can be taken only from numbers of known width, not from an int
        a = (bit<8>)a[6+:4]; //~ error[type-error] the slice reaches beyond the 8 bits of the value
        a = (bit<8>)a[i+:0]; //~ error[type-error] a slice has at least one bit
        a = (bit<8>)a[p+:1]; //~ error[type-error] a bit index must be a number, but it is bool
        a = (bit<8>)p[0+:1]; //~ error[type-error] bits can be taken only from bit<W> and int<W>, not from bool
        a = (bit<8>)a[0+:i]; //~ error[type-error] the bounds of a slice must be constants
        a = (bit<8>)a[-1+:1]; //~ error[expected] the index and width of a slice cannot be negative
        s.hs.next = s.h; //~ error[type-error] `next` of a stack can be used only in a parser
        s.h = s.hs.last; //~ error[type-error] `last` of a stack can be used only in a parser
        a = (bit<8>)s.hs.lastIndex; //~ error[type-error] `lastIndex` of a stack can be used only in a parser
        s.hs.foo = 1; //~ error[type-error] a stack has no member `foo`
        s.hs.push_front(); //~ error[type-error] `push_front` takes 1 argument(s), but 0 are given
        s.hs.push_front(-1); //~ error[type-error] `push_front` takes a number that is not negative
        s.hs.push_front(a); //~ error[type-error] `push_front` takes a constant number
        s.h.isValid<bit<8>>(); //~ error[type-error] `isValid` has no type parameters
        s.h.isValid(1); //~ error[type-error] `isValid` takes 0 argument(s), but 1 are given
        p = s.isValid(); //~ error[type-error] struct s_t has no field `isValid`
        s.setValid(); //~ error[type-error] struct s_t has no field `setValid`
        s.u.setValid(); //~ error[type-error] header_union u_t has no field `setValid`
        ((h_t){ x = 1 }).setValid(); //~ error[type-error] `setValid` changes what it is called on, but this cannot be changed
        a = (bit<8>)plain.one.minSizeInBits(); //~ error[type-error] enum plain has no size
        a(); //~ error[type-error] `a` cannot be called
        p(); //~ error[type-error] `p` cannot be called
        a = a.isValid(); //~ error[type-error] bit<8> has no member `isValid`
    }
}
control d(in s_t s) { apply { s.h.setInvalid(); s.hs.pop_front(1); } }
    //~^ error[type-error] `setInvalid` changes what it is called on, but this cannot be changed
    //~^ error[type-error] `pop_front` changes what it is called on, but this cannot be changed
