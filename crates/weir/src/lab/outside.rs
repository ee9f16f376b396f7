//! The outer process of a lab: it starts the inner one, and waits for it.
//!
//! The inner process is the first of a PID namespace, so that the kernel kills all others when it
//! ends, and it is killed when this process ends. Network namespaces have no names and end with
//! their processes: after any end, nothing is left.

use super::{Lab, terminal};
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use nix::sched::CloneFlags;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};

/// What helps where there are no namespaces.
pub const REMEDY: &str = "run the lab as root (sudo weir lab …), or allow user namespaces (sysctl \
    kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, \
    user.max_user_namespaces above 0); in a container, with --privileged";

/// Starts the inner process, and gives its exit code.
pub fn run(arguments: &Lab, messages: &Messages) -> Result<u8> {
    // Mistakes in files are found before anything starts.
    super::plan::Plan::read(arguments)?;
    let own = Identity::of("self").context("/proc/self/stat")?;
    enter()?;
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if words.is_empty() {
        bail!("the command line has no command");
    }
    // After `lab`, before whatever may end the options.
    words.splice(1..1, ["--inside".into(), own.text().into()]);
    let mut command = crate::children::weir()?;
    command.args(words);
    if arguments.is_interactive() {
        // Signals of the terminal are for the lab.
        command.process_group(0);
        terminal::allow_taking()?;
    }
    let child = command.spawn();
    let mut child = child.context("cannot start the inner process of the lab")?;
    let status = child.wait()?;
    if arguments.is_interactive() {
        terminal::take();
    }
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(u8::try_from(code).unwrap_or(crate::cli::CANNOT_ASK)),
        (None, signal) => {
            messages.line(format!("the lab was ended by signal {}", signal.unwrap_or_default()));
            Ok(crate::cli::NO)
        }
    }
}

/// Has the next child be the first process of a PID namespace; without the right to that, in a user
/// namespace in which it has all rights.
fn enter() -> Result<()> {
    if nix::sched::unshare(CloneFlags::CLONE_NEWPID).is_ok() {
        return Ok(());
    }
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    let flags = CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID;
    nix::sched::unshare(flags)
        .map_err(std::io::Error::from)
        .with_context(|| format!("the kernel gives this user no namespaces: {REMEDY}"))?;
    let write = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        std::fs::write(&path, text).context(path)
    };
    // Without it, only root may map groups. Old kernels do not have it.
    let _ = write("setgroups", "deny".to_owned());
    write("uid_map", format!("0 {} 1", user.as_raw()))?;
    write("gid_map", format!("0 {} 1", group.as_raw()))
}

/// A process that is not mistaken for another one that has its number later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    number: String,
    start: String,
}

impl Identity {
    /// That of a process that lives.
    ///
    /// # Errors
    /// There is no such process, or it has ended.
    pub fn of(process: &str) -> Result<Self> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name is in parentheses, and may have any.
        let (number, _) = text.split_once(' ').context("a process has a number")?;
        let (_, rest) = text.rsplit_once(')').context("a process has a name")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        match fields[..] {
            ["Z" | "X", ..] => bail!("the process has ended"),
            _ => Ok(Identity {
                number: number.to_owned(),
                start: (*fields.get(19).context("a process has a start")?).to_owned(),
            }),
        }
    }

    /// As an argument.
    pub fn text(&self) -> String {
        format!("{}:{}", self.number, self.start)
    }

    /// From an argument.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, start) = text.split_once(':')?;
        Some(Identity {
            number: number.to_owned(),
            start: start.to_owned(),
        })
    }

    /// Whether it lives.
    pub fn lives(&self) -> bool {
        Identity::of(&self.number).is_ok_and(|now| now == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_number_and_its_start() {
        let own = Identity::of("self").unwrap();
        assert!(own.lives());
        assert_eq!(Identity::parse(&own.text()), Some(own.clone()));
        let other = Identity {
            start: "1".to_owned(),
            ..own
        };
        assert!(!other.lives());
        assert_eq!(Identity::parse("1"), None);
    }
}
