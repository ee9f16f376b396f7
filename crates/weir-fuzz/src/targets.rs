//! What is fed.

use crate::arguments;
use crate::collecting;
use crate::control;
use crate::engines;
use crate::mutate::Mutator;
use crate::oracle;
use crate::rina;
use crate::saved;
use crate::state;
use crate::telemetry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use weir_compiler::{Options, compile_bytes, compile_source};
use weir_ir::Program;
use weir_switch::Switch;
use weir_syntax::preprocess::{FileLoader, MemoryLoader};

/// A function that must survive any bytes.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Makes the next input.
    pub next: fn(&mut Mutator) -> Vec<u8>,
    /// Feeds the bytes. Panics where something is wrong.
    pub run: fn(&[u8]),
    /// Keeps an input that broke something in a file of this name, perhaps with an extension; says
    /// in which.
    pub keep: fn(&[u8], &Path) -> io::Result<PathBuf>,
    /// Its inputs may break the process itself: keep each before it is run.
    pub fatal: bool,
    /// It runs the binary `weir`.
    pub needs_binary: bool,
}

impl Target {
    /// A target for good input made bad.
    const fn hostile(name: &'static str, run: fn(&[u8])) -> Self {
        Target {
            name,
            next: Mutator::next_input,
            run,
            keep: keep_bytes,
            fatal: false,
            needs_binary: false,
        }
    }
}

fn keep_bytes(input: &[u8], path: &Path) -> io::Result<PathBuf> {
    std::fs::write(path, input)?;
    Ok(path.to_owned())
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::hostile("source", source),
    Target::hostile("packets", packets),
    Target::hostile("captures", captures),
    Target::hostile("tests", tests),
    Target::hostile("programs", programs),
    Target::hostile("int-reports", telemetry::run),
    Target::hostile("int-collector", collecting::run),
    Target::hostile("rina", rina::run),
    Target {
        name: "engines",
        next: engines::made_up_input,
        run: engines::made_up,
        keep: engines::keep_made_up,
        fatal: true,
        needs_binary: false,
    },
    Target {
        name: "waiting",
        next: engines::made_up_input,
        run: engines::waiting,
        keep: engines::keep_waiting,
        fatal: true,
        needs_binary: false,
    },
    Target {
        name: "engines-corpus",
        next: engines::corpus_input,
        run: engines::corpus,
        keep: engines::keep_corpus,
        fatal: true,
        needs_binary: false,
    },
    Target {
        name: "ast",
        next: engines::made_up_input,
        run: oracle::made_up,
        keep: oracle::keep,
        fatal: false,
        needs_binary: false,
    },
    Target {
        name: "ast-tna",
        next: engines::made_up_input,
        run: oracle::made_up_tna,
        keep: oracle::keep_tna,
        fatal: false,
        needs_binary: false,
    },
    Target {
        name: "saved",
        next: saved::input,
        run: saved::run,
        keep: saved::keep,
        fatal: true,
        needs_binary: false,
    },
    Target {
        name: "state",
        next: state::input,
        run: state::run,
        keep: keep_bytes,
        fatal: true,
        needs_binary: false,
    },
    Target {
        name: "arguments",
        next: arguments::input,
        run: arguments::run,
        keep: keep_bytes,
        fatal: false,
        needs_binary: true,
    },
    Target {
        name: "p4runtime",
        next: control::p4runtime_input,
        run: control::p4runtime,
        keep: keep_bytes,
        fatal: false,
        needs_binary: false,
    },
    Target {
        name: "bfrt",
        next: control::bfrt_input,
        run: control::bfrt,
        keep: keep_bytes,
        fatal: false,
        needs_binary: false,
    },
];

const ROUTER: &str = include_str!("../../../p4/programs/ipv4_router/ipv4_router.p4");
const ENTRIES: &str = include_str!("../../../p4/programs/ipv4_router/demo.entries");
const CAPTURE: &[u8] = include_bytes!("../../../p4/programs/ipv4_router/demo-port2.pcap");

/// Good input of a target: what is bundled, and the files of `folder` that are of its kind.
#[must_use]
pub fn seeds(target: &str, folder: Option<&Path>) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = match target {
        "source" => weir_compiler::system_files(weir_arch::targets())
            .iter()
            .map(|(_, t)| t.as_bytes().to_vec())
            .chain([ROUTER.as_bytes().to_vec()])
            .collect(),
        "packets" => frames(CAPTURE),
        "captures" => vec![CAPTURE[..4096].to_vec()],
        "tests" => vec![
            ENTRIES.as_bytes().to_vec(),
            b"packet 1 020000000101 020000000110 0800\nexpect 2 0200 $\nwait\n".to_vec(),
        ],
        "arguments" | "engines" | "waiting" | "ast" | "ast-tna" | "p4runtime" | "bfrt" => Vec::new(),
        "engines-corpus" => {
            let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs");
            let folders = [Some(bundled.as_path()), folder];
            let cases = folders.into_iter().flatten().flat_map(engines::cases);
            return cases.map(|c| c.to_bytes()).collect();
        }
        "saved" => return saved::seeds(),
        "state" => return state::seeds(),
        "int-reports" | "int-collector" => return telemetry::seeds(),
        "rina" => return rina::seeds(),
        _ => vec![weir_ir::print::print(router()).into_bytes()],
    };
    let extension = match target {
        "source" => "p4",
        "tests" => "stf",
        _ => return seeds,
    };
    let Some(entries) = folder.and_then(|f| std::fs::read_dir(f).ok()) else {
        return seeds;
    };
    let mut paths: Vec<_> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    seeds.extend(paths.iter().filter_map(|p| std::fs::read(p).ok()));
    seeds
}

fn frames(capture: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    if let Ok(mut reader) = weir_io::pcap::PcapReader::new(capture) {
        while let Ok(Some(packet)) = reader.next_packet() {
            frames.push(packet.data.to_vec());
        }
    }
    frames
}

fn router() -> &'static Arc<Program> {
    static PROGRAM: OnceLock<Arc<Program>> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let compilation = compile_source("ipv4_router.p4", ROUTER, &Options::default(), weir_arch::targets());
        Arc::new(compilation.program.expect("the bundled router compiles"))
    })
}

fn optimized(program: &Program) -> Arc<Program> {
    let mut program = program.clone();
    let observes = weir_arch::observes(&program);
    weir_ir::passes::optimize(&mut program, &observes);
    Arc::new(program)
}

/// Source text: an answer or diagnostics, both of which can be shown; what compiles keeps the
/// invariants, survives its passes and its printed form, and takes packets.
fn source(data: &[u8]) {
    let nothing = MemoryLoader::from_iter(Vec::<(String, String)>::new());
    let loader: &(dyn FileLoader + Sync) = &nothing;
    let compilation = compile_bytes(
        "fuzz.p4",
        data.to_vec(),
        &Options::default(),
        loader,
        weir_arch::targets(),
    );
    for diagnostic in compilation.diagnostics.list().iter().take(50) {
        let _ = weir_syntax::render::human(diagnostic, &compilation.sources, false);
        let _ = weir_syntax::render::short(diagnostic, &compilation.sources);
        let _ = weir_syntax::render::json(diagnostic, &compilation.sources);
    }
    let Some(program) = compilation.program else { return };
    if let Err(errors) = weir_ir::verify::verify(&program) {
        panic!("the lowered program breaks an invariant: {}", errors[0]);
    }
    let printed = weir_ir::print::print(&program);
    let read = weir_ir::parse::parse(&printed).unwrap_or_else(|e| panic!("the printed form is not read back: {e}"));
    assert!(read == program, "the printed form is read back as another program");
    // Large programs take their time; one packet each is enough.
    if printed.len() > 2_000_000 {
        return;
    }
    let _ = weir_compiler::p4info::p4info(&program, weir_arch::targets());
    let frame: Vec<u8> = data.iter().copied().take(128).collect();
    same_packets(&Arc::new(program), &[frame]);
}

/// The program and its optimised form do the same to packets.
fn same_packets(program: &Arc<Program>, packets: &[Vec<u8>]) {
    let optimized = optimized(program);
    if let Err(errors) = weir_ir::verify::verify(&optimized) {
        panic!("the optimised program breaks an invariant: {}", errors[0]);
    }
    let (Ok(mut plain), Ok(mut fast)) = (Switch::new(program.clone()), Switch::new(optimized)) else {
        return;
    };
    for packet in packets {
        let (a, b) = (plain.inject(1, packet, 1000), fast.inject(1, packet, 1000));
        assert_eq!(a, b, "the passes changed what happens to a packet");
    }
}

fn switches() -> (Switch, Switch) {
    static SWITCHES: OnceLock<(Switch, Switch)> = OnceLock::new();
    let (a, b) = SWITCHES.get_or_init(|| {
        let with_entries = |program: Arc<Program>| {
            let (switch, failures) = weir_stf::configure(Switch::new(program).expect("the router loads"), ENTRIES)
                .expect("the entries parse");
            assert!(failures.is_empty(), "{failures:?}");
            switch
        };
        (with_entries(router().clone()), with_entries(optimized(router())))
    });
    (a.clone(), b.clone())
}

/// Packets: forwarded or dropped, and the same by both forms of the program.
fn packets(data: &[u8]) {
    let (mut plain, mut fast) = switches();
    let port = 1 + u32::from(data.first().is_some_and(|b| b & 1 == 1));
    let (a, b) = (plain.inject(port, data, 0), fast.inject(port, data, 0));
    assert_eq!(a, b, "the passes changed what happens to a packet");
    let (_, tree) = plain.inject_traced(port, data, 1);
    let _ = tree.render(weir_interp::RenderOptions::default(), |_| None);
}

/// Captures: packets until an error or the end.
fn captures(data: &[u8]) {
    let Ok(mut reader) = weir_io::pcap::PcapReader::new(data) else {
        return;
    };
    let mut count = 0;
    while let Ok(Some(packet)) = reader.next_packet() {
        assert!(packet.data.len() <= data.len(), "more bytes than the file has");
        count += 1;
        assert!(count <= data.len(), "more packets than the file can hold");
    }
}

/// Packet tests and control-plane directives.
fn tests(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (switch, _) = switches();
    let _ = weir_stf::run_on(switch, &text, &weir_stf::RunOptions::default());
}

/// Printed programs: read back only if they keep the invariants, and then they can be run.
fn programs(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(program) = weir_ir::parse::parse(&text) else {
        return;
    };
    let program = Arc::new(program);
    if let Ok(mut switch) = Switch::new(program) {
        switch.inject(1, &CAPTURE[40..100], 0);
    }
}
