//! Numbers for the extern calls of a program, so that nobody looks at a name per packet.

use std::collections::BTreeMap;
use weir_ir::{BasicBlock, BlockId, Body, Call, ExternId, InstKind, Loc, Program};

/// Number of an extern call in the program's text, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SiteId(u32);

impl SiteId {
    /// Its position in [`CallSites::iter`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A body of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BodyKey {
    /// Of this block of [`Program::blocks`].
    Block(usize),
    /// Of this method of an extern instance.
    Method(ExternId, usize),
}

impl BodyKey {
    /// The body, if the program has it.
    #[must_use]
    pub fn of(self, program: &Program) -> Option<&Body> {
        match self {
            BodyKey::Block(i) => program.blocks.get(i).map(|b| &b.body),
            BodyKey::Method(e, i) => program.externs.get(e)?.methods.get(i).map(|m| &m.body),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Site {
    body: BodyKey,
    block: BlockId,
    inst: usize,
}

/// All extern calls of a program in the order of its text: blocks, then methods of instances.
#[derive(Debug, Clone, Default)]
pub struct CallSites {
    sites: Vec<Site>,
    /// Per body and basic block the number of its first call.
    first: BTreeMap<BodyKey, Vec<u32>>,
}

impl CallSites {
    /// Numbers the calls of a program. The same program always gives the same numbers.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let mut sites = CallSites::default();
        for i in 0..program.blocks.len() {
            sites.add(BodyKey::Block(i), program);
        }
        for (id, instance) in program.externs.iter() {
            for i in 0..instance.methods.len() {
                sites.add(BodyKey::Method(id, i), program);
            }
        }
        sites
    }

    fn add(&mut self, key: BodyKey, program: &Program) {
        let Some(body) = key.of(program) else { return };
        let mut first = Vec::with_capacity(body.blocks.len());
        for (block, bb) in body.blocks.iter() {
            first.push(self.sites.len() as u32);
            for (inst, i) in bb.insts.iter().enumerate() {
                if matches!(i.kind, InstKind::Call(_)) {
                    self.sites.push(Site { body: key, block, inst });
                }
            }
        }
        self.first.insert(key, first);
    }

    /// Number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether the program calls no extern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Number of the first call of each basic block of a body.
    pub(crate) fn first_of(&self, key: BodyKey) -> &[u32] {
        self.first.get(&key).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn nth(first: &[u32], block: BlockId, calls_before: u32) -> SiteId {
        SiteId(first.get(block.index()).copied().unwrap_or(0) + calls_before)
    }

    /// All calls of the program that the numbers were made for, with the body they are in.
    pub fn iter<'p>(&self, program: &'p Program) -> impl Iterator<Item = (SiteId, BodyKey, &'p Call, Loc)> {
        self.sites.iter().enumerate().filter_map(move |(i, site)| {
            let block: &BasicBlock = site.body.of(program)?.blocks.get(site.block)?;
            let inst = block.insts.get(site.inst)?;
            match &inst.kind {
                InstKind::Call(call) => Some((SiteId(i as u32), site.body, call, inst.loc)),
                _ => None,
            }
        })
    }
}
