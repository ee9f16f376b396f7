// Annotations.
#include <core.p4>
const bit<8> n = 1;
bit<8> f(in bit<8> x) { return x; }
@name const bit<8> a1 = 1; //~ error[invalid] @name needs a string: @name("…")
@name(5) const bit<8> a2 = 1; //~ error[invalid] @name needs a string: @name("…")
@noWarn() const bit<8> a3 = 1; //~ error[invalid] @noWarn needs the name of a warning in quotes
@a[1] @a[2] const bit<8> a4 = 1; //~ error[duplicate] the structured annotation @a stands twice
@a[1] @a(2) const bit<8> a5 = 1; //~ error[duplicate] @a is used both with and without structure
@a[k=1, k=2] const bit<8> a6 = 1; //~ error[duplicate] the key `k` stands twice
@a[error.NoError] const bit<8> a7 = 1; //~ error[type-error] a structured annotation holds numbers, strings and booleans, not error
@a[f(1)] const bit<8> a8 = 1; //~ error[type-error] the values of a structured annotation must be constants
struct s_t { @match(nothing) bit<8> x; } //~ error[type-error] @match needs one match kind: @match(ternary)
@name("good") @deprecated("a" ++ "b") const bit<8> a9 = 1;
