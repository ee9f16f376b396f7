// The name under which programs for the reference software switch include the PSA.
#include "../psa.p4"
