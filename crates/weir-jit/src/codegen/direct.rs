//! Lookups that code does itself, without a suspension; `weir_table::fast`'s `direct` module describes the structures.

use super::{Segment, Words, env, flags};
use crate::layout::{Site, SiteKind};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value, types};
use std::collections::BTreeSet;
use weir_ir::{BlockId, Lookup};
use weir_table::fast::{Direct, DirectKind, LAST_HIT_STEP_NS};

/// A table under lookup.
struct Probe {
    site: usize,
    /// Addresses: of the structure, and of the words of a miss.
    structure: Value,
    default: Value,
    key: Value,
    /// The words of the result that somebody asks for.
    words: Vec<usize>,
    /// Where the table is asked instead.
    ask: Block,
    /// Takes the words.
    done: Block,
}

/// A bucket: where it begins, and for the first also its hash.
#[derive(Clone, Copy)]
struct Bucket {
    address: Value,
    /// Bytes from the first bucket of the table.
    offset: Value,
}

impl Segment<'_, '_> {
    /// What is to be known before code is made for a block that ends in a lookup.
    pub(super) fn lookup_ahead(&mut self, id: BlockId, lookup: &Lookup) {
        if !self.cx.layout.site_of_block.contains_key(&id) {
            return self.destination(self.cx.layout.of_block[&id]);
        }
        let table = &self.cx.analysis.program().tables[lookup.table];
        let parameters = table.actions.iter().flat_map(|a| &a.parameters);
        for var in [lookup.hit, lookup.action, lookup.entry].iter().chain(parameters) {
            self.written.insert(*var);
        }
    }

    /// A lookup that suspends nothing.
    pub(super) fn lookup_here(&mut self, number: usize, lookup: &Lookup) {
        let site = self.cx.layout.sites[number];
        let words = match site.kind {
            SiteKind::Direct(kind) => self.direct_lookup(number, kind, lookup),
            SiteKind::Ahead { .. } => Words::Rows(site.result_row),
        };
        if site.is_told_late() {
            let first = self.result_word(&words, 0);
            self.store_row(site.outcome_row, first);
        }
        let live = &self.cx.analysis.live[lookup.next.index()];
        self.load_result(&words, lookup, live);
        let next = self.blocks[&lookup.next];
        self.b.ins().jump(next, &[]);
    }

    fn direct_lookup(&mut self, number: usize, kind: DirectKind, lookup: &Lookup) -> Words {
        let site = self.cx.layout.sites[number];
        let key = self.key_words(lookup, 0);
        let words = self.words_wanted(lookup);
        let pointers = self.b.ins().load(types::I64, flags(), self.env, env::DIRECT);
        let (ask, done) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(ask);
        for _ in &words {
            self.b.append_block_param(done, types::I64);
        }
        let at = (number * 16) as i32;
        let probe = Probe {
            site: number,
            structure: self.b.ins().load(types::I64, flags(), pointers, at),
            default: self.b.ins().load(types::I64, flags(), pointers, at + 8),
            key: key[0],
            words,
            ask,
            done,
        };
        match kind {
            DirectKind::Exact { slots, stamps } => self.probe_exact(&probe, slots, stamps),
            DirectKind::Lpm {
                width,
                bits,
                stride,
                stamp,
            } => self.probe_lpm(&probe, width, bits, stride, stamp),
        }
        self.ask(&probe, site);
        self.b.switch_to_block(done);
        let values = self.b.block_params(done).to_vec();
        Words::Values(probe.words.iter().copied().zip(values).collect())
    }

    /// The words of the result that are read; the first always is.
    fn words_wanted(&self, lookup: &Lookup) -> Vec<usize> {
        let cx = self.cx;
        let live = &cx.analysis.live[lookup.next.index()];
        let table = &cx.analysis.program().tables[lookup.table];
        let layout = &cx.tables[lookup.table.index()].1;
        let mut words = BTreeSet::from([0]);
        for (action, slots) in table.actions.iter().zip(&layout.actions) {
            for (&var, slot) in action.parameters.iter().zip(slots) {
                if live.contains(var) {
                    let first = usize::from(slot.word);
                    words.extend(first..first + slot.words());
                }
            }
        }
        words.into_iter().collect()
    }

    /// Lets the runtime look the packet up.
    fn ask(&mut self, probe: &Probe, site: Site) {
        self.b.switch_to_block(probe.ask);
        self.store_row(site.key_row, probe.key);
        let number = self.imm(probe.site as u64);
        let slot = self.slot();
        self.b.ins().call(self.helpers.lookup, &[self.env, number, slot]);
        let words: Vec<BlockArg> = (probe.words.iter())
            .map(|word| self.load_row(site.result_row + word).into())
            .collect();
        self.b.ins().jump(probe.done, &words);
    }

    fn field(&mut self, probe: &Probe, offset: i32) -> Value {
        self.b.ins().load(types::I64, flags(), probe.structure, offset)
    }

    // ------------------------------------------------------------------------- exact

    fn probe_exact(&mut self, probe: &Probe, slots: usize, stamps: bool) {
        let writes_at = |s: &mut Self| {
            let address = s.add_imm(probe.structure, i64::from(Direct::WRITES) as u64);
            s.b.ins().atomic_load(types::I64, flags(), address)
        };
        let before = writes_at(self);
        let hash = self.hash_of(probe);
        let offset = self.shl_imm(hash, 6);
        let mask = self.field(probe, Direct::MASK);
        let offset = self.b.ins().band(offset, mask);
        let base = self.field(probe, Direct::BASE);
        let address = self.b.ins().iadd(base, offset);
        let first = Bucket { address, offset };
        let (hit, missed, elsewhere, miss, check) = (
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
            self.b.create_block(),
        );
        // The address of the slot's first word, and that of its time.
        self.b.append_block_param(hit, types::I64);
        if stamps {
            self.b.append_block_param(hit, types::I64);
        }
        for _ in &probe.words {
            self.b.append_block_param(check, types::I64);
        }
        self.find(probe, (slots, stamps), first, hit, missed);
        self.b.switch_to_block(missed);
        let head = self
            .b
            .ins()
            .load(types::I64, flags(), first.address, head_offset(slots));
        let overflow = self.less_than_zero(head);
        self.b.ins().brif(overflow, elsewhere, &[], miss, &[]);
        self.b.switch_to_block(elsewhere);
        self.b.set_cold_block(elsewhere);
        let other = self.shr_imm(hash, 26);
        let mask = self.field(probe, Direct::MASK);
        let other = self.b.ins().band(other, mask);
        let same = self.b.ins().icmp(IntCC::Equal, other, first.offset);
        let line = self.imm(64);
        let neighbour = self.b.ins().bxor(other, line);
        let offset = self.b.ins().select(same, neighbour, other);
        let base = self.field(probe, Direct::BASE);
        let address = self.b.ins().iadd(base, offset);
        self.find(probe, (slots, stamps), Bucket { address, offset }, hit, miss);

        self.b.switch_to_block(hit);
        let slot = self.b.block_params(hit)[0];
        let words: Vec<Value> = (probe.words.iter())
            .map(|&word| match word {
                0 => {
                    let head = self.b.ins().load(types::I64, flags(), slot, 0);
                    self.mask(head, Direct::HEAD_BITS)
                }
                // With two slots the data lies behind the key.
                word => self.b.ins().load(types::I64, flags(), slot, 8 + 8 * word as i32),
            })
            .collect();
        if stamps {
            let stamp = self.b.block_params(hit)[1];
            self.stamp(stamp, 0);
        }
        self.jump_with(check, &words);

        self.b.switch_to_block(miss);
        let words = self.words_at(probe, probe.default);
        self.jump_with(check, &words);

        self.b.switch_to_block(check);
        if self.cx.fences {
            self.b.ins().fence();
        }
        // If it was odd before it is not this.
        let even = self.imm(!1);
        let even = self.b.ins().band(before, even);
        let after = writes_at(self);
        let torn = self.b.ins().icmp(IntCC::NotEqual, even, after);
        let words: Vec<BlockArg> = self.b.block_params(check).iter().map(|v| (*v).into()).collect();
        self.b.ins().brif(torn, probe.ask, &[], probe.done, &words);
    }

    /// [`weir_table::fast::hash_of`]
    fn hash_of(&mut self, probe: &Probe) -> Value {
        // Loads right before their uses become operands of those.
        let start = self.field(probe, Direct::START);
        let mixed = self.b.ins().bxor(probe.key, start);
        let factor = self.field(probe, Direct::FACTOR);
        let mixed = self.b.ins().imul(mixed, factor);
        let upper = self.shr_imm(mixed, 32);
        let mixed = self.b.ins().bxor(mixed, upper);
        let spread = self.imm(Direct::SPREAD);
        let mixed = self.b.ins().imul(mixed, spread);
        let upper = self.shr_imm(mixed, 29);
        self.b.ins().bxor(mixed, upper)
    }

    /// Goes to `hit` with the slot of a bucket that has the key and the address of its time, or to `miss`.
    fn find(&mut self, probe: &Probe, (slots, stamps): (usize, bool), bucket: Bucket, hit: Block, miss: Block) {
        let (found, slot, stamp) = if slots == 4 {
            let key = self.b.ins().splat(types::I64X2, probe.key);
            let [low, high] = [0, 16].map(|at| {
                let keys = self.b.ins().load(types::I64X2, flags(), bucket.address, at);
                let equal = self.b.ins().icmp(IntCC::Equal, keys, key);
                self.b.ins().vhigh_bits(types::I64, equal)
            });
            let high = self.shl_imm(high, 2);
            let found = self.b.ins().bor(low, high);
            let at = self.b.ins().ctz(found);
            let at = self.shl_imm(at, 3);
            let slot = self.b.ins().iadd(bucket.address, at);
            let slot = self.add_imm(slot, 32);
            let stamp = stamps.then(|| {
                // Half as many bytes of stamps as of buckets.
                let stamps = self.shr_imm(bucket.offset, 1);
                let stamp = self.b.ins().iadd(stamps, at);
                let more = self.field(probe, Direct::MORE);
                self.b.ins().iadd(stamp, more)
            });
            (found, slot, stamp)
        } else {
            let [first, second] = [8, 40].map(|at| {
                let key = self.b.ins().load(types::I64, flags(), bucket.address, at);
                let equal = self.b.ins().icmp(IntCC::Equal, key, probe.key);
                self.b.ins().uextend(types::I64, equal)
            });
            let found = self.b.ins().bor(first, second);
            let at = self.shl_imm(second, 5);
            let slot = self.b.ins().iadd(bucket.address, at);
            let stamp = stamps.then(|| self.add_imm(slot, 24));
            (found, slot, stamp)
        };
        let found_at: Vec<BlockArg> = [Some(slot), stamp].iter().flatten().map(|v| (*v).into()).collect();
        self.b.ins().brif(found, hit, &found_at, miss, &[]);
    }

    // ------------------------------------------------------------------------- LPM

    fn probe_lpm(&mut self, probe: &Probe, width: u32, bits: u32, stride: usize, stamp: Option<usize>) {
        let [ready, record, check] = [(); 3].map(|()| self.b.create_block());
        let writes = self.field(probe, Direct::WRITES);
        self.b.ins().brif(writes, probe.ask, &[], ready, &[]);
        self.b.switch_to_block(ready);
        let base = self.field(probe, Direct::BASE);
        let index = self.shr_imm(probe.key, u64::from(width - bits));
        let offset = self.shl_imm(index, 2);
        let address = self.b.ins().iadd(base, offset);
        let number = self.b.ins().uload32(flags(), address, 0);
        let group = self.shr_imm(number, 31);
        self.b.ins().brif(group, probe.ask, &[], record, &[]);
        self.b.switch_to_block(record);
        let root = self.field(probe, Direct::ROOT);
        let number = self.b.ins().select(number, number, root);
        // Of no number the record is one that exists, but it is not used.
        let sixteen = self.imm(16);
        let given = self.b.ins().umax(number, sixteen);
        let zeros = self.b.ins().clz(given);
        // Bit length 5 has word 0.
        let most = self.imm(64 - 5);
        let word = self.b.ins().isub(most, zeros);
        let word = self.shl_imm(word, 3);
        let more = self.field(probe, Direct::MORE);
        let origin = self.b.ins().iadd(more, word);
        let origin = self.b.ins().load(types::I64, flags(), origin, 0);
        let stride = self.imm(stride as u64);
        let offset = self.b.ins().imul(given, stride);
        let found = self.b.ins().iadd(origin, offset);
        let record = self.b.ins().select(number, found, probe.default);
        let words = self.words_at(probe, record);
        if let Some(at) = stamp {
            let hit = self.b.create_block();
            self.b.ins().brif(number, hit, &[], check, &[]);
            self.b.switch_to_block(hit);
            self.stamp(record, 8 * at as i32);
        }
        self.b.ins().jump(check, &[]);
        self.b.switch_to_block(check);
        self.jump_with(probe.done, &words);
    }

    // ------------------------------------------------------------------------- both

    fn words_at(&mut self, probe: &Probe, address: Value) -> Vec<Value> {
        let words = probe.words.iter();
        words
            .map(|&word| self.b.ins().load(types::I64, flags(), address, 8 * word as i32))
            .collect()
    }

    fn jump_with(&mut self, block: Block, words: &[Value]) {
        let words: Vec<BlockArg> = words.iter().map(|v| (*v).into()).collect();
        self.b.ins().jump(block, &words);
    }

    /// Leaves the time, if another step has begun since.
    fn stamp(&mut self, address: Value, offset: i32) {
        let now = self.b.ins().load(types::I64, flags(), self.env, env::NOW);
        let last = self.b.ins().load(types::I64, flags(), address, offset);
        let (stale, on) = (self.b.create_block(), self.b.create_block());
        let changed = self.b.ins().bxor(now, last);
        let changed = self.shr_imm(changed, u64::from(LAST_HIT_STEP_NS.trailing_zeros()));
        self.b.ins().brif(changed, stale, &[], on, &[]);
        self.b.set_cold_block(stale);
        self.b.switch_to_block(stale);
        self.b.ins().store(flags(), now, address, offset);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    fn less_than_zero(&mut self, value: Value) -> Value {
        self.b.ins().icmp_imm_s(IntCC::SignedLessThan, value, 0)
    }
}

/// Where the head of the first slot of a bucket is.
fn head_offset(slots: usize) -> i32 {
    if slots == 4 { 32 } else { 0 }
}

const _: () = assert!(LAST_HIT_STEP_NS.is_power_of_two());
