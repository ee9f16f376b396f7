//! What calls the services and what provides them.

use std::error::Error;
use tonic_prost_build::manual::{Builder, Method, MethodBuilder, Service, ServiceBuilder};

/// Which messages of a method are taken (`src/codec.rs`).
#[derive(Clone, Copy)]
enum Taken {
    /// All: those whose list stays bytes, and what clients are answered.
    All,
    /// Questions.
    Medium,
    /// What has no long list.
    Short,
}

impl Taken {
    fn codec(self) -> &'static str {
        match self {
            Taken::All => "crate::codec::SmallBuffers",
            Taken::Medium => "crate::codec::Limited::<_, _, crate::codec::Medium>",
            Taken::Short => "crate::codec::Limited::<_, _, crate::codec::Short>",
        }
    }
}

/// Messages, and as the features ask what calls the services and what provides them.
pub(crate) fn generate(
    config: prost_build::Config,
    descriptors: prost_types::FileDescriptorSet,
) -> Result<(), Box<dyn Error>> {
    if cfg!(feature = "server") {
        for_servers();
    }
    Ok(tonic_prost_build::configure()
        .build_client(cfg!(feature = "client"))
        // These would take messages without `Listed`.
        .build_server(false)
        .codec_path(Taken::All.codec())
        .compile_fds_with_config(descriptors, config)?)
}

/// The services for servers: with messages whose long lists stay bytes (`src/listed.rs`), and with
/// a limit for each kind.
fn for_servers() {
    let bfrt = Raw {
        messages: "crate::bfrt_proto",
        lists: "crate::bfrt_raw",
        answer: "crate::bfrt_raw::ReadResponse",
    };
    let p4 = Raw {
        messages: "crate::p4::v1",
        lists: "crate::p4rt_raw",
        answer: "crate::p4::v1::ReadResponse",
    };
    let capabilities = p4.method("capabilities", "Capabilities", Taken::Short);
    let services = [
        bfrt.service(
            "BfRuntime",
            "bfrt_proto",
            "BF Runtime: the control API of Tofino switches.",
        ),
        p4.service("P4Runtime", "p4.v1", "P4Runtime: the control API of P4 targets.")
            .method(capabilities.build()),
    ];
    Builder::new().build_client(false).compile(&services.map(|s| s.build()));
}

/// Where the messages of a service are.
struct Raw {
    messages: &'static str,
    /// Requests whose lists stay bytes.
    lists: &'static str,
    /// What a Read is answered with.
    answer: &'static str,
}

impl Raw {
    /// A method whose messages are named after it.
    fn method(&self, name: &str, route: &str, taken: Taken) -> MethodBuilder {
        let from = match taken {
            Taken::All | Taken::Medium => self.lists,
            Taken::Short => self.messages,
        };
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("{from}::{route}Request"))
            .output_type(format!("{}::{route}Response", self.messages))
            .codec_path(taken.codec())
    }

    fn service(&self, name: &str, package: &str, comment: &str) -> ServiceBuilder {
        let set = self.method(
            "set_forwarding_pipeline_config",
            "SetForwardingPipelineConfig",
            Taken::All,
        );
        let get = self.method(
            "get_forwarding_pipeline_config",
            "GetForwardingPipelineConfig",
            Taken::Short,
        );
        let read = self.method("read", "Read", Taken::Medium).output_type(self.answer);
        let stream = self
            .method("stream_channel", "StreamChannel", Taken::Short)
            .input_type(format!("{}::StreamMessageRequest", self.messages))
            .output_type(format!("{}::StreamMessageResponse", self.messages));
        Service::builder()
            .name(name)
            .package(package)
            .comment(comment)
            .method(self.method("write", "Write", Taken::All).build())
            .method(read.server_streaming().build())
            .method(set.build())
            .method(get.build())
            .method(stream.client_streaming().server_streaming().build())
    }
}
