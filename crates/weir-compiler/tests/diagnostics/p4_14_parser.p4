parser start { //~ error[p4-14] this is P4_14, but weir compiles P4_16
    return ingress;
}
control ingress { apply(t); }
