//! The switch itself: ports, queues, hashes, time; and what weir has not.

use super::{Call, MANY, Spec};
use anyhow::{Context, Result, anyhow, bail};
use weir_ir::{Bits, ExternId, TableId, ValueSetId};
use weir_switch::{Cell, Count, CrcParameters, PortRate, QueueConfig, Write};
use weir_table::{ProfileOp, TableOp};

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "show_ports",
        usage: "",
        about: "list the ports and their devices",
        count: (0, 0),
        arguments: &[],
        run: show_ports,
    },
    Spec {
        name: "switch_info",
        usage: "",
        about: "show numbers of the switch",
        count: (0, 0),
        arguments: &[],
        run: switch_info,
    },
    Spec {
        name: "set_queue_rate",
        usage: "PACKETS_PER_SECOND [PORT]",
        about: "limit the rate of a port, or of all; 0: no limit",
        count: (1, 3),
        arguments: &[],
        run: set_queue_rate,
    },
    Spec {
        name: "set_queue_depth",
        usage: "PACKETS [PORT]",
        about: "set the room of each queue of a port, or of all",
        count: (1, 3),
        arguments: &[],
        run: set_queue_depth,
    },
    Spec {
        name: "set_crc16_parameters",
        usage: "NAME POLYNOMIAL INITIAL XOR REFLECT_IN REFLECT_OUT",
        about: "set the CRC parameters of a calculation, or of crc16_custom for all others",
        count: (6, 6),
        arguments: &[],
        run: set_crc16,
    },
    Spec {
        name: "set_crc32_parameters",
        usage: "NAME POLYNOMIAL INITIAL XOR REFLECT_IN REFLECT_OUT",
        about: "set the CRC parameters of a calculation, or of crc32_custom for all others",
        count: (6, 6),
        arguments: &[],
        run: set_crc32,
    },
    Spec {
        name: "get_time_elapsed",
        usage: "",
        about: "show the time since the switch started, in microseconds",
        count: (0, 0),
        arguments: &[],
        run: time,
    },
    Spec {
        name: "get_time_since_epoch",
        usage: "",
        about: "show the switch's clock, in microseconds",
        count: (0, 0),
        arguments: &[],
        run: time,
    },
    Spec {
        name: "reset_state",
        usage: "",
        about: "remove entries, groups and sessions; set counters, meters and registers to their start",
        count: (0, 0),
        arguments: &[],
        run: reset_state,
    },
    Spec {
        name: "get_config",
        usage: "",
        about: "show the JSON of the program (write_config_to_file FILE saves it)",
        count: (0, 0),
        arguments: &[],
        run: get_config,
    },
    not_here(
        "load_new_config_file",
        "FILE",
        "programs are changed by P4Runtime: SetForwardingPipelineConfig",
    ),
    not_here(
        "swap_configs",
        "",
        "programs are changed by P4Runtime: SetForwardingPipelineConfig",
    ),
    Spec {
        name: "port_add",
        usage: "INTERFACE PORT",
        about: "connect an interface to a new port",
        count: (2, 2),
        arguments: &[],
        run: of_process,
    },
    Spec {
        name: "port_remove",
        usage: "PORT",
        about: "disconnect the interface of a port",
        count: (1, 1),
        arguments: &[],
        run: of_process,
    },
    not_here(
        "serialize_state",
        "FILE",
        "state is kept by `weir run --state FILE` (docs/state.md)",
    ),
    not_here("set_toeplitz_hash_key", "NAME KEY", "weir has no Toeplitz hash"),
    not_here("shell", "COMMAND", "use a shell of its own"),
];

/// A command of bmv2's tool that weir does not execute.
const fn not_here(name: &'static str, usage: &'static str, instead: &'static str) -> Spec {
    Spec {
        name,
        usage,
        about: instead,
        count: (0, MANY),
        arguments: &[],
        run: refuse,
    }
}

/// Of commands that [`super::port_change`] takes out: they are about devices, which the switch does
/// not know.
fn of_process(call: &mut Call<'_>) -> Result<String> {
    bail!("{} is not a command of the switch itself", call.name)
}

fn refuse(call: &mut Call<'_>) -> Result<String> {
    let instead = super::find(call.name).map_or("", |spec| spec.about);
    bail!("{} is not supported: {instead}", call.name)
}

fn show_ports(call: &mut Call<'_>) -> Result<String> {
    let mut text = format!(
        "{:^10}{:^20}{:^10}\n{}\n",
        "port #",
        "iface name",
        "status",
        "=".repeat(50)
    );
    for port in &call.info.ports {
        let status = if call.switch.is_down(port.port) { "DOWN" } else { "UP" };
        // `packet:` says how an interface is opened.
        let device = port.device.strip_prefix("packet:").unwrap_or(&port.device);
        text += format!("{:^10}{device:^20}{status:^10}", port.port).trim_end();
        text += "\n";
    }
    Ok(text)
}

fn switch_info(call: &mut Call<'_>) -> Result<String> {
    let rows = [
        ("device_id", call.info.device_id.to_string()),
        ("thrift_port", call.info.runtime_port.to_string()),
        ("program", call.info.source.clone()),
        ("architecture", call.switch.program().target.clone()),
        ("version", concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    Ok(rows
        .iter()
        .map(|(name, value)| format!("{name:20}: {value}\n"))
        .collect())
}

/// The ports that a command about queues is for: the second argument, or all.
fn ports(call: &Call<'_>) -> Result<Vec<u32>> {
    if call.arguments.len() > 2 {
        bail!("weir has one rate and one depth for all queues of a port: leave out the priority");
    }
    match call.arguments.len() {
        2 => Ok(vec![call.number(1, "port")?]),
        _ => Ok(call.info.ports.iter().map(|p| p.port).collect()),
    }
}

fn set_queue_rate(call: &mut Call<'_>) -> Result<String> {
    let rate: u64 = call.number(0, "rate in packets per second")?;
    let rate = PortRate {
        packets_per_second: (rate > 0).then_some(rate),
        ..PortRate::default()
    };
    for port in ports(call)? {
        let config = QueueConfig {
            rate,
            is_shaped: rate != PortRate::default(),
            ..call.switch.queue_config(port)
        };
        call.switch.write(Write::Queue(port, Some(config)))?;
    }
    Ok(String::new())
}

fn set_queue_depth(call: &mut Call<'_>) -> Result<String> {
    let packets: u32 = call.number(0, "number of packets")?;
    if packets == 0 {
        bail!("a queue has room for one packet at least");
    }
    for port in ports(call)? {
        let config = QueueConfig {
            capacity: Some(packets),
            ..call.switch.queue_config(port)
        };
        call.switch.write(Write::Queue(port, Some(config)))?;
    }
    Ok(String::new())
}

fn set_crc16(call: &mut Call<'_>) -> Result<String> {
    set_crc(call, 16)
}

fn set_crc32(call: &mut Call<'_>) -> Result<String> {
    set_crc(call, 32)
}

/// A number of a width, decimal or with 0x.
fn word(call: &Call<'_>, index: usize, width: u32) -> Result<u64> {
    let text = call.argument(index, "the parameter")?;
    Ok(super::values::bits(text, width, "the parameter")?.to_u64_saturating())
}

fn set_crc(call: &mut Call<'_>, width: u32) -> Result<String> {
    if !call.switch.state().custom_crcs().contains(&width) {
        bail!("the program does not hash by crc{width}_custom");
    }
    let name = call.argument(0, "the calculation")?;
    let scope = call.switch.state().crc_named(width, name);
    let scope = scope.map_err(|e| anyhow!("{e}; crc{width}_custom stands for all without parameters of their own"))?;
    let is_set = |call: &Call<'_>, index| Ok::<_, anyhow::Error>(word(call, index, 1)? == 1);
    let parameters = CrcParameters {
        width,
        polynomial: word(call, 1, width)?,
        initial: word(call, 2, width)?,
        xor_out: word(call, 3, width)?,
        reflect_in: is_set(call, 4)?,
        reflect_out: is_set(call, 5)?,
    };
    call.switch.write(Write::crc(scope, Some(parameters)))?;
    Ok(String::new())
}

fn time(call: &mut Call<'_>) -> Result<String> {
    Ok(format!("{}\n", call.switch.now_ns() / 1000))
}

fn get_config(call: &mut Call<'_>) -> Result<String> {
    let source = &call.info.source;
    Ok(weir_server::container::encode(&call.info.program, source))
}

/// Removes what control planes have written, and what packets have left.
fn reset_state(call: &mut Call<'_>) -> Result<String> {
    let program = std::sync::Arc::clone(call.switch.program());
    let tables: Vec<TableId> = program.tables.ids().collect();
    for table in tables {
        let spec = super::tables::spec(call.switch, table)?;
        let (keeps_entries, keeps_default) = (spec.const_entries, spec.const_default);
        if !keeps_entries {
            call.switch.write(Write::Table(table, TableOp::Clear))?;
        }
        if !keeps_default {
            call.switch.write(Write::Table(table, TableOp::ResetDefault))?;
        }
    }
    let sets: Vec<ValueSetId> = program.value_sets.ids().collect();
    for set in sets {
        call.switch.write(Write::ValueSet(set, TableOp::Clear))?;
    }
    let externs: Vec<ExternId> = program.externs.ids().collect();
    for id in externs {
        reset_extern(call, id)?;
    }
    let replication = call.switch.replication();
    let groups: Vec<u32> = replication.groups().map(|(id, _)| id).collect();
    let nodes: Vec<u32> = replication.nodes().map(|(id, _)| id).collect();
    let sessions: Vec<u32> = replication.sessions().map(|(id, _)| id).collect();
    let writes = (groups.into_iter().map(|id| Write::GroupNodes(id, None)))
        .chain(nodes.into_iter().map(|id| Write::Node(id, None)))
        .chain(sessions.into_iter().map(|id| Write::Session(id, None)));
    for write in writes {
        call.switch.write(write)?;
    }
    Ok(String::new())
}

fn reset_extern(call: &mut Call<'_>, id: ExternId) -> Result<()> {
    if let Some(profile) = call.switch.state().profile(id) {
        let groups: Vec<u32> = profile.groups().map(|(id, _)| id).collect();
        let members: Vec<u32> = profile.members().map(|(id, _)| id).collect();
        let ops =
            (groups.into_iter().map(ProfileOp::DeleteGroup)).chain(members.into_iter().map(ProfileOp::DeleteMember));
        for op in ops {
            call.switch.write(Write::Profile(id, op)).context("the profile")?;
        }
    } else if super::resources::is_counter(call.switch, id) {
        call.switch.write(Write::Counter(id, Cell::All, Count::default()))?;
    } else if super::resources::is_meter(call.switch, id) {
        call.switch.write(Write::Meter(id, Cell::All, None))?;
    } else if let Ok(initial) = call.switch.register_initial(id) {
        let initial: Vec<Bits> = initial;
        call.switch.write(Write::Register(id, Cell::All, initial))?;
    }
    Ok(())
}
