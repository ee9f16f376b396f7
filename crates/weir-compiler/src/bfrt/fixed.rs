//! Tables that every device has, whatever program it runs: ports, replication, mirror sessions,
//! packet generator, queues, device.
//!
//! Their names, numbers, fields, types and choices are those of the reference's drivers, so that
//! clients written for these find everything. Of the traffic manager there is what weir's has a
//! meaning for: rates of ports, and what queues hold and refuse. Memory in cells, pools, flow
//! control and schedulers' weights are left out, as are snapshots: weir has no stages to take them
//! of.
//!
//! Source: the device tables in p4lang/open-p4studio, `pkgsrc/bf-drivers/src/bf_rt`.
//!
//! ```
//! use weir_compiler::bfrt::{Chip, fixed_info};
//!
//! let info = fixed_info(Chip::Tofino2);
//! assert_eq!(info.table("$PORT").unwrap().id, 0xff01_0001);
//! assert!(info.table("tf2.pktgen.app_cfg").is_some() && info.table("tf1.pktgen.app_cfg").is_none());
//! ```

mod device;
mod field;
mod generator;
mod manager;
mod mirror;
mod port;
mod port_stat;
mod replication;
#[cfg(test)]
mod tests;

use weir_ir::Program;
use weir_proto::bfrt_info::BfrtInfo;

/// Which chip a device is taken for: clients tell them apart by the names of some tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chip {
    /// Tofino: tables named `tf1.…`.
    Tofino1,
    /// Tofino 2: tables named `tf2.…`.
    Tofino2,
}

impl Chip {
    /// The chip that a program is for. Programs of architectures without chips are taken to be for
    /// the first.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        if program.target == "t2na" {
            Chip::Tofino2
        } else {
            Chip::Tofino1
        }
    }

    /// What the names of its own tables begin with.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Chip::Tofino1 => "tf1",
            Chip::Tofino2 => "tf2",
        }
    }

    /// A name of one of its own tables.
    fn named(self, name: &str) -> String {
        format!("{}.{name}", self.prefix())
    }

    /// One of two values.
    fn choose<T>(self, first: T, second: T) -> T {
        match self {
            Chip::Tofino1 => first,
            Chip::Tofino2 => second,
        }
    }
}

/// The description of the tables that a device has without any program.
#[must_use]
pub fn fixed_info(chip: Chip) -> BfrtInfo {
    let mut tables = Vec::new();
    port::add(chip, &mut tables);
    replication::add(chip, &mut tables);
    generator::add(chip, &mut tables);
    mirror::add(chip, &mut tables);
    manager::add(chip, &mut tables);
    device::add(chip, &mut tables);
    BfrtInfo {
        tables,
        ..BfrtInfo::default()
    }
}
