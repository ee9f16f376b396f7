// Sizes that no target has.
#include <core.p4>
header h_t { bit<65536> x; }
header g_t { bit<65537> x; } //~ error[overlimit] 65537 bits are too many: the limit is 65536
typedef bit<40000> half_t;
control c(inout half_t x, inout h_t h) {
    apply {
        x = (half_t)(x ++ x); //~ error[overlimit] 80000 bits are too many: the limit is 65536
        x = (half_t)((x ++ 8w1) << 1);
        x = (half_t)(h.x ++ h.x); //~ error[overlimit] 131072 bits are too many: the limit is 65536
        x = 1 << 70000; //~ error[overlimit] the result has more than 65536 bits
    }
}
const int BIG = (1 << 65000) * (1 << 65000) * (1 << 65000); //~ error[overlimit] the result has more than 65536 bits
