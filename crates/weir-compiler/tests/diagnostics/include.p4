#include "nowhere.p4" //~ error[preprocessor] `nowhere.p4` is not found
#include <core.p5> //~ error[preprocessor] `core.p5` is not found
#if 1 //~ error[preprocessor] this conditional has no `#endif`
const bit<8> a = 1;
