//! How code calls what is not code: the functions of [`crate::run::calls`].

use crate::codegen::env;
use crate::error::CompileError;
use crate::run::calls;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, InstBuilder, MemFlagsData, Signature, Value, types};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module};

/// A function of the runtime. All take the environment first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeFunction {
    /// `(site, slot) -> abort`
    Call,
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
    const ALL: [Self; 9] = [
        Self::Call,
        Self::Count,
        Self::Hash,
        Self::ValueSet,
        Self::Wide,
        Self::VarbitStore,
        Self::VarbitSum,
        Self::ReadCell,
        Self::WriteCell,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Call => "weir_call",
            Self::Count => "weir_count",
            Self::Hash => "weir_hash",
            Self::ValueSet => "weir_value_set",
            Self::Wide => "weir_wide",
            Self::VarbitStore => "weir_varbit_store",
            Self::VarbitSum => "weir_varbit_sum",
            Self::ReadCell => "weir_read_cell",
            Self::WriteCell => "weir_write_cell",
        }
    }

    fn address(self) -> *const u8 {
        match self {
            Self::Call => calls::call as *const u8,
            Self::Count => calls::count as *const u8,
            Self::Hash => calls::hash as *const u8,
            Self::ValueSet => calls::value_set as *const u8,
            Self::Wide => calls::wide as *const u8,
            Self::VarbitStore => calls::varbit_store as *const u8,
            Self::VarbitSum => calls::varbit_sum as *const u8,
            Self::ReadCell => calls::read_cell as *const u8,
            Self::WriteCell => calls::write_cell as *const u8,
        }
    }

    /// Parameters besides the environment.
    fn parameters(self) -> usize {
        match self {
            Self::Call | Self::Hash | Self::ValueSet | Self::Wide | Self::ReadCell => 2,
            Self::Count | Self::VarbitStore | Self::VarbitSum | Self::WriteCell => 3,
        }
    }

    fn returns(self) -> bool {
        match self {
            Self::Call | Self::Hash | Self::ValueSet | Self::Wide | Self::VarbitSum | Self::ReadCell => true,
            Self::Count | Self::VarbitStore | Self::WriteCell => false,
        }
    }

    /// Whether a call leaves all registers as they are, and finds its arguments in memory. It then takes some fifty instructions longer, and
    /// packets that do without the call pay nothing for it: where a loop has a call that may use every register that C's convention
    /// lets it, or wants its arguments in some of them, what the loop needs all the time is moved to and fro for every packet.
    fn is_rare(self) -> bool {
        match self {
            Self::Call | Self::Wide | Self::VarbitStore | Self::VarbitSum => true,
            Self::Count | Self::Hash | Self::ValueSet | Self::ReadCell | Self::WriteCell => false,
        }
    }

    /// As C calls it.
    fn signature(self, module: &JITModule) -> Signature {
        let mut signature = module.make_signature();
        signature.params = vec![AbiParam::new(types::I64); 1 + self.parameters()];
        if self.returns() {
            signature.returns.push(AbiParam::new(types::I64));
        }
        signature
    }
}

/// Makes the addresses known.
pub(crate) fn add_symbols(builder: &mut JITBuilder) {
    for function in RuntimeFunction::ALL {
        builder.symbol(function.name(), function.address());
    }
}

/// The functions as a module knows them.
pub(crate) struct Runtime([FuncId; RuntimeFunction::ALL.len()]);

impl Runtime {
    pub(crate) fn new(module: &mut JITModule, frontend: &mut FunctionBuilderContext) -> Result<Self, CompileError> {
        let mut ids = Vec::new();
        for function in RuntimeFunction::ALL {
            let signature = function.signature(module);
            let id = module
                .declare_function(function.name(), Linkage::Import, &signature)
                .map_err(codegen)?;
            ids.push(match function.is_rare() {
                true => preserving(function, id, module, frontend)?,
                false => id,
            });
        }
        match ids.try_into() {
            Ok(ids) => Ok(Runtime(ids)),
            Err(_) => unreachable!("one for each"),
        }
    }

    /// What one function of the module calls.
    pub(crate) fn import(&self, module: &mut JITModule, function: &mut Function) -> Imported {
        Imported(self.0.map(|id| import(id, module, function)))
    }
}

/// The functions as one function of the module knows them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Imported([FuncRef; RuntimeFunction::ALL.len()]);

impl Imported {
    /// Emits a call; its value if there is one.
    pub(crate) fn call(
        &self,
        function: RuntimeFunction,
        env: Value,
        arguments: &[Value],
        b: &mut FunctionBuilder<'_>,
    ) -> Option<Value> {
        let function_ref = self.0[function as usize];
        if !function.is_rare() {
            let all: Vec<Value> = std::iter::once(env).chain(arguments.iter().copied()).collect();
            let call = b.ins().call(function_ref, &all);
            return b.inst_results(call).first().copied();
        }
        for (offset, argument) in words().zip(arguments) {
            b.ins().store(memory(), *argument, env, offset);
        }
        b.ins().call(function_ref, &[env]);
        match function.returns() {
            true => Some(b.ins().load(types::I64, memory(), env, env::EXCHANGE)),
            false => None,
        }
    }
}

/// Where arguments and the result of a rare call lie in the environment.
fn words() -> impl Iterator<Item = i32> {
    (env::EXCHANGE..).step_by(8)
}

fn memory() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

fn import(id: FuncId, module: &mut JITModule, function: &mut Function) -> FuncRef {
    let reference = module.declare_func_in_func(id, function);
    // Called by its whole address: nothing says that code lies within 2 GiB of other code.
    function.dfg.ext_funcs[reference].colocated = false;
    reference
}

/// Code that calls a function with arguments from the environment, where it leaves the value, and keeps all registers.
fn preserving(
    function: RuntimeFunction,
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
    for offset in words().take(function.parameters()) {
        arguments.push(b.ins().load(types::I64, memory(), env, offset));
    }
    let call = b.ins().call(callee, &arguments);
    if let Some(&value) = b.inst_results(call).first() {
        b.ins().store(memory(), value, env, env::EXCHANGE);
    }
    b.ins().return_(&[]);
    b.seal_all_blocks();
    let config = module.target_config();
    b.finalize(config);
    let id = module
        .declare_anonymous_function(&context.func.signature)
        .map_err(codegen)?;
    module.define_function(id, &mut context).map_err(codegen)?;
    Ok(id)
}

fn codegen(error: impl std::fmt::Display) -> CompileError {
    CompileError::Codegen(error.to_string())
}
