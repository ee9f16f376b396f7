//! The IR that programs become.

use insta::assert_snapshot;
use std::path::Path;
use weir_compiler::{Options, compile_file, compile_source};
use weir_ir::Program;

/// A v1model program whose ingress control has these locals and this apply block.
fn compiled(locals: &str, apply: &str) -> Program {
    let text = format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ }}
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    state start {{ b.extract(hdr.h); transition select(hdr.h.a) {{ 0: reject; default: accept; }} }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out b, in headers_t hdr) {{ apply {{ b.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    );
    let compiled = compile_source("test.p4", &text, &Options::default(), weir_arch::targets());
    let messages: Vec<&String> = compiled.diagnostics.list().iter().map(|d| &d.message).collect();
    compiled.program.unwrap_or_else(|| panic!("{messages:?}"))
}

/// The code of one of its blocks, as text.
fn body(program: &Program, role: &str) -> String {
    let block = program
        .blocks
        .iter()
        .find(|b| b.role == role)
        .expect("a block of this role");
    weir_ir::print::print_body(program, &block.body)
}

#[test]
fn a_parser() {
    assert_snapshot!(body(&compiled("", ""), "parser"), @r#"
    error %0:P.$error$
    on_error b2
    b0:
      goto b1 @6:8
    b1 state "start":
      extract h0 @7:19
      select (%2:hdr.h.a) { (8w0x0) : b2 @7:66 (_) : b3 @7:77 } b4 @7:48
    b2:
      reject @6:8
    b3:
      accept @6:8
    b4:
      %0:P.$error$ = 32w0x2 @7:48
      goto b2 @7:48
    "#);
}

#[test]
fn a_table() {
    let program = compiled(
        "action set(bit<8> v) { hdr.h.b = v; }
         table t { key = { hdr.h.a: exact; } actions = { set; NoAction; } default_action = NoAction(); }",
        "if (t.apply().hit) { hdr.h.a = hdr.h.a + 1; }",
    );
    assert_snapshot!(body(&program, "ingress"), @r#"
    b0:
      lookup t0 (%2:hdr.h.a) hit %20:I.t.$hit$ action %21:I.t.$action$ entry %22:I.t.$entry$ b1 @13:17
    b1:
      switch %21:I.t.$action$ { 32w0x1 : b2 } b6 @13:17
    b2:
      enter_action a1 @2/46:8
      leave @2/46:8
      goto b3 @13:17
    b3:
      %24 = %20:I.t.$hit$ @13:13
      branch %24 b4 b5 @13:13
    b4:
      %25 = add %2:hdr.h.a, 8w0x1 @13:44
      %2:hdr.h.a = %25 @13:34
      goto b5 @13:34
    b5:
      return @10:9
    b6:
      enter_action a0 @11:12
      %3:hdr.h.b = %23:I.t.set.v @11:28
      leave @11:28
      goto b3 @13:17
    "#);
}

#[test]
fn a_deparser() {
    assert_snapshot!(body(&compiled("", ""), "deparser"), @r#"
    b0:
      emit h0 @16:53
      return @16:9
    "#);
}

#[test]
fn what_is_printed_reads_back() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests");
    let mut programs = 0;
    for directory in ["language", "v1model", "psa"] {
        for file in std::fs::read_dir(tests.join(directory)).expect("programs") {
            let path = file.expect("a file").path();
            if path.extension().is_none_or(|e| e != "p4") {
                continue;
            }
            let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
            let mut program = compiled
                .program
                .unwrap_or_else(|| panic!("{} does not compile", path.display()));
            for optimized in [false, true] {
                if optimized {
                    let observes = weir_arch::observes(&program);
                    weir_ir::passes::optimize(&mut program, &observes);
                }
                if let Err(errors) = weir_ir::verify::verify(&program) {
                    panic!("{}: {errors:?}", path.display());
                }
                let text = weir_ir::print::print(&program);
                let read = weir_ir::parse::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                assert!(read == program, "{} (optimized: {optimized}) changes", path.display());
            }
            programs += 1;
        }
    }
    assert!(programs > 20, "only {programs} programs");
}
