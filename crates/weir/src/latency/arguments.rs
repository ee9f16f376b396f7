//! The command line of `weir latency`.

use crate::cli::Source;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use weir_latency::features::Chip;
use weir_latency::predict::{MAX_PACKET_SIZE, MAX_SIZES};

/// Arguments of `weir latency`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency demo\n  weir latency predict router.p4 --port 10g --packet-size 64..1500:100\n  weir latency explain router.p4 --svg router.svg\n  weir latency predict router.p4 --max-ns 600   in CI: exit code 1 if a path takes longer\n\nModels are fitted to measurements: every answer names its error and its scope.\ndocs/latency.md is the guide, docs/latency-models.md the reference."
)]
pub struct Latency {
    #[command(subcommand)]
    pub question: Question,
}

/// The questions.
#[derive(Subcommand)]
pub enum Question {
    /// Predict what each path through the program costs
    Predict(Predict),
    /// Show the features that predictions use: parser paths, tables, dependencies, stages
    Explain(Explain),
    /// List the built-in models, or print one as JSON
    Models(Models),
    /// Train a model on measured rows
    Fit(Fit),
    /// Compare a model's predictions with measured rows
    Evaluate(Evaluate),
    /// Measure programs on this machine's compiled engine, and train models on them
    Profile(Profile),
    /// Predict the paper's seven programs, and compare with measurements on a Tofino
    Demo(Demo),
}

/// Arguments of `weir latency predict`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency predict router.p4 --port 100g\n  weir latency predict router.p4 --packet-size 64..1500:4 --plot router.svg\n  weir latency predict router.p4 --json > before.json\n  weir latency predict router.p4 --compare before.json --max-ns 600\n  weir latency predict router.p4 --model weir-plp --entries router.entries\n\nExit codes: 0: all paths keep the limits; 1: a path is above --max-ns or slower than in --compare,\nor the longest paths were left out; 2: wrong input."
)]
pub struct Predict {
    #[command(flatten)]
    pub source: Source,
    /// Speed of the port: 10g (the default) or 100g. Only for models that have port speeds
    #[arg(long, value_name = "SPEED", value_parser = speed)]
    pub port: Option<u32>,
    /// Bytes of the packets without their FCS: a number, several with commas, or FROM..TO[:STEP].
    /// TO is included. Without STEP the range is divided into eight
    #[arg(long, value_name = "BYTES", value_parser = sizes, default_value = "64,128,256,512,1024,1500")]
    pub packet_size: Sizes,
    /// Only paths that begin with these headers, e.g. ethernet/ipv4
    #[arg(long, value_name = "HEADERS")]
    pub path: Option<String>,
    /// The pipe to predict, if the program has several
    #[arg(long, value_name = "NAME")]
    pub pipe: Option<String>,
    /// Take entry counts from this control-plane state instead of declared sizes. Only for weir-lr
    /// and weir-plp
    #[arg(long, value_name = "FILE")]
    pub entries: Option<PathBuf>,
    /// Built-in model (see `weir latency models`) or a model file
    #[arg(long, value_name = "NAME|FILE.json", default_value = "cycles")]
    pub model: String,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Save a plot of latency against packet size
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Exit code 1 if a path takes more than N ns. The predicted mean is compared, without the
    /// error band
    #[arg(long, value_name = "N", value_parser = positive)]
    pub max_ns: Option<f64>,
    /// Let --max-ns and --compare pass although the longest paths were left out
    #[arg(long)]
    pub allow_left_out: bool,
    /// Exit code 1 if a path takes longer than in this earlier output of --json
    #[arg(long, value_name = "OLD.json")]
    pub compare: Option<PathBuf>,
}

/// Arguments of `weir latency explain`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency explain router.p4\n  weir latency explain switch_tna.p4 --chip tofino2 --svg stages.svg\n  weir latency explain switch_tna.p4 --egress --json"
)]
pub struct Explain {
    #[command(flatten)]
    pub source: Source,
    /// The chip whose stages the tables are laid out in
    #[arg(long, value_enum, default_value_t = ChipName::Tofino)]
    pub chip: ChipName,
    /// The egress instead of the ingress
    #[arg(long)]
    pub egress: bool,
    /// The pipe to explain, if the program has several
    #[arg(long, value_name = "NAME")]
    pub pipe: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Save a picture of the tables in their stages, with dependencies and the critical path
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
}

/// A chip.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum ChipName {
    /// Tofino: 12 stages
    Tofino,
    /// Tofino 2: 20 stages
    Tofino2,
}

impl ChipName {
    /// What is known of it.
    pub fn chip(self) -> Chip {
        match self {
            ChipName::Tofino => Chip::TOFINO,
            ChipName::Tofino2 => Chip::TOFINO2,
        }
    }
}

/// Arguments of `weir latency models`.
#[derive(Args)]
#[command(after_help = "Examples:\n  weir latency models\n  weir latency models cycles > mine.json")]
pub struct Models {
    /// Print this one as JSON
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// What is trained.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum Kind {
    /// Linear regression on every column
    Lr,
    /// Polynomial features of degree 2, principal components, lasso
    Plp,
    /// The paper's regression with the Tofino's cycles, and a slope by packet size that is fitted
    Cycles,
}

/// Arguments of `weir latency fit`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency fit measured.csv --model plp -o mine.json\n  weir latency fit measured.csv --model plp --components 10 --alpha 0.0005\n  weir latency fit tofino.csv --model cycles\n\nThe first line of the CSV names its columns: case, features (docs/latency-models.md), and\nlatency_ns or cycles. The error is estimated by leaving out each case in turn. Hyper-parameters\nthat are not given are searched again for each case that is left out."
)]
pub struct Fit {
    /// Measured rows
    #[arg(value_name = "DATA.csv")]
    pub data: PathBuf,
    /// Kind of model
    #[arg(long, value_enum)]
    pub model: Kind,
    /// Name of the model (default: that of its kind)
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Number of principal components of plp; searched if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub components: Option<u32>,
    /// Weight of plp's lasso penalty; searched if not given
    #[arg(long, value_name = "A", value_parser = not_negative)]
    pub alpha: Option<f64>,
    /// Do not scale plp's features (as the paper's script probably did)
    #[arg(long)]
    pub unscaled: bool,
    /// Train the cycles model with the terms of the built-in one, without a search
    #[arg(long)]
    pub fixed: bool,
    /// Where the model is written
    #[arg(short = 'o', value_name = "FILE.json")]
    pub output: Option<PathBuf>,
    /// The estimate as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir latency evaluate`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency evaluate paper-lr measured.csv\n  weir latency evaluate mine.json measured.csv --plot residuals.svg"
)]
pub struct Evaluate {
    /// Built-in model (see `weir latency models`) or a model file
    #[arg(value_name = "MODEL")]
    pub model: String,
    /// Measured rows
    #[arg(value_name = "DATA.csv")]
    pub data: PathBuf,
    /// Save a plot of the residuals
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// As JSON, with every row
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir latency profile`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  weir latency profile -o profile\n  chrt -f 50 weir latency profile -o profile --quick\n\nWrites DIR/measured.csv while it runs; a second start with the same DIR resumes. Then it writes\nDIR/weir-lr.json, DIR/weir-plp.json, DIR/validation.csv and plots. On a shared machine run it with\nchrt."
)]
pub struct Profile {
    /// Directory for the results
    #[arg(short = 'o', value_name = "DIR")]
    pub output: PathBuf,
    /// Measure a small part of the grid: faster, less accurate
    #[arg(long)]
    pub quick: bool,
    /// Processor to measure on (default: the last one)
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
    /// Runs of each program; the median is kept
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub runs: u32,
    /// Repetitions of each program outside the grid
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repetitions: u32,
    /// The outcome as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir latency demo`.
#[derive(Args)]
#[command(after_help = "Example:\n  weir latency demo --svg latency.svg")]
pub struct Demo {
    /// Where the picture is saved
    #[arg(long, value_name = "FILE", default_value = "weir-latency.svg")]
    pub svg: PathBuf,
    /// The results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Packet sizes in order.
#[derive(Debug, Clone)]
pub struct Sizes(pub Vec<u32>);

fn speed(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix(['g', 'G']).unwrap_or(text);
    let known = number.parse().ok().filter(|n| (1..=800).contains(n));
    known.ok_or_else(|| format!("`{text}` is no speed: write 10g or 100g"))
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| format!("`{text}` is no number above 0"))
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| format!("`{text}` is no number from 0 up"))
}

fn size(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|n| (1..=MAX_PACKET_SIZE).contains(n));
    number.ok_or_else(|| format!("`{text}` is no packet size: 1 to {MAX_PACKET_SIZE} bytes"))
}

/// Parts of a range of packet sizes without a step.
const RANGE_PARTS: u32 = 8;

fn sizes(text: &str) -> Result<Sizes, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let Some((from, rest)) = part.split_once("..") else {
            all.push(size(part)?);
            continue;
        };
        let (to, step) = rest.split_once(':').unwrap_or((rest, ""));
        let (from, to) = (size(from)?, size(to)?);
        let step = if step.is_empty() {
            (to.saturating_sub(from) / RANGE_PARTS).max(1)
        } else {
            size(step)?
        };
        if from > to {
            return Err(format!("`{part}` begins with more than it ends with"));
        }
        all.extend((from..=to).step_by(step as usize).chain([to]).take(MAX_SIZES + 1));
    }
    all.sort_unstable();
    all.dedup();
    if all.len() > MAX_SIZES {
        return Err(format!(
            "`{text}` has more than {MAX_SIZES} sizes: choose a larger step"
        ));
    }
    Ok(Sizes(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_lists_and_ranges() {
        assert_eq!(sizes("64").unwrap().0, [64]);
        assert_eq!(sizes("100,64").unwrap().0, [64, 100]);
        assert_eq!(sizes("64..100:20").unwrap().0, [64, 84, 100]);
        assert_eq!(sizes("64..1500").unwrap().0.len(), 10);
        for (text, problem) in [
            ("0", "1 to 16384"),
            ("9..8", "begins"),
            ("1..16384:1", "larger step"),
            ("x", "1 to"),
        ] {
            assert!(sizes(text).unwrap_err().contains(problem), "{text}");
        }
    }
}
