//! Declares the runtime functions of [`crate::run::calls`] to Cranelift, and emits calls of them.
//!
//! The rare ones are called through a stub that preserves all registers.

use crate::codegen::{env, flags};
use crate::error::CompileError;
use crate::run::calls;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, InstBuilder, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

/// A function of the runtime. All take the environment first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeFunction {
    /// `(site, slot) -> abort`
    Call,
    /// `(site, slot) -> abort`
    CallExtern,
    /// `(site, slot) -> 0`
    BeginExtern,
    /// `(site, slot) -> abort`
    FinishExtern,
    /// `(counter, index, slot)`
    Count,
    /// `(algorithm, bytes) -> hash`
    Hash,
    /// `(set, keys) -> contains`
    ValueSet,
    /// `(op, column) -> narrow result`
    Wide,
    /// `(address, bits, destination)`
    VarbitStore,
    /// `(address, bits, bits summed before) -> sum`
    VarbitSum,
    /// `(array and scalar, index) -> value`
    ReadCell,
    /// `(array and scalar, index, value)`
    WriteCell,
}

impl RuntimeFunction {
    const ALL: [Self; 12] = [
        Self::Call,
        Self::CallExtern,
        Self::BeginExtern,
        Self::FinishExtern,
        Self::Count,
        Self::Hash,
        Self::ValueSet,
        Self::Wide,
        Self::VarbitStore,
        Self::VarbitSum,
        Self::ReadCell,
        Self::WriteCell,
    ];

    /// Name, address and signature of the function.
    fn description(self) -> Description {
        let often = |name, address, parameters, returns| Description {
            name,
            address,
            parameters,
            returns,
            is_rare: false,
        };
        let rarely = |name, address, parameters, returns| Description {
            is_rare: true,
            ..often(name, address, parameters, returns)
        };
        match self {
            Self::Call => rarely("weir_call", calls::call as *const u8, 2, true),
            Self::CallExtern => rarely("weir_call_extern", calls::call_extern as *const u8, 2, true),
            Self::BeginExtern => often("weir_begin_extern", calls::begin_extern as *const u8, 2, true),
            Self::FinishExtern => often("weir_finish_extern", calls::finish_extern as *const u8, 2, true),
            Self::Count => often("weir_count", calls::count as *const u8, 3, false),
            Self::Hash => often("weir_hash", calls::hash as *const u8, 2, true),
            Self::ValueSet => often("weir_value_set", calls::value_set as *const u8, 2, true),
            Self::Wide => rarely("weir_wide", calls::wide as *const u8, 2, true),
            Self::VarbitStore => rarely("weir_varbit_store", calls::varbit_store as *const u8, 3, false),
            Self::VarbitSum => rarely("weir_varbit_sum", calls::varbit_sum as *const u8, 3, true),
            Self::ReadCell => often("weir_read_cell", calls::read_cell as *const u8, 2, true),
            Self::WriteCell => often("weir_write_cell", calls::write_cell as *const u8, 3, false),
        }
    }
}

/// How a function is called.
struct Description {
    name: &'static str,
    address: *const u8,
    /// Parameters besides the environment.
    parameters: usize,
    returns: bool,
    /// Whether calls go through a stub that preserves all registers and passes arguments in memory.
    /// Such a call takes some fifty instructions more, but costs nothing to packets that do not
    /// make it. A call by C's convention inside the loop over packets would move the loop's values
    /// out of registers for every packet.
    is_rare: bool,
}

impl Description {
    /// The signature by C's convention.
    fn signature(&self, module: &JITModule) -> Signature {
        let mut signature = module.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 1 + self.parameters];
        if self.returns {
            signature.returns.push(AbiParam::new(types::I64));
        }
        signature
    }
}

/// Registers the functions' addresses.
pub(crate) fn add_symbols(builder: &mut JITBuilder) {
    for function in RuntimeFunction::ALL {
        let description = function.description();
        builder.symbol(description.name, description.address);
    }
}

/// The functions as declared in a module.
pub(crate) struct Runtime([FuncId; RuntimeFunction::ALL.len()]);

impl Runtime {
    pub(crate) fn new(module: &mut JITModule, frontend: &mut FunctionBuilderContext) -> Result<Self, CompileError> {
        let mut ids = Vec::new();
        for function in RuntimeFunction::ALL {
            let description = function.description();
            let signature = description.signature(module);
            let id = module
                .declare_function(description.name, Linkage::Import, &signature)
                .map_err(CompileError::codegen)?;
            ids.push(match description.is_rare {
                true => preserving(&description, id, module, frontend)?,
                false => id,
            });
        }
        match ids.try_into() {
            Ok(ids) => Ok(Runtime(ids)),
            Err(_) => unreachable!("one for each"),
        }
    }

    /// Declares the functions in one function of the module.
    pub(crate) fn import(&self, module: &mut JITModule, function: &mut Function) -> Imported {
        Imported(self.0.map(|id| import(id, module, function)))
    }
}

/// The functions as declared in one function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imported([FuncRef; RuntimeFunction::ALL.len()]);

impl Imported {
    /// Emits a call; returns its value if it has one.
    pub(crate) fn call(
        &self,
        function: RuntimeFunction,
        env: Value,
        arguments: &[Value],
        b: &mut FunctionBuilder<'_>,
    ) -> Option<Value> {
        let (function_ref, description) = (self.0[function as usize], function.description());
        if !description.is_rare {
            let all: Vec<Value> = std::iter::once(env).chain(arguments.iter().copied()).collect();
            let call = b.ins().call(function_ref, &all);
            return b.inst_results(call).first().copied();
        }
        for (offset, argument) in words().zip(arguments) {
            b.ins().store(flags(), *argument, env, offset);
        }
        b.ins().call(function_ref, &[env]);
        match description.returns {
            true => Some(b.ins().load(types::I64, flags(), env, env::EXCHANGE)),
            false => None,
        }
    }
}

/// Offsets of the arguments of a rare call in the environment. The first also takes the result.
fn words() -> impl Iterator<Item = i32> {
    (env::EXCHANGE..).step_by(8)
}

fn import(id: FuncId, module: &mut JITModule, function: &mut Function) -> FuncRef {
    let reference = module.declare_func_in_func(id, function);
    // Called by a 64-bit address: other code may be further away than 2 GiB.
    function.dfg.ext_funcs[reference].colocated = false;
    reference
}

/// A stub that preserves all registers: it loads the arguments from the environment, calls the
/// function, and stores the result there.
fn preserving(
    function: &Description,
    callee: FuncId,
    module: &mut JITModule,
    frontend: &mut FunctionBuilderContext,
) -> Result<FuncId, CompileError> {
    let mut context = module.make_context();
    context.func.signature.call_conv = CallConv::PreserveAll;
    context.func.signature.params.push(AbiParam::new(types::I64));
    let callee = import(callee, module, &mut context.func);
    let mut b = FunctionBuilder::new(&mut context.func, frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let env = b.block_params(entry)[0];
    let mut arguments = vec![env];
    for offset in words().take(function.parameters) {
        arguments.push(b.ins().load(types::I64, flags(), env, offset));
    }
    let call = b.ins().call(callee, &arguments);
    if let Some(&value) = b.inst_results(call).first() {
        b.ins().store(flags(), value, env, env::EXCHANGE);
    }
    b.ins().return_(&[]);
    b.seal_all_blocks();
    let config = module.target_config();
    b.finalize(config);
    let id = module
        .declare_anonymous_function(&context.func.signature)
        .map_err(CompileError::codegen)?;
    module
        .define_function(id, &mut context)
        .map_err(CompileError::codegen)?;
    Ok(id)
}
