//! What calls the services and what provides them.

use std::error::Error;
use tonic_prost_build::manual::{Builder, Method, Service};

/// How messages travel that may be long: writes, whose list stays bytes, and what clients are answered (`src/codec.rs`).
const LONG: &str = "crate::codec::SmallBuffers";

/// Of questions, and of pipelines with what describes them.
const MEDIUM: &str = "crate::codec::Limited::<_, _, { 16 << 20 }>";

/// Of everything else: no list in it becomes much larger. The P4Runtime specification wants 4 MiB at least.
const SHORT: &str = "crate::codec::Limited::<_, _, { 4 << 20 }>";

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
        .codec_path(LONG)
        .compile_fds_with_config(descriptors, config)?)
}

/// The services for servers: with messages whose long lists stay bytes (`src/listed.rs`), and with a limit for each kind.
fn for_servers() {
    let method = |name: &str, route: &str, input: &str, output: &str, codec: &str| {
        let path = |ty: &str| format!("crate::{ty}");
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(path(input))
            .output_type(path(output))
            .codec_path(codec)
    };
    let service = |name: &str, package: &str, raw: &str, module: &str, comment: &str, answer: &str| {
        let of = |ty: &str| format!("{module}::{ty}");
        let config = |name: &str, of_what: &str, codec: &str| {
            let request = match codec == MEDIUM {
                true => format!("{raw}::{of_what}Request"),
                false => of(&format!("{of_what}Request")),
            };
            let response = of(&format!("{of_what}Response"));
            method(name, of_what, &request, &response, codec).build()
        };
        let read = method("read", "Read", &format!("{raw}::ReadRequest"), answer, MEDIUM);
        let (from, to) = (of("StreamMessageRequest"), of("StreamMessageResponse"));
        let stream = method("stream_channel", "StreamChannel", &from, &to, SHORT);
        Service::builder()
            .name(name)
            .package(package)
            .comment(comment)
            .method(
                method(
                    "write",
                    "Write",
                    &format!("{raw}::WriteRequest"),
                    &of("WriteResponse"),
                    LONG,
                )
                .build(),
            )
            .method(read.server_streaming().build())
            .method(config(
                "set_forwarding_pipeline_config",
                "SetForwardingPipelineConfig",
                MEDIUM,
            ))
            .method(config(
                "get_forwarding_pipeline_config",
                "GetForwardingPipelineConfig",
                SHORT,
            ))
            .method(stream.client_streaming().server_streaming().build())
    };
    let bfrt = service(
        "BfRuntime",
        "bfrt_proto",
        "bfrt_raw",
        "bfrt_proto",
        "BF Runtime: the control API of Tofino switches.",
        "bfrt_raw::ReadResponse",
    );
    let p4 = service(
        "P4Runtime",
        "p4.v1",
        "p4rt_raw",
        "p4::v1",
        "P4Runtime: the control API of P4 targets.",
        "p4::v1::ReadResponse",
    );
    let (request, response) = ("p4::v1::CapabilitiesRequest", "p4::v1::CapabilitiesResponse");
    let p4 = p4.method(method("capabilities", "Capabilities", request, response, SHORT).build());
    Builder::new().build_client(false).compile(&[bfrt.build(), p4.build()]);
}
