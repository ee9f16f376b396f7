// The same with the second chip's way to say it.
#define SECOND_CHIP
#include "idle.p4"
