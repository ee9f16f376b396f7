//! A P4Runtime server of a switch without devices: packets come and go by packet-out and packet-in
//! only.
//!
//! `cargo run -p weir-server --example p4runtime -- PROGRAM.p4 [ADDRESS]`, then for example
//! `python3 -m p4runtime_sh --grpc-addr 127.0.0.1:9559 --device-id 1 --election-id 0,1`.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_server::p4rt::{Config, P4Runtime, serve};
use weir_server::{Clock, Standalone};
use weir_syntax::render;

/// Port of the control plane, as tutorials for v1model have it.
const CPU_PORT: u32 = 510;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("give a program: p4runtime PROGRAM.p4 [ADDRESS]")?;
    let mut config = Config::default();
    if let Some(address) = arguments.next() {
        config.listen = address.parse()?;
    }
    let compiled = compile_file(Path::new(&path), &Options::default(), weir_arch::targets());
    for diagnostic in compiled.diagnostics.list() {
        eprintln!("{}", render::short(diagnostic, &compiled.sources).trim_end());
    }
    let program = Arc::new(compiled.program.ok_or("the program does not compile")?);
    let switch = Standalone::new(Arc::clone(&program), Some(CPU_PORT), Clock::real())?;
    eprintln!("P4Runtime at {}, device {}", config.listen, config.device_id);
    let server = P4Runtime::new(Arc::new(switch), Some(program), config)?;
    Ok(serve(server, std::future::pending()).await?)
}
