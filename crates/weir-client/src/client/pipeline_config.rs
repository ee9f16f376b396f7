//! Programs: reading the running one, and loading another.

use super::Client;
use crate::error::Error;
use crate::schema::{Protocol, Schema};
use crate::session;
use prost::Message;
use tonic::Code;
use weir_proto::bfrt_proto as bfrt;
use weir_proto::p4::v1 as p4;

/// A program for a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Config {
    /// For P4Runtime.
    P4Runtime {
        /// The description of the program.
        p4info: Box<weir_proto::p4::config::v1::P4Info>,
        /// The program for the target. For weir: P4 source, or the output of `weir build`.
        device_config: Vec<u8>,
        /// A number by which a controller recognises the program.
        cookie: Option<u64>,
    },
    /// For BF Runtime.
    BfRuntime {
        /// Its name.
        program: String,
        /// Its `bfrt.json`.
        bfrt_json: Vec<u8>,
        /// Name, context and binary of each pipe's profile.
        profiles: Vec<(String, Vec<u8>, Vec<u8>)>,
    },
}

/// What to do with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigAction {
    /// Check it only.
    Verify,
    /// Run it, with initial state.
    Commit,
    /// Run it; state of objects that both programs have is kept.
    Reconcile,
}

impl Client {
    /// Reads the running program from the target again.
    ///
    /// # Errors
    /// The target does not answer, or its answer is malformed.
    pub async fn refresh(&self) -> Result<(), Error> {
        let schema = match self.shared.options.protocol {
            Protocol::P4Runtime => self.p4runtime_schema().await?,
            Protocol::BfRuntime => self.bf_runtime_schema().await?,
        };
        self.shared.set_schema(schema);
        Ok(())
    }

    async fn p4runtime_schema(&self) -> Result<Schema, Error> {
        let request = p4::GetForwardingPipelineConfigRequest {
            device_id: self.shared.options.device_id,
            response_type: p4::get_forwarding_pipeline_config_request::ResponseType::P4infoAndCookie.into(),
        };
        let path = "/p4.v1.P4Runtime/GetForwardingPipelineConfig";
        let answer = self.shared.transport.unary(path, request.encode_to_vec().into()).await;
        let none = Schema::from_p4info(&weir_proto::p4::config::v1::P4Info::default());
        let answer = match answer {
            Ok(answer) => answer,
            // A target may have no program yet.
            Err(status) if status.code() == Code::FailedPrecondition => return Ok(none),
            Err(status) => return Err(Error::rpc("asking for the program", &status)),
        };
        let answer = p4::GetForwardingPipelineConfigResponse::decode(answer);
        let answer = answer.map_err(|e| Error::Malformed(e.to_string()))?;
        let info = answer.config.and_then(|c| c.p4info);
        Ok(info.map_or(none, |info| Schema::from_p4info(&info)))
    }

    async fn bf_runtime_schema(&self) -> Result<Schema, Error> {
        let options = &self.shared.options;
        let request = bfrt::GetForwardingPipelineConfigRequest {
            device_id: u32::try_from(options.device_id).unwrap_or(u32::MAX),
            client_id: options.client_id,
        };
        let path = "/bfrt_proto.BfRuntime/GetForwardingPipelineConfig";
        let answer = self.shared.transport.unary(path, request.encode_to_vec().into()).await;
        let answer = answer.map_err(|status| Error::rpc("asking for the program", &status))?;
        let answer = bfrt::GetForwardingPipelineConfigResponse::decode(answer);
        let answer = answer.map_err(|e| Error::Malformed(e.to_string()))?;
        let fixed = answer.non_p4_config.map(|c| c.bfruntime_info).unwrap_or_default();
        let wanted = options.program.as_deref();
        let config = match wanted {
            Some("$SHARED") => None,
            Some(name) => {
                let names: Vec<&str> = answer.config.iter().map(|c| c.p4_name.as_str()).collect();
                let found = crate::schema::find("program", "", name, names.into_iter())?;
                answer.config.get(found)
            }
            None => answer.config.first(),
        };
        let program = config.map_or("$SHARED", |c| c.p4_name.as_str());
        let texts = config.map(|c| &c.bfruntime_info[..]).into_iter().chain([&fixed[..]]);
        let texts: Vec<&[u8]> = texts.filter(|t| !t.is_empty()).collect();
        Schema::from_bfrt_json(program, &texts).map_err(|e| Error::Malformed(e.to_string()))
    }

    /// Loads a program.
    ///
    /// # Errors
    /// The target refuses it, or the config is for the other protocol.
    pub async fn set_program(&self, config: &Config, action: ConfigAction) -> Result<(), Error> {
        let (path, request) = match (self.shared.options.protocol, config) {
            (
                Protocol::P4Runtime,
                Config::P4Runtime {
                    p4info,
                    device_config,
                    cookie,
                },
            ) => {
                use p4::set_forwarding_pipeline_config_request::Action;
                let options = &self.shared.options;
                let request = p4::SetForwardingPipelineConfigRequest {
                    device_id: options.device_id,
                    role: options.role.clone(),
                    election_id: Some(session::election(options.election_id)),
                    action: match action {
                        ConfigAction::Verify => Action::Verify,
                        ConfigAction::Commit => Action::VerifyAndCommit,
                        ConfigAction::Reconcile => Action::ReconcileAndCommit,
                    }
                    .into(),
                    config: Some(p4::ForwardingPipelineConfig {
                        p4info: Some((**p4info).clone()),
                        p4_device_config: device_config.clone(),
                        cookie: cookie.map(|cookie| p4::forwarding_pipeline_config::Cookie { cookie }),
                    }),
                    ..p4::SetForwardingPipelineConfigRequest::default()
                };
                ("/p4.v1.P4Runtime/SetForwardingPipelineConfig", request.encode_to_vec())
            }
            (
                Protocol::BfRuntime,
                Config::BfRuntime {
                    program,
                    bfrt_json,
                    profiles,
                },
            ) => (
                "/bfrt_proto.BfRuntime/SetForwardingPipelineConfig",
                self.bf_runtime_config(program, bfrt_json, profiles, action)?,
            ),
            _ => return Err(Error::Unsupported("the program is for the other protocol".to_owned())),
        };
        let answer = self.shared.transport.unary(path, request.into()).await;
        answer.map_err(|status| Error::rpc("loading the program", &status))?;
        if action == ConfigAction::Verify {
            return Ok(());
        }
        self.refresh().await
    }

    fn bf_runtime_config(
        &self,
        program: &str,
        bfrt_json: &[u8],
        profiles: &[(String, Vec<u8>, Vec<u8>)],
        action: ConfigAction,
    ) -> Result<Vec<u8>, Error> {
        use bfrt::set_forwarding_pipeline_config_request::Action;
        let options = &self.shared.options;
        let action = match action {
            ConfigAction::Verify => Action::Verify,
            ConfigAction::Commit => Action::VerifyAndWarmInitBeginAndEnd,
            ConfigAction::Reconcile => {
                return Err(Error::Unsupported(
                    "BF Runtime keeps no state from one program to the next in one request".to_owned(),
                ));
            }
        };
        let profiles = profiles
            .iter()
            .map(|(name, context, binary)| bfrt::forwarding_pipeline_config::Profile {
                profile_name: name.clone(),
                context: context.clone().into(),
                binary: binary.clone().into(),
                pipe_scope: Vec::new(),
            });
        let request = bfrt::SetForwardingPipelineConfigRequest {
            device_id: u32::try_from(options.device_id).unwrap_or(u32::MAX),
            client_id: options.client_id,
            action: action.into(),
            config: vec![bfrt::ForwardingPipelineConfig {
                p4_name: program.to_owned(),
                bfruntime_info: bfrt_json.to_vec().into(),
                profiles: profiles.collect(),
            }],
            ..bfrt::SetForwardingPipelineConfigRequest::default()
        };
        Ok(request.encode_to_vec())
    }
}
