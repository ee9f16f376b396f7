//! The runtime functions that segments call: for what has no machine code, mostly through the
//! [`Host`](super::Host). Calls are compiled in `codegen::calls`, and symbols are in `runtime`.
//!
//! Safety of every function here: a segment calls it while it runs, with the environment that it
//! received, and with numbers and addresses that the compiler put into its code. So the
//! environment's pointers are valid, and the host and the argument area have no other user during
//! the call.

use super::Env;
use crate::layout::{ROW_LENGTH, ROW_PACKET, ROW_STRIDE};
use crate::sites::{CallSite, Scalar};
use weir_ir::{Bits, Operand, ValueSetId};

/// The type of a segment.
pub(crate) type SegmentFunction = unsafe extern "C" fn(*mut Env, u64, *mut u64);

/// The type of a segment for eight packets at a time. It returns the packets that it bailed out of,
/// which the other function runs.
pub(crate) type LaneFunction = unsafe extern "C" fn(*mut Env, u64, *mut u64) -> u64;

/// Reads a column of the context: the words of one slot in adjacent rows.
///
/// # Safety
/// `first` is a row's word of a slot, and `count` rows begin there.
unsafe fn read_column(first: *const u64, count: usize) -> Vec<u64> {
    // SAFETY: the caller guarantees that many rows, each `ROW_STRIDE` words after the one before.
    (0..count).map(|i| unsafe { *first.add(i * ROW_STRIDE) }).collect()
}

/// Calls an extern of the host, with arguments from the argument area. Returns 1 for a drop.
pub(crate) unsafe extern "C" fn call(env: *mut Env, site: u64, slot: u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module). The argument area has
    // `argument_words`, enough for each call site, and eight more. The slot's packet is as long as
    // its row says, and the host has a shared reference to it while no code runs.
    unsafe {
        let env = &mut *env;
        let compiled = &*env.compiled;
        let site_index = site as usize;
        let site = &compiled.sites.calls[site_index];
        let area = std::slice::from_raw_parts_mut(env.arguments, compiled.sites.argument_words + 8);
        let mut arguments = site.read(area);
        let packet = *env.context.add(ROW_PACKET * ROW_STRIDE + slot as usize) as *const u8;
        let length = *env.context.add(ROW_LENGTH * ROW_STRIDE + slot as usize) as usize;
        let packet = std::slice::from_raw_parts(packet, length);
        let continues = (*(*env.host).0).call(site_index, slot as usize, packet, &mut arguments);
        site.write(&arguments, area);
        u64::from(!continues)
    }
}

/// Calls a registered extern. The argument area holds the cursor, the handle of the entry, and then
/// the words of the call.
pub(crate) unsafe extern "C" fn call_extern(env: *mut Env, site: u64, slot: u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module), after it has filled the
    // argument area. Code relies on the bytes before the cursor, which the host is not given, and
    // on outputs having no more bits than their variables: `cut_outputs`.
    unsafe {
        show_packet(&*env, site, slot);
        let (words, call_site, payload, _) = extern_call(&*env, site, slot);
        let continues = (*(*(*env).host).0).call_extern(site as usize, slot as usize, payload, words);
        call_site.cut_outputs(words);
        u64::from(!continues)
    }
}

/// Shows the host the packet of a call of a registered extern.
///
/// # Safety
/// As for [`extern_call`].
unsafe fn show_packet(env: &Env, site: u64, slot: u64) {
    // SAFETY: the caller's promises. The slot's packet is as long as its row says, and the host has
    // a shared reference to it while no code runs and nothing else refers to its bytes.
    unsafe {
        let packet = *env.context.add(ROW_PACKET * ROW_STRIDE + slot as usize) as *const u8;
        let length = *env.context.add(ROW_LENGTH * ROW_STRIDE + slot as usize) as usize;
        let consumed = (*env.arguments as usize / 8).min(length);
        let packet = std::slice::from_raw_parts(packet, length);
        (*(*env.host).0).before_extern(site as usize, slot as usize, packet, consumed);
    }
}

/// The argument area, the call site, and the packet from the parser's position on.
///
/// # Safety
/// As for the runtime functions (see the module); the area holds a call of this site, whose first
/// word is the cursor.
unsafe fn extern_call<'a>(env: &Env, site: u64, slot: u64) -> (&'a mut [u64], &'a CallSite, &'a mut [u8], usize) {
    // SAFETY: the caller's promises. The argument area has `argument_words`, enough for each call
    // site, and eight more. The slot's packet is as long as its row says; its frame is borrowed
    // mutably by the run, and nothing else refers to its bytes while no code runs.
    unsafe {
        let compiled = &*env.compiled;
        let area = std::slice::from_raw_parts_mut(env.arguments, compiled.sites.argument_words + 8);
        let packet = *env.context.add(ROW_PACKET * ROW_STRIDE + slot as usize) as *mut u8;
        let length = *env.context.add(ROW_LENGTH * ROW_STRIDE + slot as usize) as usize;
        let consumed = (area[0] as usize / 8).min(length);
        let payload = std::slice::from_raw_parts_mut(packet.add(consumed), length - consumed);
        let site = &compiled.sites.calls[site as usize];
        (&mut area[2..2 + site.extern_words()], site, payload, consumed)
    }
}

/// Begins a call of a registered extern for which packets may wait. Its result goes to the last
/// word.
pub(crate) unsafe extern "C" fn begin_extern(env: *mut Env, site: u64, slot: u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module), after it has filled the
    // argument area. Code relies on the bytes before the cursor, which the host cannot change.
    unsafe {
        show_packet(&*env, site, slot);
        let (words, _, payload, consumed) = extern_call(&*env, site, slot);
        if let Some((waits, words)) = words.split_last_mut() {
            let host = &mut *(*(*env).host).0;
            *waits = u64::from(host.begin_extern(site as usize, slot as usize, consumed, payload, words));
        }
    }
    0
}

/// Finishes a call: its outputs are the words. Returns 1 for a drop.
pub(crate) unsafe extern "C" fn finish_extern(env: *mut Env, site: u64, slot: u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module). Code relies on outputs having
    // no more bits than their variables: `cut_outputs`.
    unsafe {
        let (words, call_site, _, _) = extern_call(&*env, site, slot);
        let continues = (*(*(*env).host).0).finish_extern(site as usize, slot as usize, words);
        call_site.cut_outputs(words);
        u64::from(!continues)
    }
}

/// Counts the packet of a slot.
pub(crate) unsafe extern "C" fn count(env: *mut Env, counter: u64, index: u64, slot: u64) {
    // SAFETY: a segment calls with its environment (see the module), whose host has no other user
    // during the call.
    unsafe { (*(*(*env).host).0).count(counter as usize, index, slot as usize) }
}

/// Unpacks the number of an array, and that of a scalar in its cells.
fn array_and_scalar(packed: u64) -> (usize, usize) {
    ((packed >> 16) as usize, (packed & 0xffff) as usize)
}

/// Reads a scalar of a cell, through the host.
pub(crate) unsafe extern "C" fn read_cell(env: *mut Env, packed: u64, index: u64) -> u64 {
    let (array, scalar) = array_and_scalar(packed);
    // SAFETY: a segment calls with its environment (see the module), whose host has no other user
    // during the call.
    unsafe { (*(*(*env).host).0).read_cell(array, scalar, index) }
}

/// Writes a scalar of a cell, through the host.
pub(crate) unsafe extern "C" fn write_cell(env: *mut Env, packed: u64, index: u64, value: u64) {
    let (array, scalar) = array_and_scalar(packed);
    // SAFETY: a segment calls with its environment (see the module), whose host has no other user
    // during the call.
    unsafe { (*(*(*env).host).0).write_cell(array, scalar, index, value) }
}

/// Hashes bytes of the argument area.
pub(crate) unsafe extern "C" fn hash(env: *mut Env, algorithm: u64, bytes: u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module), after it has put `bytes` bytes
    // into the argument area.
    unsafe {
        let data = std::slice::from_raw_parts((*env).arguments.cast::<u8>(), bytes as usize);
        (*(*(*env).host).0).hash(algorithm as u32, data)
    }
}

/// Whether keys are a member of a value set.
pub(crate) unsafe extern "C" fn value_set(env: *mut Env, set: u64, keys: *const u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module), after it has put the set's
    // keys into the argument area, each in whole words.
    unsafe {
        let env = &*env;
        let id = ValueSetId::new(set as usize);
        let compiled = &*env.compiled;
        let fields = &compiled.pipeline.program.value_sets[id].fields;
        let words = fields.iter().map(|f| f.width.div_ceil(64).max(1) as usize).sum();
        let keys = std::slice::from_raw_parts(keys, words);
        (*(*env.host).0).value_set_contains(id, keys).into()
    }
}

/// Evaluates an operation on values wider than a register. Returns a narrow result; a wide one is
/// written to its rows.
pub(crate) unsafe extern "C" fn wide(env: *mut Env, op: u64, first: *mut u64) -> u64 {
    // SAFETY: a segment calls with its environment (see the module). `first` is the packet's
    // column, in which the rows of the variables lie. Narrow operands are in the argument area, one
    // word each.
    unsafe {
        let env = &*env;
        let compiled = &*env.compiled;
        let op = &compiled.sites.wide_ops[op as usize];
        let mut operand_index = 0;
        let operands: Vec<Bits> = op
            .value
            .operands()
            .map(|o| {
                let index = operand_index;
                operand_index += 1;
                match o {
                    Operand::Const(c) => c.clone(),
                    Operand::Var(v) => {
                        let scalar = Scalar::from(compiled.vars[v.index()]);
                        match compiled.layout.rows[v.index()] {
                            Some(row) if !compiled.vars[v.index()].is_narrow() => {
                                scalar.read(&read_column(first.add(row * ROW_STRIDE), scalar.words()))
                            }
                            _ => Bits::from_words(scalar.width, &[*env.arguments.add(index)]),
                        }
                    }
                }
            })
            .collect();
        let mut next = operands.into_iter();
        let result = weir_ir::eval::rvalue(&op.value, op.width, |_| next.next().unwrap_or(Bits::zero(0)));
        match op.dst {
            None => result.to_u64_saturating(),
            Some(v) => {
                let scalar = Scalar::from(compiled.vars[v.index()]);
                let mut words = vec![0; scalar.words()];
                scalar.write(&mut words, &result);
                if let Some(row) = compiled.layout.rows[v.index()] {
                    for (i, word) in words.into_iter().enumerate() {
                        *first.add((row + i) * ROW_STRIDE) = word;
                    }
                }
                0
            }
        }
    }
}

/// Copies a varbit from the packet to the scratch area.
pub(crate) unsafe extern "C" fn varbit_store(_: *mut Env, from: *const u8, bits: u64, to: *mut u8) {
    // SAFETY: code checked that the packet has these bits, and that the variable may have that
    // many. The scratch area has room for every header at its longest.
    unsafe { std::ptr::copy_nonoverlapping(from, to, (bits / 8) as usize) };
}

/// The sum of the 16-bit words of a varbit, in the machine's byte order. It is 0 only if all are.
pub(crate) unsafe extern "C" fn varbit_sum(_: *mut Env, from: *const u8, bits: u64, first_bit: u64) -> u64 {
    // SAFETY: code checked that the packet has these bits.
    let bytes = unsafe { std::slice::from_raw_parts(from, (bits / 8) as usize) };
    // The first bit is bit `first_bit` of the sum: `lead` bits precede it in its 16-bit word.
    let lead = first_bit % 16;
    if lead == 0 {
        let (words, rest) = bytes.as_chunks::<2>();
        let last = rest.first().map_or(0, |b| u16::from_ne_bytes([*b, 0]));
        return words
            .iter()
            .map(|w| u16::from_ne_bytes(*w))
            .chain([last])
            .map(u64::from)
            .sum();
    }
    let mut bits = crate::bits::Accumulator::new(lead as u32);
    bytes.iter().for_each(|&b| bits.push(b));
    let mut sum = bits.sum();
    while sum > u16::MAX.into() {
        sum = (sum >> 16) + (sum & u64::from(u16::MAX));
    }
    (sum as u16).to_be().into()
}
