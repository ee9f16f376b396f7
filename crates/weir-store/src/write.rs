//! Writing of intervals.

use crate::functions::integer;
use crate::{Store, StoreError};
use rusqlite::{Transaction, params};
use serde_json::Value;
use weir_collector::{Event, FlowSummary, Histogram, Interval, LinkSummary, PathSummary, PortSummary, Unused};

impl Store {
    /// Writes what an interval brought, as one transaction.
    ///
    /// # Errors
    /// The file cannot be written; nothing of the interval is in it then.
    pub fn write(&mut self, interval: &Interval, flows: &[FlowSummary]) -> Result<(), StoreError> {
        let transaction = self.connection.transaction()?;
        write_interval(&transaction, interval, flows)?;
        transaction.commit()?;
        Ok(())
    }

    /// Deletes what is older than a time, ns since the Unix epoch.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn delete_before(&mut self, time: u64) -> Result<(), StoreError> {
        let time = integer(time);
        let transaction = self.connection.transaction()?;
        for table in crate::schema::PER_INTERVAL {
            let sql = format!("DELETE FROM {table} WHERE interval IN (SELECT interval FROM intervals WHERE end < ?1)");
            transaction.execute(&sql, [time])?;
        }
        transaction.execute("DELETE FROM flows WHERE last_seen < ?1", [time])?;
        transaction.execute("DELETE FROM events WHERE time < ?1", [time])?;
        transaction.commit()?;
        Ok(())
    }
}

fn write_interval(to: &Transaction<'_>, interval: &Interval, flows: &[FlowSummary]) -> Result<(), StoreError> {
    let totals = &interval.totals;
    to.execute(
        "INSERT INTO intervals (start, end, datagrams, bytes, reports, dropped_by_kernel, flows_evicted,
             events_left_out)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            integer(interval.start),
            integer(interval.end),
            integer(totals.datagrams),
            integer(totals.bytes),
            integer(totals.reports),
            integer(totals.dropped_by_kernel),
            integer(totals.flows_evicted),
            integer(totals.events_left_out)
        ],
    )?;
    let id = to.last_insert_rowid();
    write_unused(to, id, interval)?;
    write_network(to, id, interval)?;
    write_sources(to, id, interval)?;
    write_flows(to, flows)?;
    write_events(to, &interval.events)
}

fn write_unused(to: &Transaction<'_>, id: i64, interval: &Interval) -> Result<(), StoreError> {
    let mut insert = to.prepare_cached("INSERT INTO unused VALUES (?1, ?2, ?3, ?4)")?;
    let malformed = weir_collector::REASONS.iter().map(|reason| reason.name());
    let malformed = malformed
        .zip(interval.totals.malformed)
        .map(|(name, n)| ("malformed", name, n));
    let unused = Unused::ALL.iter().map(|why| why.name());
    let unused = unused.zip(interval.totals.unused).map(|(name, n)| ("unused", name, n));
    for (kind, reason, count) in malformed.chain(unused).filter(|(_, _, count)| *count > 0) {
        insert.execute(params![id, kind, reason, integer(count)])?;
    }
    Ok(())
}

fn write_network(to: &Transaction<'_>, id: i64, interval: &Interval) -> Result<(), StoreError> {
    let mut insert = to.prepare_cached("INSERT INTO paths VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for (path, summary) in &interval.paths {
        let PathSummary {
            reports,
            latency,
            has_links,
            clock_offset,
            negative,
        } = summary;
        let (path, histogram) = (path.to_string(), latency.to_bytes());
        insert.execute(params![
            id,
            path,
            integer(*reports),
            has_links,
            clock_offset,
            integer(*negative),
            histogram
        ])?;
    }
    let mut insert = to.prepare_cached("INSERT INTO ports VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")?;
    let mut insert_queue = to.prepare_cached("INSERT INTO queues VALUES (?1, ?2, ?3, ?4)")?;
    for (key, summary) in &interval.ports {
        let PortSummary {
            latency,
            tx_utilisation,
            buffer_occupancy,
            queues,
        } = summary;
        let name = key.to_string();
        let most = |running: &weir_collector::Running| (running.count > 0).then(|| integer(running.max));
        insert.execute(params![
            id,
            name,
            key.node,
            key.port,
            integer(tx_utilisation.count),
            integer(tx_utilisation.sum),
            most(tx_utilisation),
            buffer_occupancy.mean(),
            most(buffer_occupancy),
            latency.to_bytes()
        ])?;
        for (queue, occupancy) in queues {
            insert_queue.execute(params![id, name, queue, Histogram::to_bytes(occupancy)])?;
        }
    }
    let mut insert = to.prepare_cached("INSERT INTO links VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (key, summary) in &interval.links {
        let LinkSummary {
            latency,
            clock_offset,
            negative,
        } = summary;
        insert.execute(params![
            id,
            key.to_string(),
            key.from.node,
            key.from.port,
            key.to.node,
            key.to.port,
            clock_offset,
            integer(*negative),
            latency.to_bytes()
        ])?;
    }
    Ok(())
}

fn write_sources(to: &Transaction<'_>, id: i64, interval: &Interval) -> Result<(), StoreError> {
    let mut insert = to.prepare_cached("INSERT INTO exporters VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (key, counts) in &interval.exporters {
        insert.execute(params![
            id,
            key.address.to_string(),
            key.node,
            key.hw_id,
            integer(counts.received),
            counts.lost,
            integer(counts.reordered),
            integer(counts.duplicates),
            integer(counts.restarts)
        ])?;
    }
    let mut insert = to.prepare_cached("INSERT INTO clocks VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for clock in &interval.clocks {
        insert.execute(params![
            id,
            clock.node,
            clock.reference,
            clock.offset,
            integer(clock.uncertainty)
        ])?;
    }
    Ok(())
}

/// Adds to what is there of each flow.
fn write_flows(to: &Transaction<'_>, flows: &[FlowSummary]) -> Result<(), StoreError> {
    let mut insert = to.prepare_cached(
        "INSERT INTO flows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
             ?18, ?19, ?20)
         ON CONFLICT (flow) DO UPDATE SET
             path = coalesce(excluded.path, path),
             first_seen = min(first_seen, excluded.first_seen),
             last_seen = max(last_seen, excluded.last_seen),
             reports = reports + excluded.reports,
             dropped = dropped + excluded.dropped,
             congested = congested + excluded.congested,
             path_changes = path_changes + excluded.path_changes,
             latency_count = latency_count + excluded.latency_count,
             latency_sum = latency_sum + excluded.latency_sum,
             latency_min = min(coalesce(latency_min, excluded.latency_min), coalesce(excluded.latency_min, latency_min)),
             latency_max = max(coalesce(latency_max, excluded.latency_max), coalesce(excluded.latency_max, latency_max)),
             jitter = excluded.jitter,
             lost = coalesce(lost + excluded.lost, lost, excluded.lost),
             reordered = coalesce(reordered + excluded.reordered, reordered, excluded.reordered)",
    )?;
    for flow in flows {
        let latency = (flow.latency.count > 0).then_some(flow.latency);
        insert.execute(params![
            flow.key.to_string(),
            flow.key.source.to_string(),
            flow.key.source_port,
            flow.key.destination.to_string(),
            flow.key.destination_port,
            flow.key.protocol,
            flow.path.as_ref().map(ToString::to_string),
            integer(flow.first_seen),
            integer(flow.last_seen),
            integer(flow.reports),
            integer(flow.dropped),
            integer(flow.congested),
            integer(flow.path_changes),
            integer(flow.latency.count),
            integer(flow.latency.sum),
            latency.map(|latency| integer(latency.min)),
            latency.map(|latency| integer(latency.max)),
            flow.jitter,
            flow.sequence.map(|counts| counts.lost),
            flow.sequence.map(|counts| integer(counts.reordered)),
        ])?;
    }
    Ok(())
}

fn write_events(to: &Transaction<'_>, events: &[Event]) -> Result<(), StoreError> {
    let mut insert = to.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    for event in events {
        let detail = serde_json::to_value(&event.what).unwrap_or(Value::Null);
        let value = detail.get("value").and_then(Value::as_u64).map(integer);
        let quantity = detail.get("quantity").and_then(Value::as_str);
        insert.execute(params![
            integer(event.time),
            event.what.name(),
            quantity,
            event.subject.to_string(),
            value,
            detail.to_string()
        ])?;
    }
    Ok(())
}
