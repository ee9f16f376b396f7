//! Compiles our .proto files without protoc.

use prost::Message;
use std::error::Error;
use std::path::PathBuf;

/// How messages travel (`src/codec.rs`).
#[cfg(any(feature = "client", feature = "server"))]
const CODEC: &str = "crate::codec::SmallBuffers";

const FILES: [&str; 4] = [
    "bfrt_proto/bfruntime.proto",
    "p4/config/v1/p4info.proto",
    "p4/v1/p4runtime.proto",
    "weir/v1/role.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    // The text form needs the descriptors at run time.
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    let mut config = prost_build::Config::new();
    config.btree_map(["."]);
    // Batches of many entries are not copied out of the request.
    config.bytes([".bfrt_proto"]);
    generate(config, descriptors)
}

#[cfg(any(feature = "client", feature = "server"))]
fn generate(config: prost_build::Config, descriptors: prost_types::FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    let services = tonic_prost_build::configure()
        .build_client(cfg!(feature = "client"))
        .build_server(cfg!(feature = "server"))
        .codec_path(CODEC);
    if cfg!(feature = "server") {
        raw_services();
    }
    Ok(services.compile_fds_with_config(descriptors, config)?)
}

#[cfg(not(any(feature = "client", feature = "server")))]
fn generate(
    mut config: prost_build::Config,
    descriptors: prost_types::FileDescriptorSet,
) -> Result<(), Box<dyn Error>> {
    Ok(config.compile_fds(descriptors)?)
}

/// Of messages that may be long: writes, whose list stays bytes.
const LONG: &str = CODEC;

/// Of questions, and of pipelines with what describes them.
const MEDIUM: &str = "crate::codec::Limited::<_, _, 16384>";

/// Of everything else: no list in it becomes much larger. The P4Runtime specification wants 4 MiB at least.
const SHORT: &str = "crate::codec::Limited::<_, _, 4096>";

/// The services for servers: with messages whose long lists stay bytes (`src/listed.rs`), and with a limit for each kind.
#[cfg(any(feature = "client", feature = "server"))]
fn raw_services() {
    use tonic_prost_build::manual::{Builder, Method, Service};
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
