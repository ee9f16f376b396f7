//! Who has the terminal: the inner process of a lab with a prompt is a process group of its own.
//!
//! Shells at hosts hand the terminal back to the group of their parent. They can name it only if it
//! is in their PID namespace, and the group of the outer process is not.

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, WaitOptions};
use signal_hook::consts::SIGHUP;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Lets this process take the terminal although another group has it. Children do not inherit it.
///
/// # Errors
/// The system refuses it.
pub fn allow_taking() -> Result<()> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTTOU);
    signals.thread_block().context("cannot block a signal")
}

/// Takes the terminal for the group of this process. Without a terminal nothing changes.
pub fn take() {
    let input = std::io::stdin();
    let own = rustix::process::getpgrp();
    if rustix::termios::tcgetpgrp(&input) != Ok(own) {
        let _ = rustix::termios::tcsetpgrp(&input, own);
    }
}

/// Ends this process, and thereby the lab, when the terminal goes.
///
/// # Errors
/// The signal cannot be handled.
pub fn end_with_it() -> Result<()> {
    let always = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGHUP, crate::cli::NO.into(), always)
        .context("cannot listen for signals")?;
    Ok(())
}

/// Waits for a command, which must succeed; someone who types may end it by Ctrl-C. Ctrl-Z does
/// not stop it, as there is no job control here.
///
/// # Errors
/// It fails.
pub fn wait(child: &Child, is_interactive: bool) -> Result<()> {
    let process = Pid::from_child(child);
    loop {
        let waited = match rustix::process::waitpid(Some(process), WaitOptions::UNTRACED) {
            Err(rustix::io::Errno::INTR) => continue,
            waited => waited.context("cannot wait for the command")?,
        };
        let Some((_, status)) = waited else { continue };
        if status.stopped() {
            rustix::process::kill_process(process, rustix::process::Signal::CONT)?;
        } else if let Some(signal) = status.terminating_signal() {
            let is_usual = is_interactive && signal == Signal::SIGINT as i32;
            ensure!(is_usual, "ended by signal {signal}");
            return Ok(());
        } else {
            match status.exit_status() {
                Some(0) => return Ok(()),
                Some(code) => bail!("exit code {code}"),
                None => {}
            }
        }
    }
}
