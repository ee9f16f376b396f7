//! `weir rina`: routers, hosts and fabrics of RINA.

mod arguments;
mod bench;
mod cat;
mod ctl;
mod fabric;
mod ipcp;
mod percent;
mod perf;
mod ping;
mod simulate;
mod size;

pub use arguments::Rina;

use crate::output::Messages;
use anyhow::Result;
use arguments::Task;

/// Does what the command line says.
pub fn rina(arguments: Rina, messages: &Messages) -> Result<u8> {
    match arguments.task {
        Task::Ipcp(arguments) => ipcp::ipcp(&arguments, messages),
        Task::Ctl(arguments) => ctl::ctl(&arguments),
        Task::Ping(arguments) => ping::ping(&arguments),
        Task::Perf(arguments) => perf::perf(&arguments, messages),
        Task::Cat(arguments) => cat::cat(&arguments, messages),
        Task::Bench(arguments) => bench::bench(&arguments, messages),
        Task::Simulate(arguments) => simulate::simulate(&arguments, messages),
        Task::Fabric(arguments) => fabric::fabric(&arguments, messages),
        Task::Demo(arguments) => fabric::demo(&arguments, messages),
    }
}
