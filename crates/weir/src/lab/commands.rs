//! The prompt, and scripts.

use super::Lab;
use super::input::Input;
use super::network::Network;
use super::terminal;
use super::topology::{Node, Topology};
use crate::cli::NO;
use crate::output::Messages;
use crate::run::{NOT_TRACING, TRACING};
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::io::{Cursor, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_compiler::NoThread;

/// Words that no node may have as its name.
pub const RESERVED: &[&str] = &[
    "ctl", "exit", "help", "link", "links", "nodes", "pingall", "quit", "sh", "trace",
];

const HELP: &str = "\
HOST COMMAND          run a command of the shell at a host; names of hosts stand for their addresses
SWITCH COMMAND        the same where the interfaces of switches are (s1-eth1 is port 1 of s1)
pingall               every host pings every other one
nodes, links          what there is
link A B down|up      cut the links between two nodes, or mend them
trace SWITCH COMMAND  what each packet meets in a switch while a command of the lab runs
trace SWITCH          the same until Enter is pressed
ctl SWITCH WORDS      weir ctl with this switch, for example: ctl s1 show
sh COMMAND            the same as SWITCH COMMAND
exit                  end the lab; so does the end of the input";

/// How long a ping of `pingall` may take, in seconds.
const PING: &str = "2";
/// How long a switch may take to begin or end a trace.
const TRACE: Duration = Duration::from_secs(5);
/// Between two looks at a log.
const LOOK: Duration = Duration::from_millis(20);

/// Whether the lab ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Continue,
    End,
}

/// A lab with someone who types, or a script.
struct Session<'a> {
    network: &'a mut Network,
    /// Commands have the terminal.
    is_interactive: bool,
}

/// Executes commands until the input ends; the exit code.
///
/// # Errors
/// The input or the output fails.
pub fn run(network: &mut Network, arguments: &Lab, messages: &Messages) -> Result<u8> {
    let script = arguments.run.as_deref().filter(|path| path.as_os_str() != "-");
    let is_interactive = arguments.is_interactive();
    let mut input = match script {
        Some(path) => Input::Script(Box::new(Cursor::new(crate::input::text(path)?))),
        None if is_interactive => Input::terminal(&network.topology)?,
        None => Input::Script(Box::new(std::io::stdin().lock())),
    };
    if is_interactive {
        messages.line(welcome(network));
    }
    let mut session = Session {
        network,
        is_interactive,
    };
    for number in 1.. {
        for name in session.network.switches.ended() {
            let said = session.network.switches.last_words(&name);
            messages.once(format!("switch {name} has ended; the end of its log:\n{said}"));
            if !is_interactive {
                return Ok(NO);
            }
        }
        if is_interactive {
            terminal::take();
        }
        let Some(line) = input.line()? else {
            return Ok(0);
        };
        match session.execute(line.trim(), &mut input) {
            Ok(Then::Continue) => {}
            Ok(Then::End) => return Ok(0),
            Err(error) if is_interactive => messages.line(format!("error: {error:#}")),
            Err(error) => {
                let place = script.map_or("standard input".to_owned(), |path| path.display().to_string());
                messages.line(format!("{place}:{number}: {}: {error:#}", line.trim()));
                return Ok(NO);
            }
        }
    }
    Ok(0)
}

fn welcome(network: &Network) -> String {
    let topology = &network.topology;
    format!(
        "{} hosts, {} switches, {} links. Try `pingall`; `help` lists the commands.",
        topology.hosts.len(),
        topology.switches.len(),
        topology.links.len()
    )
}

impl Session<'_> {
    fn execute(&mut self, line: &str, input: &mut Input) -> Result<Then> {
        let (word, rest) = split(line);
        match word {
            "" => {}
            comment if comment.starts_with('#') => {}
            "exit" | "quit" => return Ok(Then::End),
            "help" => print(HELP)?,
            "nodes" => print(&nodes(self.network))?,
            "links" => print(&links(self.network))?,
            "pingall" => self.ping_all()?,
            "link" => self.link(rest)?,
            "ctl" => self.ctl(rest)?,
            "trace" => return self.trace(rest, input),
            "sh" => self.shell(None, rest)?,
            name => {
                let node = self.network.topology.find(name).with_context(|| {
                    format!("there is no command, host or switch `{name}`; `help` lists the commands")
                })?;
                self.shell(Some(node), rest)?;
            }
        }
        Ok(Then::Continue)
    }

    /// Runs a command of a shell at a node.
    fn shell(&mut self, node: Option<Node>, text: &str) -> Result<()> {
        ensure!(!text.is_empty(), "expected a command, for example: h1 ip route");
        let mut command = Command::new("sh");
        command.args(["-c", &with_addresses(&self.network.topology, text)]);
        if !self.is_interactive {
            command.stdin(Stdio::null());
        }
        terminal::wait(&self.network.spawn(node, command)?, self.is_interactive)
    }

    fn ctl(&mut self, text: &str) -> Result<()> {
        let (name, rest) = split(text);
        self.switch(name)?;
        let target = format!("unix:{}", self.network.switches.socket(name).display());
        let mut command = Command::new("sh");
        // The shell takes the words apart.
        command
            .arg("-c")
            .arg(format!("exec \"$0\" ctl --p4runtime \"$1\" {rest}"))
            .arg(&self.network.switches.weir)
            .arg(target);
        if !self.is_interactive {
            command.stdin(Stdio::null());
        }
        terminal::wait(&self.network.spawn(None, command)?, self.is_interactive)
    }

    fn switch(&self, name: &str) -> Result<usize> {
        match self.network.topology.find(name) {
            Some(Node::Switch(at)) => Ok(at),
            Some(Node::Host(_)) => bail!("`{name}` is a host: expected a switch"),
            None => bail!("expected a switch, found `{name}`"),
        }
    }

    fn link(&mut self, text: &str) -> Result<()> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (a, b, is_up) = match words[..] {
            [a, b, "up"] => (a, b, true),
            [a, b, "down"] => (a, b, false),
            _ => bail!("expected two nodes and up or down, for example: link s1 s2 down"),
        };
        for at in self.network.links_between(a, b)? {
            self.network.set_link(at, is_up)?;
        }
        Ok(())
    }

    fn ping_all(&mut self) -> Result<()> {
        let topology = &self.network.topology;
        let hosts: Vec<(usize, &str, String)> = topology
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(at, host)| Some((at, host.name.as_str(), host.address?.to_string())))
            .collect();
        ensure!(hosts.len() > 1, "expected at least two hosts with addresses");
        let (mut sent, mut answered) = (0, 0);
        for (from, name, _) in &hosts {
            let mut pings: Vec<(&str, Child)> = Vec::new();
            for (_, to, address) in hosts.iter().filter(|(at, ..)| at != from) {
                let mut command = Command::new("ping");
                command.args(["-n", "-c", "1", "-W", PING, address]);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                pings.push((to, self.network.spawn(Some(Node::Host(*from)), command)?));
            }
            let mut line = format!("{name} ->");
            for (to, mut ping) in pings {
                let is_answered = ping.wait()?.success();
                sent += 1;
                answered += usize::from(is_answered);
                let _ = write!(line, " {}", if is_answered { to } else { "X" });
            }
            print(&line)?;
        }
        print(&format!("{answered} of {sent} pings answered"))?;
        ensure!(
            answered == sent,
            "{} of {sent} pings were not answered",
            sent - answered
        );
        Ok(())
    }

    /// Shows the traces of a switch while a command runs, or until a line is typed.
    fn trace(&mut self, text: &str, input: &mut Input) -> Result<Then> {
        let (name, command) = split(text);
        let at = self.switch(name)?;
        ensure!(
            self.is_interactive || !command.is_empty(),
            "expected a command of the lab during which packets are traced, for example: trace {name} h1 ping -c 1 h2"
        );
        let (word, _) = split(command);
        ensure!(word != "trace", "expected a command other than `trace`");
        let from = self.network.switches.log_length(at);
        self.network.switches.toggle_trace(at)?;
        wait_for(self.network, at, from, TRACING)?;
        let done = if command.is_empty() {
            self.follow(at, from, input).map(|()| Then::Continue)
        } else {
            self.execute(command, input)
        };
        let end = self.network.switches.log_length(at);
        self.network.switches.toggle_trace(at)?;
        wait_for(self.network, at, end, NOT_TRACING)?;
        if !command.is_empty() {
            print_traces(&self.network.switches.log(at, from)?)?;
        }
        done
    }

    /// Shows what a switch writes to its log until a line is typed.
    fn follow(&mut self, at: usize, from: u64, input: &mut Input) -> Result<()> {
        print("tracing; press Enter to end it")?;
        let stop = Arc::new(AtomicBool::new(false));
        let network = &*self.network;
        std::thread::scope(|scope| {
            let stopped = Arc::clone(&stop);
            let thread = std::thread::Builder::new().name("traces".to_owned());
            let shows = thread.spawn_scoped(scope, move || -> Result<()> {
                let mut place = from;
                while !stopped.load(Ordering::Relaxed) {
                    std::thread::sleep(LOOK);
                    let text = network.switches.log(at, place)?;
                    // Whole lines only.
                    let length = text.rfind('\n').map_or(0, |end| end + 1);
                    print_traces(&text[..length])?;
                    place += length as u64;
                }
                Ok(())
            });
            let shows = shows.map_err(|error| NoThread::new("showing traces", &error))?;
            let read = input.enter();
            stop.store(true, Ordering::Relaxed);
            shows.join().unwrap_or(Ok(()))?;
            read
        })
    }
}

fn wait_for(network: &Network, at: usize, from: u64, text: &str) -> Result<()> {
    let deadline = Instant::now() + TRACE;
    while !network.switches.log(at, from)?.contains(text) {
        ensure!(Instant::now() < deadline, "the switch does not answer");
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn print_traces(log: &str) -> Result<()> {
    let mut out = crate::output::stdout();
    for line in log.lines().filter(|line| ![TRACING, NOT_TRACING].contains(line)) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

fn print(text: &str) -> Result<()> {
    let mut out = crate::output::stdout();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// The first word, and what is after it.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// A command with the addresses of hosts in the place of their names.
fn with_addresses(topology: &Topology, text: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        // After a colon, as in `scp file h2:`, too.
        let name = word.split(|c| !is_name(c)).next().unwrap_or_default();
        let is_whole = word.len() == name.len() || word[name.len()..].starts_with(':');
        let host = topology.hosts.iter().find(|host| is_whole && host.name == name);
        match host.and_then(|host| host.address) {
            Some(address) => {
                let _ = write!(out, "{address}{}", &part[name.len()..]);
            }
            None => out.push_str(part),
        }
    }
    out
}

fn nodes(network: &Network) -> String {
    let topology = &network.topology;
    let mut lines = Vec::new();
    for host in &topology.hosts {
        let address = host.address.map(|address| format!("{address}/{}", host.prefix));
        lines.push(format!(
            "{:<8} host    {:<18} {}",
            host.name,
            address.unwrap_or_default(),
            host.mac.as_deref().unwrap_or_default()
        ));
    }
    for (at, switch) in topology.switches.iter().enumerate() {
        let process = network.switches.process(at).unwrap_or_default();
        let ports: Vec<String> = topology
            .links_of(Node::Switch(at))
            .map(|(end, _)| end.port.to_string())
            .collect();
        lines.push(format!(
            "{:<8} switch  ports {:<12} process {process}",
            switch.name,
            ports.join(" ")
        ));
    }
    trimmed(&lines)
}

fn links(network: &Network) -> String {
    let topology = &network.topology;
    let lines: Vec<String> = topology
        .links
        .iter()
        .zip(&network.is_up)
        .map(|(link, is_up)| {
            let [a, b] = link.ends.map(|end| topology.end_name(end));
            let state = if *is_up { "up" } else { "down" };
            format!("{a:<12} {b:<12} {state:<5} {}", link.shape.text())
        })
        .collect();
    trimmed(&lines)
}

fn trimmed(lines: &[String]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::topology::Host;

    #[test]
    fn names_of_hosts_in_commands_are_addresses() {
        let host = |name: &str, address: &str| Host {
            name: name.to_owned(),
            address: address.parse().ok(),
            ..Host::default()
        };
        let topology = Topology {
            hosts: vec![host("h1", "10.0.1.1"), host("h2", "10.0.2.2"), host("h3", "")],
            ..Topology::default()
        };
        let text = |text: &str| with_addresses(&topology, text);
        assert_eq!(text("ping -c 1 h2"), "ping -c 1 10.0.2.2");
        assert_eq!(text("iperf3  -c h2 -t 1"), "iperf3  -c 10.0.2.2 -t 1");
        assert_eq!(text("nc h2:80 h2.log h3 xh2"), "nc 10.0.2.2:80 h2.log h3 xh2");
    }
}
