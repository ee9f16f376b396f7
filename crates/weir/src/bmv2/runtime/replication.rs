//! Multicast groups and mirroring sessions.

use super::values::list;
use super::{Call, MANY, Spec};
use anyhow::{Context, Result, bail};
use weir_switch::{CloneSession, Node, Replica, Write};

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "mc_mgrp_create",
        usage: "GROUP",
        about: "make a multicast group without nodes",
        count: (1, 1),
        arguments: &[],
        run: create_group,
    },
    Spec {
        name: "mc_mgrp_destroy",
        usage: "GROUP",
        about: "remove a multicast group",
        count: (1, 1),
        arguments: &[],
        run: destroy_group,
    },
    Spec {
        name: "mc_node_create",
        usage: "RID PORT… [| LAG…]",
        about: "make a node: copies for these ports with this replication id",
        count: (1, MANY),
        arguments: &[],
        run: create_node,
    },
    Spec {
        name: "mc_node_update",
        usage: "NODE PORT… [| LAG…]",
        about: "give a node other ports",
        count: (2, MANY),
        arguments: &[],
        run: update_node,
    },
    Spec {
        name: "mc_node_associate",
        usage: "GROUP NODE",
        about: "put a node into a group",
        count: (2, 2),
        arguments: &[],
        run: associate,
    },
    Spec {
        name: "mc_node_dissociate",
        usage: "GROUP NODE",
        about: "take a node out of a group",
        count: (2, 2),
        arguments: &[],
        run: dissociate,
    },
    Spec {
        name: "mc_node_destroy",
        usage: "NODE",
        about: "remove a node, also from its groups",
        count: (1, 1),
        arguments: &[],
        run: destroy_node,
    },
    Spec {
        name: "mc_set_lag_membership",
        usage: "LAG PORT…",
        about: "set the ports of a link aggregation group: one of them gets a copy",
        count: (2, MANY),
        arguments: &[],
        run: set_lag,
    },
    Spec {
        name: "mc_dump",
        usage: "",
        about: "show all groups, their nodes, and link aggregation groups",
        count: (0, 0),
        arguments: &[],
        run: dump,
    },
    Spec {
        name: "mirroring_add",
        usage: "SESSION PORT",
        about: "send clones of a session to a port",
        count: (2, 2),
        arguments: &[],
        run: mirror_to_port,
    },
    Spec {
        name: "mirroring_add_mc",
        usage: "SESSION GROUP",
        about: "send clones of a session to a multicast group",
        count: (2, 2),
        arguments: &[],
        run: mirror_to_group,
    },
    Spec {
        name: "mirroring_delete",
        usage: "SESSION",
        about: "remove a session",
        count: (1, 1),
        arguments: &[],
        run: mirror_delete,
    },
    Spec {
        name: "mirroring_get",
        usage: "SESSION",
        about: "show a session",
        count: (1, 1),
        arguments: &[],
        run: mirror_get,
    },
];

/// The group that an argument names, which must exist.
fn group(call: &Call<'_>) -> Result<u32> {
    let group = call.number(0, "multicast group")?;
    match call.switch.replication().group_nodes(group) {
        Some(_) => Ok(group),
        None => bail!("there is no multicast group {group}"),
    }
}

/// The node that an argument names, which must exist.
fn node(call: &Call<'_>, index: usize) -> Result<u32> {
    let node = call.number(index, "node")?;
    match call.switch.replication().node(node) {
        Some(_) => Ok(node),
        None => bail!("there is no node {node}"),
    }
}

fn numbers(texts: &[&str], what: &str) -> Result<Vec<u32>> {
    let number = |text: &&str| {
        text.parse()
            .with_context(|| format!("expected a number for {what}, found `{text}`"))
    };
    let mut numbers: Vec<u32> = texts.iter().map(number).collect::<Result<_>>()?;
    numbers.sort_unstable();
    if let Some(twice) = numbers.windows(2).find(|w| w[0] == w[1]) {
        bail!("{what} {} is given twice", twice[0]);
    }
    Ok(numbers)
}

/// Ports that the architecture has.
fn ports(call: &Call<'_>, texts: &[&str]) -> Result<Vec<u32>> {
    let ports = numbers(texts, "port")?;
    let check = |port: &u32| crate::load::check_port(call.switch.program(), *port);
    ports.iter().try_for_each(check)?;
    Ok(ports)
}

/// Ports and link aggregation groups after the first argument.
fn members(call: &Call<'_>) -> Result<(Vec<u32>, Vec<u32>)> {
    let rest = &call.arguments[1..];
    let bar = rest.iter().position(|a| *a == "|");
    let (given, lags) = rest.split_at(bar.unwrap_or(rest.len()));
    Ok((
        ports(call, given)?,
        numbers(lags.get(1..).unwrap_or_default(), "link aggregation group")?,
    ))
}

fn create_group(call: &mut Call<'_>) -> Result<String> {
    let group: u32 = call.number(0, "multicast group")?;
    if call.switch.replication().group_nodes(group).is_some() {
        bail!("multicast group {group} exists already");
    }
    call.switch.write(Write::GroupNodes(group, Some(Vec::new())))?;
    Ok(format!("Creating multicast group {group}\n"))
}

fn destroy_group(call: &mut Call<'_>) -> Result<String> {
    let group = group(call)?;
    call.switch.write(Write::GroupNodes(group, None))?;
    Ok(format!("Destroying multicast group {group}\n"))
}

fn create_node(call: &mut Call<'_>) -> Result<String> {
    let rid: u16 = call.number(0, "replication id of 16 bits")?;
    let rid = rid.into();
    let (ports, lags) = members(call)?;
    let replication = call.switch.replication();
    let handle = (0..u32::MAX).find(|handle| replication.node(*handle).is_none());
    let handle = handle.context("all numbers of nodes are taken")?;
    let new = Node {
        rid,
        ports,
        lags,
        ..Node::default()
    };
    call.switch.write(Write::Node(handle, Some(new)))?;
    Ok(format!("node was created with handle {handle}\n"))
}

fn update_node(call: &mut Call<'_>) -> Result<String> {
    let handle = node(call, 0)?;
    let (ports, lags) = members(call)?;
    let rid = call.switch.replication().node(handle).map_or(0, |n| n.rid);
    let new = Node {
        rid,
        ports,
        lags,
        ..Node::default()
    };
    call.switch.write(Write::Node(handle, Some(new)))?;
    Ok(format!("Updating node {handle}\n"))
}

fn associate(call: &mut Call<'_>) -> Result<String> {
    let (group, node) = (group(call)?, node(call, 1)?);
    if call.switch.replication().is_member(group, node) {
        bail!("node {node} is in multicast group {group} already");
    }
    call.switch.write(Write::JoinGroup(group, vec![(node, None)]))?;
    Ok(format!("Associating node {node} to multicast group {group}\n"))
}

fn dissociate(call: &mut Call<'_>) -> Result<String> {
    let (group, node) = (group(call)?, node(call, 1)?);
    call.switch.write(Write::LeaveGroup(group, vec![node]))?;
    Ok(format!("Dissociating node {node} from multicast group {group}\n"))
}

fn destroy_node(call: &mut Call<'_>) -> Result<String> {
    let node = node(call, 0)?;
    call.switch.write(Write::Node(node, None))?;
    Ok(format!("Destroying node {node}\n"))
}

fn set_lag(call: &mut Call<'_>) -> Result<String> {
    let lag = call.number(0, "link aggregation group")?;
    let ports = ports(call, &call.arguments[1..])?;
    let text = format!("Setting lag membership: {lag} <- [{}]\n", list(ports.iter().copied()));
    call.switch.write(Write::Lag(lag, Some(ports)))?;
    Ok(text)
}

fn dump(call: &mut Call<'_>) -> Result<String> {
    let replication = call.switch.replication();
    let mut text = "==========\nMC ENTRIES\n".to_owned();
    for (group, nodes) in replication.groups() {
        text += &format!("**********\nmgrp({group})\n");
        for handle in nodes {
            let Some(node) = replication.node(*handle) else {
                continue;
            };
            text += &format!(
                "  -> (L1h={handle}, rid={}) -> (ports=[{}], lags=[{}])\n",
                node.rid,
                list(node.ports.iter().copied()),
                list(node.lags.iter().copied())
            );
        }
    }
    text += "==========\nLAGS\n";
    for (lag, ports) in replication.lags() {
        text += &format!("lag({lag}) -> ports=[{}]\n", list(ports.iter().copied()));
    }
    text += "==========\n";
    Ok(text)
}

fn mirror(call: &mut Call<'_>, session: CloneSession) -> Result<String> {
    let id = call.number(0, "session")?;
    call.switch.write(Write::Session(id, Some(session)))?;
    Ok(String::new())
}

fn mirror_to_port(call: &mut Call<'_>) -> Result<String> {
    let port = ports(call, &call.arguments[1..=1])?[0];
    let replicas = vec![Replica::new(port, 0)];
    mirror(
        call,
        CloneSession {
            replicas,
            ..CloneSession::default()
        },
    )
}

fn mirror_to_group(call: &mut Call<'_>) -> Result<String> {
    let group = Some(call.number(1, "multicast group")?);
    mirror(
        call,
        CloneSession {
            group,
            ..CloneSession::default()
        },
    )
}

/// The session that the first argument names, which must exist.
fn session<'a>(call: &'a Call<'_>) -> Result<(u32, &'a CloneSession)> {
    let id = call.number(0, "session")?;
    let session = call.switch.replication().session(id);
    Ok((
        id,
        session.with_context(|| format!("there is no mirroring session {id}"))?,
    ))
}

fn mirror_delete(call: &mut Call<'_>) -> Result<String> {
    let (id, _) = session(call)?;
    call.switch.write(Write::Session(id, None))?;
    Ok(String::new())
}

fn mirror_get(call: &mut Call<'_>) -> Result<String> {
    let (_, session) = session(call)?;
    let port = match session.replicas.as_slice() {
        [] => "None".to_owned(),
        [one] => one.port.to_string(),
        many => format!("[{}]", list(many.iter().map(|r| r.port))),
    };
    let group = session
        .group
        .map_or_else(|| "None".to_owned(), |group| group.to_string());
    Ok(format!("MirroringSessionConfig(port={port}, mgid={group})\n"))
}
