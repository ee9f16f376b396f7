//! `$mirror.cfg`: changes and reads mirror sessions, which are clone sessions of the switch.

use super::{NumberQuery, Op, Row, Rows};
use crate::bfrt::schema::Table;
use crate::bfrt::value::Value;
use crate::dataplane::check_port;
use crate::refusal::Refusal;
use weir_switch::{CloneSession, Replica, Transaction, Write};

/// Flags that weir does not support; they must be false.
const UNSUPPORTED_FLAGS: [&str; 2] = ["$copy_to_cpu", "$mcast_grp_b_valid"];

fn session(row: &Row, table: &Table, before: Option<CloneSession>) -> Result<CloneSession, Refusal> {
    for name in UNSUPPORTED_FLAGS {
        if row.flag(table, name) == Some(true) {
            return Err(Refusal::unsupported(format!(
                "weir does not do what `{name}` says; leave it out"
            )));
        }
    }
    if row.flag(table, "$session_enable") == Some(false) {
        return Err(Refusal::unsupported(
            "a session that is not enabled is one that is not there; delete it",
        ));
    }
    let is_new = before.is_none();
    let mut session = before.unwrap_or_default();
    let narrow = |name: &str| row.number(table, name).map(|n| n as u32);
    let rid = narrow("$mcast_rid");
    match (
        row.flag(table, "$ucast_egress_port_valid"),
        narrow("$ucast_egress_port"),
    ) {
        (Some(true), Some(port)) => session.replicas = vec![Replica::new(port, 0)],
        (Some(true), None) if session.replicas.is_empty() => {
            return Err(Refusal::malformed("field `$ucast_egress_port` is missing"));
        }
        (Some(false), _) => session.replicas.clear(),
        (None, Some(port)) if !session.replicas.is_empty() => session.replicas = vec![Replica::new(port, 0)],
        _ => {}
    }
    match (row.flag(table, "$mcast_grp_a_valid"), narrow("$mcast_grp_a")) {
        (Some(true), Some(group)) => session.group = Some(group),
        (Some(true), None) if session.group.is_none() => {
            return Err(Refusal::malformed("field `$mcast_grp_a` is missing"));
        }
        (Some(false), _) => session.group = None,
        (None, Some(group)) if session.group.is_some() => session.group = Some(group),
        _ => {}
    }
    if let (Some(rid), Some(replica)) = (rid, session.replicas.first_mut()) {
        replica.rid = rid;
    }
    if let Some(length) = narrow("$max_pkt_len") {
        session.truncate_bytes = length;
    }
    if let Some(cos) = row.number(table, "$ingress_cos") {
        let top = weir_switch::PRIORITIES as u64 - 1;
        let fits = u8::try_from(cos).ok().filter(|c| u64::from(*c) <= top);
        session.class_of_service = fits.ok_or_else(|| Refusal::malformed(format!("`$ingress_cos` is 0 to {top}")))?;
    }
    if is_new
        && session.replicas.is_empty()
        && session.group.is_none()
        && row.flag(table, "$session_enable") != Some(true)
    {
        return Err(Refusal::malformed("the session has neither a port nor a group"));
    }
    Ok(session)
}

/// Changes sessions. Returns whether an entry was modified.
pub(crate) fn apply(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    if op == Op::Clear {
        let all: Vec<u32> = t.switch().replication().sessions().map(|(id, _)| id).collect();
        for id in all {
            t.write(Write::Session(id, None))?;
        }
        return Ok(true);
    }
    let id = row.key_number(0);
    let existing = t.switch().replication().session(id).cloned();
    let modifies = op.check(existing.is_some())?;
    match op {
        Op::Delete => {
            t.write(Write::Session(id, None))?;
            return Ok(true);
        }
        Op::Add | Op::Remove => return Err(Refusal::unsupported("sessions have no lists; use MODIFY")),
        _ => {}
    }
    let action = table
        .actions
        .iter()
        .find(|a| a.id == row.action)
        .map(|a| a.name.as_str());
    if action == Some("$coalescing") {
        return Err(Refusal::unsupported(
            "weir sends mirrored packets one by one; use the action `$normal`",
        ));
    }
    let session = session(row, table, existing)?;
    for replica in &session.replicas {
        check_port(t.switch(), replica.port)?;
    }
    t.write(Write::Session(id, Some(session)))?;
    Ok(modifies)
}

/// Reads sessions.
pub(crate) fn read(query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let (table, replication) = (query.table, query.switch.replication());
    let normal = table.actions.iter().find(|a| a.name == "$normal").map_or(0, |a| a.id);
    let ids = replication.sessions_in(query.numbers()).map(|(id, _)| id);
    query.rows(ids, move |id, row| {
        row.action = normal;
        let Some(session) = replication.session(id) else {
            return;
        };
        let port = session.replicas.first();
        let number = |n: u32| Value::Number(n.into());
        row.set(table, "$session_enable", Value::Bool(true));
        row.set(table, "$direction", Value::Text("BOTH".to_owned()));
        row.set(table, "$ucast_egress_port", number(port.map_or(0, |r| r.port)));
        row.set(table, "$ucast_egress_port_valid", Value::Bool(port.is_some()));
        row.set(table, "$ingress_cos", number(session.class_of_service.into()));
        row.set(table, "$mcast_grp_a", number(session.group.unwrap_or(0)));
        row.set(table, "$mcast_grp_a_valid", Value::Bool(session.group.is_some()));
        row.set(table, "$mcast_rid", number(port.map_or(0, |r| r.rid)));
        row.set(table, "$max_pkt_len", number(session.truncate_bytes));
    })
}
