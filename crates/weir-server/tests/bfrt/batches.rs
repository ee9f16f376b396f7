//! Tests of batches: atomicities, errors, flags in the metadata.

use crate::common::{Bench, codes, details, read_request, update, write_request};
use tonic::{Code, Request};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::update::Type;
use weir_proto::bfrt_proto::write_request::Atomicity;
use weir_server::DataPlane;

const EXACT: &str = "In.exact_keys";

fn insert(bench: &Bench, key: u32) -> pb::Update {
    update(Type::Insert, Entity::TableEntry(bench.entry(key, key)))
}

fn delete(bench: &Bench, key: u32) -> pb::Update {
    update(Type::Delete, Entity::TableEntry(bench.exact(EXACT, key)))
}

#[tokio::test]
async fn continue_on_error_tries_everything_and_details_end_at_the_last_failure() {
    let bench = Bench::new().await;
    let batch = vec![
        insert(&bench, 1),
        delete(&bench, 9),
        insert(&bench, 2),
        insert(&bench, 1),
        insert(&bench, 3),
    ];
    let status = bench.write(batch).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unknown, "Write Error Status"));
    assert_eq!(codes(&status), [0, 5, 0, 6]);
    let details = details(&status);
    assert_eq!(details[0], pb::Error::default());
    assert!(
        details[1]
            .message
            .starts_with("Table Entry delete failed table:pipe.In.exact_keys Object not found")
    );
    assert!(
        details[3]
            .message
            .starts_with("Table Add failed table:pipe.In.exact_keys Already exists")
    );
    assert_eq!((details[3].code, details[3].space.as_str()), (0, ""));
    assert_eq!(bench.entries(EXACT).await.len(), 3);
}

#[tokio::test]
async fn rolling_back_stops_at_the_first_failure_and_undoes() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 1)).await, Ok(()));
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let batch = vec![
            insert(&bench, 2),
            delete(&bench, 1),
            insert(&bench, 2),
            delete(&bench, 77),
        ];
        let status = bench.write_with(batch, atomicity).await.unwrap_err();
        assert_eq!(codes(&status), [0, 0, 6]);
        assert_eq!(bench.answer_to_packet(1, 0, 1), Some(1));
        assert_eq!(bench.entries(EXACT).await.len(), 1);
    }
    let batch = vec![insert(&bench, 2), delete(&bench, 1)];
    assert!(bench.write_with(batch, Atomicity::DataplaneAtomic).await.is_ok());
    assert_eq!(
        (bench.answer_to_packet(1, 0, 1), bench.answer_to_packet(1, 0, 2)),
        (Some(0), Some(2))
    );
}

#[tokio::test]
async fn a_batch_across_kinds_of_tables_is_rolled_back_as_a_whole() {
    let bench = Bench::new().await;
    let with = |ty, entry| update(ty, Entity::TableEntry(entry));
    let cell = |value: u32| {
        let key = vec![crate::common::exact(
            bench.table("In.last").key[0].id,
            &3u32.to_be_bytes(),
        )];
        crate::common::with_data(
            bench.keyed("In.last", key),
            0,
            vec![crate::common::stream(1, &value.to_be_bytes())],
        )
    };
    let node = crate::common::with_data(
        bench.keyed("$pre.node", vec![crate::common::exact(1, &9u32.to_be_bytes())]),
        0,
        vec![
            crate::common::stream(bench.field("$pre.node", "$MULTICAST_RID"), &[0, 1]),
            crate::common::numbers(bench.field("$pre.node", "$MULTICAST_LAG_ID"), &[]),
            crate::common::numbers(bench.field("$pre.node", "$DEV_PORT"), &[1]),
        ],
    );
    let batch = vec![
        insert(&bench, 1),
        with(Type::Modify, cell(5)),
        with(Type::Insert, node),
        with(Type::Delete, bench.all("In.lpm_keys")),
        insert(&bench, 1),
    ];
    let status = bench.write_with(batch, Atomicity::RollbackOnError).await.unwrap_err();
    assert_eq!(codes(&status), [0, 0, 0, 0, 6]);
    assert!(bench.entries(EXACT).await.is_empty() && bench.entries("$pre.node").await.is_empty());
    assert_eq!(bench.answer_to_packet(5, 3, 0), Some(0));
}

#[tokio::test]
async fn the_flag_error_in_resp_gives_a_status_per_update() {
    let bench = Bench::new().await;
    let with = |updates, flags: &[(&'static str, &'static str)]| {
        let mut request = Request::new(write_request(updates, Atomicity::ContinueOnError));
        for (name, value) in flags {
            request.metadata_mut().insert(*name, value.parse().expect("is plain"));
        }
        request
    };
    let flag = ("error_in_resp", "1");
    let fine = bench
        .write_request(with(vec![insert(&bench, 1), insert(&bench, 2)], &[flag]))
        .await;
    assert_eq!(fine.expect("goes well").status, vec![pb::Error::default(); 2]);
    // Failures still fail the RPC.
    let failed = bench.write_request(with(vec![insert(&bench, 1)], &[flag])).await;
    assert_eq!(codes(&failed.unwrap_err()), [6]);
    let gone = bench
        .write_request(with(
            vec![delete(&bench, 9), delete(&bench, 1)],
            &[flag, ("ignore_not_found", "1")],
        ))
        .await;
    let status = gone.expect("is no failure").status;
    assert_eq!((status[0].canonical_code, status[0].code), (0, 5));
    assert_eq!(status[1], pb::Error::default());
}

#[tokio::test]
async fn a_read_is_one_message_even_when_nothing_is_found_or_something_fails() {
    let bench = Bench::new().await;
    assert_eq!(bench.insert(bench.entry(1, 1)).await, Ok(()));
    let (responses, status) = bench.read_all(vec![Entity::TableEntry(bench.exact(EXACT, 9))]).await;
    assert_eq!((responses.len(), responses[0].entities.len()), (1, 0));
    let status = status.expect("it is not there");
    assert_eq!((status.message(), codes(&status)), ("Read Error Status", vec![5]));
    let queries = vec![
        Entity::TableEntry(bench.exact(EXACT, 1)),
        Entity::TableEntry(bench.exact(EXACT, 9)),
        Entity::TableEntry(bench.all(EXACT)),
    ];
    let (responses, status) = bench.read_all(queries.clone()).await;
    assert_eq!((responses.len(), responses[0].entities.len()), (1, 3));
    assert_eq!(codes(&status.expect("one failed")), [0, 5]);
    let (responses, status) = bench.read_all(Vec::new()).await;
    assert_eq!((responses.len(), status.is_none()), (1, true));
    let mut request = Request::new(read_request(queries));
    request
        .metadata_mut()
        .insert("error_in_resp", "1".parse().expect("is plain"));
    let (responses, status) = bench.read_request(request).await;
    assert!(status.is_none());
    let returned: Vec<i32> = responses[0].status.iter().map(|e| e.canonical_code).collect();
    assert_eq!(returned, [0, 5, 0]);
}

#[tokio::test]
async fn twenty_thousand_entries_and_as_many_errors_arrive() {
    let bench = Bench::new().await;
    let batch: Vec<pb::Update> = (0..20_000).map(|key| insert(&bench, key)).collect();
    assert!(bench.write(batch.clone()).await.is_ok());
    let (responses, status) = bench.read_all(vec![Entity::TableEntry(bench.all(EXACT))]).await;
    assert!(status.is_none());
    assert_eq!((responses.len(), responses[0].entities.len()), (1, 20_001));
    let status = bench.write(batch).await.unwrap_err();
    let codes = codes(&status);
    assert_eq!((codes.len(), codes.iter().all(|c| *c == 6)), (20_000, true));
}

#[tokio::test]
async fn a_reader_that_takes_several_messages_gets_them() {
    let bench = Bench::new().await;
    let batch: Vec<pb::Update> = (0..50_000).map(|key| insert(&bench, key)).collect();
    assert!(bench.write(batch).await.is_ok());
    let mut request = Request::new(read_request(vec![Entity::TableEntry(bench.all(EXACT))]));
    request
        .metadata_mut()
        .insert("weir-stream", "1".parse().expect("is plain"));
    let (responses, status) = bench.read_request(request).await;
    assert!(status.is_none() && responses.len() > 1);
    assert_eq!(responses.iter().map(|r| r.entities.len()).sum::<usize>(), 50_001);
}

#[tokio::test]
async fn a_deadline_that_is_over_is_exceeded() {
    let bench = Bench::new().await;
    let batch: Vec<pb::Update> = (0..20_000).map(|key| insert(&bench, key)).collect();
    let mut request = Request::new(write_request(batch, Atomicity::ContinueOnError));
    request
        .metadata_mut()
        .insert("deadline_nsec", "1".parse().expect("is plain"));
    assert_eq!(
        bench.write_request(request).await.unwrap_err().code(),
        Code::DeadlineExceeded
    );
}

#[tokio::test]
async fn a_deadline_may_be_given_in_seconds() {
    let bench = Bench::new().await;
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let holds_up: weir_server::Command = std::sync::Arc::new(move |_, _| {
        let _ = released.lock().expect("nobody else waits").recv();
    });
    let _held_up = bench.switch.submit(holds_up);
    let mut request = Request::new(write_request(vec![insert(&bench, 1)], Atomicity::ContinueOnError));
    request
        .metadata_mut()
        .insert("deadline_sec", "1".parse().expect("is plain"));
    let written = tokio::time::timeout(std::time::Duration::from_secs(60), bench.write_request(request));
    let outcome = written.await.expect("it is given up");
    assert_eq!(outcome.unwrap_err().code(), Code::DeadlineExceeded);
    drop(release);
}

#[tokio::test]
async fn a_trailer_is_as_small_as_the_client_says() {
    let bench = Bench::new().await;
    let batch: Vec<pb::Update> = (0..500).map(|_| insert(&bench, 1)).collect();
    let mut request = Request::new(write_request(batch, Atomicity::ContinueOnError));
    request
        .metadata_mut()
        .insert("weir-max-error-bytes", "8192".parse().expect("is plain"));
    let status = bench.write_request(request).await.unwrap_err();
    assert!(status.details().len() <= 8192 && !codes(&status).is_empty());
}

/// Packets are sent during atomic batches that give two entries the same value: no packet sees one
/// without the other.
#[tokio::test(flavor = "multi_thread")]
async fn no_packet_sees_half_of_an_atomic_batch() {
    let bench = Bench::new().await;
    for key in [1, 2] {
        assert_eq!(bench.insert(bench.entry(key, 0)).await, Ok(()));
    }
    let switch = bench.switch.clone();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = done.clone();
    let watcher = std::thread::spawn(move || {
        let answer = |key| {
            let out = switch.send(1, &crate::common::query_packet(1, 0, key));
            let bytes = &out[0].bytes;
            u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]])
        };
        let mut seen = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            // The second value is never older than the first one, read a moment before.
            let (first, second) = (answer(1), answer(2));
            assert!(second >= first, "{second} after {first}");
            seen += 1;
        }
        seen
    });
    for value in 1..500 {
        let change = |key| update(Type::Modify, Entity::TableEntry(bench.entry(key, value)));
        assert!(
            bench
                .write_with(vec![change(1), change(2)], Atomicity::DataplaneAtomic)
                .await
                .is_ok()
        );
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(watcher.join().expect("no packet met half of a batch") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn statuses_of_very_many_entities_are_each_in_its_place() {
    let bench = Bench::new().await;
    let _session = bench.bound(1).await;
    bench.insert(bench.entry(1, 1)).await.expect("is new");
    // More statuses than the request thread encodes itself: they are encoded on a blocking thread.
    let unknown = |number: usize| number % 3 == 1;
    let query = |number| match unknown(number) {
        true => Entity::TableEntry(pb::TableEntry {
            table_id: 7,
            ..pb::TableEntry::default()
        }),
        false => Entity::TableEntry(bench.entry(1, 1)),
    };
    let request = || read_request((0..3000).map(query).collect());
    let mut flagged = Request::new(request());
    flagged
        .metadata_mut()
        .insert("error_in_resp", "1".parse().expect("is plain"));
    let (answers, error) = bench.read_request(flagged).await;
    assert!(error.is_none(), "{error:?}");
    let refused = |codes: Vec<i32>| {
        let found: Vec<usize> = (0..codes.len()).filter(|n| codes[*n] != 0).collect();
        assert_eq!(found, (0..3000).filter(|n| unknown(*n)).collect::<Vec<_>>());
    };
    assert_eq!((answers.len(), answers[0].entities.len()), (1, 2000));
    assert_eq!(answers[0].status.len(), 3000);
    refused(answers[0].status.iter().map(|s| s.canonical_code).collect());
    let (answers, error) = bench.read_request(Request::new(request())).await;
    assert_eq!(answers[0].entities.len(), 2000);
    refused(codes(&error.expect("a third failed")));
}
