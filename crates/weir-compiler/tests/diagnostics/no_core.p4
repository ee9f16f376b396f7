// Without core.p4: one error for everything that it declares.
parser p(packet_in b) { state start { transition accept; } }
    //~^ error[not-found] `#include <core.p4>` is missing: it declares `packet_in`, `exact` and `NoAction`
control c(inout bit<8> x) {
    action a() { }
    table t { key = { x: exact; } actions = { a; } }
    table u { actions = { NoAction; } }
    apply { t.apply(); u.apply(); }
}
