//! The tables.

/// The version of the tables, in `PRAGMA user_version`.
pub const VERSION: i64 = 2;

/// Marks a file as one of ours, in `PRAGMA application_id`: "wINT".
pub const APPLICATION: i64 = 0x7749_4e54;

/// Makes the tables. Times are ns since the Unix epoch, latencies ns; occupancies and utilisations
/// are in the units of the nodes. `histogram` is read by the functions `merged`, `quantile`, `mean`
/// and `total`.
pub const TABLES: &str = "
CREATE TABLE intervals (
    interval INTEGER PRIMARY KEY,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    datagrams INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    dropped_by_kernel INTEGER NOT NULL,
    flows_evicted INTEGER NOT NULL,
    events_left_out INTEGER NOT NULL
);
CREATE INDEX intervals_by_end ON intervals (end);
-- Reports that were malformed or not used, by reason.
CREATE TABLE unused (
    interval INTEGER NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    reports INTEGER NOT NULL,
    PRIMARY KEY (interval, kind, reason)
) WITHOUT ROWID;
CREATE TABLE flows (
    flow TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    source_port INTEGER NOT NULL,
    destination TEXT NOT NULL,
    destination_port INTEGER NOT NULL,
    protocol INTEGER NOT NULL,
    path TEXT,
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    dropped INTEGER NOT NULL,
    congested INTEGER NOT NULL,
    path_changes INTEGER NOT NULL,
    latency_count INTEGER NOT NULL,
    latency_sum INTEGER NOT NULL,
    latency_min INTEGER,
    latency_max INTEGER,
    jitter REAL NOT NULL,
    lost INTEGER,
    reordered INTEGER
) WITHOUT ROWID;
CREATE INDEX flows_by_last_seen ON flows (last_seen);
CREATE TABLE paths (
    interval INTEGER NOT NULL,
    path TEXT NOT NULL,
    reports INTEGER NOT NULL,
    has_links INTEGER NOT NULL,
    clock_offset INTEGER NOT NULL,
    negative INTEGER NOT NULL,
    histogram BLOB NOT NULL,
    PRIMARY KEY (interval, path)
) WITHOUT ROWID;
CREATE TABLE ports (
    interval INTEGER NOT NULL,
    port TEXT NOT NULL,
    node INTEGER,
    number INTEGER,
    tx_utilisation_count INTEGER NOT NULL,
    tx_utilisation_sum INTEGER NOT NULL,
    tx_utilisation_max INTEGER,
    buffer_mean REAL,
    buffer_max INTEGER,
    histogram BLOB NOT NULL,
    PRIMARY KEY (interval, port)
) WITHOUT ROWID;
CREATE TABLE queues (
    interval INTEGER NOT NULL,
    port TEXT NOT NULL,
    queue INTEGER NOT NULL,
    histogram BLOB NOT NULL,
    PRIMARY KEY (interval, port, queue)
) WITHOUT ROWID;
CREATE TABLE links (
    interval INTEGER NOT NULL,
    link TEXT NOT NULL,
    from_node INTEGER,
    from_port INTEGER,
    to_node INTEGER,
    to_port INTEGER,
    clock_offset INTEGER NOT NULL,
    negative INTEGER NOT NULL,
    histogram BLOB NOT NULL,
    PRIMARY KEY (interval, link)
) WITHOUT ROWID;
CREATE TABLE exporters (
    interval INTEGER NOT NULL,
    address TEXT NOT NULL,
    node INTEGER NOT NULL,
    hw_id INTEGER NOT NULL,
    received INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    reordered INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    restarts INTEGER NOT NULL,
    PRIMARY KEY (interval, address, node, hw_id)
) WITHOUT ROWID;
CREATE TABLE clocks (
    interval INTEGER NOT NULL,
    node INTEGER NOT NULL,
    reference INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    uncertainty INTEGER NOT NULL,
    PRIMARY KEY (interval, node)
) WITHOUT ROWID;
CREATE TABLE events (
    time INTEGER NOT NULL,
    what TEXT NOT NULL,
    quantity TEXT,
    subject TEXT NOT NULL,
    value INTEGER,
    detail TEXT NOT NULL
);
CREATE INDEX events_by_time ON events (time);
";

/// Tables with a row or more per interval.
pub const PER_INTERVAL: &[&str] = &[
    "unused",
    "paths",
    "ports",
    "queues",
    "links",
    "exporters",
    "clocks",
    "intervals",
];
