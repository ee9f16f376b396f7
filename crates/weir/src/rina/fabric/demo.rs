//! `weir rina demo`: a fabric comes up, two applications talk, a spine dies, the flow survives.

use super::topology::{LeafSpine, Topology};
use super::{CONVERGENCE, Fabric};
use crate::cli::NO;
use crate::output::Messages;
use crate::rina::arguments::DemoArguments;
use crate::rina::ping::{echo, shown};
use anyhow::{Context, Result};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_rina_host::{Flow, Ipcp, Qos};

/// The time for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two SDUs.
const PACE: Duration = Duration::from_millis(2);
/// How long the applications talk before and after a spine dies.
const BEFORE: Duration = Duration::from_secs(2);
const AFTER: Duration = Duration::from_secs(3);

/// What the applications saw.
struct Talk {
    sent: u64,
    answered: u64,
    /// The longest time between two answers.
    pause: Duration,
}

/// Runs it, and says what happened.
pub fn demo(arguments: &DemoArguments, messages: &Messages) -> Result<u8> {
    let shape = LeafSpine {
        spines: 2,
        leaves: 4,
        hosts_per_leaf: 1,
    };
    super::check_picture(&arguments.picture)?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let topology = Topology::leaf_spine("demo".to_owned(), shape)?;
    let say = |text: String| {
        if !arguments.json {
            messages.line(text);
        }
    };
    say(
        "2 spines, 4 leaves, 4 hosts: 6 compiled switches, each with an IPC process that controls it by P4Runtime"
            .to_owned(),
    );
    let mut fabric = Fabric::start(topology, folder.path())?;
    let converged = fabric.wait_until_converged(CONVERGENCE)?;
    say(format!(
        "enrolled, and a route from every node to every other one: {:.1} s",
        converged.as_secs_f64()
    ));

    let (from, to) = (fabric.node("host1")?, fabric.node("host4")?);
    let there = Ipcp::connect(&fabric.socket(to))?;
    let registration = there.register("echo")?;
    let responder = std::thread::Builder::new().name("echo".to_owned()).spawn(move || {
        if let Ok(Some(incoming)) = registration.next(PATIENCE)
            && let Ok(flow) = incoming.accept()
        {
            echo(&flow);
        }
    })?;
    let here = Ipcp::connect(&fabric.socket(from))?;
    let flow = Arc::new(here.allocate("demo", "echo", Qos::RELIABLE, PATIENCE)?);
    say("host1 has a reliable flow to the application `echo` of host4, through leaf1, a spine and leaf4".to_owned());

    let stop = Arc::new(AtomicBool::new(false));
    let (talking, flag) = (Arc::clone(&flow), Arc::clone(&stop));
    let talk = std::thread::Builder::new()
        .name("talk".to_owned())
        .spawn(move || talk(&talking, &flag))?;
    std::thread::sleep(BEFORE);
    let victim = busier_spine(&fabric)?;
    let name = fabric.topology.nodes[victim].name.clone();
    fabric.kill(victim);
    let died = Instant::now();
    say(format!("{name}, which carries the flow, is killed"));
    fabric.wait_until_converged(CONVERGENCE)?;
    let rerouted = died.elapsed();
    std::thread::sleep(AFTER.saturating_sub(died.elapsed()));
    fabric.save_picture(&arguments.picture)?;
    stop.store(true, Ordering::Relaxed);
    let talk = talk
        .join()
        .map_err(|_| anyhow::anyhow!("the application has failed"))??;
    fabric.start_node(victim)?;
    let start = Instant::now();
    fabric.wait_until_converged(CONVERGENCE)?;
    let back = start.elapsed();
    drop(flow);
    let _ = responder.join();
    report(arguments, &fabric, &talk, [converged, rerouted, back], &name)
}

fn report(arguments: &DemoArguments, fabric: &Fabric, talk: &Talk, times: [Duration; 3], victim: &str) -> Result<u8> {
    let [converged, rerouted, back] = times;
    let mut out = crate::output::stdout();
    if arguments.json {
        let value = serde_json::json!({
            "converged_s": converged.as_secs_f64(),
            "killed": victim,
            "rerouted_s": rerouted.as_secs_f64(),
            "back_s": back.as_secs_f64(),
            "sdus_sent": talk.sent,
            "sdus_answered": talk.answered,
            "longest_pause_ms": talk.pause.as_secs_f64() * 1000.0,
            "frames_lost_by_links": fabric.lost(),
            "picture": arguments.picture.display().to_string(),
        });
        writeln!(out, "{value:#}")?;
    } else {
        writeln!(
            out,
            "{} SDUs sent, {} answered in order: the flow survived; the longest pause was {}",
            talk.sent,
            talk.answered,
            shown(talk.pause)
        )?;
        writeln!(
            out,
            "all nodes had new routes after {}; {victim} started again, was enrolled and is used after {:.1} s",
            shown(rerouted),
            back.as_secs_f64()
        )?;
        writeln!(out, "the fabric without {victim}: {}", arguments.picture.display())?;
    }
    Ok(if talk.sent == talk.answered { 0 } else { NO })
}

/// Sends numbers, and checks that each answer is the next one.
fn talk(flow: &Flow, stop: &AtomicBool) -> Result<Talk> {
    let mut talk = Talk {
        sent: 0,
        answered: 0,
        pause: Duration::ZERO,
    };
    let mut last = Instant::now();
    let mut take = |talk: &mut Talk, wait: Duration| -> Result<bool> {
        let Some(sdu) = flow.read_sdu(wait)? else {
            return Ok(false);
        };
        anyhow::ensure!(sdu == talk.answered.to_be_bytes(), "an answer is not the next one");
        talk.answered += 1;
        talk.pause = talk.pause.max(last.elapsed());
        last = Instant::now();
        Ok(true)
    };
    while !stop.load(Ordering::Relaxed) {
        flow.write_sdu(&talk.sent.to_be_bytes())?;
        talk.sent += 1;
        let next = Instant::now() + PACE;
        while take(&mut talk, next.saturating_duration_since(Instant::now()))? {}
    }
    while talk.answered < talk.sent && take(&mut talk, PATIENCE)? {}
    Ok(talk)
}

/// The spine over which more frames went so far.
fn busier_spine(fabric: &Fabric) -> Result<usize> {
    let spines = [fabric.node("spine1")?, fabric.node("spine2")?];
    let carried = |spine: usize| -> u64 {
        let leaf = |name: &str| fabric.wires(name, &fabric.topology.nodes[spine].name);
        let wires = ["leaf1", "leaf4"]
            .into_iter()
            .filter_map(|name| leaf(name).ok())
            .flatten();
        wires.map(|wire| wire.counters().carried).sum()
    };
    let [a, b] = spines;
    Ok(if carried(a) >= carried(b) { a } else { b })
}
