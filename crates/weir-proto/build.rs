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
        raw_service();
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

/// BF Runtime's service with messages whose long lists stay bytes (`src/bfrt_raw.rs`).
#[cfg(any(feature = "client", feature = "server"))]
fn raw_service() {
    use tonic_prost_build::manual::{Builder, Method, Service};
    let method = |name: &str, route: &str, input: &str, output: &str| {
        let path = |ty: &str| format!("crate::{ty}");
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(path(input))
            .output_type(path(output))
            .codec_path(CODEC)
    };
    let config = "SetForwardingPipelineConfig";
    let service = Service::builder()
        .name("BfRuntime")
        .package("bfrt_proto")
        .comment("BF Runtime: the control API of Tofino switches.")
        .method(method("write", "Write", "bfrt_raw::WriteRequest", "bfrt_proto::WriteResponse").build())
        .method(
            method("read", "Read", "bfrt_proto::ReadRequest", "bfrt_raw::ReadResponse")
                .server_streaming()
                .build(),
        )
        .method(
            method(
                "set_forwarding_pipeline_config",
                config,
                &format!("bfrt_proto::{config}Request"),
                &format!("bfrt_proto::{config}Response"),
            )
            .build(),
        )
        .method(
            method(
                "get_forwarding_pipeline_config",
                "GetForwardingPipelineConfig",
                "bfrt_proto::GetForwardingPipelineConfigRequest",
                "bfrt_proto::GetForwardingPipelineConfigResponse",
            )
            .build(),
        )
        .method(
            method(
                "stream_channel",
                "StreamChannel",
                "bfrt_proto::StreamMessageRequest",
                "bfrt_proto::StreamMessageResponse",
            )
            .client_streaming()
            .server_streaming()
            .build(),
        )
        .build();
    Builder::new().build_client(false).compile(&[service]);
}
