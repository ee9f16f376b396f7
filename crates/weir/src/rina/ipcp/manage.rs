//! The management agent: commands of `weir rina ctl`.

use serde_json::{Value, json};
use weir_ipcp::{IpcProcess, PortId};
use weir_rina::Time;

/// The commands, for messages.
pub const COMMANDS: &str =
    "status, neighbours, members, routes, link-states, directory, flows, counters, enrol N, port-up N, port-down N";

/// Does a command; its answer.
///
/// # Errors
/// There is no such command.
pub fn manage(process: &mut IpcProcess, command: &str, now: Time) -> Result<Value, String> {
    let mut words = command.split_whitespace();
    let (verb, argument) = (words.next().unwrap_or_default(), words.next());
    if let Some(extra) = words.next() {
        return Err(format!("expected at most one argument, found `{extra}`"));
    }
    match (verb, argument) {
        ("enrol" | "port-up" | "port-down", Some(port)) => set_port(process, verb, port, now),
        ("enrol" | "port-up" | "port-down", None) => Err(format!("{verb}: expected a port number")),
        (_, Some(argument)) => Err(format!("{verb}: expected no argument, found `{argument}`")),
        (_, None) => show(process, verb, now),
    }
}

/// Commands about a port.
fn set_port(process: &mut IpcProcess, verb: &str, port: &str, now: Time) -> Result<Value, String> {
    let number = port
        .parse()
        .map_err(|_| format!("{verb}: expected a port number, found `{port}`"))?;
    let port = PortId(number);
    if !process.config().ports.iter().any(|known| known.number == port) {
        return Err(format!("{verb}: there is no port {number}"));
    }
    match verb {
        "enrol" => process.search(port, now),
        "port-up" => process.port_up(port, now),
        _ => process.port_down(port, now),
    }
    Ok(json!({ "port": number }))
}

fn show(process: &IpcProcess, what: &str, now: Time) -> Result<Value, String> {
    let value = |value: serde_json::Result<Value>| value.map_err(|error| error.to_string());
    match what {
        "status" => Ok(json!({
            "name": process.config().name,
            "dif": process.config().dif,
            "role": process.config().role,
            "address": process.address().map(|address| address.0),
            "neighbours": process.neighbours().iter().filter(|n| n.state == "enrolled").count(),
            "routes": process.forwarding().routes.len(),
            "flows": process.flows().len(),
        })),
        "neighbours" => value(serde_json::to_value(process.neighbours())),
        "flows" => value(serde_json::to_value(process.flows())),
        "members" => {
            let members = process.members().iter();
            Ok(members
                .map(|(name, address)| json!({ "name": name, "address": address.0 }))
                .collect())
        }
        "routes" => Ok(routes(process)),
        "link-states" => {
            let mut states: Vec<_> = process.link_states(now).collect();
            states.sort_by(|a, b| (&a.origin, &a.neighbour).cmp(&(&b.origin, &b.neighbour)));
            let state = |state: weir_rina::link_state::LinkState<String>| {
                let age = u64::try_from(state.age.as_millis()).unwrap_or(u64::MAX);
                json!({
                    "origin": state.origin,
                    "neighbour": state.neighbour,
                    "cost": state.cost,
                    "sequence": state.sequence,
                    "up": state.is_up,
                    "age_ms": age,
                })
            };
            Ok(states.into_iter().map(state).collect())
        }
        "directory" => {
            let entries = process.directory();
            Ok(entries
                .map(|(name, address)| json!({ "name": name.to_string(), "address": address.0 }))
                .collect())
        }
        "counters" => Ok(counters(process)),
        _ => Err(format!("expected one of: {COMMANDS}; found `{what}`")),
    }
}

fn routes(process: &IpcProcess) -> Value {
    let table = process.forwarding().routes;
    let route = |(name, route): (&String, &weir_rina::routing::Route<String>)| {
        let address = process.members().get(name);
        let ports: Vec<u32> = address
            .and_then(|address| table.get(address))
            .map(|hops| hops.iter().map(|hop| hop.port.0).collect())
            .unwrap_or_default();
        let alternates: Vec<&String> = route.alternates.iter().map(|alternate| &alternate.next_hop).collect();
        json!({
            "destination": name,
            "address": address.map(|address| address.0),
            "cost": route.cost,
            "next_hops": route.next_hops,
            "ports": ports,
            "alternates": alternates,
        })
    };
    process.routes().iter().map(route).collect()
}

fn counters(process: &IpcProcess) -> Value {
    let counters = process.counters();
    let refused: serde_json::Map<String, Value> = weir_ipcp::Refused::ALL
        .iter()
        .zip(counters.refused)
        .map(|(reason, count)| (reason.name().to_owned(), json!(count)))
        .collect();
    json!({
        "frames_received": counters.frames_received,
        "frames_sent": counters.frames_sent,
        "bytes_sent": counters.bytes_sent,
        "messages_received": counters.messages_received,
        "messages_sent": counters.messages_sent,
        "pdus_received": counters.pdus_received,
        "pdus_sent": counters.pdus_sent,
        "pdus_forwarded": counters.pdus_forwarded,
        "enrolments": counters.enrolments,
        "route_computations": counters.route_computations,
        "refused": refused,
    })
}
