//! Each invariant of the verifier, broken.

mod common;

use common::{CONTROL, PARSER, block, program};
use weir_ir::verify::{verify, verify_saved};
use weir_ir::*;

/// What the verifier says of the program after `break_it` was at it.
fn says(break_it: impl FnOnce(&mut Program), message: &str) {
    let mut program = program(PARSER, CONTROL);
    assert_eq!(verify(&program), Ok(()));
    break_it(&mut program);
    let errors = verify_saved(&program).expect_err(message);
    assert!(errors.iter().any(|e| e.to_string().contains(message)), "{errors:#?}");
}

/// Puts an instruction first into a block of the program.
fn first(role: &'static str, kind: InstKind) -> impl FnOnce(&mut Program) {
    move |p| {
        let loc = Loc::default();
        block(p, role).body.blocks[BlockId::new(0)]
            .insts
            .insert(0, Inst { kind, loc });
    }
}

/// Ends the first block of the control otherwise.
fn ends(role: &'static str, terminator: Terminator) -> impl FnOnce(&mut Program) {
    move |p| block(p, role).body.blocks[BlockId::new(0)].terminator = terminator
}

fn var(index: usize) -> VarId {
    VarId::new(index)
}

fn read(index: usize) -> Operand {
    Operand::Var(var(index))
}

fn bits(width: u32, value: u128) -> Operand {
    Operand::Const(Bits::new(width, value))
}

fn assign(dst: usize, value: Rvalue) -> impl FnOnce(&mut Program) {
    first("ingress", InstKind::Assign { dst: var(dst), value })
}

#[test]
fn every_id_names_something() {
    let goto = |b| Terminator::Goto(BlockId::new(b));
    says(ends("ingress", goto(77)), "there is no block b77");
    says(assign(99, Rvalue::Use(read(2))), "there is no variable %99");
    says(assign(10, Rvalue::Use(read(99))), "there is no variable %99");
    says(
        first(
            "ingress",
            InstKind::Emit {
                header: HeaderId::new(9),
            },
        ),
        "there is no header h9",
    );
    says(
        first("ingress", InstKind::Mark(Mark::EnterAction(ActionId::new(9)))),
        "there is no action",
    );
    says(
        |p| p.headers[HeaderId::new(0)].ty = HeaderTypeId::new(9),
        "its type does not exist",
    );
    says(
        |p| p.header_types[HeaderTypeId::new(1)].name = p.header_types[HeaderTypeId::new(0)].name.clone(),
        "there are two of this name",
    );
    says(
        |p| p.headers[HeaderId::new(0)].fields[0] = var(99),
        "there is no variable",
    );
    says(|p| p.shared[0].leaves[0].var = var(99), "there is no variable %99");
    says(|p| p.shared[0].headers.push(HeaderId::new(9)), "there is no header");
    says(
        |p| p.tables[TableId::new(0)].actions[0].action = ActionId::new(9),
        "there is no action",
    );
    says(
        |p| p.tables[TableId::new(0)].default_action.action = 9,
        "there is no action 9",
    );
    says(
        |p| p.tables[TableId::new(0)].direct.push(ExternId::new(9)),
        "there is no extern instance",
    );
    says(
        |p| p.tables[TableId::new(0)].actions[0].executes.push(ExternId::new(0)),
        "executes what is not direct to the table",
    );
    says(
        |p| p.tables[TableId::new(0)].implementation = Some(ExternId::new(9)),
        "there is no extern instance",
    );
    says(
        |p| block(p, "parser").body.on_error = Some(BlockId::new(9)),
        "there is no block b9",
    );
    says(
        |p| block(p, "ingress").body.blocks = Arena::default(),
        "at least one block",
    );
    let select = |pattern| Terminator::Select {
        keys: vec![read(2)],
        cases: vec![SelectCase {
            patterns: vec![pattern],
            target: BlockId::new(1),
            loc: Loc::default(),
        }],
        default: BlockId::new(1),
    };
    says(
        ends("parser", select(Pattern::ValueSet(ValueSetId::new(9)))),
        "there is no value set v9",
    );
    let call = |instance, value| {
        InstKind::Call(Call {
            instance,
            function: "f".into(),
            type_arguments: Vec::new(),
            arguments: vec![Argument {
                name: "x".into(),
                value,
            }],
            results: Vec::new(),
            entry: None,
            closure: 0,
            is_pure: false,
            calculation: None,
            execution: Execution::Inline,
        })
    };
    says(
        first("ingress", call(Some(ExternId::new(9)), ArgumentValue::Packet)),
        "there is no extern instance",
    );
    says(
        first("ingress", call(None, ArgumentValue::Extern(ExternId::new(9)))),
        "there is no extern instance",
    );
    says(
        first("ingress", call(None, ArgumentValue::Out(vec![var(99)]))),
        "there is no variable %99",
    );
    says(
        first(
            "ingress",
            call(None, ArgumentValue::In(vec![InLeaf::Header(HeaderId::new(9))])),
        ),
        "there is no header h9",
    );
}

#[test]
fn widths_agree() {
    // %2 has 8 bits, %14 32, %13 1, %17 is a varbit.
    says(assign(10, Rvalue::Use(read(14))), "%10 of Bits(8)");
    says(assign(10, Rvalue::Use(bits(9, 0))), "%10 of Bits(8)");
    says(assign(17, Rvalue::Use(read(14))), "%17 of Varbit(32)");
    says(assign(10, Rvalue::Unary(UnaryOp::Not, read(14))), "%10 of Bits(8)");
    says(
        assign(10, Rvalue::Binary(BinaryOp::Add, read(2), read(14))),
        "%10 of Bits(8)",
    );
    says(
        assign(10, Rvalue::Binary(BinaryOp::Eq, read(2), read(3))),
        "%10 of Bits(8)",
    );
    says(
        assign(13, Rvalue::Binary(BinaryOp::LtSigned, read(2), read(14))),
        "%13 of Bits(1)",
    );
    says(
        assign(10, Rvalue::Binary(BinaryOp::Shl, read(14), read(2))),
        "%10 of Bits(8)",
    );
    says(
        assign(10, Rvalue::Binary(BinaryOp::Concat, read(2), read(3))),
        "%10 of Bits(8)",
    );
    says(
        assign(
            10,
            Rvalue::Mux {
                condition: read(2),
                then: read(2),
                otherwise: read(3),
            },
        ),
        "%10 of Bits(8)",
    );
    says(
        assign(
            10,
            Rvalue::Mux {
                condition: read(13),
                then: read(2),
                otherwise: read(14),
            },
        ),
        "%10 of Bits(8)",
    );
    says(assign(10, Rvalue::VarbitEq(read(17), read(17))), "%10 of Bits(8)");
    says(
        first("parser", InstKind::Advance { bits: read(2) }),
        "must have 32 bits",
    );
    says(
        first("parser", InstKind::PacketLength { dst: var(2) }),
        "must be bits<32>",
    );
    says(
        first(
            "parser",
            InstKind::Extract {
                header: HeaderId::new(1),
                varbit_bits: Some(read(2)),
            },
        ),
        "must have 32 bits",
    );
    says(
        first(
            "parser",
            InstKind::Extract {
                header: HeaderId::new(0),
                varbit_bits: Some(read(14)),
            },
        ),
        "a header with 0 varbits",
    );
    let lookup = |key, keys: usize| {
        Terminator::Lookup(Lookup {
            table: TableId::new(0),
            keys: vec![key; keys],
            hit: var(6),
            action: var(7),
            entry: var(8),
            next: BlockId::new(1),
        })
    };
    says(ends("ingress", lookup(read(14), 1)), "must have 8 bits");
    says(ends("ingress", lookup(read(2), 2)), "2 keys, but the table has 1");
    let select = |patterns| Terminator::Select {
        keys: vec![read(2)],
        cases: vec![SelectCase {
            patterns,
            target: BlockId::new(1),
            loc: Loc::default(),
        }],
        default: BlockId::new(1),
    };
    says(
        ends("parser", select(vec![Pattern::Exact(bits(9, 1))])),
        "must have 8 bits",
    );
    says(
        ends("parser", select(vec![Pattern::Range(bits(8, 1), bits(9, 1), false)])),
        "must have 8 bits",
    );
    says(
        ends("parser", select(vec![Pattern::Any, Pattern::Any])),
        "patterns for 2 of 1 keys",
    );
    let entry = |change: fn(&mut Entry)| move |p: &mut Program| change(&mut p.tables[TableId::new(0)].entries[0]);
    says(entry(|e| e.matches.clear()), "0 matches for 1 keys");
    says(
        entry(|e| e.matches[0] = KeyMatch::Exact(Bits::new(9, 0))),
        "does not have its 8 bits",
    );
    says(
        entry(|e| {
            e.matches[0] = KeyMatch::Lpm {
                value: Bits::new(8, 0),
                prefix_length: 9,
            }
        }),
        "does not have its 8 bits",
    );
    says(
        entry(|e| e.action.arguments.clear()),
        "arguments of [] bits for parameters of [8]",
    );
    says(
        entry(|e| e.action.arguments[0] = Bits::new(9, 0)),
        "arguments of [9] bits",
    );
    says(
        |p| p.tables[TableId::new(0)].actions[0].parameters.clear(),
        "has other parameters",
    );
    says(
        |p| p.tables[TableId::new(0)].actions[0].parameters[0] = var(14),
        "must be bits<8>",
    );
}

#[test]
fn conditions_have_one_bit() {
    let (then, otherwise) = (BlockId::new(1), BlockId::new(1));
    says(
        ends(
            "ingress",
            Terminator::Branch {
                condition: read(2),
                then,
                otherwise,
            },
        ),
        "must have 1 bits",
    );
    says(|p| p.headers[HeaderId::new(0)].valid = var(2), "must be bits<1>");
    for (change, width) in [
        ((|l| l.hit = var(2)) as fn(&mut Lookup), 1),
        (|l| l.action = var(2), 32),
        (|l| l.entry = var(2), 32),
    ] {
        let broken = |p: &mut Program| {
            if let Terminator::Lookup(l) = &mut block(p, "ingress").body.blocks[BlockId::new(0)].terminator {
                change(l);
            }
        };
        says(broken, &format!("must be bits<{width}>"));
    }
}

#[test]
fn headers_are_as_their_types_say() {
    says(
        |p| p.headers[HeaderId::new(0)].fields.truncate(1),
        "1 fields, but its type has 2",
    );
    says(|p| p.vars[var(2)].ty = Type::Bits(9), "but its type says");
    says(|p| p.vars[var(2)].kind = VarKind::Local, "does not know it");
    says(|p| p.headers[HeaderId::new(0)].fields.swap(0, 1), "does not know it");
    says(
        |p| p.enums[EnumId::new(0)].values = Some(Vec::new()),
        "as many values as members",
    );
}

#[test]
fn packet_operations_stand_where_they_may() {
    let header = HeaderId::new(0);
    says(
        first(
            "ingress",
            InstKind::Extract {
                header,
                varbit_bits: None,
            },
        ),
        "extract outside a parser",
    );
    says(
        first("ingress", InstKind::Lookahead { dst: var(2), offset: 0 }),
        "lookahead outside a parser",
    );
    says(
        first("ingress", InstKind::Advance { bits: bits(32, 1) }),
        "advance outside a parser",
    );
    says(
        first("ingress", InstKind::PacketLength { dst: var(14) }),
        "packet_length outside a parser",
    );
    says(first("parser", InstKind::Emit { header }), "emit in a parser");
}

#[test]
fn parsers_and_controls_end_differently() {
    says(
        |p| block(p, "parser").body.error = None,
        "only a parser, has an error variable",
    );
    says(
        |p| block(p, "parser").body.on_error = None,
        "only a parser, has an error variable",
    );
    says(
        |p| block(p, "ingress").body.error = Some(var(0)),
        "only a parser, has an error variable",
    );
    says(|p| block(p, "parser").body.error = Some(var(2)), "must be bits<32>");
    says(ends("parser", Terminator::Return), "a parser cannot return");
    says(ends("ingress", Terminator::Accept), "a control cannot accept or reject");
    says(ends("ingress", Terminator::Reject), "a control cannot accept or reject");
    let select = Terminator::Select {
        keys: Vec::new(),
        cases: Vec::new(),
        default: BlockId::new(1),
    };
    says(ends("ingress", select), "select outside a parser");
}

#[test]
fn slices_lie_within_their_values() {
    for (hi, lo) in [(8, 1), (0, 1), (7, 1), (31, 24)] {
        says(assign(10, Rvalue::Slice { value: read(2), hi, lo }), "%10 of Bits(8)");
    }
    let insert = |hi, lo, value| Rvalue::Insert {
        base: read(2),
        hi,
        lo,
        value,
    };
    says(assign(10, insert(8, 5, bits(4, 0))), "%10 of Bits(8)");
    says(assign(10, insert(3, 0, bits(5, 0))), "%10 of Bits(8)");
    says(assign(14, insert(3, 0, bits(4, 0))), "%14 of Bits(32)");
}

#[test]
fn cases_are_distinct() {
    let next = BlockId::new(1);
    let switch = |cases: Vec<(Bits, BlockId)>| Terminator::Switch {
        value: read(2),
        cases,
        default: next,
    };
    let case = |width| (Bits::new(width, 1), next);
    says(ends("ingress", switch(vec![case(8), case(8)])), "stands twice");
    says(ends("ingress", switch(vec![case(9)])), "has not the width of the value");
}

#[test]
fn actions_are_where_they_may_be() {
    says(
        |p| p.tables[TableId::new(0)].actions[1].table_only = true,
        "the default action is for entries only",
    );
    says(
        |p| p.tables[TableId::new(0)].actions[0].default_only = true,
        "for the default only",
    );
}

#[test]
fn only_the_first_hundred_errors_are_kept() {
    let mut program = program(PARSER, CONTROL);
    let kind = InstKind::Emit {
        header: HeaderId::new(9),
    };
    let inst = Inst {
        kind,
        loc: Loc::default(),
    };
    block(&mut program, "ingress").body.blocks[BlockId::new(0)].insts = vec![inst; 1000];
    assert_eq!(verify(&program).expect_err("broken").len(), 100);
}

#[test]
fn a_variable_has_one_owner() {
    let header = HeaderId::new(0);
    says(
        |p| p.vars[var(1)].kind = VarKind::Local,
        "its validity %1 is no validity of it",
    );
    says(|p| p.vars[var(10)].kind = VarKind::Valid { header }, "it is no Valid");
    says(
        |p| p.vars[var(10)].kind = VarKind::Field { header, index: 0 },
        "it is no Field",
    );
    says(|p| p.shared[1].leaves[0].var = var(5), "is in metadata as `x` already");
    says(
        |p| p.shared[1].leaves[0].var = var(2),
        "`x` is %2, which is in headers as `h.a` already",
    );
    says(|p| p.shared[1].leaves[0].var = var(10), "which is not shared");
    says(|p| p.shared[1].headers.push(header), "header h0 is in headers already");
    says(|p| p.shared[1].role = "headers".into(), "two groups of this role");
    says(|p| p.shared[1].leaves[1].path = "x".into(), "`x` stands twice");
}

#[test]
fn the_data_of_an_action_are_its_own() {
    says(
        |p| p.tables[TableId::new(0)].actions[0].parameters[0] = var(10),
        "%10 is no action parameter",
    );
    says(
        |p| {
            let table = p.tables[TableId::new(0)].clone();
            p.tables.push(table);
        },
        "%9 is a parameter of another action of I.t",
    );
}

#[test]
fn a_variable_that_is_not_shared_stands_in_one_block() {
    let assign = |dst| InstKind::Assign {
        dst: var(dst),
        value: Rvalue::Use(bits(8, 1)),
    };
    says(
        |p| {
            first("parser", assign(10))(p);
            first("ingress", assign(10))(p);
        },
        "%10 is not shared, and stands in block parser too",
    );
    says(
        |p| first("parser", assign(9))(p),
        "%9 is not shared, and stands in block parser too",
    );
}

#[test]
fn a_varbit_is_not_calculated_with() {
    let varbit = read(17);
    says(
        assign(14, Rvalue::ZeroExtend(varbit.clone())),
        "with operands of [Varbit(32)]",
    );
    says(
        assign(17, Rvalue::Unary(UnaryOp::Not, varbit.clone())),
        "with operands of [Varbit(32)]",
    );
    says(
        assign(13, Rvalue::Binary(BinaryOp::Eq, varbit.clone(), varbit.clone())),
        "with operands of [Varbit(32), Varbit(32)]",
    );
    says(assign(13, Rvalue::VarbitEq(read(14), varbit)), "with operands of");
    says(
        first(
            "parser",
            InstKind::Extract {
                header: HeaderId::new(1),
                varbit_bits: None,
            },
        ),
        "a header with 1 varbits",
    );
}

#[test]
fn sizes_are_bounded_and_places_exist() {
    let nested = TypeSpec::Stack(
        Box::new(TypeSpec::Stack(Box::new(TypeSpec::Bit(8)), u32::MAX)),
        u32::MAX,
    );
    says(|p| p.shared[1].ty = nested, "a type has more than");
    says(
        |p| {
            for field in &mut p.header_types[HeaderTypeId::new(0)].fields {
                field.ty = Type::Bits(1 << 20);
            }
        },
        "it has more than",
    );
    says(
        |p| {
            block(p, "ingress").loc = Loc {
                file: 3,
                line: 1,
                column: 1,
            };
        },
        "its place is in file 3",
    );
    says(
        |p| p.vars[var(4)].display = Display::Enum(EnumId::new(9)),
        "shown as enum e9",
    );
}

#[test]
fn a_match_is_of_the_kind_of_its_key() {
    let bits = |value| Bits::new(8, value);
    let matches = |m| move |p: &mut Program| p.tables[TableId::new(0)].entries[0].matches = vec![m];
    says(matches(KeyMatch::Exact(bits(1))), "is exact, but the key is ternary");
    says(
        matches(KeyMatch::Ternary {
            value: bits(3),
            mask: bits(1),
        }),
        "has bits that it does not compare",
    );
}

/// A method with one block.
fn method(terminator: Terminator, insts: Vec<Inst>) -> Method {
    let mut body = Body::default();
    body.blocks.push(BasicBlock {
        state: None,
        insts,
        terminator,
        loc: Loc::default(),
    });
    Method {
        name: "apply".into(),
        closure: 0,
        parameters: Vec::new(),
        results: Vec::new(),
        body,
    }
}

/// A call that runs the methods of the program's instance.
fn execute() -> Inst {
    let call = Call {
        instance: Some(ExternId::new(0)),
        function: "execute".into(),
        type_arguments: Vec::new(),
        arguments: Vec::new(),
        results: Vec::new(),
        entry: None,
        closure: 0,
        is_pure: false,
        calculation: None,
        execution: Execution::Inline,
    };
    Inst {
        kind: InstKind::Call(call),
        loc: Loc::default(),
    }
}

#[test]
fn a_method_does_not_call_itself_or_wait() {
    let loc = Loc::default();
    let recursive = method(Terminator::Return, vec![execute()]);
    says(
        |p| p.externs[ExternId::new(0)].methods.push(recursive),
        "its methods may call themselves",
    );
    let emit = InstKind::Emit {
        header: HeaderId::new(0),
    };
    let emits = method(Terminator::Return, vec![Inst { kind: emit, loc }]);
    says(
        |p| p.externs[ExternId::new(0)].methods.push(emits),
        "a lookup or `emit` in a method",
    );
}

#[test]
fn errors_have_their_numbers() {
    says(|p| p.errors[0] = "Other".into(), "the first error is not `NoError`");
    says(|p| p.errors.push("NoError".into()), "an error stands twice");
    says(
        |p| p.errors.truncate(1),
        "there is no error `PacketTooShort`, which this fails with",
    );
}

/// What is wrong with a saved program with this control.
fn says_of(control: &str) -> Vec<String> {
    let mut good = program(PARSER, CONTROL);
    let text = print::print(&good);
    let (head, _) = text.split_once("block \"ingress\"").expect("an ingress");
    let text = format!("{head}block \"ingress\" control \"I\" {{\n{control}\n}}\n");
    match parse::parse(&text) {
        Ok(program) => {
            good = program;
            verify_saved(&good).map_or_else(|e| e.iter().map(ToString::to_string).collect(), |()| Vec::new())
        }
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn data_of_an_action_are_read_where_it_was_chosen_and_nowhere_else() {
    let lookup = "lookup t0 (%2) hit %6 action %7 entry %8";
    let good = [
        format!("b0: {lookup} b1\nb1: switch %7 {{ 32w0x0 : b2 32w0x1 : b3 }} b3\nb2: %3 = %9 goto b3\nb3: return"),
        // Whatever is between.
        format!(
            "b0: {lookup} b1\nb1: branch %6 b2 b2\nb2: switch %7 {{ 32w0x0 : b3 }} b5\n\
             b3: goto b4\nb4: %3 = %9 goto b5\nb5: return"
        ),
    ];
    for control in good {
        assert_eq!(says_of(&control), [] as [&str; 0], "{control}");
    }
    let bad = [
        "b0: %3 = %9 return".to_owned(),
        format!("b0: {lookup} b1\nb1: %3 = %9 return"),
        // The other action.
        format!("b0: {lookup} b1\nb1: switch %7 {{ 32w0x1 : b2 }} b3\nb2: %3 = %9 goto b3\nb3: return"),
        // After both.
        format!("b0: {lookup} b1\nb1: switch %7 {{ 32w0x0 : b2 }} b3\nb2: goto b3\nb3: %3 = %9 return"),
        // On one path there was no lookup.
        format!(
            "b0: branch %13 b1 b2\nb1: {lookup} b2\nb2: switch %7 {{ 32w0x0 : b3 }} b4\n\
             b3: %3 = %9 goto b4\nb4: return"
        ),
        // The table was looked up once more.
        format!(
            "b0: {lookup} b1\nb1: lookup t0 (%3) hit %13 action %14 entry %8 b2\n\
             b2: switch %7 {{ 32w0x0 : b3 }} b4\nb3: %3 = %9 goto b4\nb4: return"
        ),
        // Something else wrote the variable.
        format!("b0: {lookup} b1\nb1: %7 = 32w0x0 switch %7 {{ 32w0x0 : b2 }} b3\nb2: %3 = %9 goto b3\nb3: return"),
    ];
    for control in bad {
        let says = says_of(&control);
        assert!(
            says.iter().any(|e| e.contains("reads data of action I.set")),
            "{control}: {says:?}"
        );
    }
}

#[test]
fn roles_of_variables_in_saved_programs_are_those_that_a_compiler_gives() {
    says(
        |p| {
            let shared = Var {
                name: "e".into(),
                ty: Type::Bits(32),
                display: Display::Unsigned,
                kind: VarKind::Shared,
            };
            let v = p.vars.push(shared);
            let leaf = SharedLeaf {
                path: "e".into(),
                var: v,
                annotations: Vec::new(),
            };
            p.shared[1].leaves.push(leaf);
            block(p, "parser").body.error = Some(v);
        },
        "which is no local variable",
    );
    says(
        |p| drop(p.shared[1].leaves.pop()),
        "it is shared, but in no group of shared variables",
    );
    says(
        |p| p.header_types[HeaderTypeId::new(0)].fields[0].name = "z".into(),
        "it is shared as `h.a`, but it is `z` of its header",
    );
}

/// A method that assigns a variable.
fn assigning(dst: usize, value: Operand) -> Method {
    let kind = InstKind::Assign {
        dst: var(dst),
        value: Rvalue::Use(value),
    };
    let loc = Loc::default();
    method(Terminator::Return, vec![Inst { kind, loc }])
}

#[test]
fn methods_count_as_readers_of_action_data_and_writers_of_the_choice() {
    // The method reads the data, where nothing was chosen.
    says(
        |p| {
            p.externs[ExternId::new(0)].methods.push(assigning(10, read(9)));
            block(p, "ingress").body.blocks[BlockId::new(0)].insts.push(execute());
        },
        "it reads data of action I.set",
    );
    // The method writes the variable that is switched on.
    says(
        |p| {
            p.externs[ExternId::new(0)].methods.push(assigning(7, bits(32, 0)));
            block(p, "ingress").body.blocks[BlockId::new(1)].insts.push(execute());
        },
        "it reads data of action I.set",
    );
}

#[test]
fn a_lookup_writes_local_variables() {
    let control = "b0: lookup t0 (%2) hit %1 action %7 entry %8 b1\nb1: return";
    let says = says_of(control);
    assert!(
        says[0].contains("the lookup writes %1, which is no local variable"),
        "{says:?}"
    );
}

#[test]
fn a_group_has_all_fields_of_its_headers_but_padding() {
    let field = |p: &Program| p.shared[0].leaves.iter().position(|leaf| leaf.var == var(3));
    let says = |name: &str| {
        let mut program = program(PARSER, CONTROL);
        let at = field(&program).expect("it is there");
        program.shared[0].leaves.remove(at);
        program.header_types[HeaderTypeId::new(0)].fields[1].name = name.to_owned();
        verify_saved(&program)
    };
    let errors = says("b").expect_err("it is missing");
    assert!(
        errors[0].message.contains("header hdr.h is in it, but not its `b`"),
        "{errors:?}"
    );
    assert_eq!(says(FLEXIBLE_PADDING), Ok(()));
}
