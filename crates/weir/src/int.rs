//! `weir int`: measures networks and devices by in-band telemetry (INT).

mod arguments;
mod bench;
mod collect;
mod demo;
mod measure;
mod query;
mod report;
mod show;
pub mod table;
mod wireshark;

pub use arguments::Int;
pub use demo::Random;

use crate::output::Messages;
use anyhow::Result;
use arguments::Task;

/// Does what the command line says.
pub fn int(arguments: Int, messages: &Messages) -> Result<u8> {
    match arguments.task {
        Task::Collect(arguments) => collect::collect(&arguments, messages),
        Task::Query(arguments) => query::query(&arguments),
        Task::Show(arguments) => show::show(&arguments),
        Task::Report(arguments) => report::report(&arguments, messages),
        Task::Bench(arguments) => bench::bench(&arguments),
        Task::Demo(arguments) => demo::demo(&arguments, messages),
        Task::Measure(arguments) => measure::measure(&arguments, messages),
        Task::Delay(arguments) => measure::delay(&arguments, messages),
        Task::Wireshark(arguments) => wireshark::wireshark(&arguments, messages),
    }
}
