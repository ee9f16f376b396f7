//! The bodies of abstract methods: they run within a call, so that they neither wait nor call
//! themselves.

use super::Verifier;
use crate::program::*;

impl<'a> Verifier<'a> {
    pub(super) fn method(&mut self, method: &'a Method) {
        for &v in method.parameters.iter().flat_map(|(_, v)| v).chain(&method.results) {
            self.var(v);
        }
        self.body(&method.body, BlockKind::Control);
        for (_, block) in method.body.blocks.iter() {
            let looks_up = matches!(block.terminator, Terminator::Lookup(_));
            let emits = block.insts.iter().any(|i| matches!(i.kind, InstKind::Emit { .. }));
            self.require(!looks_up && !emits, || "a lookup or `emit` in a method".into());
        }
    }

    /// No method calls itself, whatever is between. Every id must have been checked.
    pub(super) fn recursion(&mut self) {
        let p = self.program;
        let calls: Vec<Vec<ExternId>> = p.externs.iter().map(|(_, x)| called(x)).collect();
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); calls.len()];
        for (x, called) in calls.iter().enumerate() {
            called.iter().for_each(|c| callers[c.index()].push(x));
        }
        // An instance is done once all that it calls are.
        let mut waits: Vec<usize> = calls.iter().map(Vec::len).collect();
        let mut done: Vec<usize> = (0..calls.len()).filter(|&x| waits[x] == 0).collect();
        while let Some(x) = done.pop() {
            for &caller in &callers[x] {
                waits[caller] -= 1;
                if waits[caller] == 0 {
                    done.push(caller);
                }
            }
        }
        if let Some(x) = waits.iter().position(|w| *w > 0) {
            let id = ExternId::new(x);
            self.at(format!("extern x{x} {}", p.externs[id].name));
            self.error("its methods may call themselves");
        }
    }
}

/// The instances that the methods of an instance call.
fn called(instance: &ExternInstance) -> Vec<ExternId> {
    let blocks = instance.methods.iter().flat_map(|m| m.body.blocks.iter());
    let insts = blocks.flat_map(|(_, block)| &block.insts);
    // What it asks of itself (`predicate`) runs no method.
    let calls = insts.filter_map(|inst| inst.kind.call());
    let runs = calls.filter(|call| call.function.starts_with("execute"));
    let mut found: Vec<ExternId> = runs.filter_map(|call| call.instance).collect();
    found.sort_unstable();
    found.dedup();
    found
}
