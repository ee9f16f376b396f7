//! Keys of externs, by both protocols.

mod common;

use common::bench_of;
use std::sync::Arc;
use tokio::net::TcpListener;
use weir_client::bulk::parse_line;
use weir_client::{Client, Code, Entry, Error, KeyMaterial, Operation, Options};
use weir_server::bfrt::{self, BfRuntime, Config};
use weir_server::{Clock, Device, Standalone};

const SOURCE: &str = include_str!("../../weir-server/tests/p4/extern_keys.p4");

/// The test vector of SipHash-2-4's authors: the hash of 00 to 0e with the key 00 to 0f.
const HASH: u64 = 0xa129_ca61_49be_45e5;
const SIPHASH_KEY: &str = "000102030405060708090a0b0c0d0e0f";

async fn bfrt_bench() -> (Arc<Standalone>, Client) {
    let options = weir_compiler::Options::default();
    let compiled = weir_compiler::compile_source("keys.p4", SOURCE, &options, weir_arch::targets());
    let program = Arc::new(compiled.program.expect("compiles"));
    let externs = weir_externs::registry();
    let switch = Standalone::with_externs(Arc::clone(&program), None, Clock::manual(), externs);
    let switch = Arc::new(switch.expect("runs"));
    let device = Device::new(switch.clone(), Some(program), "keys", 16).expect("is described");
    let server = BfRuntime::on(&device, Config::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(bfrt::serve_on(server, listener, std::future::pending()));
    let options = Options::bfrt(&address).expect("an address");
    (switch, Client::connect(options).await.expect("connects"))
}

fn hash(switch: &Standalone, key: u8) -> u64 {
    let packet: Vec<u8> = std::iter::once(key).chain(0..15).collect();
    let bytes = switch.send(1, &packet).remove(0).bytes;
    u64::from_be_bytes(bytes[1..9].try_into().expect("eight bytes"))
}

async fn sets_and_removes(switch: &Standalone, client: &Client) {
    let key = || KeyMaterial::from_hex(SIPHASH_KEY).expect("is right");
    client.set_key("tags", 3, key()).await.expect("fits");
    assert_eq!((hash(switch, 3), hash(switch, 2)), (HASH, 0));
    // It is replaced, and another one set.
    client.set_key("I.tags", 3, vec![1; 16].into()).await.expect("fits");
    assert!(![HASH, 0].contains(&hash(switch, 3)));
    client.set_key("tags", 3, key()).await.expect("fits");
    client.set_key("ciphers", 1, vec![1; 32].into()).await.expect("fits");
    assert_eq!(client.keys_set("tags").await.expect("is read"), [3]);
    assert_eq!(client.keys_set("ciphers").await.expect("is read"), [1]);
    let table = client.table("tags").expect("exists");
    let shown = client.entries(&table).await.expect("is read");
    assert!(
        shown[0].to_string().ends_with("[$KEY_INDEX=3] $IS_SET=true"),
        "{}",
        shown[0]
    );
    // Keys are no part of a dump, and a line of an entries file sets one.
    let mut dumped = Vec::new();
    let visit = |entry: &Entry| {
        dumped.push(entry.table().name.clone());
        Ok(())
    };
    client.dump(visit).await.expect("is dumped");
    assert!(dumped.iter().all(|name| !name.contains("tags")), "{dumped:?}");
    let line = format!("extern_key tags 2 {SIPHASH_KEY}");
    let entry = parse_line(&client.schema(), &line).expect("is right");
    assert!(!format!("{entry} {entry:?}").contains("0e0f"), "{entry:?}");
    client.insert(&entry).await.expect("fits");
    assert_eq!(hash(switch, 2), HASH);
    client.clear(&table).await.expect("is cleared");
    assert_eq!((hash(switch, 2), hash(switch, 3)), (0, 0));
    // Associations are reset, whether or not they were used.
    client.remove_key("numbers", 0).await.expect("is reset");
}

async fn refuses(client: &Client) {
    let refused = |error: Error| match error {
        Error::Updates(updates) => (updates[0].code, updates[0].message.clone()),
        other => panic!("{other:?} is no refusal of an update"),
    };
    let key = |length| KeyMaterial::new(vec![0xab; length]);
    let (code, text) = refused(client.set_key("tags", 4, key(16)).await.expect_err("no such key"));
    assert!(
        code == Code::InvalidArgument && text.contains("there is no key 4"),
        "{text}"
    );
    let (code, text) = refused(client.set_key("tags", 0, key(15)).await.expect_err("too short"));
    assert!(
        code == Code::InvalidArgument && text.contains("a key of 15 bytes, but 16 are expected"),
        "{text}"
    );
    let (code, _) = refused(client.remove_key("tags", 0).await.expect_err("is not set"));
    assert_eq!(code, Code::NotFound);
    let unknown = client
        .set_key("nothing", 0, key(16))
        .await
        .expect_err("no such instance");
    assert!(unknown.to_string().contains("nothing"), "{unknown}");
    // A key that is another value is refused, and not shown.
    let table = client.table("tags").expect("exists");
    let entry = Entry::of(&table)
        .key("$KEY_INDEX", 0_u8)
        .data("$KEY", vec![0xab_u8; 16]);
    let error = client.update(Operation::Insert, &entry).await.expect_err("is no key");
    assert!(error.to_string().contains("KeyMaterial"), "{error}");
    assert!(!error.to_string().contains("171"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_by_p4runtime() {
    let bench = bench_of(SOURCE).await;
    let client = bench.client().await;
    sets_and_removes(&bench.switch, &client).await;
    refuses(&client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_by_bf_runtime() {
    let (switch, client) = bfrt_bench().await;
    sets_and_removes(&switch, &client).await;
    refuses(&client).await;
}
