//! The text form: what is printed reads back as the same program, and nonsense is refused.

mod common;

use common::{CONTROL, PARSER, program};
use weir_ir::parse::parse;
use weir_ir::print::print;

#[test]
fn what_is_printed_reads_back() {
    let bodies = [
        (PARSER, CONTROL),
        (
            "on_error b4
             b0:
               lookahead %18 8
               extract h1 varbit %18
               advance 32w0x8
               packet_length %18
               goto b1
             b1 state \"start\":
               select (%2, %3) { (v0, _) : b2 (8w0x1, mask 8w0x2 8w0xf) : b2 (range 8w0x1 8w0x3, _) : b3 } b4
             b2:
               accept
             b3:
               goto b1
             b4:
               reject",
            "b0:
               %13 = eq %2, %3
               %10 = mux %13, %2, 8w0x7
               %14 = zero_extend %10
               branch %13 b1 b2
             b1:
               call x0 \"count\"(\"index\" = in (32w0x1))
               emit h0
               return
             b2:
               goto b1",
        ),
    ];
    for (parser, control) in bodies {
        let program = program(parser, control);
        let text = print(&program);
        assert_eq!(parse(&text).as_ref(), Ok(&program), "{text}");
        assert_eq!(print(&parse(&text).expect("reads")), text);
    }
}

#[test]
fn a_text_that_is_cut_off_is_refused() {
    let text = print(&program(PARSER, CONTROL));
    let lines: Vec<&str> = text.lines().collect();
    for count in 0..lines.len() {
        let read = parse(&lines[..count].join("\n"));
        let opened = lines[..count].iter().filter(|l| l.ends_with('{')).count();
        let closed = lines[..count].iter().filter(|l| l.trim() == "}").count();
        assert!(read.is_err() || opened == closed, "the first {count} lines");
    }
}

#[test]
fn an_error_names_the_line() {
    let text = print(&program(PARSER, CONTROL));
    for (number, line) in (1..).zip(text.lines()) {
        if line.contains("extract h0") {
            let error = parse(&text.replace("extract h0", "extract 5")).expect_err("no header");
            assert!(error.to_string().starts_with(&format!("line {number}:")), "{error}");
        }
    }
}

#[test]
fn a_program_that_breaks_an_invariant_is_refused() {
    let text = print(&program(PARSER, CONTROL));
    let error = parse(&text.replace("extract h0", "extract h7")).expect_err("there is no h7");
    assert!(error.to_string().contains("there is no header h7"), "{error}");
}
