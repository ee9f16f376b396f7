//! A program as BF Runtime's clients know it: its name, what describes it, and what came along with
//! it.

use super::schema::{self, Schema};
use crate::refusal::Refusal;
use prost::bytes::Bytes;
use std::sync::Arc;
use weir_compiler::bfrt::{Chip, bfrt_info, fixed_info};
use weir_proto::bfrt_info::BfrtInfo;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::forwarding_pipeline_config::Profile;

/// A program.
#[derive(Debug)]
pub(crate) struct Program {
    /// `p4_name`
    pub name: String,
    /// By the numbers of the description.
    pub schema: Arc<Schema>,
    /// The description, as JSON.
    info: Bytes,
    /// That of the device, as JSON.
    fixed: Bytes,
    /// What clients gave with the program, or what stands for it.
    profiles: Vec<Profile>,
}

/// The tables that a device has when it runs nothing.
pub(crate) fn device_json() -> Bytes {
    fixed_info(Chip::Tofino1).to_json().into()
}

impl Program {
    /// A program that was compiled by weir, with this name.
    ///
    /// # Errors
    /// It cannot be described.
    pub fn new(program: &weir_ir::Program, name: &str) -> Result<Self, Refusal> {
        let described = bfrt_info(program, weir_arch::targets()).map_err(|errors| {
            let list: Vec<String> = errors.iter().map(|e| e.with_places(program)).collect();
            Refusal::malformed(format!("the program has no bfrt.json: {}", list.join("; ")))
        })?;
        let fixed: BfrtInfo = fixed_info(Chip::of(program));
        let schema = schema::build(program, &described, &fixed)?;
        let profile = Profile {
            profile_name: "pipe".to_owned(),
            context: Bytes::new(),
            binary: weir_ir::print::print(program).into_bytes().into(),
            pipe_scope: vec![0],
        };
        Ok(Program {
            name: name.to_owned(),
            schema: Arc::new(schema),
            info: described.to_json().into(),
            fixed: fixed.to_json().into(),
            profiles: vec![profile],
        })
    }

    /// The same with what a client gave along.
    pub fn with_profiles(mut self, profiles: Vec<Profile>) -> Self {
        if !profiles.is_empty() {
            self.profiles = profiles;
        }
        self
    }

    /// As a client is told of it.
    pub fn config(&self) -> pb::ForwardingPipelineConfig {
        pb::ForwardingPipelineConfig {
            p4_name: self.name.clone(),
            bfruntime_info: self.info.clone(),
            profiles: self.profiles.clone(),
        }
    }

    /// The description of the device, as JSON.
    pub fn device(&self) -> Bytes {
        self.fixed.clone()
    }
}
