//! `weir lab`: networks in namespaces, their prompt, and what is left of them (nothing).
//!
//! These tests need iproute2, ping, and namespaces. In CI they must run; elsewhere a test that
//! cannot run says so and passes. `WEIR_LAB_KILLS=20` has labs killed that many times;
//! `WEIR_TUTORIALS=DIR` names a copy of p4lang/tutorials, whose topologies are read and run.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "it reports to the developer who runs it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs");
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the tests can run here. In CI they must.
fn can_run() -> bool {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let obstacle = OBSTACLE.get_or_init(|| {
        let probe = "command -v ip && command -v tc && command -v ping && unshare -rn true";
        let out = Command::new("sh").args(["-c", probe]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        (!out.status.success()).then(|| format!("iproute2, ping or namespaces are missing {said}"))
    });
    match obstacle {
        None => true,
        Some(why) => {
            assert!(std::env::var_os("CI").is_none(), "this test must run in CI, but: {why}");
            eprintln!("left out: {why}");
            false
        }
    }
}

fn weir() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weir"))
}

/// Runs a lab with commands on its standard input.
fn lab(arguments: &[&str], commands: &str) -> Output {
    run(weir().arg("lab").args(arguments), commands)
}

fn run(command: &mut Command, commands: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    // A lab that ends before does not read it.
    let _ = input.write_all(commands.as_bytes());
    drop(input);
    child.wait_with_output().unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn the_example_pings_across_three_switches() {
    if !can_run() {
        return;
    }
    let out = lab(
        &["--example", "basic", "--run", "-"],
        "pingall\nnodes\nlinks\nh1 ping -c 1 h2\nexit\nno such command\n",
    );
    let text = text(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(
        text.contains("h1 -> h2 h3\nh2 -> h1 h3\nh3 -> h1 h2\n6 of 6 pings answered\n"),
        "{text}"
    );
    assert!(
        text.contains("h1       host    10.0.1.10/24       02:00:00:00:01:10\n"),
        "{text}"
    );
    assert!(text.contains("s1-p2        s2-p2        up\n"), "{text}");
    // Two routers are on the path.
    assert!(text.contains("ttl=62"), "{text}");
}

#[test]
fn an_example_takes_no_program_of_the_current_folder() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ipv4_router.p4"), "garbage").unwrap();
    let mut command = weir();
    command
        .args(["lab", "--example", "basic", "--run", "-"])
        .current_dir(folder.path());
    let out = run(&mut command, "h1 ping -c 1 h2\n");
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
}

#[test]
fn a_link_that_is_down_fails_a_script() {
    if !can_run() {
        return;
    }
    let script = "link s1 s2 down\nlinks\nh1 ping -c 1 -W 1 h3\nh1 ping -c 1 -W 1 h2\nh1 echo not reached\n";
    let out = lab(&["--example", "basic", "--run", "-"], script);
    let text = text(&out);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(
        text.contains("s1-p2        s2-p2        down\n") && text.contains("1 received"),
        "{text}"
    );
    assert!(
        text.contains("standard input:4: h1 ping -c 1 -W 1 h2: exit code 1"),
        "{text}"
    );
    assert!(!text.contains("not reached\n"), "{text}");
}

#[test]
fn a_link_that_is_up_again_carries_packets() {
    if !can_run() {
        return;
    }
    let script = "link s1 h1 down\nlink s1 s2 down\nlink h1 s1 up\nlink s1 s2 up\npingall\n";
    let out = lab(&["--example", "basic", "--run", "-"], script);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
}

#[test]
fn switches_show_traces_and_are_controlled() {
    if !can_run() {
        return;
    }
    let script =
        "trace s2 h1 ping -c 1 h2\nctl s2 delete ipv4_lpm 10.0.2.0/24\nctl s2 count ipv4_lpm\nh1 ping -c 1 -W 1 h2\n";
    let out = lab(&["--example", "basic", "--run", "-"], script);
    let text = text(&out);
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(
        text.contains("packet 1 at port 2\n") && text.contains("set_dst_mac"),
        "{text}"
    );
    assert!(
        text.contains("ipv4_lpm") && text.contains("standard input:4: "),
        "{text}"
    );
}

#[test]
fn a_user_without_rights_runs_a_lab() {
    if !can_run() {
        return;
    }
    // The user must be able to read the program.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("weir");
    let made = std::fs::hard_link(env!("CARGO_BIN_EXE_weir"), &program);
    if made.is_err() {
        std::fs::copy(env!("CARGO_BIN_EXE_weir"), &program).unwrap();
    }
    let open = format!("chmod 755 {0} {0}/weir", folder.path().display());
    assert!(Command::new("sh").args(["-c", &open]).status().unwrap().success());
    let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let as_user = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(user).args(words).current_dir("/");
        command
    };
    let can = as_user(&["unshare", "-rn", "true"]).output();
    let mut command = match can {
        Ok(out) if out.status.success() => as_user(&[program.to_str().unwrap()]),
        // Not root: this user is one without rights.
        _ if !is_root() => weir(),
        _ => {
            eprintln!("left out: users get no namespaces here");
            return;
        }
    };
    let out = run(
        command.args(["lab", "--example", "basic", "--run", "-"]),
        "pingall\nh1 id -u\n",
    );
    let text = text(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(text.contains("6 of 6 pings answered\n0\n"), "{text}");
}

#[test]
fn a_lab_runs_in_a_chroot() {
    if !can_run() || !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "mount --make-rprivate / && mount --rbind / $0 && cd / && \
                  exec chroot $0 $1 lab --example basic --run -";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script])
        .args([folder.path(), Path::new(env!("CARGO_BIN_EXE_weir"))]);
    let output = run(&mut command, "h1 ping -c 1 h2\nctl s1 program\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
}

fn is_root() -> bool {
    let out = Command::new("id").arg("-u").output().unwrap();
    out.stdout == b"0\n"
}

#[test]
fn controllers_outside_reach_every_switch() {
    if !can_run() {
        return;
    }
    // Two neighbouring ports that were free a moment before.
    let port = (0..100).find_map(|_| {
        let first = std::net::TcpListener::bind("127.0.0.1:0")
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let next = [first.checked_add(1)?, first.checked_add(2)?];
        let are_free = next
            .iter()
            .all(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok());
        are_free.then_some(first)
    });
    let port = port.expect("three free ports");
    let mut lab = weir()
        .args(["lab", "--example", "basic", "--run", "-", "--p4runtime"])
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut count = |at: u16, table: &str| {
        let target = format!("127.0.0.1:{}", port + at);
        let started = Instant::now();
        loop {
            let out = weir()
                .args(["ctl", "--p4runtime", &target, "count", table])
                .output()
                .unwrap();
            if out.status.success() || started.elapsed() > PATIENCE {
                break text(&out);
            }
            assert!(lab.try_wait().unwrap().is_none(), "the lab has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    assert!(count(0, "own_macs").contains('3'));
    assert!(count(2, "own_macs").contains('3'));
    drop(lab.stdin.take());
    assert_eq!(lab.wait().unwrap().code(), Some(0));
}

const TOPOLOGY: &str = r#"{
    "hosts": {
        "h1": {"ip": "10.0.1.10/24", "mac": "02:00:00:00:01:10",
               "commands": ["route add default gw 10.0.1.1 dev eth0", "arp -i eth0 -s 10.0.1.1 02:00:00:00:01:01"]},
        "h2": {"ip": "10.0.2.10/24", "mac": "02:00:00:00:02:10",
               "commands": ["ip route add default via 10.0.2.1", "ip neigh add 10.0.2.1 lladdr 02:00:00:00:02:01 dev eth0"]}
    },
    "switches": {"s1": {"runtime_json": "s1-runtime.json", "cpu_port": 64}},
    "links": [["h1", "s1-p1", "20ms"], ["h2", "s1-p2", 0, 5]]
}"#;

const RUNTIME: &str = r#"{
    "target": "bmv2", "p4info": "build/router.p4info.txtpb", "bmv2_json": "build/router.json",
    "table_entries": [
        {"table": "RouterIngress.own_macs", "match": {"standard_metadata.ingress_port": 1, "hdr.ethernet.dst_addr": "02:00:00:00:01:01"},
         "action_name": "NoAction", "action_params": {}},
        {"table": "RouterIngress.own_macs", "match": {"standard_metadata.ingress_port": 2, "hdr.ethernet.dst_addr": "02:00:00:00:02:01"},
         "action_name": "NoAction", "action_params": {}},
        {"table": "RouterIngress.ipv4_lpm", "match": {"hdr.ipv4.dst_addr": ["10.0.1.0", 24]},
         "action_name": "RouterIngress.route", "action_params": {"next_hop": 0, "port": 1}},
        {"table": "RouterIngress.ipv4_lpm", "match": {"hdr.ipv4.dst_addr": ["10.0.2.0", 24]},
         "action_name": "RouterIngress.route", "action_params": {"next_hop": 0, "port": 2}},
        {"table": "RouterIngress.neighbours", "match": {"standard_metadata.egress_spec": 1, "meta.next_hop": "10.0.1.10"},
         "action_name": "RouterIngress.set_dst_mac", "action_params": {"mac": "02:00:00:00:01:10"}},
        {"table": "RouterIngress.neighbours", "match": {"standard_metadata.egress_spec": 2, "meta.next_hop": "10.0.2.10"},
         "action_name": "RouterIngress.set_dst_mac", "action_params": {"mac": "02:00:00:00:02:10"}}
    ]
}"#;

#[test]
fn a_topology_of_the_tutorials_format_runs_with_its_runtime_file() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("topology.json"), TOPOLOGY).unwrap();
    std::fs::write(path("s1-runtime.json"), RUNTIME).unwrap();
    let program = format!("{PROGRAMS}/ipv4_router/ipv4_router.p4");
    let arguments = [&path("topology.json"), "--program", &program, "--run", "-"];
    let load = format!("ctl s1 clear --all\nctl s1 load {}\n", path("s1-runtime.json"));
    let script = format!("{load}links\npingall\nh1 ping -c 2 -i 0.2 h2\nh1 getent hosts h2\n");
    let out = lab(&arguments, &script);
    let text = text(&out);
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(text.contains("h1           s1-p1        up    20 ms\n"), "{text}");
    assert!(text.contains("s1-p2        up    5 Mbit/s\n"), "{text}");
    assert!(text.contains("6 of 6 entries done"), "{text}");
    assert!(text.contains("10.0.2.10       h2\n"), "{text}");
    // 20 ms there and back.
    let time = text
        .split("rtt min/avg/max/mdev = ")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let time: f64 = time.and_then(|time| time.parse().ok()).unwrap_or_default();
    assert!(time >= 40.0, "{text}");
}

#[test]
fn mistakes_end_a_lab_before_anything_starts() {
    let error = |arguments: &[&str]| {
        let out = lab(arguments, "");
        assert_eq!(out.status.code(), Some(2), "{}", text(&out));
        text(&out)
    };
    assert!(error(&["--example", "none"]).contains("there is no example `none`"));
    assert!(error(&["/nonexistent.json"]).contains("/nonexistent.json"));
    assert!(error(&[]).contains("TOPOLOGY"));
    assert!(error(&["--example", "basic", "--program", "s9=x.p4"]).contains("there is no switch `s9`"));
    assert!(
        error(&["--example", "basic", "--program", "s1=/nonexistent.p4"]).contains("there is no file /nonexistent.p4")
    );
}

#[test]
fn a_program_that_does_not_compile_is_shown() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("wrong.p4");
    std::fs::write(&program, "control c() { apply { x = 1; } }\n").unwrap();
    let arguments = [
        "--example",
        "basic",
        "--program",
        program.to_str().unwrap(),
        "--run",
        "-",
    ];
    let out = lab(&arguments, "pingall\n");
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    assert!(
        text(&out).contains("switch s1 does not start:") && text(&out).contains("wrong.p4:1:"),
        "{}",
        text(&out)
    );
}

#[test]
fn examples_are_listed() {
    let out = lab(&["--list-examples"], "");
    assert!(text(&out).contains("basic      three IPv4 routers"), "{}", text(&out));
}

/// A lab that is killed. Its processes have a mark in their environment.
struct Victim {
    child: Child,
    mark: String,
    _input: ChildStdin,
}

impl Victim {
    fn start(number: usize, terminal: bool) -> Self {
        let mark = format!("WEIR_LAB_TEST={}.{number}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let weir = env!("CARGO_BIN_EXE_weir");
        let mut command = if terminal {
            // It gives the lab a terminal of its own.
            let mut command = Command::new("script");
            command.args(["-q", "-c", &format!("{weir} lab --example basic"), "/dev/null"]);
            command
        } else {
            let mut command = Command::new(weir);
            command.args(["lab", "--example", "basic", "--run", "-"]);
            command
        };
        let mut child = command
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"h1 sleep 3600 &\nh2 sleep 3600\n").unwrap();
        Victim {
            child,
            mark,
            _input: input,
        }
    }

    /// The processes of the lab that live.
    fn processes(&self) -> Vec<PathBuf> {
        let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        all.filter(|path| {
            let environment = std::fs::read(path.join("environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|text| text == self.mark.as_bytes())
        })
        .collect()
    }

    /// The process whose arguments have this.
    fn process(&self, argument: &str) -> Option<String> {
        let found = self.processes().into_iter().find(|path| {
            let arguments = std::fs::read(path.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).contains(argument)
        });
        found.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()))
    }
}

fn kill(process: &str) {
    let _ = Command::new("kill")
        .args(["-9", process])
        .stderr(Stdio::null())
        .status();
}

/// The interfaces of this machine, without their addresses.
fn interfaces() -> Vec<String> {
    let out = Command::new("ip").args(["-o", "link"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let names = text
        .lines()
        .filter_map(|line| line.split(": ").nth(1))
        .map(str::to_owned);
    // Other tests have interfaces, too; those of labs have these names.
    names
        .filter(|name| name.contains("-eth") || name.starts_with("eth0@"))
        .collect()
}

#[test]
fn nothing_is_left_of_a_lab_that_is_killed_at_any_time() {
    if !can_run() {
        return;
    }
    let tries = std::env::var("WEIR_LAB_KILLS").ok().and_then(|text| text.parse().ok());
    let tries: usize = tries.unwrap_or(4);
    let has_script = Command::new("script").arg("--version").output().is_ok();
    let before = interfaces();
    let started = Instant::now();
    for number in 0..tries {
        let victims = ["outer process", "inner process", "terminal", "switch"];
        let victim = victims[number % victims.len()];
        if victim == "terminal" && !has_script {
            eprintln!("left out: script (bsdutils), which makes terminals");
            continue;
        }
        let mut lab = Victim::start(number, victim == "terminal");
        // From before the namespaces to long after the start, and never the same time.
        let random = (started.elapsed().subsec_nanos() as u64).wrapping_mul(0x9E37_79B9) % 1000;
        let is_last = number + victims.len() >= tries;
        let time = if is_last { 3000 } else { random * 3 };
        std::thread::sleep(Duration::from_millis(time));
        let count = lab.processes().len();
        match victim {
            "inner process" => lab.process("--inside").iter().for_each(|process| kill(process)),
            "switch" => {
                lab.process("s1-eth1").iter().for_each(|process| kill(process));
                // The lab itself lives on, and is ended as a user ends it.
                std::thread::sleep(Duration::from_millis(100));
                let _ = Command::new("kill").arg(lab.child.id().to_string()).status();
            }
            _ => lab.child.kill().unwrap(),
        }
        let killed = Instant::now();
        // An inner process that had not started yet was not killed.
        while victim == "inner process" && matches!(lab.child.try_wait(), Ok(None)) {
            lab.process("--inside").iter().for_each(|process| kill(process));
            assert!(killed.elapsed() < PATIENCE, "the outer process lives");
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = lab.child.wait();
        let left = loop {
            let left = lab.processes();
            if left.is_empty() || killed.elapsed() > PATIENCE {
                break left;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let names: Vec<String> = left
            .iter()
            .map(|path| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default())
            .collect();
        eprintln!("try {number}: {victim} of a lab with {count} processes killed after {time} ms");
        assert!(left.is_empty(), "try {number}, {victim}: {names:?}");
        assert_eq!(interfaces(), before, "try {number}, {victim}");
    }
}

#[test]
fn a_lab_with_a_terminal_answers_and_ends() {
    if !can_run() || Command::new("script").arg("--version").output().is_err() {
        return;
    }
    let weir = env!("CARGO_BIN_EXE_weir");
    let mut child = Command::new("script")
        .args(["-q", "-c", &format!("{weir} lab --example basic"), "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    for (command, answer) in [
        ("", "Try `pingall`"),
        ("h1 ping -c 1 h3\n", "1 received"),
        // A shell has the terminal, and gives it back.
        ("h2 sh -c 'echo shell re''ady; exec sh'\n", "shell ready"),
        ("echo at $(hostname)\nexit\n", "at h2"),
        ("nonsense\n", "error: there is no command"),
    ] {
        input.write_all(command.as_bytes()).unwrap();
        while !seen.contains(answer) {
            let mut line = Vec::new();
            assert!(output.read_until(b'\n', &mut line).unwrap() > 0, "{seen}");
            seen += &String::from_utf8_lossy(&line);
        }
    }
    input.write_all(b"exit\n").unwrap();
    assert!(child.wait().unwrap().success());
}

/// The copy of p4lang/tutorials, if there is one.
fn tutorials() -> Option<PathBuf> {
    let folder = std::env::var_os("WEIR_TUTORIALS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("left out: WEIR_TUTORIALS names no copy of p4lang/tutorials");
    }
    folder
}

/// The topologies below a folder.
fn topologies(folder: &Path, to: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            topologies(&path, to);
        } else if path.ends_with("topology.json") {
            to.push(path);
        }
    }
}

#[test]
fn every_topology_of_the_tutorials_runs_with_the_solution() {
    let Some(folder) = tutorials().filter(|_| can_run()) else {
        return;
    };
    let mut found = Vec::new();
    topologies(&folder.join("exercises"), &mut found);
    found.sort();
    assert!(found.len() > 10, "{found:?}");
    let mut failures = Vec::new();
    for topology in found {
        let exercise = topology.strip_prefix(folder.join("exercises")).unwrap();
        let exercise = exercise.iter().next().unwrap();
        let folder = folder.join("exercises").join(exercise);
        let source = |folder: &Path| {
            let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let mut files = files.map(|entry| entry.path());
            files.find(|path| path.extension().is_some_and(|ending| ending == "p4"))
        };
        let program = source(&folder.join("solution")).or_else(|| source(&folder));
        let mut command = weir();
        command
            .arg("lab")
            .arg(&topology)
            .args(["--run", "-"])
            .current_dir(&folder);
        if let Some(program) = program {
            command.arg("--program").arg(program);
        }
        // Of these, hosts reach each other without a controller and special packets.
        let pings = ["basic", "ecn", "qos", "firewall", "link_monitor"]
            .iter()
            .any(|name| exercise == *name);
        let out = run(&mut command, if pings { "pingall\n" } else { "nodes\n" });
        eprintln!("{}: {:?}", topology.display(), out.status.code());
        if !out.status.success() {
            failures.push(format!("{}: {}", topology.display(), text(&out)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
