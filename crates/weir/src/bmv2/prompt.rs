//! `simple_switch_CLI`: a prompt at the port of a running switch, from a terminal or a pipe.

use super::runtime::{self, Names};
use super::service::{Greeting, Reply, Request, VERSION};
use crate::cli::CANNOT_ASK;
use crate::output::Messages;
use crate::prompt::Prompt;
use anyhow::{Context, Result, bail};
use clap::Parser;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// How long a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that an answer has at most.
const LONGEST: u64 = 256 << 20;
/// The prompt; scripts expect it before each answer.
const PROMPT: &str = "RuntimeCmd: ";

/// Arguments of `simple_switch_CLI`.
#[derive(Parser)]
#[command(
    name = "simple_switch_CLI",
    version,
    about = "Control a running simple_switch of weir: tables, profiles, counters, meters, registers, multicast",
    after_help = "Examples:\n  simple_switch_CLI --thrift-port 9091\n  echo 'table_dump ipv4_lpm' | simple_switch_CLI\n  simple_switch_CLI < s1-commands.txt\n\nAt the prompt, help lists the commands, and the tabulator completes names. Lines that begin with # are comments."
)]
pub struct Arguments {
    /// The port of the switch (its --thrift-port)
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    thrift_port: u16,
    /// The machine of the switch; weir serves this protocol on the switch's own machine only
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    thrift_ip: String,
    /// Not needed: names come from the switch
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
    /// Not needed: weir has one replication engine
    #[arg(long, value_name = "ENGINE")]
    pre: Option<String>,
}

/// A connection to a switch.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(host: &str, port: u16) -> Result<(Self, Greeting)> {
        let failed = || format!("no switch at {host}:{port}; is simple_switch running, and with --thrift-port {port}?");
        let mut addresses: Vec<_> = (host, port).to_socket_addrs().with_context(failed)?.collect();
        // The server listens at the address of IPv4.
        addresses.sort_by_key(std::net::SocketAddr::is_ipv6);
        let stream = TcpStream::connect(addresses.as_slice()).with_context(failed)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream: BufReader::new(stream),
        };
        let not_weir = || format!("{host}:{port} is not the port of a weir switch; bmv2's Thrift is not spoken here");
        let line = connection.line().with_context(not_weir)?;
        if let Ok(Reply::Error(error)) = serde_json::from_slice(&line) {
            bail!("{host}:{port}: {error}");
        }
        let greeting: Greeting = serde_json::from_slice(&line).ok().with_context(not_weir)?;
        if greeting.weir_runtime != VERSION {
            bail!("the switch at {host}:{port} is of another version of weir");
        }
        Ok((connection, greeting))
    }

    fn line(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        let lost = "the switch does not answer any more";
        (&mut self.stream)
            .take(LONGEST)
            .read_until(b'\n', &mut line)
            .context(lost)?;
        if line.last() != Some(&b'\n') {
            bail!(lost);
        }
        Ok(line)
    }

    fn ask(&mut self, request: &Request) -> Result<Reply> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream
            .get_mut()
            .write_all(&line)
            .context("the switch has closed the connection")?;
        let answer = self.line()?;
        serde_json::from_slice(&answer).context("the switch's answer is none")
    }

    /// Executes a command and hands over its output in parts; `Err` inside: the switch refuses.
    fn execute(&mut self, line: &str, mut part: impl FnMut(&str) -> Result<()>) -> Result<Result<(), String>> {
        let mut from = 0;
        loop {
            let line = line.to_owned();
            match self.ask(&Request::Execute { line, from })? {
                Reply::Output { text, next } => {
                    part(&text)?;
                    match next {
                        Some(next) => from = next,
                        None => return Ok(Ok(())),
                    }
                }
                Reply::Error(error) => return Ok(Err(error)),
                Reply::Names(_) => bail!("the switch's answer is none"),
            }
        }
    }

    fn names(&mut self) -> Option<Names> {
        match self.ask(&Request::Names) {
            Ok(Reply::Names(names)) => Some(names),
            _ => None,
        }
    }
}

/// Whether the prompt stays open after a line.
#[derive(PartialEq, Eq)]
enum Then {
    Continue,
    End,
}

/// Runs the prompt.
pub fn run(arguments: &Arguments, messages: &Messages) -> Result<u8> {
    for (name, given) in [("--json", &arguments.json), ("--pre", &arguments.pre)] {
        if given.is_some() {
            messages.line(format!("{name} is not needed and has no effect"));
        }
    }
    let (host, port) = (arguments.thrift_ip.as_str(), arguments.thrift_port);
    let (connection, greeting) = match Connection::open(host, port) {
        Ok(opened) => opened,
        Err(error) => {
            messages.line(format!("error: {}", crate::cli::causes(&error)));
            return Ok(CANNOT_ASK);
        }
    };
    let program = greeting.program.as_deref().unwrap_or("no program");
    // Three lines, as scripts that count lines expect.
    write(&format!(
        "Connecting to the switch at port {port}...\nDone: {program}\nControl of P4 tables by weir; help lists the commands\n"
    ))?;
    match std::io::stdin().is_terminal() {
        true => interactive(connection),
        false => piped(connection),
    }
}

fn write(text: &str) -> Result<()> {
    let mut out = crate::output::stdout();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn piped(mut connection: Connection) -> Result<u8> {
    for line in std::io::stdin().lines() {
        let line = line.context("the commands cannot be read")?;
        write(PROMPT)?;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            write("\n")?;
            continue;
        }
        if one(&mut connection, line)? == Then::End {
            return Ok(0);
        }
    }
    write(&format!("{PROMPT}\n"))?;
    Ok(0)
}

/// Does what a line says.
fn one(connection: &mut Connection, line: &str) -> Result<Then> {
    let mut words = line.split_whitespace();
    match (words.next().unwrap_or_default(), words.next()) {
        ("EOF" | "exit" | "quit", _) => return Ok(Then::End),
        ("help" | "?", topic) => write(&help(topic))?,
        ("write_config_to_file", Some(path)) => save_config(connection, Path::new(path))?,
        ("write_config_to_file", None) => write("Error: write_config_to_file needs a FILE\n")?,
        _ => {
            if let Err(error) = connection.execute(line, write)? {
                write(&format!("Error: {error}\n"))?;
            }
        }
    }
    Ok(Then::Continue)
}

fn save_config(connection: &mut Connection, path: &Path) -> Result<()> {
    let mut config = String::new();
    let keep = |text: &str| {
        config.push_str(text);
        Ok(())
    };
    let outcome = connection.execute("get_config", keep)?;
    let written = outcome.and_then(|()| weir_files::write(path, config.as_bytes()).map_err(|e| e.to_string()));
    match written {
        Ok(()) => Ok(()),
        Err(error) => write(&format!("Error: {error}\n")),
    }
}

fn help(topic: Option<&str>) -> String {
    match topic {
        None => {
            let mut names: Vec<&str> = runtime::commands().map(|spec| spec.name).collect();
            names.extend(["help", "exit", "write_config_to_file"]);
            names.sort_unstable();
            let lines = names.chunks(3).map(|row| {
                let row: String = row.iter().map(|name| format!("{name:42}")).collect();
                row.trim_end().to_owned() + "\n"
            });
            format!("{}help COMMAND shows its arguments.\n", lines.collect::<String>())
        }
        Some("write_config_to_file") => "write_config_to_file FILE\n  save the JSON of the program\n".to_owned(),
        Some("help") => "help [COMMAND]\n  list the commands, or show the arguments of one\n".to_owned(),
        Some("exit" | "quit" | "EOF") => "exit\n  leave; so does Ctrl-D\n".to_owned(),
        Some(name) => match runtime::find(name) {
            Some(spec) => format!("{}\n  {}\n", runtime::usage(spec), spec.about),
            None => format!("Error: there is no command `{name}`; help lists all\n"),
        },
    }
}

/// What the last word of a line may become.
fn candidates(before: &str, names: impl FnOnce() -> Option<Names>) -> Vec<String> {
    let mut words: Vec<&str> = before.split_whitespace().collect();
    let last = match before.ends_with(char::is_whitespace) || before.is_empty() {
        true => "",
        false => words.pop().unwrap_or_default(),
    };
    let mut found: Vec<String> = match words.split_first() {
        None => runtime::commands().map(|spec| spec.name.to_owned()).collect(),
        Some((&"help", _)) => runtime::commands().map(|spec| spec.name.to_owned()).collect(),
        Some((command, given)) => {
            let argument = runtime::find(command).and_then(|spec| spec.arguments.get(given.len()));
            match argument.zip(names()) {
                Some((argument, names)) => names.candidates(*argument, given),
                None => Vec::new(),
            }
        }
    };
    found.retain(|name| name.starts_with(last));
    found.sort_unstable();
    found.dedup();
    found
}

fn interactive(connection: Connection) -> Result<u8> {
    let connection = Rc::new(RefCell::new(connection));
    let names = Rc::clone(&connection);
    let mut prompt = Prompt::new(PROMPT, move |before| candidates(before, || names.borrow_mut().names()))?;
    while let Some(line) = prompt.line()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if one(&mut connection.borrow_mut(), line)? == Then::End {
            break;
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Option<Names> {
        let tables = [("ingress.lpm", vec!["drop", "ingress.forward"])];
        let tables = tables.map(|(t, a)| (t.to_owned(), a.into_iter().map(str::to_owned).collect()));
        Some(Names {
            tables: tables.into(),
            counters: vec!["ingress.count".to_owned()],
            ..Names::default()
        })
    }

    #[test]
    fn commands_tables_and_actions_are_completed() {
        assert_eq!(
            candidates("table_du", names),
            [
                "table_dump",
                "table_dump_entry",
                "table_dump_entry_from_key",
                "table_dump_group",
                "table_dump_member"
            ]
        );
        assert_eq!(candidates("table_add ", names), ["ingress.lpm"]);
        assert_eq!(candidates("table_add ingress.lpm in", names), ["ingress.forward"]);
        assert_eq!(candidates("table_add lpm d", names), ["drop"]);
        assert_eq!(candidates("counter_read ", names), ["ingress.count"]);
        assert!(candidates("mc_mgrp_create ", names).is_empty());
        assert!(candidates("nothing ", || None).is_empty());
    }

    #[test]
    fn help_lists_every_command_and_shows_the_arguments_of_one() {
        let all = help(None);
        assert!(runtime::commands().all(|spec| all.contains(spec.name)));
        assert!(help(Some("table_add")).starts_with("table_add TABLE ACTION KEY"));
        assert!(help(Some("table_ad")).starts_with("Error: there is no command"));
    }
}
