//! A switch in a process of its own.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `weir run`, killed with this.
pub struct Switch {
    child: Child,
    /// Where BF Runtime is served.
    pub bfrt: String,
    /// Where P4Runtime is served.
    pub p4runtime: String,
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Switch {
    /// Starts one whose BF Runtime server listens there.
    pub fn start(bfrt: &str) -> Result<Switch, Box<dyn Error>> {
        let here = std::env::current_exe()?;
        // target/release/deps/control-… → target/release/weir
        let weir = here.parent().and_then(Path::parent).map(|folder| folder.join("weir"));
        let weir = weir
            .filter(|path| path.exists())
            .ok_or("there is no weir: run `cargo build --release` first")?;
        let program = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../p4/programs/acl_firewall_tna/acl_firewall_tna.p4"
        );
        let mut child = Command::new(weir)
            .args([
                "run",
                program,
                "-i",
                "0@null",
                "-i",
                "1@null",
                "--bfrt",
                bfrt,
                "--p4runtime",
                "127.0.0.1:0",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?)
            .lines()
            .map_while(Result::ok);
        let (mut bfrt, mut p4runtime) = (None, None);
        for line in lines.by_ref() {
            if let Some(address) = line.strip_prefix("BF Runtime at ") {
                bfrt = Some(address.to_owned());
            }
            if let Some(address) = line.strip_prefix("P4Runtime at ") {
                p4runtime = Some(address.to_owned());
            }
            if line.starts_with("running") {
                break;
            }
        }
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Switch {
            child,
            bfrt: bfrt.ok_or("the switch does not serve BF Runtime")?,
            p4runtime: p4runtime.ok_or("the switch does not serve P4Runtime")?,
        })
    }

    /// Memory that it has now.
    pub fn resident_mib(&self) -> u64 {
        resident_mib(&self.child.id().to_string())
    }
}

/// Memory of a process, as the kernel tells.
pub fn resident_mib(process: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
