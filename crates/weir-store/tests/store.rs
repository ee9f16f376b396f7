//! Intervals written and queried; files that are not ours.

use std::time::Duration;
use weir_collector::synthetic::{DSCP, Packet, hop};
use weir_collector::{Collector, Config};
use weir_int::packet::{Detection, DscpMatch};
use weir_int::report::Decoder;
use weir_int::{FlowKey, Uint};
use weir_store::{QueryLimits, Store, StoreError};

const SECOND: u64 = 1_000_000_000;

fn collector() -> Collector {
    let detection = Detection {
        dscp: Some(DscpMatch::exactly(Uint::truncate(DSCP.into()))),
        ..Detection::default()
    };
    let decoder = Decoder {
        detection,
        ..Decoder::default()
    };
    Collector::new(Config {
        decoder,
        ..Config::default()
    })
}

/// A report of a packet over two hops that takes `latency` within the first.
fn report(flow: u16, latency: u64, sequence: u32) -> Vec<u8> {
    let flow = FlowKey {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        source_port: flow,
        destination_port: 80,
        protocol: 17,
    };
    let hops = vec![
        hop(1, (1, 2), (0, 9), 1000, 1000 + latency),
        hop(2, (3, 4), (1, 7), 1100 + latency, 1200 + latency),
    ];
    Packet {
        flow,
        bytes: 500,
        hops,
        number: None,
    }
    .sink_report(sequence)
}

fn written(file: &std::path::Path, seconds: std::ops::Range<u64>) {
    let mut store = Store::create(file).unwrap();
    let mut collector = collector();
    for second in seconds {
        for n in 0..10_u32 {
            let report = report(n as u16, 100 * (u64::from(n) + 1), second as u32 * 10 + n);
            collector.take(second * SECOND, [10, 0, 0, 9].into(), &report);
        }
        let mut flows = Vec::new();
        let interval = collector.end_interval((second + 1) * SECOND, |flow| flows.push(flow));
        store.write(&interval, &flows).unwrap();
    }
}

fn ask(file: &std::path::Path, sql: &str) -> Vec<Vec<serde_json::Value>> {
    Store::open(file)
        .unwrap()
        .query(sql, QueryLimits::default())
        .unwrap()
        .rows
}

#[test]
fn quantiles_over_intervals_are_those_of_all_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.db");
    written(&file, 1..4);
    let sql = "SELECT port, total(merged(histogram)), mean(merged(histogram)), quantile(merged(histogram), 0.5)
               FROM ports GROUP BY port";
    let rows = ask(&file, sql);
    assert_eq!(rows[0][..3], ["1:2".into(), 30.into(), serde_json::Value::from(550.0)]);
    let median = rows[0][3].as_i64().unwrap();
    assert!((495..=505).contains(&median), "{median}");
    assert_eq!(rows[1][..3], ["2:4".into(), 30.into(), serde_json::Value::from(100.0)]);
    assert_eq!(
        ask(
            &file,
            "SELECT reports, latency_min, path FROM flows WHERE source_port = 3"
        )[0][..2],
        [3, 600]
    );
    assert_eq!(ask(&file, "SELECT sum(received), sum(lost) FROM exporters")[0], [30, 0]);
}

#[test]
fn what_is_old_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.db");
    written(&file, 1..6);
    Store::create(&file).unwrap().delete_before(4 * SECOND).unwrap();
    assert_eq!(
        ask(&file, "SELECT min(end), count(*) FROM intervals")[0],
        [4 * SECOND, 3]
    );
    assert_eq!(ask(&file, "SELECT count(DISTINCT interval) FROM ports")[0], [3]);
}

#[test]
fn queries_only_read_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("int.db");
    written(&file, 1..2);
    let mut store = Store::open(&file).unwrap();
    let limits = QueryLimits {
        rows: 2,
        time: Duration::from_millis(200),
    };
    assert!(matches!(
        store.query("DELETE FROM flows", limits),
        Err(StoreError::Writes)
    ));
    assert!(store.query("ATTACH '/tmp/other.db' AS other", limits).is_err());
    assert!(store.query("SELECT 1; SELECT 2", limits).is_err());
    assert!(store.query("SELECT quantile(flow, 0.5) FROM flows", limits).is_err());
    assert!(store.query("SELECT quantile(x'0203', 0.5)", limits).is_err());
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
    assert!(store.query(endless, limits).is_err());
    let cut = store.query("SELECT flow FROM flows", limits).unwrap();
    assert!(cut.is_cut && cut.rows.len() == 2);
}

#[test]
fn other_files_are_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(
        &text,
        "this is not a database, and it is longer than a header of one would be",
    )
    .unwrap();
    assert!(Store::create(&text).unwrap_err().to_string().contains("no SQLite file"));
    assert!(std::fs::read_to_string(&text).unwrap().starts_with("this is not"));
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&text, &link).unwrap();
    assert!(Store::create(&link).unwrap_err().to_string().contains("symbolic link"));
    assert!(
        Store::create(folder.path())
            .unwrap_err()
            .to_string()
            .contains("no regular file")
    );
    assert!(Store::open(&folder.path().join("absent")).is_err());
}
