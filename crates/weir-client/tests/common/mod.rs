//! A switch with weir's P4Runtime server.
#![allow(dead_code, reason = "every test file uses a part of it")]

use std::sync::Arc;
use tokio::net::TcpListener;
use weir_client::{Client, Options, Value};
use weir_compiler::compile_source;
use weir_server::p4rt::{self, Config, P4Runtime};
use weir_server::{Clock, Standalone};

pub const EVERYTHING: &str = include_str!("../../../weir-server/tests/p4/everything.p4");

pub struct Bench {
    pub switch: Arc<Standalone>,
    address: String,
}

pub async fn bench() -> Bench {
    bench_of(EVERYTHING).await
}

pub async fn bench_of(source: &str) -> Bench {
    let compiled = compile_source(
        "everything.p4",
        source,
        &weir_compiler::Options::default(),
        weir_arch::targets(),
    );
    let program = Arc::new(compiled.program.expect("compiles"));
    let switch = Standalone::with_externs(
        Arc::clone(&program),
        Some(510),
        Clock::manual(),
        weir_externs::registry(),
    );
    let switch = Arc::new(switch.expect("runs"));
    let server = P4Runtime::new(switch.clone(), Some(program), Config::default()).expect("has a P4Info");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(p4rt::serve_on(server, listener, std::future::pending()));
    Bench { switch, address }
}

impl Bench {
    pub fn options(&self) -> Options {
        Options::p4runtime(&self.address).expect("an address")
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.options()).await.expect("connects")
    }
}

pub fn record(fields: &[(&str, Value)]) -> Value {
    Value::Record(fields.iter().map(|(n, v)| ((*n).to_owned(), v.clone())).collect())
}
