//! `$pre.*`: changes and reads the replication engine: multicast groups, nodes, LAGs, and lists of
//! ports that are pruned.
//!
//! A group consists of nodes; a node sends copies to its ports and to one port of each of its LAGs.
//! A node may have an exclusion id (L1 XID): packets with that id skip it.

use super::{NumberQuery, Op, Row, Rows};
use crate::bfrt::schema::Table;
use crate::bfrt::value::Value;
use crate::dataplane::check_port;
use crate::refusal::Refusal;
use std::collections::BTreeSet;
use weir_switch::{Node, Switch, Transaction, Write};

const NODES: &str = "$MULTICAST_NODE_ID";
const EXCLUDES: &str = "$MULTICAST_NODE_L1_XID_VALID";
const EXCLUSION: &str = "$MULTICAST_NODE_L1_XID";
const PORTS: &str = "$DEV_PORT";

/// Nodes with their exclusion ids.
type GroupNodes = Vec<(u32, Option<u32>)>;

/// The nodes given for a group, with their exclusion ids.
fn nodes_of(row: &Row, table: &Table) -> Result<Option<GroupNodes>, Refusal> {
    if row.numbers(table, "$MULTICAST_ECMP_ID").is_some_and(|l| !l.is_empty()) {
        return Err(Refusal::unsupported(
            "groups have nodes; weir has no nodes that are chosen by a hash (ECMP)",
        ));
    }
    let Some(nodes) = row.numbers(table, NODES) else {
        return Ok(None);
    };
    let valid = match row.get(table, EXCLUDES) {
        Some(Value::Bools(list)) => list.as_slice(),
        _ => &[],
    };
    let numbers = row.numbers(table, EXCLUSION).unwrap_or(&[]);
    for (name, length) in [(EXCLUDES, valid.len()), (EXCLUSION, numbers.len())] {
        if length != 0 && length != nodes.len() {
            return Err(Refusal::malformed(format!(
                "there are {} nodes and {length} values in `{name}`; give one per node",
                nodes.len()
            )));
        }
    }
    let with_exclusion = |(at, node): (usize, &u32)| {
        let is_valid = valid.get(at).copied().unwrap_or(false);
        (*node, numbers.get(at).copied().filter(|_| is_valid))
    };
    Ok(Some(nodes.iter().enumerate().map(with_exclusion).collect()))
}

fn group_nodes(switch: &Switch, group: u32) -> Option<GroupNodes> {
    let replication = switch.replication();
    let nodes = replication.group_nodes(group)?;
    Some(nodes.iter().map(|n| (*n, replication.exclusion(group, *n))).collect())
}

/// Changes multicast groups. Returns whether an entry was modified.
pub(crate) fn groups(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    if op == Op::Clear {
        let all: Vec<u32> = t.switch().replication().groups().map(|(id, _)| id).collect();
        for id in all {
            t.write(Write::GroupNodes(id, None))?;
        }
        return Ok(true);
    }
    let id = row.key_number(0);
    let is_there = t.switch().replication().group_nodes(id).is_some();
    let modifies = op.check(is_there)?;
    let given = nodes_of(row, table)?;
    let write = match (op, given) {
        (Op::Delete, _) => Write::GroupNodes(id, None),
        (Op::Add, given) => Write::JoinGroup(id, given.unwrap_or_default()),
        (Op::Remove, given) => {
            let nodes: Vec<u32> = given.into_iter().flatten().map(|(node, _)| node).collect();
            let replication = t.switch().replication();
            if let Some(node) = nodes.iter().find(|node| !replication.is_member(id, **node)) {
                return Err(Refusal::not_found(format!("node {node} is not in the group")));
            }
            Write::LeaveGroup(id, nodes)
        }
        (_, None) if is_there => return Ok(modifies),
        (_, given) => Write::GroupNodes(id, Some(given.unwrap_or_default())),
    };
    t.write(write)?;
    Ok(modifies)
}

/// Reads multicast groups.
pub(crate) fn read_groups(query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let NumberQuery { table, switch, .. } = query;
    let ids = switch.replication().groups_in(query.numbers()).map(|(id, _)| id);
    query.rows(ids, move |id, row| {
        let nodes = group_nodes(switch, id).unwrap_or_default();
        row.set(table, NODES, Value::Numbers(nodes.iter().map(|n| n.0).collect()));
        row.set(
            table,
            EXCLUDES,
            Value::Bools(nodes.iter().map(|n| n.1.is_some()).collect()),
        );
        row.set(
            table,
            EXCLUSION,
            Value::Numbers(nodes.iter().map(|n| n.1.unwrap_or(0)).collect()),
        );
        for name in ["$MULTICAST_ECMP_ID", "$MULTICAST_ECMP_L1_XID"] {
            row.set(table, name, Value::Numbers(Vec::new()));
        }
        row.set(table, "$MULTICAST_ECMP_L1_XID_VALID", Value::Bools(Vec::new()));
    })
}

fn check_all(switch: &Switch, ports: &[u32]) -> Result<(), Refusal> {
    ports.iter().try_for_each(|port| check_port(switch, *port))
}

/// Applies an operation to a list of numbers.
fn changed(op: Op, before: &[u32], given: Option<&[u32]>) -> Vec<u32> {
    match (op, given) {
        (_, None) => before.to_vec(),
        (Op::Add, Some(given)) => {
            // The existing list may be much longer than the given one, so the set holds the latter.
            let mut new: BTreeSet<&u32> = given.iter().collect();
            if !new.is_empty() {
                before.iter().for_each(|b| {
                    new.remove(b);
                });
            }
            let mut all = Vec::with_capacity(before.len() + given.len());
            all.extend_from_slice(before);
            all.extend(given.iter().filter(|g| new.contains(g)));
            all
        }
        (Op::Remove, Some(given)) => {
            let given: BTreeSet<&u32> = given.iter().collect();
            before.iter().copied().filter(|b| !given.contains(b)).collect()
        }
        (_, Some(given)) => given.to_vec(),
    }
}

/// Changes nodes. Returns whether an entry was modified. A deleted node leaves its groups.
pub(crate) fn nodes(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    if op == Op::Clear {
        // All nodes of a group are removed together: each alone would be searched for in its list.
        let groups: Vec<(u32, Vec<u32>)> = t
            .switch()
            .replication()
            .groups()
            .map(|(id, nodes)| (id, nodes.to_vec()))
            .collect();
        for (id, nodes) in groups {
            t.write(Write::LeaveGroup(id, nodes))?;
        }
        let all: Vec<u32> = t.switch().replication().nodes().map(|(id, _)| id).collect();
        for id in all {
            t.write(Write::Node(id, None))?;
        }
        return Ok(true);
    }
    let id = row.key_number(0);
    let existing = t.switch().replication().node(id);
    let modifies = op.check(existing.is_some())?;
    if op == Op::Delete {
        t.write(Write::Node(id, None))?;
        return Ok(true);
    }
    let none = Node::default();
    let before = existing.unwrap_or(&none);
    let node = Node {
        rid: row.number(table, "$MULTICAST_RID").map_or(before.rid, |n| n as u32),
        ports: changed(op, &before.ports, row.numbers(table, PORTS)),
        lags: changed(op, &before.lags, row.numbers(table, "$MULTICAST_LAG_ID")),
        backups: before.backups.clone(),
        form: before.form,
    };
    check_all(t.switch(), &node.ports)?;
    t.write(Write::Node(id, Some(node)))?;
    Ok(modifies)
}

/// Reads nodes.
pub(crate) fn read_nodes(query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let (table, replication) = (query.table, query.switch.replication());
    let ids = replication.nodes_in(query.numbers()).map(|(id, _)| id);
    query.rows(ids, move |id, row| {
        let Some(node) = replication.node(id) else { return };
        row.set(table, "$MULTICAST_RID", Value::Number(node.rid.into()));
        row.set(table, "$MULTICAST_LAG_ID", Value::Numbers(node.lags.clone()));
        row.set(table, PORTS, Value::Numbers(node.ports.clone()));
    })
}

/// Changes LAGs. Returns whether an entry was modified. A copy is sent to the first port of a LAG
/// that is up.
pub(crate) fn lags(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    let remote = ["$MULTICAST_LAG_REMOTE_MSB_COUNT", "$MULTICAST_LAG_REMOTE_LSB_COUNT"];
    if remote
        .iter()
        .any(|name| row.number(table, name).is_some_and(|n| n != 0))
    {
        return Err(Refusal::unsupported(
            "weir is one device: there are no ports of other ones",
        ));
    }
    if op == Op::Clear {
        let all: Vec<u32> = t.switch().replication().lags().map(|(id, _)| id).collect();
        for id in all {
            t.write(Write::Lag(id, None))?;
        }
        return Ok(true);
    }
    let id = row.key_number(0);
    let existing = t.switch().replication().lag(id).map(<[u32]>::to_vec);
    let modifies = op.check(existing.is_some())?;
    let ports = changed(op, &existing.unwrap_or_default(), row.numbers(table, PORTS));
    check_all(t.switch(), &ports)?;
    t.write(Write::Lag(id, (op != Op::Delete).then_some(ports)))?;
    Ok(modifies)
}

/// Reads LAGs.
pub(crate) fn read_lags(query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let (table, replication) = (query.table, query.switch.replication());
    let ids = replication.lags_in(query.numbers()).map(|(id, _)| id);
    query.rows(ids, move |id, row| {
        let ports = replication.lag(id).unwrap_or_default();
        row.set(table, PORTS, Value::Numbers(ports.to_vec()));
        row.set(table, "$MULTICAST_LAG_REMOTE_MSB_COUNT", Value::Number(0));
        row.set(table, "$MULTICAST_LAG_REMOTE_LSB_COUNT", Value::Number(0));
    })
}

/// Changes lists of pruned ports. Such a list always exists and is initially empty, so an insertion
/// sets it.
pub(crate) fn prunes(op: Op, row: &Row, table: &Table, t: &mut Transaction<'_>) -> Result<bool, Refusal> {
    if op == Op::Clear {
        let all: Vec<u32> = t.switch().replication().port_lists().map(|(id, _)| id).collect();
        for id in all {
            t.write(Write::PortList(id, Vec::new()))?;
        }
        return Ok(true);
    }
    let id = row.key_number(0);
    let before = t.switch().replication().port_list(id).to_vec();
    let ports = match op {
        Op::Delete => Vec::new(),
        _ => changed(op, &before, row.numbers(table, PORTS)),
    };
    check_all(t.switch(), &ports)?;
    t.write(Write::PortList(id, ports))?;
    Ok(true)
}

/// Reads lists of pruned ports: the selected one, or all that are not empty.
pub(crate) fn read_prunes(query: NumberQuery<'_>) -> Result<Rows<'_>, Refusal> {
    let (table, replication, only) = (query.table, query.switch.replication(), query.only);
    let all = replication.port_lists_in(query.numbers()).map(|(id, _)| id);
    let ids = only.into_iter().chain(all.filter(move |_| only.is_none()));
    query.rows(ids, move |id, row| {
        row.set(table, PORTS, Value::Numbers(replication.port_list(id).to_vec()));
    })
}
