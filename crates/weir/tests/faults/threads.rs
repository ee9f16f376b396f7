//! A system that starts no thread: commands end with 2, a switch keeps running, and loads programs
//! later.

use crate::bench::{Bench, LONG, end, errno};
use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// More threads than a switch starts until it has loaded a program.
const THREADS: usize = 16;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

impl Bench {
    /// Has a command start no thread: the one of this number, from 1.
    fn without_thread(&self, command: &mut Command, number: usize) {
        let number = number.to_string();
        let how = [("FAULT_CALLS", ",thread,"), ("FAULT_AT", &number), ("FAULT_COUNT", "1")];
        self.fault(command, errno::EAGAIN, &how);
    }

    /// Loads the program from its file.
    fn push(&self) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["ctl", "--p4runtime", &format!("unix:{}", self.path("socket").display())]);
        command.args(["--timeout", "30s", "program", "--load"]);
        command.arg(self.path("program.p4"));
        let start = Instant::now();
        loop {
            let output = command.output().unwrap();
            // The switch may not know yet that the primary before has left.
            if !text(&output).contains("another controller") || start.elapsed() > LONG {
                return output;
            }
        }
    }
}

#[test]
fn a_command_without_a_thread_for_the_compiler_ends_with_2_and_says_which_limit_it_is() {
    let bench = Bench::new();
    for arguments in [
        &["check"][..],
        &["build", "--p4info", "/dev/null"],
        &["run", "-i", "1@null"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command
            .arg(arguments[0])
            .arg(bench.path("program.p4"))
            .args(&arguments[1..]);
        let how = [("FAULT_CALLS", ",thread,"), ("FAULT_AT", "1"), ("FAULT_COUNT", "9")];
        bench.fault(&mut command, errno::EAGAIN, &how);
        let output = command.output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("starts no thread for the compiler"),
            "{arguments:?}: {said}"
        );
        assert!(said.contains("TasksMax"), "{arguments:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_one_thread_a_switch_ends_with_2_or_refuses_a_program_and_loads_it_later() {
    let mut bench = Bench::new();
    let (mut unstarted, mut refused) = (0, 0);
    for number in 1..=THREADS {
        let said = fs::File::create(bench.path("said")).unwrap();
        let mut command = bench.command();
        command.args(["--http", "127.0.0.1:0"]);
        bench.without_thread(&mut command, number);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        let client = bench.client(&mut child).await;
        let said = || fs::read_to_string(bench.path("said")).unwrap();
        if client.is_none() {
            let status = child.wait().unwrap();
            assert_eq!(status.code(), Some(2), "thread {number}: {}", said());
            let is_named = ["starts no thread", "cannot start a thread"]
                .iter()
                .any(|text| said().contains(text));
            assert!(is_named, "thread {number}: {}", said());
            assert!(!said().contains("panicked"), "thread {number}: {}", said());
            unstarted += 1;
            continue;
        }
        // There is one primary at a time.
        drop(client);
        let pushes = [bench.push(), bench.push()];
        let failed: Vec<&Output> = pushes.iter().filter(|push| !push.status.success()).collect();
        for push in &failed {
            assert!(
                text(push).contains("RESOURCE_EXHAUSTED"),
                "thread {number}: {}",
                text(push)
            );
        }
        assert!(failed.len() < 2, "thread {number}: {}", text(failed[1]));
        refused += failed.len();
        let client = bench.client(&mut child).await.expect("it runs");
        bench.write(&client).await;
        drop(client);
        assert_eq!(end(&mut child, "-TERM").code(), Some(0), "thread {number}");
        let said = fs::read_to_string(bench.path("said")).unwrap();
        assert!(!said.contains("panicked"), "thread {number}: {said}");
        fs::remove_file(bench.state()).unwrap();
    }
    assert!(unstarted > 3 && refused > 2, "{unstarted} {refused}");
}
