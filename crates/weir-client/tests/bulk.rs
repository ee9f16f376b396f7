//! Entries from files, dumps, and resynchronising.

mod common;

use common::bench;
use weir_client::bulk::{CsvEntries, JsonEntries, Lines, LoadOptions, SyncReport, entry_to_json, parse_words};
use weir_client::{Client, Entry, Error, Match, Value};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

async fn dump(client: &Client) -> String {
    let mut lines = String::new();
    let dumped = client.dump(|entry| {
        lines += &format!("{}\n", entry_to_json(entry));
        Ok(())
    });
    dumped.await.expect("can be dumped");
    lines
}

#[tokio::test]
async fn what_is_dumped_makes_another_switch_the_same() {
    let client = bench().await.client().await;
    for line in [
        "exact_table key=5 answer value=7",
        "lpm_table key=10.0.0.0/8 metered value=1",
        "ternary_table key=0x5&&&0xf hash=3 priority=9 answer 7",
        "range_table key=1..9 priority=1 miss",
        "optional_table hash=4 priority=2 answer 1",
        "profile $ACTION_MEMBER_ID=1 answer value=3",
        "profile_table key=1 $ACTION_MEMBER_ID=1",
        "selector $ACTION_MEMBER_ID=2 answer value=3",
        "selector.$GROUPS $SELECTOR_GROUP_ID=3 $MAX_GROUP_SIZE=4 $MEMBERS={member_id=2,weight=1}",
        "selector_table key=1 $SELECTOR_GROUP_ID=3",
        "words $REGISTER_INDEX=7 value=0xdeadbeef",
        "counts $COUNTER_INDEX=1 $COUNTER_SPEC_BYTES=64 $COUNTER_SPEC_PKTS=1",
        "$MULTICAST_GROUPS $MULTICAST_GROUP_ID=1 $REPLICAS={port=3,instance=1},{port=4,instance=2}",
        "name_table name=green answer 1",
    ] {
        let words = words(line);
        let table = client.table(&words[0]).expect("exists");
        let entry = parse_words(&table, &words[1..]).unwrap_or_else(|e| panic!("{line}: {e}"));
        client.insert(&entry).await.unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    let table = client.table("exact_table").expect("exists");
    let default = parse_words(&table, &words("default only_default")).expect("fits");
    client.modify(&default).await.expect("is taken");
    let state = dump(&client).await;

    let other = bench().await.client().await;
    let initial = other.table("initial_table").expect("exists");
    let constant = Entry::of(&initial).key("key", 2_u8);
    other.delete(&constant).await.expect("is taken");
    let entries = JsonEntries::new(&other.schema(), state.as_bytes());
    let outcome = other
        .load(entries, &LoadOptions::default(), |_| {})
        .await
        .expect("can be loaded");
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    assert_eq!(dump(&other).await, state);
}

#[tokio::test]
async fn entries_come_from_csv_and_from_entries_files() {
    let client = bench().await.client().await;
    let table = client.table("lpm_table").expect("exists");
    let text = "# routes\nkey,action,value\n10.0.0.0/8,metered,0x11\n10.1.0.0/16,miss,\n";
    let entries = CsvEntries::new(&table, None, text.as_bytes()).expect("has columns");
    let outcome = client
        .load(entries, &LoadOptions::default(), |_| {})
        .await
        .expect("can be loaded");
    assert_eq!((outcome.done, outcome.failures), (2, 0));
    let text = "# more\nadd lpm_table key:10.2.0.0/16 metered(value:5)\nsetdefault exact_table miss()\nadd ternary_table 3 key:1&&&1 hash:2 miss()\n";
    let entries = Lines::new(&client.schema(), text.as_bytes());
    let outcome = client
        .load(entries, &LoadOptions::default(), |_| {})
        .await
        .expect("can be loaded");
    assert_eq!((outcome.done, outcome.failures), (3, 0));
    let all = client.entries(&table).await.expect("can be read");
    let values: Vec<_> = all.iter().map(|e| e.get("value").cloned()).collect();
    assert!(values.contains(&Some(Value::from(0x11_u8))) && values.contains(&Some(Value::from(5_u8))));
}

#[tokio::test]
async fn what_is_before_a_wrong_line_is_written_and_counted() {
    let client = bench().await.client().await;
    let table = client.table("lpm_table").expect("exists");
    let text = "key,action,value\n10.0.0.0/8,metered,1\n10.0.0.0/8,metered,1\n10.1.0.0/16,miss,\nten,miss,\n10.2.0.0/16,miss,\n";
    let entries = CsvEntries::new(&table, None, text.as_bytes()).expect("has columns");
    let failed = client.load(entries, &LoadOptions::default(), |_| {}).await;
    let error = failed.expect_err("a line is wrong");
    assert_eq!((error.outcome.done, error.outcome.failures), (2, 1));
    assert!(error.to_string().starts_with("line 5: key:"), "{error}");
    assert!(
        error.to_string().ends_with("(2 entries before were written, 1 not)"),
        "{error}"
    );
    assert_eq!(client.entries(&table).await.expect("can be read").len(), 2);
}

#[tokio::test]
async fn what_is_wrong_in_a_file_is_told_by_its_line() {
    let client = bench().await.client().await;
    let table = client.table("lpm_table").expect("exists");
    let first = |text: &str| -> String {
        let mut entries = CsvEntries::new(&table, None, text.as_bytes()).expect("has columns");
        entries.find_map(Result::err).expect("is wrong").to_string()
    };
    assert!(first("key,action,value\n10.0.0.0/8,metered,0x11\nten,miss,\n").starts_with("line 3: key:"));
    assert!(first("key,action,value\n10.0.0.0/40,metered,1\n").starts_with("line 2:"));
    assert!(first("key,action,value\n10.0.0.0/8,miss,1\n").contains("value"));
    let Err(error) = CsvEntries::new(&table, None, &b"kex,action\n"[..]) else {
        panic!("there is no such column");
    };
    assert!(error.to_string().contains("key"), "{error}");
    let json = |text: &str| -> String {
        let mut entries = JsonEntries::new(&client.schema(), text.as_bytes());
        entries.find_map(Result::err).expect("is wrong").to_string()
    };
    assert!(json("\n{").starts_with("line 2:"));
    assert!(json(r#"{"table": "lpm_tabl"}"#).contains("did you mean I.lpm_table"));
    assert!(json(r#"{"table": "lpm_table", "keys": {}}"#).contains("`keys` is none of"));
    assert!(json(r#"{"table": "exact_table", "action": "miss"}"#).contains("an exact key needs a value"));
    let mut entries = Lines::new(&client.schema(), &b"packet 0 0011\n"[..]);
    assert!(matches!(entries.next(), Some(Err(Error::Input(text))) if text.starts_with("line 1: `packet`")));
}

#[tokio::test]
async fn words_in_the_order_of_the_program_need_no_names() {
    let client = bench().await.client().await;
    let table = client.table("ternary_table").expect("exists");
    let parse = |text: &str| parse_words(&table, &words(text)).map(|e| e.to_string());
    let named = parse("key=1&&&1 hash=2 priority=3 answer value=4").expect("fits");
    assert_eq!(parse("1&&&1 2 priority=3 -> answer 4").expect("fits"), named);
    assert_eq!(
        parse("key:1&&&1 hash:2 priority:3 answer value:4").expect("fits"),
        named
    );
    let error = |text: &str| parse(text).unwrap_err().to_string();
    assert!(
        error("1 2 anser 4").contains("did you mean I.answer"),
        "{}",
        error("1 2 anser 4")
    );
    assert!(error("1 2 answer 4 5").contains("one value too many"));
}

#[tokio::test]
async fn resynchronising_changes_only_what_is_different() {
    let client = bench().await.client().await;
    let table = client.table("lpm_table").expect("exists");
    let route = |net: u32, value: u32| {
        Entry::of(&table)
            .key("key", Match::lpm(net << 24 | 5, 8))
            .action("metered")
            .data("value", value)
    };
    for net in 1..=4 {
        client.insert(&route(net, net)).await.expect("is taken");
    }
    let wanted = [route(2, 2), route(3, 30), route(9, 9)];
    let report = client.resync(&table, &wanted).await.expect("can be read");
    let expected = SyncReport {
        inserted: 1,
        modified: 1,
        deleted: 2,
        unchanged: 1,
        failed: Vec::new(),
    };
    assert_eq!(report, expected);
    let report = client.resync(&table, &wanted).await.expect("can be read");
    assert_eq!(
        (report.unchanged, report.inserted + report.modified + report.deleted),
        (3, 0)
    );
}
