//! Compiles our .proto files without protoc.
#![allow(clippy::print_stdout, reason = "Cargo reads it")]

#[cfg(any(feature = "client", feature = "server"))]
mod services;

use prost::Message;
use std::error::Error;
use std::path::PathBuf;

const FILES: [&str; 6] = [
    "bfrt_proto/bfruntime.proto",
    "p4/config/v1/p4info.proto",
    "p4/v1/p4runtime.proto",
    "weir/v1/extern_key.proto",
    "weir/v1/port_queues.proto",
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
    config.enable_type_names();
    // Batches of many entries are not copied out of the request.
    config.bytes([".bfrt_proto"]);
    generate(config, descriptors)
}

#[cfg(any(feature = "client", feature = "server"))]
fn generate(config: prost_build::Config, descriptors: prost_types::FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    services::generate(config, descriptors)
}

#[cfg(not(any(feature = "client", feature = "server")))]
fn generate(
    mut config: prost_build::Config,
    descriptors: prost_types::FileDescriptorSet,
) -> Result<(), Box<dyn Error>> {
    Ok(config.compile_fds(descriptors)?)
}
