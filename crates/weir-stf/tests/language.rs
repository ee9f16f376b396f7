//! What directives mean, on programs made by hand.

use proptest::prelude::*;
use std::sync::Arc;
use weir_interp::testing::{constant, in_value};
use weir_ir::{
    ArgumentValue, Bits, BlockId, ConstValue, InLeaf, MatchKind, Operand, Pattern, Program, Rvalue, SelectCase,
    Terminator, Type, TypeSpec, VarId,
};
use weir_stf::{Report, RunOptions, parse, run};
use weir_switch::testing::V1Builder;

/// A header `h` with fields `a` and `b` of 8 bits; table `C.t` over `h.a` and `h.b`, with actions
/// `C.set(port, value)`, which writes `b`, and `C.drop`, the default.
fn program(kinds: [MatchKind; 2]) -> Program {
    let mut v1 = V1Builder::new();
    let p = &mut v1.program;
    let header = p.header("h", &[("a", Type::Bits(8)), ("b", Type::Bits(8))]);
    let (a, b) = (p.field(header, 0), p.field(header, 1));
    let set = p.action("C.set", &[("port", 9), ("value", 8)]);
    let drop = p.action("C.drop", &[]);
    let table = p.table(
        "C.t",
        &[("hdr.h[0].a", 8, kinds[0]), ("hdr.h[0].b", 8, kinds[1])],
        &[set, drop],
    );
    let unit = ConstValue::Enum {
        enum_name: "CounterType".into(),
        member: "packets".into(),
    };
    let direct = p.instance("C.hits", "direct_counter", vec![], vec![("type", unit.clone())]);
    p.program().tables[table.table].direct.push(direct);
    let size = || ConstValue::Bits(Bits::new(32, 8));
    let counter = p.instance("C.seen", "counter", vec![], vec![("size", size()), ("type", unit)]);
    let register = p.instance("C.last", "register", vec![TypeSpec::Bit(8)], vec![("size", size())]);
    let spec = v1.standard("egress_spec");
    v1.parser(|body| body.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |body| {
        body.block(|b| b.emit(header).end(Terminator::Return))
    });
    let read = |v: VarId| in_value(Operand::Var(v));
    v1.control("ingress", |body| {
        let data = ArgumentValue::In(vec![InLeaf::Value(Operand::Var(a)), InLeaf::Value(Operand::Var(b))]);
        body.block(|block| {
            block
                .call(Some(counter), "count", vec![in_value(constant(32, 1))])
                .call(Some(register), "write", vec![in_value(constant(32, 2)), read(a)])
                .call(None, "digest", vec![in_value(constant(32, 1)), data])
                .lookup(&table, vec![Operand::Var(a), Operand::Var(b)], 1)
        })
        .block(|b| {
            b.end(Terminator::Switch {
                value: Operand::Var(table.action),
                cases: vec![(Bits::new(32, 0), BlockId::new(2))],
                default: BlockId::new(3),
            })
        })
        .block(|block| {
            block
                .set(spec, Operand::Var(table.parameters[0][0]))
                .set(b, Operand::Var(table.parameters[0][1]))
                .end(Terminator::Return)
        })
        .block(|b| b.set(spec, constant(9, 511)).end(Terminator::Return))
    });
    v1.finish()
}

fn exact() -> [MatchKind; 2] {
    [MatchKind::Exact; 2]
}

fn report(kinds: [MatchKind; 2], text: &str) -> Report {
    run(Arc::new(program(kinds)), text, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn passes(kinds: [MatchKind; 2], text: &str) {
    let failures: Vec<String> = report(kinds, text).failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{text}\n{}", failures.join("\n"));
}

fn fails(kinds: [MatchKind; 2], text: &str, with: &str) {
    let failures: Vec<String> = report(kinds, text).failures.iter().map(ToString::to_string).collect();
    assert!(
        failures.iter().any(|f| f.contains(with)),
        "wanted `{with}`, got {failures:?}"
    );
}

#[test]
fn entries_are_added_by_suffixes_of_names() {
    passes(
        exact(),
        "add t h[0].a:0x01 b:2 set(port:7, value:0xff)\npacket 0 01 02 03\nexpect 7 01ff 03 $",
    );
    passes(
        exact(),
        "ADD C.t \"hdr.h$0.a\":1 set(7, 9)\nPacket 0 0100\nExpect 7 0109",
    );
    fails(
        exact(),
        "add t c:1 set(7, 9)",
        "no key of the table is called `c`; there are `hdr.h[0].a`, `hdr.h[0].b`",
    );
    fails(
        exact(),
        "add u a:1 set(7, 9)",
        "line 1: expected a directive that can be done, got no table",
    );
    fails(
        exact(),
        "add t a:1 set(7)",
        "expected 2 arguments for `C.set` (port, value), got 1",
    );
    fails(exact(), "add t a:0x100 set(7, 9)", "`0x100` does not fit in 8 bits");
    fails(
        exact(),
        "add t a:1 set(7, 9)\nadd t a:1 set(7, 9)",
        "line 2: expected a directive that can be done",
    );
}

#[test]
fn stars_are_prefixes_and_masks_and_the_higher_priority_wins() {
    let lpm = [MatchKind::Lpm, MatchKind::Exact];
    passes(
        lpm,
        "add t a:0x1* set(1,1)\nadd t a:0x12 set(2,2)\npacket 0 1200\npacket 0 1300\nexpect 1 1301\nexpect 2 1202",
    );
    passes(lpm, "add t a:0x10/3 set(1,1)\npacket 0 1f00\nexpect 1 1f01");
    let ternary = [MatchKind::Ternary; 2];
    passes(
        ternary,
        "add t 5 a:0x*1 set(1,1)\nadd t 6 b:0x0* set(2,2)\npacket 0 f102\nexpect 2 f102 $",
    );
    passes(
        ternary,
        "add t 7 a:0x*1 set(1,1)\nadd t 6 b:0x0* set(2,2)\npacket 0 f102\nexpect 1 f101",
    );
    let other = [MatchKind::Range, MatchKind::Optional];
    passes(
        other,
        "add t 1 a:5..9 b:* set(1,1)\nadd t 2 a:7 b:7 set(2,2)\npacket 0 0707\npacket 0 0708\nexpect 2 0702\nexpect 1 0701",
    );
}

#[test]
fn as_many_packets_go_out_as_are_expected_on_ports_that_are_named() {
    let add = "add t a:1 set(7, 9)\n";
    fails(
        exact(),
        &format!("{add}packet 0 0100\nexpect 7 0109\nexpect 7"),
        "expected on port 7 any packet, got no packet",
    );
    fails(
        exact(),
        &format!("{add}packet 0 0100\npacket 0 0100\nexpect 7"),
        "expected no more packets on port 7, got 1: 0109",
    );
    fails(
        exact(),
        "packet 0 00\nsetdefault t set(0, 1)\npacket 0 0000",
        "expected no more packets on port 0, got 1",
    );
    passes(exact(), &format!("{add}packet 0 0100"));
    fails(
        exact(),
        &format!("{add}packet 0 0100\nno_packet"),
        "expected no packet, got 1",
    );
    fails(exact(), &format!("{add}packet 0 0100 aa\nexpect 7 0109 $"), "byte 2");
}

#[test]
fn one_of_several_things_may_be_expected() {
    let add = "add t a:1 set(7, 9)\n";
    passes(exact(), &format!("{add}packet 0 0100\nexpect 7 ff | 7 0109 $ | drop"));
    passes(
        exact(),
        &format!("{add}packet 0 0200\nexpect 7 0109 | drop\nexpect_drop ingress-drop"),
    );
    fails(
        exact(),
        &format!("{add}packet 0 0100\nexpect 7 ff | 8 00"),
        "expected on port 7 ff or on port 8 00, got 0109",
    );
    fails(exact(), "expect_drop ingress-drop", "got no drops");
    fails(
        exact(),
        "expect_drop nothing",
        "expected one of ingress-drop, egress-drop",
    );
}

#[test]
fn state_can_be_read_and_written() {
    passes(
        exact(),
        "add t a:1 set(7, 9) = $e1\npacket 0 0100\npacket 0 0500\nexpect 7\n\
         check_counter seen(1) packets == 2\ncheck_counter hits($e1) == 1\ncheck_counter seen(1) > 1\n\
         counter_read seen 1 == 2\ncounter_write seen 1 9 0\ncounter_read seen 1 == 9\n\
         register_read last 2 == 5\nregister_write last 2 0xff\nregister_read last 2 >= 255\n\
         register_reset last\nregister_read last 2 == 0",
    );
    fails(exact(), "register_read last 2 == 1", "expected last[2] == 1, got 0");
    fails(
        exact(),
        "check_counter seen(1) != 0",
        "expected seen(1) packets != 0, got 0",
    );
    fails(exact(), "register_read last 8", "index 8 is beyond its end");
    let read = report(exact(), "packet 0 0300\nregister_read last 2");
    assert_eq!(read.notes, [(2, "3".to_owned())]);
}

#[test]
fn digests_are_compared_field_by_field() {
    passes(exact(), "packet 0 0102\nexpect_digest digest f0:1 f1:0x*2");
    fails(
        exact(),
        "packet 0 0102\nexpect_digest digest f0:2",
        "expected f0 to be 2, got 0x1",
    );
    fails(exact(), "expect_digest digest", "expected a digest `digest`, got none");
}

#[test]
fn a_switch_can_be_configured_without_packets() {
    let switch = weir_switch::Switch::new(Arc::new(program(exact()))).expect("loads");
    let text = "add t a:1 set(7, 9)\nadd t a:1 set(7, 9)\npacket 0 00\nmirroring_add 1 2";
    let (mut switch, failures) = weir_stf::configure(switch, text).expect("parses");
    assert_eq!(failures.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 3]);
    assert!(switch.replication().session(1).is_some());
    assert_eq!(switch.inject(0, &[1, 0], 0)[0].port, 7);
    assert!(weir_stf::configure(switch, "fly").is_err());
}

#[test]
fn tables_can_be_emptied() {
    passes(
        exact(),
        "add t a:1 set(7, 9)\nremove all\npacket 0 0100\nexpect_drop ingress-drop\nwait",
    );
}

#[test]
fn entries_can_be_changed_and_deleted() {
    passes(
        exact(),
        "add t a:1 set(7, 9) = $e\npacket 0 0100\nmodify t $e set(8, 5)\npacket 0 0100\n\
         delete t $e\npacket 0 0100\nexpect_drop ingress-drop\nexpect 7 0109 $\nexpect 8 0105 $",
    );
    fails(
        exact(),
        "delete t $e",
        "expected an entry that was added as `= e`, got none",
    );
}

#[test]
fn packets_may_wait_in_queues() {
    let text = "setdefault t set(3, 0)\nport_rate 3 pps 1000\nqueue_capacity 3 1\n\
                receive 0 0100\nreceive 0 0200\nexpect_drop queue-full\nnow +1ms\ndrain\nexpect 3 0100 $";
    passes(exact(), text);
}

#[test]
fn traces_are_recorded_on_demand() {
    let options = RunOptions { trace: true };
    let report = run(Arc::new(program(exact())), "packet 0 0100", &options).expect("runs");
    let text = report.traces[0].1.render(Default::default(), |_| None);
    assert_eq!(report.traces[0].0, 1);
    assert!(text.contains("dropped: ingress-drop"), "{text}");
}

#[test]
fn value_sets_are_filled() {
    let mut v1 = V1Builder::new();
    let header = v1.program.header("h", &[("a", Type::Bits(8))]);
    let set = v1.program.value_set("P.vs", &[8], 4);
    let (field, spec) = (v1.program.field(header, 0), v1.standard("egress_spec"));
    let case = SelectCase {
        patterns: vec![Pattern::ValueSet(set)],
        target: BlockId::new(1),
        loc: Default::default(),
    };
    v1.parser(|b| {
        b.block(|b| {
            let keys = vec![Operand::Var(field)];
            b.extract(header).end(Terminator::Select {
                keys,
                cases: vec![case],
                default: BlockId::new(2),
            })
        })
        .block(|b| b.assign(spec, Rvalue::Use(constant(9, 5))).end(Terminator::Accept))
        .block(|b| b.end(Terminator::Accept))
    });
    let program = Arc::new(v1.finish());
    let text = "value_set vs 7\npacket 1 07\npacket 1 08\nexpect 5\nexpect 0";
    assert!(
        run(program.clone(), text, &RunOptions::default())
            .expect("runs")
            .passed()
    );
    let full = run(program, "value_set vs 7\nvalue_set vs 7", &RunOptions::default()).expect("runs");
    assert!(
        full.failures[0].to_string().contains("exists already"),
        "{}",
        full.failures[0]
    );
}

#[test]
fn lines_that_are_no_directives_are_told_with_their_place() {
    let errors =
        parse("packet 0 123\n\n# fine\nfly away\nadd t 5\nexpect 1 0g\nmeter_set_rates m 1 0.1\npacket 99999999999 00")
            .expect_err("six lines are wrong");
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(
        texts[0].starts_with("1:10: expected an even number of digits"),
        "{texts:?}"
    );
    assert!(texts[1].starts_with("4:1: expected a directive"), "{texts:?}");
    assert_eq!(errors.iter().map(|e| e.line).collect::<Vec<_>>(), [1, 4, 5, 6, 7, 8]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z_]{0,12}[ :()$|*0-9a-fx.,=<>/&\"#]{0,30}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_directive_makes_the_runner_panic(
        lines in proptest::collection::vec(
            (prop_oneof![
                Just("add t"), Just("setdefault t"), Just("check_counter seen"), Just("register_write last"),
                Just("counter_write seen"), Just("mc_node_create"), Just("mirroring_add"), Just("group x"),
                Just("value_set x"), Just("packet"), Just("expect"), Just("now"), Just("port_rate"),
            ], "( [0-9]{1,20}| a:[0-9*x.]{1,6}| set\\([0-9, ]{0,6}\\)){0,4}"), 0..6),
    ) {
        let text: Vec<String> = lines.iter().map(|(k, rest)| format!("{k}{rest}")).collect();
        let _ = run(Arc::new(program(exact())), &text.join("\n"), &RunOptions::default());
    }
}
