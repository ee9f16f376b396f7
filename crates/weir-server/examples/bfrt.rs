//! A BF Runtime server of a switch without devices.
//!
//! `cargo run -p weir-server --example bfrt -- PROGRAM.p4 [ADDRESS [NAME]]`, then any client, for
//! example rbfrt's, with this address and `NAME` (by default the name of the file without its
//! ending) as p4_name.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_server::bfrt::{BfRuntime, Config, serve};
use weir_server::{Clock, Device, Standalone};
use weir_syntax::render;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("give a program: bfrt PROGRAM.p4 [ADDRESS [NAME]]")?;
    let path = Path::new(&path);
    let mut config = Config::default();
    if let Some(address) = arguments.next() {
        config.listen = address.parse()?;
    }
    let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("p4").to_owned();
    let name = arguments.next().unwrap_or(stem);
    let compiled = compile_file(path, &Options::default(), weir_arch::targets());
    for diagnostic in compiled.diagnostics.list() {
        eprintln!("{}", render::short(diagnostic, &compiled.sources).trim_end());
    }
    let program = Arc::new(compiled.program.ok_or("the program does not compile")?);
    let switch = Standalone::new(Arc::clone(&program), None, Clock::real())?;
    eprintln!("BF Runtime at {}, p4_name {name}", config.listen);
    let device = Device::new(Arc::new(switch), Some(program), &name, 1024)?;
    Ok(serve(BfRuntime::on(&device, config), std::future::pending()).await?)
}
