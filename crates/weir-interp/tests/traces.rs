//! What a trace tells.

use std::sync::Arc;
use weir_interp::testing::{NoRuntime, ProgramBuilder, constant};
use weir_interp::{Interpreter, NodeKind, PacketState, PacketTag, RenderOptions, TraceNode, TraceTree, Tracer};
use weir_ir::{InstKind, Mark, MatchKind, Operand, Program, Rvalue, Terminator, Type};

/// A parser, and a control with a table, an action and a header that becomes invalid.
fn program() -> Program {
    let mut program = ProgramBuilder::new("t");
    let header = program.header("eth", &[("type", Type::Bits(16))]);
    let valid = program.program().headers[header].valid;
    let field = program.field(header, 0);
    let nop = program.action("C.nop", &[]);
    let table = program.table("C.t", &[("hdr.eth.type", 16, MatchKind::Exact)], &[nop]);
    program.parser("parser", |b| {
        b.block(|b| b.state("start").extract(header).end(Terminator::Accept))
    });
    program.control("ingress", |b| {
        b.block(|b| b.lookup(&table, vec![Operand::Var(field)], 1)).block(|b| {
            b.inst(InstKind::Mark(Mark::EnterAction(nop)))
                .assign(field, Rvalue::Use(constant(16, 0x0806)))
                .assign(field, Rvalue::Use(constant(16, 0x0806)))
                .set(valid, constant(1, 0))
                .inst(InstKind::Mark(Mark::Leave))
                .end(Terminator::Return)
        })
    });
    program.finish()
}

fn trace() -> TraceTree {
    let program = Arc::new(program());
    let engine = Interpreter::new(Arc::clone(&program));
    let mut packet = PacketState::new(&program, vec![0x08, 0x00, 0xff]);
    let mut tree = TraceTree::new(program);
    tree.begin_packet(PacketTag::NONE, "packet");
    for block in 0..2 {
        engine.run_traced(block, &mut packet, &mut NoRuntime, &mut tree);
    }
    tree
}

fn find<'a>(node: &'a TraceNode, wanted: &dyn Fn(&NodeKind) -> bool) -> Option<&'a TraceNode> {
    if wanted(&node.event) {
        return Some(node);
    }
    node.children.iter().find_map(|c| find(c, wanted))
}

#[test]
fn a_trace_is_a_tree_of_blocks_states_and_actions() {
    let nodes = trace().nodes();
    assert_eq!(nodes.len(), 1);
    assert_eq!(nodes[0].children.len(), 2, "two blocks in the packet");
    let state = find(&nodes[0], &|e| matches!(e, NodeKind::State { .. })).expect("a state");
    assert!(matches!(&state.children[0].event, NodeKind::Extract { header, bits: 16, .. } if header == "hdr.eth"));
    let action = find(&nodes[0], &|e| matches!(e, NodeKind::Action { .. })).expect("an action");
    let told: Vec<_> = action.children.iter().map(|c| &c.event).collect();
    assert_eq!(told.len(), 2, "what does not change is not told: {told:?}");
    assert!(matches!(told[0], NodeKind::Set { old, new, .. } if old == "0x0800" && new == "0x0806"));
    assert!(matches!(told[1], NodeKind::Header { valid: false, .. }));
}

#[test]
fn a_trace_becomes_json_with_places() {
    let json = serde_json::to_value(trace().nodes()).expect("strings and numbers");
    let table = json[0]["children"][1]["children"][0].clone();
    assert_eq!(table["kind"], "table");
    assert_eq!(table["hit"], false);
    assert_eq!(table["note"], "the table is empty");
    assert_eq!(table["keys"][0]["value"], "0x0800");
    assert_eq!(table["place"]["file"], "test.p4");
}

#[test]
fn a_trace_reads_as_text_with_source_lines() {
    let text = trace().render(RenderOptions::default(), |loc| {
        Some(format!("source of line {}", loc.line))
    });
    assert!(text.contains("extract hdr.eth (16 bits): type=0x0800"), "{text}");
    assert!(
        text.contains("table C.t [hdr.eth.type=0x0800]: miss -> C.nop(); the table is empty"),
        "{text}"
    );
    assert!(text.contains("test.p4:1:1  | source of line 1"), "{text}");
    let plain = trace().render(
        RenderOptions {
            colors: true,
            source: false,
        },
        |_| None,
    );
    assert!(
        plain.contains("\x1b[32maccept\x1b[0m") && !plain.contains("source of"),
        "{plain}"
    );
}

#[test]
fn packets_made_from_a_packet_are_below_it() {
    let mut tree = TraceTree::new(Arc::new(program()));
    let first = tree.begin_packet(PacketTag::NONE, "first");
    let clone = tree.begin_packet(first, "clone");
    tree.begin_packet(PacketTag::NONE, "second");
    tree.resume_packet(clone);
    tree.begin_packet(clone, "clone of the clone");
    let nodes = tree.nodes();
    assert_eq!(nodes.len(), 2);
    assert_eq!(nodes[0].children[0].children.len(), 1);
}
