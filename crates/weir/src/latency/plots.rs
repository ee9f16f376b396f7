//! Plots.

use crate::bench::{Line, Plot};
use weir_latency::evaluate::Evaluation;
use weir_latency::predict::Prediction;

/// Paths that are drawn.
const DRAWN_PATHS: usize = 4;

/// Latency against packet size, of the costliest paths.
pub fn by_size(prediction: &Prediction) -> String {
    let line = |path: &weir_latency::predict::PathPrediction| {
        let points = path.points.iter().map(|p| (f64::from(p.packet_size), p.total));
        Line::new(&shortened(&path.name), points.collect())
    };
    let plot = Plot {
        title: match prediction.port_gbps {
            0 => format!("{}: {}", prediction.program, prediction.model),
            gbps => format!("{}: {}, port {gbps} Gbit/s", prediction.program, prediction.model),
        },
        x: "bytes of the packet".to_owned(),
        y: prediction.unit.symbol().to_owned(),
        lines: prediction.paths.iter().take(DRAWN_PATHS).map(line).collect(),
    };
    plot.svg()
}

/// The last headers of a path: those that tell it from others.
fn shortened(name: &str) -> String {
    const LENGTH: usize = 14;
    let count = name.chars().count();
    if count <= LENGTH {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - LENGTH).collect();
    format!("…{end}")
}

/// Predicted against measured, beside the line where both are equal.
pub fn residuals(model: &str, evaluation: &Evaluation) -> String {
    let measured = || evaluation.rows.iter().map(|r| r.measured);
    let (least, most) = (measured().fold(f64::INFINITY, f64::min), measured().fold(0.0, f64::max));
    let mut points: Vec<(f64, f64)> = evaluation.rows.iter().map(|r| (r.measured, r.predicted)).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let plot = Plot {
        title: format!(
            "{model}: accuracy {:.2} %, bias {:+.2} %",
            evaluation.accuracy(None),
            evaluation.bias()
        ),
        x: "measured".to_owned(),
        y: "predicted".to_owned(),
        lines: vec![
            Line::new("equal", vec![(least, least), (most, most)]),
            Line::scattered("rows", points),
        ],
    };
    plot.svg()
}
