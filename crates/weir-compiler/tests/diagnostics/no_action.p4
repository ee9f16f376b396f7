// NoAction must be what core.p4 says.
action NoAction(bit<8> x) { } //~ error[type-error] `NoAction` must be an action without parameters; core.p4 declares it
control c() {
    action a() { }
    table t { actions = { a; } }
    apply { t.apply(); }
}
