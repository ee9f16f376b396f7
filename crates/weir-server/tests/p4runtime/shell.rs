//! p4runtime-shell from PyPI, unmodified, drives the server; see `shell.py` beside this file.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

use crate::common::*;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::OnceCell;

const PACKAGE: &str = "p4runtime-shell==0.0.6";

/// A Python with the shell, installed below the target folder once. `None`, with a loud message,
/// where that cannot be had; in CI that is a failure.
async fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE);
    let python = folder.join("bin/python");
    let works = |python: PathBuf| async move {
        let mut check = Command::new(python);
        check
            .args(["-c", "import p4runtime_sh.shell"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        check.status().await.is_ok_and(|s| s.success())
    };
    if works(python.clone()).await {
        return Some(python);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status().await;
    if made.is_ok_and(|s| s.success()) {
        let mut install = Command::new(&python);
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            PACKAGE,
        ]);
        let _ = install.status().await;
    }
    if works(python.clone()).await {
        return Some(python);
    }
    let message = format!("{PACKAGE} cannot be installed (python3 with venv and access to PyPI are needed)");
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("LEFT OUT: {message}");
    None
}

/// Executes the calls of the script.
async fn answer(bench: &Bench, words: &[&str]) -> String {
    let number = |i: usize| words.get(i).and_then(|w| w.parse::<u64>().ok()).unwrap_or(0);
    match words[0] {
        "ask" => {
            let found = bench.ask(number(1) as u8, number(2) as u8, number(3) as u32);
            found.map_or("none".to_string(), |v| v.to_string())
        }
        "send" => {
            let packet = question(number(2) as u8, number(3) as u8, number(4) as u32);
            let out = bench.switch.send(number(1) as u32, &packet);
            let ports: Vec<String> = out.iter().map(|o| o.port.to_string()).collect();
            ports.join(" ")
        }
        "sent" => {
            for _ in 0..200 {
                if let Some(out) = bench.switch.take_sent().first() {
                    return out.port.to_string();
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            "nothing".to_string()
        }
        "advance" => {
            bench.switch.clock().advance(number(1));
            "done".to_string()
        }
        other => panic!("{other} is no request"),
    }
}

async fn run(arguments: &[&str], bench: &Bench) {
    // Tests that run at once would install it over each other.
    static PYTHON: OnceCell<Option<PathBuf>> = OnceCell::const_new();
    let Some(python) = PYTHON.get_or_init(python).await else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4runtime/shell.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(bench.address.to_string())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("Python starts");
    let mut input = child.stdin.take().expect("piped");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    while let Some(line) = lines.next_line().await.expect("text") {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"end") => break,
            Some(&("ask" | "send" | "sent" | "advance")) => {
                let reply = answer(bench, &words).await;
                input.write_all(format!("{reply}\n").as_bytes()).await.expect("is read");
            }
            _ => eprintln!("{line}"),
        }
    }
    let status = child.wait().await.expect("ends");
    assert!(status.success(), "the script failed; its traceback is above");
}

#[tokio::test(flavor = "multi_thread")]
async fn p4runtime_shell_drives_a_program_that_runs() {
    let bench = Bench::everything().await;
    run(&[], &bench).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p4runtime_shell_loads_a_program() {
    let bench = Bench::new(None, weir_server::p4rt::Config::default()).await;
    let info = weir_compiler::p4info::p4info(&compile(EVERYTHING), weir_arch::targets()).expect("a P4Info");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (p4info, program) = (folder.join("everything.txtpb"), folder.join("everything.p4"));
    std::fs::write(&p4info, weir_proto::text::to_text(&older(info))).expect("is written");
    std::fs::write(&program, EVERYTHING).expect("is written");
    run(&[&p4info.display().to_string(), &program.display().to_string()], &bench).await;
}

/// The text form as the shell's P4Runtime 1.4.1 can read it: without what came later.
fn older(mut info: weir_proto::p4::config::v1::P4Info) -> weir_proto::p4::config::v1::P4Info {
    for table in &mut info.tables {
        table.initial_default_action = None;
        table.has_initial_entries = false;
    }
    info
}
