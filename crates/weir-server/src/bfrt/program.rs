//! A program as BF Runtime presents it: its name, its descriptions and the profiles given with it.

use super::schema::{self, Schema};
use crate::refusal::Refusal;
use prost::bytes::Bytes;
use std::sync::Arc;
use weir_compiler::bfrt::{Chip, bfrt_info, fixed_info};
use weir_proto::bfrt_info::BfrtInfo;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::forwarding_pipeline_config::Profile;

/// A program and its descriptions.
#[derive(Debug)]
pub(crate) struct Program {
    /// `p4_name`
    pub name: String,
    /// The index of its tables by id.
    pub schema: Arc<Schema>,
    /// The description of the program (`bfrt.json`).
    info: Bytes,
    /// The description of the device's own tables, in the same form.
    fixed: Bytes,
    /// The profiles that the client gave with the program, or a generated one.
    profiles: Vec<Profile>,
}

/// The description of a device that runs no program.
pub(crate) fn device_json() -> Bytes {
    fixed_info(Chip::Tofino1).to_json().into()
}

impl Program {
    /// Describes a program compiled by weir, under this name.
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

    /// Replaces the profiles by those of the client, if it gave any.
    pub fn with_profiles(mut self, profiles: Vec<Profile>) -> Self {
        if !profiles.is_empty() {
            self.profiles = profiles;
        }
        self
    }

    /// The config that clients read back.
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
