//! Externs of parsers whose results a dissector can compute: `InternetChecksum` of PSA and
//! `ParserCounter` of TNA. They depend on the packet alone.

use weir_ir::{Call, Program};

/// A method that `runtime.lua` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    /// The function of a parser.
    pub function: &'static str,
    /// Its arguments are one value: the bits of all of them. Else they are values of 8 bits.
    pub is_joined: bool,
}

/// The method of a call; `None` if a dissector cannot compute it.
pub(super) fn method(program: &Program, call: &Call) -> Option<Method> {
    let instance = &program.externs[call.instance?];
    let joined = |function| Method {
        function,
        is_joined: true,
    };
    let counter = |function| Method {
        function,
        is_joined: false,
    };
    let known = match (
        instance.type_name.as_str(),
        call.function.as_str(),
        call.arguments.len(),
    ) {
        ("InternetChecksum", "clear", 0) => joined("sum_clear"),
        ("InternetChecksum", "add", 1) => joined("sum_add"),
        ("InternetChecksum", "subtract", 1) => joined("sum_subtract"),
        ("InternetChecksum", "get", 0) => joined("sum_get"),
        ("InternetChecksum", "get_state", 0) => joined("sum_state"),
        ("InternetChecksum", "set_state", 1) => joined("sum_set_state"),
        ("ParserCounter", "set", 1) => counter("counter_set"),
        ("ParserCounter", "is_zero", 0) => counter("counter_is_zero"),
        ("ParserCounter", "is_negative", 0) => counter("counter_is_negative"),
        ("ParserCounter", "increment", 1) => counter("counter_increment"),
        ("ParserCounter", "decrement", 1) => counter("counter_decrement"),
        _ => return None,
    };
    Some(known)
}
