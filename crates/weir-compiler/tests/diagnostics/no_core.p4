// Without core.p4.
parser p(packet_in b) { state start { transition accept; } } //~ error[not-found] there is no type `packet_in` here
control c(inout bit<8> x) {
    action a() { }
    table t { key = { x: exact; } actions = { a; } }
    //~^ error[not-found] there is no match kind `exact`
    //~^ error[not-found] the table `t` has no default action, and there is no `NoAction`
    table u { actions = { NoAction; } } //~ error[not-found] there is no action `NoAction` here
    apply { t.apply(); u.apply(); }
}
