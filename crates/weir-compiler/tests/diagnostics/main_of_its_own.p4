// A `main` of a package that the program declares itself is for another compiler: what is warned of is something else.
#include <tna.p4>

control Empty();
control Nothing() { apply { bit<8> x = 256; } } //~ warning[overflow] 256 does not fit into bit<8> and becomes 0
package Own(Empty only);
Own(Nothing()) main;
