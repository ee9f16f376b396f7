//! Safe functions are sound, for all arguments that safe code can pass.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::pipeline::{Exit, Pipeline};
use weir_ir::{BasicBlock, Bits, Body, Loc, MatchKind, Program, TableId, Terminator, ValueSetId, VarId};
use weir_jit::{CallArguments, Compiled, Frame, Host, Indexes, LookedUp, Machine, Options, Suspended, TAILROOM};
use weir_table::fast::{Epochs, FastTable, Reader};
use weir_table::{KeySpec, TableSpec};

/// A table that qualifies as an array: with `a(bit<9>)` and `b()`, by a key of nine bits.
const PROGRAM: &str = r#"weir 2 target ""
var %0 "port" : bits<9> unsigned local
var %1 "hit" : bits<1> bool local
var %2 "action" : bits<32> unsigned local
var %3 "entry" : bits<32> unsigned local
var %4 "p" : bits<9> unsigned action_parameter
action "a" ( "p" : 9 unsigned)
action "b" ()
table "t" {
  key ( "port" : 9 exact unsigned)
  action a0 (%4:p)
  action a1 ()
  default 1 ()
}
"#;

fn program() -> Arc<Program> {
    Arc::new(weir_ir::parse::parse(PROGRAM).expect("is a program"))
}

/// A pipeline that looks the port up, if `looks_up`, and exits.
fn compiled(looks_up: bool) -> Arc<Compiled> {
    let [port, hit, action, entry] = [0, 1, 2, 3].map(VarId::new);
    let block = |terminator| BasicBlock {
        state: None,
        insts: Vec::new(),
        terminator,
        loc: Loc::default(),
    };
    let mut body = Body::default();
    if looks_up {
        let next = weir_ir::BlockId::new(1);
        body.blocks.push(block(Terminator::Lookup(weir_ir::Lookup {
            table: TableId::new(0),
            keys: vec![weir_ir::Operand::Var(port)],
            hit,
            action,
            entry,
            next,
        })));
    }
    body.blocks.push(block(Terminator::Exit(0)));
    let exit = Exit {
        name: "out",
        live: vec![port, hit, VarId::new(4)],
        deparsed: false,
        touches: None,
    };
    let pipeline = Pipeline {
        program: program(),
        body,
        inputs: vec![port],
        exits: vec![exit],
        calls: Vec::new(),
        instruction_budget_drop: 0,
        punt_from_start: 0,
        parser_block_limit: 0,
        ordered_tables: Vec::new(),
        table_states: Vec::new(),
    };
    // The lookup has no side effects, so code does it inline in an array.
    let options = Options {
        reorderable: vec![true],
        ..Options::default()
    };
    Arc::new(Compiled::new(Arc::new(pipeline), options).expect("is compiled"))
}

/// A host that returns nothing useful.
#[derive(Default)]
struct Silent;

impl Host for Silent {
    fn call(&mut self, _: usize, _: usize, _: &[u8], _: &mut CallArguments) -> bool {
        true
    }

    fn call_extern(&mut self, _: usize, _: usize, _: &mut [u8], words: &mut [u64]) -> bool {
        words.fill(u64::MAX);
        true
    }

    fn begin_extern(&mut self, _: usize, _: usize, _: usize, _: &mut [u8], _: &[u64]) -> bool {
        true
    }

    fn finish_extern(&mut self, _: usize, _: usize, words: &mut [u64]) -> bool {
        words.fill(u64::MAX);
        true
    }

    fn suspend(&mut self, _: Suspended<'_>) {}

    fn count(&mut self, _: usize, _: u64, _: usize) {}

    fn count_all(&mut self, _: usize, _: u64, _: Indexes<'_>) {}

    fn read_cell(&mut self, _: usize, _: usize, _: u64) -> u64 {
        u64::MAX
    }

    fn write_cell(&mut self, _: usize, _: usize, _: u64, _: u64) {}

    fn cells(&mut self, _: usize) -> Option<&Arc<[AtomicU64]>> {
        None
    }

    fn hash(&mut self, _: u32, _: &[u8]) -> u64 {
        u64::MAX
    }

    fn value_set_contains(&mut self, _: ValueSetId, _: &[u64]) -> bool {
        false
    }

    fn looked_up(&mut self, _: &mut LookedUp<'_>) {}
}

fn table(bits: u32) -> TableSpec {
    let spec = TableSpec::from_program(&program(), TableId::new(0), &[]);
    TableSpec {
        keys: vec![KeySpec::new("port", bits, MatchKind::Exact)],
        ..spec
    }
}

/// Runs one packet with an input; returns the port that the exit saved.
fn run(machine: &mut Machine, tables: &[Arc<FastTable>], reader: &Reader, port: u64) -> u64 {
    let mut memory = vec![0; 64 + TAILROOM];
    let mut frames = [Frame::new(&mut memory, 0, 64).expect("has room")];
    let mut loaded = machine.load(&mut frames);
    loaded.set_input(0, std::iter::repeat(port));
    loaded.run(tables, &reader.enter(), &mut Silent, 0);
    machine.narrow_value(0, VarId::new(0))
}

#[test]
fn bits_beyond_the_width_of_an_input_are_cut_off() {
    let mut machine = Machine::new(compiled(false));
    let epochs = Arc::new(Epochs::new());
    let tables = [Arc::new(FastTable::with_epochs(&table(9), Arc::clone(&epochs)))];
    assert_eq!(run(&mut machine, &tables, &epochs.reader(), u64::MAX), 0x1ff);
    // As a key, those bits would index far beyond the array.
    let mut machine = Machine::new(compiled(true));
    assert_eq!(run(&mut machine, &tables, &epochs.reader(), 0xffff_ffff_ff00_0007), 7);
}

#[test]
fn tables_of_another_specification_are_refused_before_code_runs() {
    let compiled = compiled(true);
    let epochs = Arc::new(Epochs::new());
    let reader = epochs.reader();
    let of = |bits| Arc::new(FastTable::with_epochs(&table(bits), Arc::clone(&epochs)));
    let right = of(9);
    let mut machine = Machine::new(Arc::clone(&compiled));
    let mut is_run =
        |tables: &[Arc<FastTable>]| catch_unwind(AssertUnwindSafe(|| run(&mut machine, tables, &reader, 3))).is_ok();
    assert!(is_run(&[Arc::clone(&right)]));
    // An array for eight bits has half as many places, and one for 64 bits none.
    assert!(!is_run(&[of(8)]) && !is_run(&[of(64)]) && !is_run(&[]));
    assert!(is_run(&[right]) && is_run(&[of(9)]));
}

#[test]
fn a_result_that_a_host_gives_has_the_widths_of_its_action() {
    struct ForgingHost(Vec<Bits>);
    impl Host for ForgingHost {
        fn call(&mut self, _: usize, _: usize, _: &[u8], _: &mut CallArguments) -> bool {
            true
        }
        fn call_extern(&mut self, _: usize, _: usize, _: &mut [u8], _: &mut [u64]) -> bool {
            true
        }
        fn begin_extern(&mut self, _: usize, _: usize, _: usize, _: &mut [u8], _: &[u64]) -> bool {
            true
        }
        fn finish_extern(&mut self, _: usize, _: usize, _: &mut [u64]) -> bool {
            true
        }
        fn suspend(&mut self, _: Suspended<'_>) {}
        fn count(&mut self, _: usize, _: u64, _: usize) {}
        fn count_all(&mut self, _: usize, _: u64, _: Indexes<'_>) {}
        fn read_cell(&mut self, _: usize, _: usize, _: u64) -> u64 {
            0
        }
        fn write_cell(&mut self, _: usize, _: usize, _: u64, _: u64) {}
        fn cells(&mut self, _: usize) -> Option<&Arc<[AtomicU64]>> {
            None
        }
        fn hash(&mut self, _: u32, _: &[u8]) -> u64 {
            0
        }
        fn value_set_contains(&mut self, _: ValueSetId, _: &[u64]) -> bool {
            false
        }
        fn looked_up(&mut self, lookup: &mut LookedUp<'_>) {
            lookup.set_hit(0, 0, &self.0);
        }
    }
    let compiled = compiled(true);
    let epochs = Arc::new(Epochs::new());
    let tables = [Arc::new(FastTable::with_epochs(&table(9), Arc::clone(&epochs)))];
    let reader = epochs.reader();
    for wrong in [
        vec![Bits::new(64, u128::from(u64::MAX))],
        vec![],
        vec![Bits::new(9, 1); 2],
    ] {
        let mut machine = Machine::new(Arc::clone(&compiled));
        let mut memory = vec![0; 64 + TAILROOM];
        let mut frames = [Frame::new(&mut memory, 0, 64).expect("has room")];
        let mut loaded = machine.load(&mut frames);
        loaded.set_input(0, std::iter::repeat(1));
        let run = || loaded.run(&tables, &reader.enter(), &mut ForgingHost(wrong), 0);
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
}
