//! What the passes make of small bodies.

mod common;

use common::{CONTROL, PARSER, block, program};
use insta::assert_snapshot;
use weir_ir::passes::{Scope, VarSet, eliminate_dead, fold_paths, optimize, propagate, unread_fields};
use weir_ir::print::print_body;
use weir_ir::verify::verify;
use weir_ir::{BlockId, HeaderId, MatchKind, Program, TableId, VarId};

/// The body of a block.
fn shown(program: &mut Program, role: &str) -> String {
    assert_eq!(verify(program), Ok(()));
    let body = block(program, role).body.clone();
    print_body(program, &body)
}

/// A control after constant folding and copy propagation.
fn propagated(control: &str) -> String {
    let mut program = program(PARSER, control);
    propagate(&mut program);
    shown(&mut program, "ingress")
}

/// A control after dead code has gone; the architecture reads `meta.x` and `meta.port`.
fn live(control: &str) -> String {
    let mut program = program(PARSER, control);
    let observed = observed(&program);
    eliminate_dead(&mut program, &observed);
    shown(&mut program, "ingress")
}

fn observed(program: &Program) -> VarSet {
    let mut observed = VarSet::new(program.vars.len());
    observed.insert(VarId::new(4));
    observed.insert(VarId::new(5));
    observed
}

#[test]
fn constants_are_folded() {
    assert_snapshot!(propagated(
        "b0:
           %10 = 8w0x7
           %11 = add %10, 8w0x1
           %12 = mul %11, %11
           %13 = lt %12, %11
           %4 = mux %13, 8w0x1, %12
           branch %13 b1 b2
         b1:
           return
         b2:
           return"
    ), @r#"
    b0:
      %10:p = 8w0x7
      %11:q = 8w0x8
      %12:r = 8w0x40
      %13:f = 1w0x0
      %4:meta.x = 8w0x40
      goto b2
    b1:
      return
    b2:
      return
    "#);
}

#[test]
fn a_copy_is_good_until_either_side_is_written() {
    assert_snapshot!(propagated(
        "b0:
           %10 = %2
           %4 = %10
           %2 = 8w0x1
           %11 = %10
           %10 = 8w0x2
           %12 = %11
           %3 = %10
           return"
    ), @r#"
    b0:
      %10:p = %2:hdr.h.a
      %4:meta.x = %2:hdr.h.a
      %2:hdr.h.a = 8w0x1
      %11:q = %10:p
      %10:p = 8w0x2
      %12:r = %11:q
      %3:hdr.h.b = 8w0x2
      return
    "#);
}

#[test]
fn a_chain_of_copies_does_not_outlive_its_source() {
    assert_snapshot!(propagated(
        "b0:
           %10 = %3
           %11 = %10
           %12 = %11
           %3 = 8w0x9
           %4 = %12
           return"
    ), @r#"
    b0:
      %10:p = %3:hdr.h.b
      %11:q = %3:hdr.h.b
      %12:r = %3:hdr.h.b
      %3:hdr.h.b = 8w0x9
      %4:meta.x = %12:r
      return
    "#);
}

#[test]
fn a_swap_stays_a_swap() {
    assert_snapshot!(propagated(
        "b0:
           %10 = %2
           %2 = %3
           %3 = %10
           return"
    ), @r#"
    b0:
      %10:p = %2:hdr.h.a
      %2:hdr.h.a = %3:hdr.h.b
      %3:hdr.h.b = %10:p
      return
    "#);
}

#[test]
fn what_is_known_ends_with_its_block() {
    assert_snapshot!(propagated(
        "b0:
           %10 = 8w0x1
           branch %13 b1 b2
         b1:
           %10 = 8w0x2
           goto b2
         b2:
           %4 = %10
           return"
    ), @r#"
    b0:
      %10:p = 8w0x1
      branch %13:f b1 b2
    b1:
      %10:p = 8w0x2
      goto b2
    b2:
      %4:meta.x = %10:p
      return
    "#);
}

#[test]
fn a_call_with_effects_may_change_what_is_shared() {
    assert_snapshot!(propagated(
        "b0:
           %4 = 8w0x1
           %10 = 8w0x2
           call x0 \"count\"(\"index\" = in (32w0x1))
           %11 = %4
           %12 = %10
           return"
    ), @r#"
    b0:
      %4:meta.x = 8w0x1
      %10:p = 8w0x2
      call x0 "count"("index" = in (32w0x1))
      %11:q = %4:meta.x
      %12:r = 8w0x2
      return
    "#);
}

#[test]
fn a_call_writes_its_results() {
    assert_snapshot!(propagated(
        "b0:
           %10 = 8w0x1
           %11 = 8w0x2
           call x0 \"read\"(\"value\" = out (%10))
           %4 = %10
           %3 = %11
           return"
    ), @r#"
    b0:
      %10:p = 8w0x1
      %11:q = 8w0x2
      call x0 "read"("value" = out (%10:p))
      %4:meta.x = %10:p
      %3:hdr.h.b = 8w0x2
      return
    "#);
}

#[test]
fn an_extraction_writes_the_header() {
    let mut program = program(
        "on_error b1
         b0:
           %2 = 8w0x1
           %10 = %3
           extract h0
           %11 = %2
           %12 = %10
           accept
         b1:
           reject",
        CONTROL,
    );
    propagate(&mut program);
    assert_snapshot!(shown(&mut program, "parser"), @r#"
    error %0:P.$error$
    on_error b1
    b0:
      %2:hdr.h.a = 8w0x1
      %10:p = %3:hdr.h.b
      extract h0
      %11:q = %2:hdr.h.a
      %12:r = %10:p
      accept
    b1:
      reject
    "#);
}

#[test]
fn what_nobody_reads_is_removed() {
    assert_snapshot!(live(
        "b0:
           %10 = 8w0x1
           %11 = add %10, 8w0x1
           %4 = 8w0x1
           %4 = 8w0x2
           %12 = 8w0x3
           return"
    ), @r#"
    b0:
      %4:meta.x = 8w0x2
      return
    "#);
}

#[test]
fn what_another_block_reads_is_kept() {
    assert_snapshot!(live(
        "b0:
           %10 = 8w0x1
           %11 = 8w0x1
           branch %13 b1 b2
         b1:
           %11 = 8w0x5
           goto b2
         b2:
           %4 = %10
           return"
    ), @r#"
    b0:
      %10:p = 8w0x1
      branch %13:f b1 b2
    b1:
      goto b2
    b2:
      %4:meta.x = %10:p
      return
    "#);
}

#[test]
fn a_loop_keeps_what_its_next_round_reads() {
    assert_snapshot!(live(
        "b0:
           %10 = 8w0x0
           goto b1
         b1:
           %13 = eq %10, 8w0x5
           branch %13 b3 b2
         b2:
           %10 = add %10, 8w0x1
           %11 = %10
           goto b1
         b3:
           return"
    ), @r#"
    b0:
      %10:p = 8w0x0
      goto b1
    b1:
      %13:f = eq %10:p, 8w0x5
      branch %13:f b3 b2
    b2:
      %10:p = add %10:p, 8w0x1
      goto b1
    b3:
      return
    "#);
}

#[test]
fn what_is_read_after_an_error_is_kept() {
    // %10 is overwritten before it is read, unless the extraction fails.
    let mut program = program(
        "on_error b1
         b0:
           %10 = 8w0x1
           %11 = 8w0x1
           extract h0
           %10 = 8w0x2
           %4 = %10
           accept
         b1:
           %4 = %10
           reject",
        CONTROL,
    );
    let observed = observed(&program);
    eliminate_dead(&mut program, &observed);
    assert_snapshot!(shown(&mut program, "parser"), @r#"
    error %0:P.$error$
    on_error b1
    b0:
      %10:p = 8w0x1
      extract h0
      %10:p = 8w0x2
      %4:meta.x = %10:p
      accept
    b1:
      %4:meta.x = %10:p
      reject
    "#);
}

#[test]
fn calls_with_effects_stay() {
    assert_snapshot!(live(
        "b0:
           call x0 \"count\"(\"index\" = in (32w0x1))
           call x0 \"read\"(\"value\" = out (%10))
           return"
    ), @r#"
    b0:
      call x0 "count"("index" = in (32w0x1))
      call x0 "read"("value" = out (%10:p))
      return
    "#);
}

#[test]
fn an_emitted_header_is_read() {
    assert_snapshot!(live(
        "b0:
           %2 = 8w0x1
           %16 = 8w0x1
           emit h0
           return"
    ), @r#"
    b0:
      %2:hdr.h.a = 8w0x1
      emit h0
      return
    "#);
}

#[test]
fn all_passes_together() {
    let mut program = program(
        PARSER,
        "b0:
           %10 = 8w0x1
           %13 = eq %10, 8w0x1
           branch %13 b1 b2
         b1:
           %11 = add %10, 8w0x4
           goto b3
         b2:
           %11 = %2
           goto b3
         b3:
           goto b4
         b4:
           %4 = %11
           return",
    );
    optimize(&mut program, &|role, _| role == "metadata");
    assert_snapshot!(shown(&mut program, "ingress"), @r#"
    b0:
      %4:meta.x = 8w0x5
      return
    "#);
}

#[test]
fn passes_come_to_rest() {
    let mut once = program(PARSER, CONTROL);
    optimize(&mut once, &|_, _| true);
    let mut twice = once.clone();
    optimize(&mut twice, &|_, _| true);
    assert_eq!(once, twice);
}

#[test]
fn fields_that_nobody_reads() {
    let program = program(PARSER, "b0:\n%4 = %2\nreturn");
    let unread: Vec<usize> = unread_fields(&program).iter().map(|v| v.index()).collect();
    // %2 is read; %3, %16 and %17 are not.
    assert_eq!(unread, [3, 16, 17]);
    let fields = &program.headers[HeaderId::new(0)].fields;
    assert_eq!(fields[1], VarId::new(3));
    let program = common::program(PARSER, "b0:\nemit h0\nreturn");
    let unread: Vec<usize> = unread_fields(&program).iter().map(|v| v.index()).collect();
    assert_eq!(unread, [16, 17]);
}

#[test]
fn a_body_of_many_branches_does_not_grow_without_bound() {
    const IFS: usize = 20_000;
    // Where one comparison holds, all others are decided: each of these paths could be a copy.
    let ifs: String = (0..IFS)
        .map(|i| {
            let (at, value) = (2 * i, i % 256);
            let (then, next) = (at + 1, at + 2);
            format!(
                "b{at}:\n%13 = eq %2, 8w{value:#x}\nbranch %13 b{then} b{next}\n\
                 b{then}:\n%4 = add %4, 8w{value:#x}\ngoto b{next}\n"
            )
        })
        .collect();
    let mut program = program(PARSER, &format!("{ifs}b{}:\nreturn", 2 * IFS));
    let mut body = block(&mut program, "ingress").body.clone();
    let mut inputs = VarSet::new(program.vars.len());
    [2, 4].into_iter().for_each(|v| inputs.insert(VarId::new(v)));
    let scope = Scope {
        vars: &program.vars,
        headers: &program.headers,
        inputs: &inputs,
    };
    fold_paths(scope, &mut body, 8);
    let insts: usize = body.blocks.iter().map(|(_, block)| block.insts.len()).sum();
    assert!((2 * IFS..200_000).contains(&insts), "{insts}");
}

#[test]
fn a_lookup_with_masks_costs_by_the_entries_that_its_table_has_room_for() {
    let mut program = program(PARSER, CONTROL);
    let lookup = block(&mut program, "ingress").body.blocks[BlockId::new(0)]
        .terminator
        .clone();
    let table = TableId::new(0);
    for (size, cost) in [(None, 17), (Some(0), 17), (Some(640), 11), (Some(1 << 40), 1001)] {
        program.tables[table].size = size;
        assert_eq!(weir_ir::cost::terminator(&program, &lookup), cost, "{size:?}");
    }
    program.tables[table].keys[0].match_kind = MatchKind::Exact;
    assert_eq!(weir_ir::cost::terminator(&program, &lookup), 1);
}
