//! The registered externs of a program: each call resolved, and its declaration checked, when the
//! program is loaded.
//!
//! Relies on [`weir_extern_api`] for what externs are. The externs of architectures are not here:
//! each architecture resolves its own.

use crate::error::{LoadError, place};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use weir_extern_api::{
    Call as ExternCall, Extern, Keys, Object, Outcome, Parameter, ParameterKind, Payload, PayloadAccess, Registry,
    Signature,
};
use weir_interp::{ArgValue, BitBuffer, BodyKey, CallContext, CallEffect, CallSites, InValue, PacketState};
use weir_ir::pipeline::{CallKind, PayloadUse};
use weir_ir::{
    Argument, ArgumentValue, Bits, BlockKind, Call, Execution, ExternId, ExternInstance, InLeaf, Loc, Operand, Program,
    Type, TypeSpec, VarId,
};

/// The longest packet that an extern may make, in bytes.
const MAX_PACKET: usize = 65_535;

/// The key by which calls are distinguished that may differ in signature or execution: an action
/// may be called within `@async` and outside.
type CallKey = (Option<ExternId>, String, Vec<TypeSpec>, Execution, Loc);

/// A call of a registered extern.
pub struct BoundCall {
    /// Its name in messages: `rotate`, or `esp_gcm.seal`.
    pub name: String,
    /// Its parameters, and where their words are.
    pub signature: Signature,
    /// Whether packets may wait for it.
    pub execution: Execution,
    /// Where it stands in the source.
    pub loc: Loc,
    /// Its number among the calls of registered externs of the program.
    pub number: usize,
    function: Arc<dyn Extern>,
}

/// The registered externs that a program uses.
#[derive(Clone, Default)]
pub struct BoundExterns {
    /// By number.
    calls: Vec<Arc<BoundCall>>,
    numbers: HashMap<CallKey, usize>,
    objects: Vec<Option<Arc<dyn Object>>>,
    types: Vec<String>,
}

impl fmt::Debug for BoundCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BoundCall({})", self.name)
    }
}

impl fmt::Debug for BoundExterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundExterns").field("calls", &self.calls).finish()
    }
}

impl BoundExterns {
    /// Resolves the calls that `is_own` says are none of the architecture's. Names that the
    /// registry does not have are left to the architecture to report.
    ///
    /// # Errors
    /// Instances that cannot be made, and calls that are not possible: all of them.
    pub fn new(
        program: &Program,
        sites: &CallSites,
        registry: &Registry,
        is_own: impl Fn(&Call, Loc) -> bool,
    ) -> Result<Self, Vec<LoadError>> {
        let mut errors = Vec::new();
        let mut bound = BoundExterns {
            calls: Vec::new(),
            numbers: HashMap::new(),
            objects: vec![None; program.externs.len()],
            types: Vec::new(),
        };
        for (id, instance) in program.externs.iter() {
            if PayloadAccess::of_type(&instance.type_name).is_some() {
                bound.types.push(instance.type_name.clone());
            } else if let Some(constructor) = registry.find_type(&instance.type_name) {
                bound.types.push(instance.type_name.clone());
                let made = constructor(instance, registry.files()).and_then(|object| {
                    check_keys(instance, &*object)?;
                    Ok(object)
                });
                match made {
                    Ok(object) => bound.objects[id.index()] = Some(object),
                    Err(problem) => errors.push(LoadError::BadExtern {
                        problem: format!("`{}`: {problem}", instance.name),
                        place: place(program, instance.loc),
                    }),
                }
            }
        }
        for (_, body, call, loc) in sites.iter(program) {
            let result = match is_own(call, loc) {
                true => own_is_inline(call).map(|()| None),
                false => bound.bind(program, registry, body, call, loc),
            };
            match result {
                Ok(None) => {}
                Ok(Some(made)) => bound.add(key(call, loc), made),
                Err(problem) => errors.push(LoadError::BadExtern {
                    problem,
                    place: place(program, loc),
                }),
            }
        }
        if errors.is_empty() { Ok(bound) } else { Err(errors) }
    }

    /// Adds a call. The copies that inlining makes of one call count once.
    fn add(&mut self, key: CallKey, made: BoundCall) {
        self.numbers.entry(key).or_insert_with(|| {
            self.calls.push(Arc::new(made));
            self.calls.len() - 1
        });
    }

    /// A call; `None`: no such extern is registered.
    fn bind(
        &self,
        program: &Program,
        registry: &Registry,
        body: BodyKey,
        call: &Call,
        loc: Loc,
    ) -> Result<Option<BoundCall>, String> {
        let found = match call.instance {
            None => registry.find_function(&call.function).cloned(),
            Some(id) => self.objects[id.index()].as_ref().and_then(|o| o.method(&call.function)),
        };
        let Some(function) = found else { return Ok(None) };
        let name = match call.instance {
            None => call.function.clone(),
            Some(id) => format!("{}.{}", program.externs[id].type_name, call.function),
        };
        let signature = signature(program, call).map_err(|problem| format!("`{name}`: {problem}"))?;
        match body {
            BodyKey::Method(..) => {
                return Err(format!(
                    "`{name}` cannot be called in a method: methods run as one atomic step"
                ));
            }
            BodyKey::Block(block) => {
                let is_parser = program.blocks.get(block).is_some_and(|b| b.kind == BlockKind::Parser);
                if is_parser && signature.payload().is_some() {
                    return Err(format!(
                        "`{name}` accesses the payload, which begins where the parser ends: call it in a control"
                    ));
                }
                if is_parser && call.execution != Execution::Inline {
                    return Err(format!("`{name}` cannot be @async in a parser: call it in a control"));
                }
            }
        }
        function
            .check(&signature)
            .map_err(|problem| format!("`{name}` is declared in another way than its implementation: {problem}"))?;
        Ok(Some(BoundCall {
            name,
            signature,
            execution: call.execution,
            loc,
            number: self.calls.len(),
            function,
        }))
    }

    /// The call, if it is one of a registered extern.
    #[must_use]
    pub fn find(&self, call: &Call, loc: Loc) -> Option<&Arc<BoundCall>> {
        let number = match call.execution {
            Execution::Begin(number) | Execution::Finish(number) => number,
            Execution::Inline | Execution::Async(_) if self.calls.is_empty() => return None,
            Execution::Inline | Execution::Async(_) => *self.numbers.get(&key(call, loc))?,
        };
        self.calls.get(number)
    }

    /// The calls of the program's text, by their numbers.
    pub fn calls(&self) -> impl Iterator<Item = &Arc<BoundCall>> {
        self.calls.iter()
    }

    /// Number of different calls of registered externs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether the program calls no registered extern.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether instances may have this type.
    #[must_use]
    pub fn has_type(&self, name: &str) -> bool {
        self.types.iter().any(|known| known == name)
    }

    /// The object of an instance.
    #[must_use]
    pub fn object(&self, instance: ExternId) -> Option<&Arc<dyn Object>> {
        self.objects.get(instance.index())?.as_ref()
    }
}

/// Checks that an object has the keys that `@keys` promises to control planes.
fn check_keys(instance: &ExternInstance, object: &dyn Object) -> Result<(), String> {
    let Some(declared) = instance.key_count() else {
        return Ok(());
    };
    let found = object.keys().map_or(0, Keys::count);
    if found == declared {
        return Ok(());
    }
    Err(format!(
        "`{}` is declared with @keys and {declared} keys, but its implementation has {found}",
        instance.type_name
    ))
}

fn key(call: &Call, loc: Loc) -> CallKey {
    (
        call.instance,
        call.function.clone(),
        call.type_arguments.clone(),
        call.execution,
        loc,
    )
}

/// Externs of an architecture access state that other packets access in order.
fn own_is_inline(call: &Call) -> Result<(), String> {
    match call.execution {
        Execution::Inline | Execution::Begin(_) | Execution::Finish(_) => Ok(()),
        Execution::Async(_) => Err(format!(
            "`{}` cannot be @async: it is an extern of the architecture, whose state other packets read and write",
            call.function
        )),
    }
}

/// The signature of a call, from the widths of its arguments.
fn signature(program: &Program, call: &Call) -> Result<Signature, String> {
    let parameters = call.arguments.iter().map(|argument| parameter(program, argument));
    let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
    let results = widths(program, &call.results)?;
    Ok(Signature::new(parameters, &results))
}

fn parameter(program: &Program, argument: &Argument) -> Result<Parameter, String> {
    let name = &argument.name;
    Ok(match &argument.value {
        ArgumentValue::In(leaves) => {
            let mut all = Vec::new();
            for leaf in leaves {
                match leaf {
                    InLeaf::Value(Operand::Const(c)) => all.push(c.width()),
                    InLeaf::Value(Operand::Var(var)) => all.extend(widths(program, &[*var])?),
                    InLeaf::Header(header) => {
                        all.push(1);
                        all.extend(widths(program, &program.headers[*header].fields)?);
                    }
                }
            }
            Parameter::input(name, &all)
        }
        ArgumentValue::Out(vars) => Parameter::output(name, &widths(program, vars)?),
        ArgumentValue::InOut(vars) => Parameter::in_out(name, &widths(program, vars)?),
        ArgumentValue::String(text) => Parameter::text(name, text),
        ArgumentValue::Extern(id) => {
            let type_name = &program.externs[*id].type_name;
            match PayloadAccess::of_type(type_name) {
                Some(access) => Parameter::payload(name, access),
                None => return Err(format!("an instance of `{type_name}` cannot be passed in `{name}`")),
            }
        }
        ArgumentValue::Packet => return Err(format!("the packet cannot be passed in `{name}`: pass a payload")),
    })
}

fn widths(program: &Program, vars: &[VarId]) -> Result<Vec<u32>, String> {
    let width = |var: &VarId| match program.vars[*var].ty {
        Type::Bits(width) => Ok(width),
        Type::Varbit(_) => Err(format!(
            "`{}` is a varbit, which cannot be passed",
            program.vars[*var].name
        )),
    };
    vars.iter().map(width).collect()
}

impl BoundCall {
    /// The description of a call in a pipeline for engines. `abort`: the exit of packets that the
    /// extern drops.
    pub(crate) fn kind(&self, call: &Call, abort: u32) -> CallKind {
        let payload = match self.signature.payload() {
            None => PayloadUse::None,
            Some(PayloadAccess::Read) => PayloadUse::Read,
            Some(PayloadAccess::Write | PayloadAccess::Resize) => PayloadUse::Write,
        };
        match call.execution {
            Execution::Inline | Execution::Async(_) => CallKind::Extern { payload, abort },
            Execution::Begin(_) => CallKind::ExternBegin,
            Execution::Finish(_) => CallKind::ExternFinish { abort },
        }
    }

    /// Whether a packet may wait for it: it is `@async`, or it needs room after the packet, which
    /// there is only in the memory of packets that wait.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.needs_room() || matches!(self.execution, Execution::Async(_))
    }

    /// Whether it may make the payload longer or shorter.
    #[must_use]
    pub fn needs_room(&self) -> bool {
        self.signature.payload() == Some(PayloadAccess::Resize)
    }

    /// Whether it may change bytes of the payload, or their number.
    #[must_use]
    pub fn changes_payload(&self) -> bool {
        self.signature.payload() > Some(PayloadAccess::Read)
    }

    /// The most bytes by which a payload of this length may grow.
    #[must_use]
    pub fn growth(&self, payload_bytes: usize) -> usize {
        match self.needs_room() {
            true => self.function.growth(payload_bytes),
            false => 0,
        }
    }

    /// Copies the words of `out` and `inout` arguments and of the results to `to`, in their order.
    pub fn copy_outputs(&self, words: &[u64], to: &mut [u64]) {
        let mut to = to.iter_mut();
        let mut copy = |from: std::ops::Range<usize>| {
            for (word, to) in words[from].iter().zip(&mut to) {
                *to = *word;
            }
        };
        for parameter in self.signature.parameters() {
            if let ParameterKind::Values {
                is_output: true,
                widths,
                first_word,
                ..
            } = &parameter.kind
            {
                let count: usize = widths.iter().map(|w| Bits::words_of(*w)).sum();
                copy(*first_word..first_word + count);
            }
        }
        copy(self.signature.first_result()..self.signature.words());
    }

    /// Executes it with these words and bytes `start..end` of this memory as the payload, which may
    /// grow to the memory's end. Gives the payload's new end, too.
    #[must_use]
    pub fn execute_in(&self, words: &mut [u64], memory: &mut [u8], start: usize, end: usize) -> (Outcome, usize) {
        let payload = self.signature.payload().and_then(|_| Payload::new(memory, start, end));
        let mut call = ExternCall::new(&self.signature, words, payload);
        let outcome = self.function.call(&mut call);
        (outcome, call.into_payload().map_or(end, |payload| payload.range().end))
    }

    /// As [`BoundCall::execute_in`], on the packet's own thread: an extern that panics drops the
    /// packet.
    #[must_use]
    pub fn execute_at_once(&self, words: &mut [u64], memory: &mut [u8], start: usize, end: usize) -> (Outcome, usize) {
        let execute = AssertUnwindSafe(|| self.execute_in(words, memory, start, end));
        catch_unwind(execute).unwrap_or((Outcome::Drop, end))
    }

    /// As [`BoundCall::execute_at_once`], with a payload that keeps its length.
    #[must_use]
    pub fn execute(&self, words: &mut [u64], payload: &mut [u8]) -> Outcome {
        let length = payload.len();
        self.execute_at_once(words, payload, 0, length).0
    }

    /// Executes it for the interpreter.
    pub(crate) fn perform(&self, context: &mut CallContext<'_>) -> CallEffect {
        let mut words = vec![0; self.signature.words()];
        let mut word_index = 0;
        for argument in context.args.iter() {
            each_scalar(argument, &mut |value| put(&mut words, &mut word_index, value));
        }
        let outcome = match self.signature.payload() {
            None => self.execute(&mut words, &mut []),
            Some(access) => self.with_payload(access, &mut words, context.packet),
        };
        word_index = 0;
        for argument in context.args.iter_mut() {
            match argument {
                ArgValue::Out(values) => {
                    for value in values {
                        *value = take(&words, &mut word_index, value.width());
                    }
                }
                ArgValue::In(_) | ArgValue::Static => {
                    each_scalar(argument, &mut |value| word_index += Bits::words_of(value.width()));
                }
            }
        }
        for value in context.results.iter_mut() {
            *value = take(&words, &mut word_index, value.width());
        }
        match outcome {
            Outcome::Continue => CallEffect::Continue,
            Outcome::Drop => CallEffect::Drop,
        }
    }

    fn with_payload(&self, access: PayloadAccess, words: &mut [u64], packet: &mut PacketState) -> Outcome {
        if access > PayloadAccess::Read && packet.received.is_none() {
            packet.received = Some(packet.bytes.clone());
        }
        // A payload that begins within a byte is shifted to whole bytes and back.
        let shifted = (!packet.cursor.is_multiple_of(8)).then(|| packet.payload());
        let (mut memory, start) = match shifted {
            Some(payload) => (payload, 0),
            None => {
                let bytes = std::mem::take(&mut packet.bytes);
                let start = (packet.cursor / 8).min(bytes.len());
                (bytes, start)
            }
        };
        let end = memory.len();
        if access == PayloadAccess::Resize {
            let room = self.function.growth(end - start).min(MAX_PACKET.saturating_sub(end));
            memory.resize(end + room, 0);
        }
        let (outcome, end) = self.execute_at_once(words, &mut memory, start, end);
        memory.truncate(end);
        if packet.cursor.is_multiple_of(8) {
            packet.bytes = memory;
        } else if access > PayloadAccess::Read {
            let mut whole = BitBuffer::new();
            let bits = u32::try_from(packet.cursor).unwrap_or(u32::MAX);
            if let Some(before) = weir_interp::read_bits(&packet.bytes, 0, bits) {
                whole.push(&before);
            }
            whole.push_rest(&memory, 0);
            packet.bytes = whole.into_bytes();
        }
        outcome
    }
}

/// The scalars of an argument as a signature counts them: those of invalid headers, too.
fn each_scalar(argument: &ArgValue, f: &mut dyn FnMut(&Bits)) {
    match argument {
        ArgValue::In(values) => {
            for value in values {
                match value {
                    InValue::Scalar(bits) => f(bits),
                    InValue::Header { valid, fields } => {
                        f(&Bits::bool(*valid));
                        fields.iter().for_each(&mut *f);
                    }
                }
            }
        }
        ArgValue::Out(values) => values.iter().for_each(f),
        ArgValue::Static => {}
    }
}

fn put(words: &mut [u64], word_index: &mut usize, value: &Bits) {
    let next = *word_index + Bits::words_of(value.width());
    value.to_words(&mut words[*word_index..next]);
    *word_index = next;
}

fn take(words: &[u64], word_index: &mut usize, width: u32) -> Bits {
    let next = *word_index + Bits::words_of(width);
    let value = Bits::from_words(width, &words[*word_index..next]);
    *word_index = next;
    value
}
