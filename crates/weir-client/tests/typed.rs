//! Generated types against a switch.

mod common;

use common::{EVERYTHING, bench};
use weir_client::typed::{Bits, Masked, Prefix, Range};
use weir_client::{Schema, generate};
use weir_compiler::compile_source;

/// What `weir build --emit rust` writes for the program; `WEIR_BLESS=1 cargo test` writes it anew.
#[allow(dead_code)]
mod program {
    include!("generated/everything.rs");
}

use program::{ExactTable, ExactTableAction, ExactTableKey, LpmTable, LpmTableAction, LpmTableKey};

#[test]
fn the_generated_module_is_what_the_generator_makes_of_the_program() {
    let options = weir_compiler::Options::default();
    let compiled = compile_source("everything.p4", EVERYTHING, &options, weir_arch::targets());
    let compiled = compiled.program.expect("compiles");
    let info = weir_compiler::p4info::p4info(&compiled, weir_arch::targets()).expect("has a P4Info");
    let made = generate::module(&Schema::from_p4info(&info));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/generated/everything.rs");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, &made).expect("can be written");
    }
    assert!(
        made == include_str!("generated/everything.rs"),
        "WEIR_BLESS=1 cargo test -p weir-client"
    );
}

#[tokio::test]
async fn typed_entries_are_written_and_read_back() {
    let client = bench().await.client().await;
    let table = client.typed::<ExactTable>().expect("agrees");
    let entry = ExactTable {
        key: ExactTableKey { key: 7 },
        action: ExactTableAction::Send {
            port: Bits::constant::<3>(),
        },
    };
    table.insert(&entry).await.expect("is taken");
    assert_eq!(table.entries().await.expect("can be read"), [entry]);
    let changed = ExactTable {
        action: ExactTableAction::Miss,
        ..entry
    };
    table.modify(&changed).await.expect("is taken");
    assert_eq!(table.entries().await.expect("can be read"), [changed]);
    table.delete(&entry.key, 0).await.expect("is there");
    assert!(table.entries().await.expect("can be read").is_empty());
}

#[tokio::test]
async fn keys_of_every_kind_have_a_type() {
    let client = bench().await.client().await;
    let routes = client.typed::<LpmTable>().expect("agrees");
    for length in [0, 8, 32] {
        let route = LpmTable {
            key: LpmTableKey {
                key: Prefix::new(0x0a00_0000 & u32::MAX.checked_shl(32 - length).unwrap_or(0), length),
            },
            action: LpmTableAction::Metered { value: length },
        };
        routes.insert(&route).await.expect("is taken");
        assert!(routes.entries().await.expect("can be read").contains(&route));
    }
    let ternary = client.typed::<program::TernaryTable>().expect("agrees");
    let entry = program::TernaryTable {
        key: program::TernaryTableKey {
            key: Masked { value: 4, mask: 6 },
            hash: 1,
        },
        priority: 3,
        action: program::TernaryTableAction::Answer { value: 9 },
    };
    ternary.insert(&entry).await.expect("is taken");
    assert_eq!(ternary.entries().await.expect("can be read"), [entry]);
    let range = client.typed::<program::RangeTable>().expect("agrees");
    for (low, high) in [(1, 5), (0, u32::MAX)] {
        let entry = program::RangeTable {
            key: program::RangeTableKey {
                key: Range { low, high },
            },
            priority: 1,
            action: program::RangeTableAction::Miss,
        };
        range.insert(&entry).await.expect("is taken");
        assert!(range.entries().await.expect("can be read").contains(&entry));
    }
    let optional = client.typed::<program::OptionalTable>().expect("agrees");
    let entry = program::OptionalTable {
        key: program::OptionalTableKey {
            key: None,
            hash: Some(5),
        },
        priority: 2,
        action: program::OptionalTableAction::Answer { value: 1 },
    };
    optional.insert(&entry).await.expect("is taken");
    assert_eq!(optional.entries().await.expect("can be read"), [entry]);
}

#[tokio::test]
async fn registers_have_a_type() {
    let client = bench().await.client().await;
    let cells = client.typed_register::<program::Cells>().expect("agrees");
    let cell = program::Cells {
        a: Bits::constant::<0xabc>(),
        b: 0xff,
    };
    cells.write(3, &cell).await.expect("is taken");
    assert_eq!(cells.read(3).await.expect("can be read"), cell);
    assert!(cells.read(4).await.is_err());
}

#[tokio::test]
async fn types_of_another_program_are_refused() {
    #[allow(dead_code)]
    mod other {
        include!("generated/everything.rs");
    }
    // The same module, made believe that it is for another table.
    #[derive(Debug)]
    struct Wrong(other::ExactTable);
    impl weir_client::typed::TableEntry for Wrong {
        const NAME: &'static str = "lpm_table";
        const HAS_PRIORITY: bool = false;
        type Key = other::ExactTableKey;
        type Action = other::ExactTableAction;
        fn key(&self) -> &Self::Key {
            &self.0.key
        }
        fn priority(&self) -> u32 {
            0
        }
        fn action(&self) -> &Self::Action {
            &self.0.action
        }
        fn new(key: Self::Key, _: u32, action: Self::Action) -> Self {
            Wrong(other::ExactTable { key, action })
        }
    }
    let client = bench().await.client().await;
    let error = client.typed::<Wrong>().unwrap_err().to_string();
    assert!(
        error.contains("the key key is lpm") && error.contains("weir build --emit rust"),
        "{error}"
    );
}
