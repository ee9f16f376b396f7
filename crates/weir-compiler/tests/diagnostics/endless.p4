// A parser that cannot end.
#include <core.p4>
parser p(packet_in b) { //~ error[unreachable] the parser `p` never reaches accept or reject
    state start { transition next; }
    state next { transition start; }
}
parser fine(packet_in b) {
    bit<8> n = 0;
    state start { transition select(n) { 1: start; } }
}
