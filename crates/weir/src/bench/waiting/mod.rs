//! `weir bench async`: what it costs and what it brings that packets wait for an extern while
//! others go on. The figures are those of "The Price for Asynchronous Execution of Extern Functions
//! in Programmable Software Data Planes".

mod figures;
mod hand_over;
mod overhead;
mod program;
mod rig;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use figures::{Figure, How};
use rig::Cores;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use weir_switch::VECTOR;

const EXAMPLES: &str = "Examples:
  chrt -f 50 weir bench async
  chrt -f 50 weir bench async --figure overhead --figure 3 --svg plots
  weir bench async --figure 4 --runs 3 --json

The program has two exact tables and an extern behind them; packets of 64 bytes in 10 flows lie in memory. One
processor executes the extern, another one the packets. Modes run in turns; figures are medians.
  inline     the packet's thread executes the extern
  hand-over  another core executes it, and the packet's thread waits (the paper's synchronous mode)
  async      a lane executes it, while other packets are processed
  auto       inline or by the lane, by measured cost";

/// Arguments of `weir bench async`.
#[derive(Args, Clone)]
#[command(after_help = EXAMPLES)]
pub struct Waiting {
    /// Only these; otherwise all
    #[arg(long, value_enum, value_name = "FIGURE")]
    pub figure: Vec<Which>,
    /// How long one run of a mode takes
    #[arg(long, default_value_t = 0.01)]
    pub seconds: f64,
    /// How many runs of each mode; medians are reported
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,
    /// Save plots in this directory
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// A figure of the paper, or the table beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Which {
    /// Cycles per packet that waits, beside coroutines
    Overhead,
    /// Rate over the extern's cost, by share of the packets and mode
    #[value(name = "3")]
    Figure3,
    /// Drops at the buffer
    #[value(name = "4")]
    Figure4,
    /// Scaling with workers
    #[value(name = "5")]
    Figure5,
    /// Highest rate with near-zero loss
    #[value(name = "6")]
    Figure6,
}

impl Which {
    fn measure(self, how: &How) -> Result<Figure> {
        match self {
            Which::Overhead => overhead::overhead(how),
            Which::Figure3 => figures::figure3(how),
            Which::Figure4 => figures::figure4(how),
            Which::Figure5 => figures::figure5(how),
            Which::Figure6 => figures::figure6(how),
        }
    }
}

/// Measures, and prints the figures.
pub fn waiting(arguments: &Waiting) -> Result<u8> {
    ensure!(
        arguments.seconds > 0.0 && arguments.seconds < 60.0,
        "--seconds must be more than 0 and less than 60"
    );
    let (workers, lane) = Cores::find()?;
    let cores = Cores {
        worker: workers[0],
        lane,
    };
    let how = How {
        run: Duration::from_secs_f64(arguments.seconds),
        runs: arguments.runs as usize,
        vector: VECTOR,
        cores,
        workers,
    };
    if let Some(directory) = &arguments.svg {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    }
    weir_io::pin_to_core(cores.worker).with_context(|| format!("cannot use processor {}", cores.worker))?;
    let which = match arguments.figure.as_slice() {
        [] => Which::value_variants(),
        some => some,
    };
    let mut all = Map::new();
    let mut out = crate::output::stdout();
    for which in which {
        let figure = which.measure(&how)?;
        if !arguments.json {
            writeln!(out, "{}", figure.text)?;
        }
        if let Some(directory) = &arguments.svg {
            for (name, plot) in &figure.plots {
                weir_files::write(&directory.join(format!("{name}.svg")), plot.svg().as_bytes())?;
            }
        }
        all.insert(figure.name.to_owned(), figure.json);
    }
    if arguments.json {
        writeln!(out, "{}", Value::Object(all))?;
    }
    Ok(0)
}
