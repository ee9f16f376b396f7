use super::*;

#[test]
fn names_of_keys_are_those_that_clients_know() {
    for (source, known) in [
        ("hdr.ipv4.dst", "hdr.ipv4.dst"),
        ("hdr.ipv4.$valid$", "hdr.ipv4.$valid"),
        ("hdr.stack[1].f", "hdr.stack$1.f"),
        ("hdr.f[7:0]", "hdr.f[7:0]"),
        ("hdr.stack[2].f[3:1]", "hdr.stack$2.f[3:1]"),
        ("odd[", "odd["),
    ] {
        assert_eq!(key_name(source), known);
    }
    assert!(is_slice("hdr.stack[2].f[3:1]") && !is_slice("hdr.stack[2].f") && !is_slice("x[:]"));
}
