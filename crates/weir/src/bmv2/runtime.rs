//! The commands of `simple_switch_CLI`, executed on a switch.
//!
//! Names, arguments and the parts of the output that scripts read are those of bmv2's tool. Handles
//! of entries count from 0 there and from 1 in weir; priorities are smaller-wins there and
//! larger-wins in weir ([`values`]).

mod device;
mod dump;
mod profiles;
mod replication;
mod resources;
mod sets;
mod tables;
#[cfg(test)]
mod tests;
mod values;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_ir::Program;
use weir_server::PortInfo;
use weir_switch::Switch;

/// What an argument of a command is, for completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A table.
    Table,
    /// An action of the table that was named before.
    TableAction,
    /// An action profile or selector.
    Profile,
    /// An action of the profile that was named before.
    ProfileAction,
    /// A counter.
    Counter,
    /// A meter.
    Meter,
    /// A register.
    Register,
    /// A parser value set.
    ValueSet,
}

/// A command.
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its arguments, for people.
    pub usage: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The fewest and the most arguments.
    pub count: (usize, usize),
    /// What the first arguments are.
    pub arguments: &'static [Argument],
    run: fn(&mut Call<'_>) -> Result<String>,
}

/// Any number of arguments.
const MANY: usize = usize::MAX;

/// What is known of the switch besides its state.
#[derive(Debug, Clone, Default)]
pub struct Info {
    /// Its number.
    pub device_id: u64,
    /// The port of this protocol.
    pub runtime_port: u16,
    /// Its ports.
    pub ports: Vec<PortInfo>,
    /// Name of the source file.
    pub source: String,
    /// The program, as the compiler made it.
    pub program: Arc<Program>,
}

/// A command with its arguments.
struct Call<'a> {
    switch: &'a mut Switch,
    info: &'a Info,
    name: &'a str,
    arguments: Vec<&'a str>,
    /// Where a long output continues, from 0.
    from: u64,
    /// Where the output continues in another call.
    next: Option<u64>,
}

impl<'a> Call<'a> {
    /// The argument at a position; `what` it is.
    fn argument(&self, index: usize, what: &str) -> Result<&'a str> {
        let found = self.arguments.get(index).copied();
        found.with_context(|| format!("argument {}, {what}, is missing", index + 1))
    }

    /// The same as a number.
    fn number<T: std::str::FromStr>(&self, index: usize, what: &str) -> Result<T> {
        let text = self.argument(index, what)?;
        let number = text.parse().ok();
        number.with_context(|| format!("expected a number for {what}, found `{text}`"))
    }
}

/// What a command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The text.
    pub text: String,
    /// Where it continues in another call.
    pub next: Option<u64>,
}

/// All commands by name.
pub fn commands() -> impl Iterator<Item = &'static Spec> {
    let lists = [
        tables::COMMANDS,
        dump::COMMANDS,
        profiles::COMMANDS,
        resources::COMMANDS,
        replication::COMMANDS,
        sets::COMMANDS,
        device::COMMANDS,
    ];
    lists.into_iter().flatten()
}

/// The command with this name.
pub fn find(name: &str) -> Option<&'static Spec> {
    commands().find(|spec| spec.name == name)
}

fn check_count(spec: &Spec, arguments: &[&str]) -> Result<()> {
    let (fewest, most) = spec.count;
    if !(fewest..=most).contains(&arguments.len()) {
        bail!(
            "{} arguments are given; the command is `{}`",
            arguments.len(),
            usage(spec)
        );
    }
    Ok(())
}

/// A change of the switch's ports, which its process makes and not the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortChange {
    /// Connect a device to a new port.
    Add {
        /// Its number.
        port: u32,
        /// The interface, or a device as weir writes it.
        device: String,
    },
    /// Disconnect a port.
    Remove(u32),
}

/// The change of ports that a line is; `None`: it is another command.
///
/// # Errors
/// Its arguments are wrong.
pub fn port_change(line: &str) -> Option<Result<PortChange>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (name, arguments) = words.split_first()?;
    let spec = find(name)?;
    let number = |text: &str| {
        let number = text.parse::<u32>();
        number.with_context(|| format!("`{text}` is no number of a port"))
    };
    let change = |arguments: &[&str]| {
        check_count(spec, arguments)?;
        match arguments {
            [device, port] => Ok(PortChange::Add {
                port: number(port)?,
                device: (*device).to_owned(),
            }),
            [port] => Ok(PortChange::Remove(number(port)?)),
            _ => bail!("the command is `{}`", usage(spec)),
        }
    };
    matches!(*name, "port_add" | "port_remove").then(|| change(arguments))
}

/// Executes a line. `from`: where a long output continues, at first 0.
///
/// # Errors
/// There is no such command, or it cannot be done.
pub fn execute(switch: &mut Switch, info: &Info, line: &str, from: u64) -> Result<Output> {
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else {
        return Ok(Output {
            text: String::new(),
            next: None,
        });
    };
    let spec = find(name).with_context(|| format!("there is no command `{name}`; `help` lists all"))?;
    let arguments: Vec<&str> = words.collect();
    check_count(spec, &arguments)?;
    let mut call = Call {
        switch,
        info,
        name,
        arguments,
        from,
        next: None,
    };
    let text = (spec.run)(&mut call)?;
    Ok(Output { text, next: call.next })
}

/// A command with its arguments, for people.
pub fn usage(spec: &Spec) -> String {
    format!("{} {}", spec.name, spec.usage).trim_end().to_owned()
}

/// The names of a program, for completion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names {
    /// Tables with their actions.
    pub tables: BTreeMap<String, Vec<String>>,
    /// Action profiles with their actions.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// Counters.
    pub counters: Vec<String>,
    /// Meters.
    pub meters: Vec<String>,
    /// Registers.
    pub registers: Vec<String>,
    /// Parser value sets.
    pub sets: Vec<String>,
}

impl Names {
    /// Those of the program of a switch.
    pub fn of(switch: &Switch) -> Names {
        let actions = |list: &[weir_table::ActionSpec]| list.iter().map(|a| a.name.clone()).collect();
        let program = switch.program();
        let mut names = Names::default();
        for (id, table) in program.tables.iter() {
            if let Ok(state) = switch.table_state(id) {
                let list = actions(&state.table.spec().actions);
                names.tables.insert(table.name.clone(), list);
            }
        }
        for (id, instance) in program.externs.iter() {
            let name = instance.name.clone();
            if let Some(profile) = switch.state().profile(id) {
                names.profiles.insert(name, actions(&profile.spec().actions));
            } else if switch.register_initial(id).is_ok() {
                names.registers.push(name);
            } else if resources::is_counter(switch, id) {
                names.counters.push(name);
            } else if resources::is_meter(switch, id) {
                names.meters.push(name);
            }
        }
        names.sets = program.value_sets.iter().map(|(_, s)| s.name.clone()).collect();
        names
    }

    /// What an argument may be, where `before` are the arguments before it.
    pub fn candidates(&self, argument: Argument, before: &[&str]) -> Vec<String> {
        let keys = |map: &BTreeMap<String, Vec<String>>| map.keys().cloned().collect();
        // Suffixes of names are names, too.
        let of_last = |map: &BTreeMap<String, Vec<String>>| {
            let last = before.last().copied().unwrap_or_default();
            let found = map
                .iter()
                .find(|(name, _)| *name == last || name.strip_suffix(last).is_some_and(|rest| rest.ends_with('.')));
            found.map(|(_, list)| list.clone()).unwrap_or_default()
        };
        match argument {
            Argument::Table => keys(&self.tables),
            Argument::TableAction => of_last(&self.tables),
            Argument::Profile => keys(&self.profiles),
            Argument::ProfileAction => of_last(&self.profiles),
            Argument::Counter => self.counters.clone(),
            Argument::Meter => self.meters.clone(),
            Argument::Register => self.registers.clone(),
            Argument::ValueSet => self.sets.clone(),
        }
    }
}
