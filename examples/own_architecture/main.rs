//! An architecture outside weir: what it is to the compiler, what its extern does, and which way
//! packets go.
//!
//! `cargo run -p weir-stf --example own_architecture` runs the packet test beside this file.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::path::Path;
use std::sync::Arc;
use weir_arch::kit::{Engines, Service, Vocabulary, argument, block_with_role, note, number, register, state_of};
use weir_arch::{
    Action, Architecture, BoundExterns, DropReason, EgressPacket, Env, IngressPacket, LoadError, QueueInfo, Resource,
    State,
};
use weir_compiler::{Options, compile_file};
use weir_interp::{
    CallContext, CallEffect, Executable, Interpreter, LookupDetail, LookupOutcome, Outcome, PacketState, Runtime,
};
use weir_ir::target::{ControlSpec, PackageSpec, TableSpec, Target, block};
use weir_ir::{Bits, Call, ExternId, Program, TableId, TypeSpec, ValueSetId, VarId};
use weir_stf::{Report, RunOptions, run_on};
use weir_switch::{Switch, SwitchConfig};

/// What the compiler must know.
const HUB: Target = Target {
    name: "hub",
    files: &[("hub.p4", include_str!("hub.p4"))],
    packages: &[PackageSpec {
        name: "Hub",
        blocks: &[
            block(&["parse"], "parser", &["", "headers"]),
            block(&["act"], "control", &["headers", "hub"]),
            block(&["put"], "deparser", &["", "headers"]),
        ],
        pipelines: &[],
    }],
    macros: &[],
    customary: &[],
    without_effect: &[],
    expansions: &[],
    tables: TableSpec {
        properties: &[],
        own_kinds: &[],
        refused_kinds: &[],
    },
    control: ControlSpec {
        resources: &[],
        digest_function: None,
        port_metadata: None,
        custom_crcs: None,
    },
};

/// What a call of a program does.
enum Op {
    Note(ExternId),
}

fn op(program: &Program, call: &Call) -> Option<Op> {
    let id = call.instance?;
    let is_note = program.externs[id].type_name == "Tally" && call.function == "note";
    is_note.then_some(Op::Note(id))
}

/// A program on this architecture.
struct Hub {
    engines: Engines,
    program: Arc<Program>,
    ops: Vec<Op>,
    /// Positions of parser, control and deparser.
    blocks: [usize; 3],
    in_port: Option<VarId>,
    out_port: Option<VarId>,
}

impl Hub {
    fn new(engine: Arc<dyn Executable>) -> Result<Self, Vec<LoadError>> {
        let program = Arc::clone(engine.program());
        let engines = Engines::new(engine);
        let vocabulary = Vocabulary {
            target: HUB.name,
            types: &["Tally"],
            registered: &BoundExterns::default(),
        };
        let of = |role| block_with_role(&program, role, HUB.name).map_err(|e| vec![e]);
        Ok(Hub {
            ops: vocabulary.resolve_own(&program, engines.sites(), |call| op(&program, call))?,
            blocks: [of("parser")?, of("control")?, of("deparser")?],
            in_port: program.shared_var("hub", "in_port"),
            out_port: program.shared_var("hub", "out_port"),
            engines,
            program,
        })
    }

    fn run(&self, block: usize, packet: &mut PacketState, env: &mut Env<'_>) -> Outcome {
        let (service, tracer) = env.service(packet.bytes.len() as u64);
        let mut runtime = HubRuntime { hub: self, service };
        self.engines.run(block, packet, tracer, &mut runtime)
    }
}

/// Serves one packet.
struct HubRuntime<'a> {
    hub: &'a Hub,
    service: Service<'a>,
}

impl Runtime for HubRuntime<'_> {
    fn lookup(&mut self, table: TableId, keys: &[Bits]) -> LookupOutcome {
        self.service.lookup(table, keys, |_, _| {})
    }

    fn describe(&self, table: TableId, keys: &[Bits], outcome: &LookupOutcome) -> LookupDetail {
        self.service.describe(table, keys, outcome)
    }

    fn value_set_contains(&mut self, set: ValueSetId, keys: &[Bits]) -> bool {
        self.service.value_set_contains(set, keys)
    }

    fn call(&mut self, context: CallContext<'_>) -> CallEffect {
        let Some(Op::Note(id)) = self.hub.ops.get(context.site.index()) else {
            return CallEffect::Continue;
        };
        let (index, by) = (context.number(0), context.scalar(1));
        let before = self
            .service
            .register_read(*id, index)
            .and_then(|cell| cell.into_iter().next());
        if let (Some(before), Some(by)) = (before, by)
            && let Some(Resource::Register(tally)) = self.service.state.resource_mut(*id)
        {
            tally.write(index, &[before.add(by)]);
        }
        CallEffect::Continue
    }
}

impl Architecture for Hub {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn initial_state(&self) -> State {
        let tally = |size| register(&self.program, &TypeSpec::Bit(32), size, None);
        let resources = self.program.externs.iter();
        let resources = resources.map(|(_, e)| tally(number(argument(e, "size", 0))));
        state_of(&self.program, resources.collect(), &[], None)
    }

    fn ingress(&self, env: &mut Env<'_>, packet: IngressPacket) -> Vec<Action> {
        let mut state = PacketState::new(&self.program, packet.bytes);
        if let Some(var) = self.in_port {
            state.frame.set_u64(var, packet.port.into());
        }
        for block in [self.blocks[0], self.blocks[1]] {
            match self.run(block, &mut state, env) {
                Outcome::Abort(reason) => return vec![Action::stopped(reason, packet.tag)],
                Outcome::Reject(_) => note(env, "parsed in part"),
                Outcome::Accept | Outcome::Return => {}
            }
        }
        match self.out_port.map_or(0, |v| state.frame.get_u64(v)) {
            0 => vec![Action::drop(DropReason::IngressDrop, None, packet.tag)],
            port => vec![Action::Enqueue {
                port: port as u32,
                packet: EgressPacket::new(state, packet.port, 0, packet.tag),
            }],
        }
    }

    fn egress(&self, env: &mut Env<'_>, mut packet: EgressPacket, queue: QueueInfo) -> Vec<Action> {
        if let Outcome::Abort(reason) = self.run(self.blocks[2], &mut packet.state, env) {
            return vec![Action::stopped(reason, packet.tag)];
        }
        vec![Action::Transmit {
            port: queue.port,
            bytes: packet.state.finish(),
            tag: packet.tag,
        }]
    }

    fn priority(&self, _: &EgressPacket) -> u64 {
        0
    }

    fn enqueued(&self, _: &mut EgressPacket, _: u64, _: u64) {}

    fn replica(&self, packet: &EgressPacket, _: u32) -> EgressPacket {
        packet.clone()
    }
}

/// Compiles `relay.p4` and runs its packet test.
fn test() -> Result<Report, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/own_architecture");
    let compiled = compile_file(&folder.join("relay.p4"), &Options::default(), &[HUB]);
    let program = compiled.program.ok_or("relay.p4 does not compile")?;
    let hub = Hub::new(Arc::new(Interpreter::new(Arc::new(program)))).map_err(|errors| format!("{errors:?}"))?;
    let switch = Switch::with_architecture(Arc::new(hub), SwitchConfig::default());
    let text = std::fs::read_to_string(folder.join("relay.stf")).map_err(|e| e.to_string())?;
    run_on(switch, &text, &RunOptions::default()).map_err(|e| e.to_string())
}

fn main() -> Result<(), String> {
    let report = test()?;
    for failure in &report.failures {
        eprintln!("{failure}");
    }
    eprintln!("{} packets, {} checks", report.packets, report.checks);
    Ok(())
}

#[test]
fn the_relay_passes_its_test() {
    let report = test().unwrap();
    assert!(report.passed() && report.checks > 0, "{:?}", report.failures);
}
