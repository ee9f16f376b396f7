// Defaults of a package's parameters fit its type arguments, written or inferred.
struct s1 { bool f; }
struct s2 { bit<32> f; }
control k1(inout s1 a, inout s1 b) { apply { } }
control k2(inout s2 a, inout s2 b) { apply { } }
control C<H, M>(inout H a, inout M b);
package P<H, M>(C<H, M> x = k1(), C<H, M> y = k2()); //~ error[type-error] the default of `y` is not of type control C<struct s1, struct s1>
P<_, _>() main;
