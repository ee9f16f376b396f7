//! What tests of the compiler have in common.

#![allow(dead_code)] // Not every test needs all of it.

use weir_compiler::{Compilation, Options, compile_source};

/// A v1model program; each part is P4 text that may be empty.
#[derive(Default)]
pub struct V1Model<'a> {
    /// Declarations before the headers.
    pub declarations: &'a str,
    /// Further fields of the struct of headers, which begins with `h_t h`.
    pub fields: &'a str,
    /// What follows the extraction of `h` in the parser's start state, and further states; empty:
    /// `transition accept;`.
    pub states: &'a str,
    /// Declarations of the ingress control.
    pub locals: &'a str,
    /// What the ingress control does.
    pub apply: &'a str,
    /// What the deparser does; empty: it emits all headers.
    pub emit: &'a str,
}

impl V1Model<'_> {
    /// The program's source.
    pub fn text(&self) -> String {
        let V1Model {
            declarations,
            fields,
            locals,
            apply,
            ..
        } = self;
        let states = match self.states {
            "" => "transition accept; }",
            states => states,
        };
        let emit = match self.emit {
            "" => "b.emit(hdr);",
            emit => emit,
        };
        format!(
            "#include <core.p4>
#include <v1model.p4>
{declarations}
header h_t {{ bit<32> x; bit<32> y; }}
struct headers_t {{ h_t h; {fields} }}
struct meta_t {{ }}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ b.extract(hdr.h); {states}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out b, in headers_t hdr) {{ apply {{ {emit} }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
        )
    }
}

/// Compiles a text for the architecture that it includes.
pub fn compile(name: &str, text: &str) -> Compilation {
    compile_source(name, text, &Options::default(), weir_arch::targets())
}

/// The first messages of a compilation.
pub fn messages(compiled: &Compilation) -> Vec<&str> {
    let all = compiled.diagnostics.list().iter();
    all.map(|d| &*d.message).take(5).collect()
}
