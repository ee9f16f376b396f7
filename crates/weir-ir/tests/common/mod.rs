//! A small program in the text form, and variations of it.

use weir_ir::{Block, Program};

const DECLARATIONS: &str = r#"weir 2 target "test"
error "NoError"
error "PacketTooShort"
error "HeaderTooShort"
error "ParserInvalidArgument"
enum "color" { "red" "green" }
header_type "h_t" { "a" : bits<8> unsigned "b" : bits<8> unsigned }
header_type "v_t" { "len" : bits<8> unsigned "data" : varbit<32> unsigned }
var %0 "P.$error$" : bits<32> error local
var %1 "hdr.h.$valid$" : bits<1> bool valid h0
var %2 "hdr.h.a" : bits<8> unsigned field h0 0
var %3 "hdr.h.b" : bits<8> unsigned field h0 1
var %4 "meta.x" : bits<8> unsigned shared
var %5 "meta.port" : bits<9> unsigned shared
var %6 "I.t.$hit$" : bits<1> bool local
var %7 "I.t.$action$" : bits<32> unsigned local
var %8 "I.t.$entry$" : bits<32> unsigned local
var %9 "I.t.set.v" : bits<8> unsigned action_parameter
var %10 "p" : bits<8> unsigned local
var %11 "q" : bits<8> unsigned local
var %12 "r" : bits<8> unsigned local
var %13 "f" : bits<1> bool local
var %14 "w" : bits<32> unsigned local
var %15 "hdr.v.$valid$" : bits<1> bool valid h1
var %16 "hdr.v.len" : bits<8> unsigned field h1 0
var %17 "hdr.v.data" : varbit<32> unsigned field h1 1
var %18 "P.n" : bits<32> unsigned local
header h0 "hdr.h" : y0 valid %1 fields (%2, %3)
header h1 "hdr.v" : y1 valid %15 fields (%16, %17)
shared "headers" "hdr" : struct "headers_t" ("h" header "h_t" ("a" bit 8 "b" bit 8) "v" header "v_t" ("len" bit 8 "data" varbit 32)) headers (h0 h1) {
  %1 "h.$valid$"
  %2 "h.a"
  %3 "h.b"
  %15 "v.$valid$"
  %16 "v.len"
  %17 "v.data"
}
shared "metadata" "meta" : struct "meta_t" ("x" bit 8 "port" bit 9) headers () {
  %4 "x"
  %5 "port"
}
value_set "P.vs" size 4 ( "" : 8 exact unsigned)
action "I.set" ( "v" : 8 unsigned)
action "NoAction" ()
extern "I.c" "counter"<>("size" = 32w0x4) {
}
table "I.t" {
  key ( "hdr.h.a" : 8 ternary unsigned)
  action a0 (%9)
  action a1 ()
  default 1 ()
  const_entries
  const entry 1 (ternary 8w0x1 8w0xff) 0 (8w0x2)
}
main
"#;

/// The program with these bodies.
pub fn program(parser: &str, control: &str) -> Program {
    let text = format!(
        "{DECLARATIONS}block \"parser\" parser \"P\" {{\nerror %0\n{parser}\n}}\nblock \"ingress\" control \"I\" {{\n{control}\n}}\n"
    );
    weir_ir::parse::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A parser that takes the header.
pub const PARSER: &str = "on_error b1
    b0:
      extract h0
      accept
    b1:
      reject";

/// A control that looks the header up.
pub const CONTROL: &str = "b0:
      lookup t0 (%2) hit %6 action %7 entry %8 b1
    b1:
      switch %7 { 32w0x1 : b3 } b2
    b2:
      enter_action a0
      %3 = %9
      leave
      goto b3
    b3:
      return";

/// A block by its role.
#[allow(dead_code)]
pub fn block<'p>(program: &'p mut Program, role: &str) -> &'p mut Block {
    program
        .blocks
        .iter_mut()
        .find(|b| b.role == role)
        .expect("a block of this role")
}
