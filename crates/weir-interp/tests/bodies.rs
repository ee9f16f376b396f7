//! What bodies do to packets and variables.

use std::sync::Arc;
use weir_interp::testing::{BodyBuilder, NoRuntime, ProgramBuilder, constant};
use weir_interp::{Abort, Executable, Interpreter, Outcome, PacketState};
use weir_ir::{
    BinaryOp, BlockId, HeaderId, InstKind, Loc, Operand, Pattern, Rvalue, SelectCase, Terminator, Type, VarId,
};

const TOO_SHORT: u32 = 1;
const HEADER_TOO_SHORT: u32 = 4;
const TIMEOUT: u32 = 5;
const INVALID_ARGUMENT: u32 = 6;

fn goto(block: usize) -> Terminator {
    Terminator::Goto(BlockId::new(block))
}

/// Runs the only block of a program on bytes.
fn run(program: ProgramBuilder, bytes: &[u8]) -> (Outcome, PacketState) {
    let engine = Interpreter::new(Arc::new(program.finish()));
    let mut packet = PacketState::new(engine.program(), bytes.to_vec());
    let outcome = engine.run(0, &mut packet, &mut NoRuntime);
    (outcome, packet)
}

fn one_block_parser(program: &mut ProgramBuilder, insts: Vec<InstKind>) {
    program.parser("parser", |b| {
        b.block(|b| {
            insts
                .into_iter()
                .fold(b, |b, inst| b.inst(inst))
                .end(Terminator::Accept)
        })
    });
}

#[test]
fn extract_takes_fields_in_wire_order_and_moves_on() {
    let mut program = ProgramBuilder::new("t");
    let nibble = program.header("n", &[("a", Type::Bits(4))]);
    let wide = program.header("w", &[("b", Type::Bits(12)), ("c", Type::Bits(136))]);
    let extract = |header| InstKind::Extract {
        header,
        varbit_bits: None,
    };
    one_block_parser(&mut program, vec![extract(nibble), extract(wide)]);
    let fields: Vec<VarId> = [(nibble, 0), (wide, 0), (wide, 1)]
        .iter()
        .map(|(h, i)| program.field(*h, *i))
        .collect();
    let bytes: Vec<u8> = (0x12..0x12 + 20).collect();
    let (outcome, mut packet) = run(program, &bytes);
    assert_eq!(outcome, Outcome::Accept);
    assert_eq!(packet.frame.get_u64(fields[0]), 0x1);
    assert_eq!(packet.frame.get_u64(fields[1]), 0x213);
    assert_eq!(packet.frame.get(fields[2]).to_bytes(), bytes[2..19]);
    assert_eq!(packet.finish(), [0x25], "the last byte is payload");
}

#[test]
fn a_packet_that_is_too_short_leaves_the_header_invalid() {
    let mut program = ProgramBuilder::new("t");
    let header = program.header("h", &[("a", Type::Bits(16))]);
    let valid = program.program().headers[header].valid;
    one_block_parser(
        &mut program,
        vec![InstKind::Extract {
            header,
            varbit_bits: None,
        }],
    );
    let (outcome, packet) = run(program, &[1]);
    assert_eq!(outcome, Outcome::Reject(TOO_SHORT));
    assert!(!packet.frame.is_set(valid));
    assert_eq!(packet.cursor, 0);
}

fn varbit(bits: u128, bytes: &[u8]) -> (Outcome, Option<u32>) {
    let mut program = ProgramBuilder::new("t");
    let header = program.header("h", &[("a", Type::Bits(8)), ("v", Type::Varbit(32))]);
    one_block_parser(
        &mut program,
        vec![InstKind::Extract {
            header,
            varbit_bits: Some(constant(32, bits)),
        }],
    );
    let field = program.field(header, 1);
    let (outcome, packet) = run(program, bytes);
    (
        outcome,
        (outcome == Outcome::Accept).then(|| packet.frame.get(field).width()),
    )
}

#[test]
fn varbits_have_the_length_they_were_extracted_with() {
    let bytes = [0; 9];
    assert_eq!(varbit(0, &bytes), (Outcome::Accept, Some(0)));
    assert_eq!(varbit(24, &bytes), (Outcome::Accept, Some(24)));
    assert_eq!(varbit(40, &bytes), (Outcome::Reject(HEADER_TOO_SHORT), None));
    assert_eq!(varbit(12, &bytes), (Outcome::Reject(INVALID_ARGUMENT), None));
    assert_eq!(varbit(32, &bytes[..4]), (Outcome::Reject(TOO_SHORT), None));
    assert_eq!(varbit(0xffff_fff8, &bytes), (Outcome::Reject(TOO_SHORT), None));
}

#[test]
fn lookahead_stays_and_advance_moves() {
    let mut program = ProgramBuilder::new("t");
    let (x, y, n) = (program.local("x", 8), program.local("y", 4), program.local("n", 32));
    one_block_parser(
        &mut program,
        vec![
            InstKind::Lookahead { dst: x, offset: 4 },
            InstKind::Advance { bits: constant(32, 12) },
            InstKind::Lookahead { dst: y, offset: 0 },
            InstKind::PacketLength { dst: n },
        ],
    );
    let (outcome, packet) = run(program, &[0x12, 0x34]);
    assert_eq!(outcome, Outcome::Accept);
    assert_eq!([x, y, n].map(|v| packet.frame.get_u64(v)), [0x23, 0x4, 2]);
    let mut program = ProgramBuilder::new("t");
    one_block_parser(&mut program, vec![InstKind::Advance { bits: constant(32, 17) }]);
    assert_eq!(run(program, &[0x12, 0x34]).0, Outcome::Reject(TOO_SHORT));
}

#[test]
fn endless_parsers_time_out_and_endless_controls_are_stopped() {
    let mut program = ProgramBuilder::new("t");
    program.parser("parser", |b| b.block(|b| b.state("loop").end(goto(0))));
    assert_eq!(run(program, &[]).0, Outcome::Reject(TIMEOUT));
    let mut program = ProgramBuilder::new("t");
    program.control("c", |b| b.block(|b| b.end(goto(0))));
    assert_eq!(run(program, &[]).0, Outcome::Abort(Abort::InstructionBudget));
}

/// Which case of a select over `keys` is taken.
fn select(keys: Vec<Operand>, cases: Vec<Vec<Pattern>>) -> u64 {
    let mut program = ProgramBuilder::new("t");
    let taken = program.local("taken", 8);
    let count = cases.len();
    let cases = cases
        .into_iter()
        .enumerate()
        .map(|(i, patterns)| SelectCase {
            patterns,
            target: BlockId::new(i + 1),
            loc: Loc::default(),
        })
        .collect();
    let select = Terminator::Select {
        keys,
        cases,
        default: BlockId::new(count + 1),
    };
    program.parser("parser", |b| {
        let first = b.block(|b| b.end(select));
        (0..=count).fold(first, |body: BodyBuilder, i| {
            body.block(|b| b.set(taken, constant(8, i as u128)).end(Terminator::Accept))
        })
    });
    run(program, &[]).1.frame.get_u64(taken)
}

#[test]
fn selects_take_the_first_case_that_matches() {
    let c = |v| constant(8, v);
    let keys = vec![c(0x84), c(0xff)];
    let any = || Pattern::Any;
    assert_eq!(
        select(
            keys.clone(),
            vec![vec![Pattern::Exact(c(0x85)), any()], vec![any(), any()]]
        ),
        1
    );
    assert_eq!(
        select(
            keys.clone(),
            vec![vec![Pattern::Mask(c(0x04), c(0x0f)), any()], vec![any(), any()]]
        ),
        0
    );
    let range = |lo, hi, signed| vec![any(), Pattern::Range(c(lo), c(hi), signed)];
    assert_eq!(select(keys.clone(), vec![range(0, 3, false), range(0xf0, 3, true)]), 1);
    assert_eq!(
        select(keys.clone(), vec![range(0, 3, false), range(0xfe, 0xff, false)]),
        1
    );
    assert_eq!(select(keys, vec![range(0, 3, false)]), 1, "none matched");
}

#[test]
fn only_valid_headers_are_emitted_and_bits_need_no_bytes() {
    let mut program = ProgramBuilder::new("t");
    let headers: Vec<HeaderId> = ["a", "b", "c"]
        .iter()
        .map(|n| program.header(n, &[("f", Type::Bits(4)), ("g", Type::Bits(3))]))
        .collect();
    let valid = |p: &mut ProgramBuilder, i: usize| p.program().headers[headers[i]].valid;
    let (va, vc) = (valid(&mut program, 0), valid(&mut program, 2));
    let (f, g) = (program.field(headers[0], 0), program.field(headers[2], 1));
    program.control("deparser", |body| {
        body.block(|b| {
            let b = b
                .set(va, constant(1, 1))
                .set(vc, constant(1, 1))
                .set(f, constant(4, 0xf))
                .set(g, constant(3, 5));
            headers.iter().fold(b, |b, h| b.emit(*h)).end(Terminator::Return)
        })
    });
    let (_, mut packet) = run(program, &[0xff]);
    // 1111 000 | 0000 101 | 11111111, filled up with zeros
    assert_eq!(packet.finish(), [0b1111_0000, 0b0001_0111, 0b1111_1100]);
}

#[test]
fn expressions_mean_what_the_ir_says() {
    let c = constant;
    let cases: Vec<(Rvalue, u32, u128)> = vec![
        (Rvalue::Binary(BinaryOp::Concat, c(4, 0xa), c(8, 0xbc)), 12, 0xabc),
        (Rvalue::Binary(BinaryOp::Div, c(8, 7), c(8, 0)), 8, 0),
        (Rvalue::Binary(BinaryOp::ShrSigned, c(8, 0x80), c(8, 200)), 8, 0xff),
        (Rvalue::Binary(BinaryOp::Shl, c(8, 0xff), c(8, 4)), 8, 0xf0),
        (Rvalue::Binary(BinaryOp::LtSigned, c(8, 0xff), c(8, 0)), 1, 1),
        (Rvalue::Binary(BinaryOp::Lt, c(8, 0xff), c(8, 0)), 1, 0),
        (Rvalue::Binary(BinaryOp::SubSat, c(8, 1), c(8, 2)), 8, 0),
        (
            Rvalue::Slice {
                value: c(16, 0xabcd),
                hi: 11,
                lo: 4,
            },
            8,
            0xbc,
        ),
        (
            Rvalue::Insert {
                base: c(16, 0xabcd),
                hi: 7,
                lo: 4,
                value: c(4, 0),
            },
            16,
            0xab0d,
        ),
        (Rvalue::SignExtend(c(4, 0x8)), 8, 0xf8),
        (Rvalue::ZeroExtend(c(16, 0x1234)), 8, 0x34),
        (
            Rvalue::Mux {
                condition: c(1, 0),
                then: c(8, 1),
                otherwise: c(8, 2),
            },
            8,
            2,
        ),
    ];
    for (value, width, expected) in cases {
        let mut program = ProgramBuilder::new("t");
        let x = program.local("x", width);
        program.control("c", |b| b.block(|b| b.assign(x, value.clone()).end(Terminator::Return)));
        let (_, packet) = run(program, &[]);
        assert_eq!(packet.frame.get(x), &weir_ir::Bits::new(width, expected), "{value:?}");
    }
}

/// Answers every call by running the method of the instance on 5.
struct CallsMethod(VarId, VarId);

impl weir_interp::Runtime for CallsMethod {
    fn lookup(&mut self, _: weir_ir::TableId, _: &[weir_ir::Bits]) -> weir_interp::LookupOutcome {
        weir_interp::LookupOutcome {
            hit: false,
            action: 0,
            arguments: Arc::new([]),
            entry: 0,
        }
    }
    fn describe(
        &self,
        _: weir_ir::TableId,
        _: &[weir_ir::Bits],
        _: &weir_interp::LookupOutcome,
    ) -> weir_interp::LookupDetail {
        weir_interp::LookupDetail::default()
    }
    fn value_set_contains(&mut self, _: weir_ir::ValueSetId, _: &[weir_ir::Bits]) -> bool {
        false
    }
    fn call(&mut self, mut context: weir_interp::CallContext<'_>) -> weir_interp::CallEffect {
        let instance = context.call.instance.expect("a method");
        context.packet.frame.set_u64(self.0, 5);
        context.engine.run_method(instance, 0, context.packet, self);
        let result = context.packet.frame.get(self.1).clone();
        context.set(0, &result);
        weir_interp::CallEffect::Continue
    }
}

#[test]
fn an_extern_may_run_the_method_that_its_instance_brings() {
    let mut program = ProgramBuilder::new("t");
    let (x, input, output) = (program.local("x", 8), program.local("in", 8), program.local("out", 8));
    let instance = program.instance("ra", "RegisterAction", vec![], vec![]);
    let mut method = ProgramBuilder::new("m");
    let double = Rvalue::Binary(BinaryOp::Add, Operand::Var(input), Operand::Var(input));
    method.control("apply", |b| {
        b.block(|b| b.assign(output, double).end(Terminator::Return))
    });
    program.program().externs[instance].methods.push(weir_ir::Method {
        closure: 0,
        name: "apply".to_owned(),
        parameters: vec![("v".to_owned(), vec![input])],
        results: vec![output],
        body: method.finish().blocks.remove(0).body,
    });
    let out = weir_ir::ArgumentValue::Out(vec![x]);
    program.control("c", |b| {
        b.block(|b| b.call(Some(instance), "execute", vec![out]).end(Terminator::Return))
    });
    let engine = Interpreter::new(Arc::new(program.finish()));
    let mut packet = PacketState::new(engine.program(), vec![]);
    assert_eq!(
        engine.run(0, &mut packet, &mut CallsMethod(input, output)),
        Outcome::Return
    );
    assert_eq!(packet.frame.get_u64(x), 10);
}
