//! Plots of lines as SVG.

use crate::xml::escape;
use std::fmt::Write;

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// For the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
    /// Lines between the points.
    pub is_joined: bool,
}

impl Line {
    /// A line through points.
    pub fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Line {
            name: name.to_owned(),
            points,
            is_joined: true,
        }
    }

    /// Points without a line.
    pub fn scattered(name: &str, points: Vec<(f64, f64)>) -> Self {
        Line {
            is_joined: false,
            ..Line::new(name, points)
        }
    }
}

/// Lines over axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Above it.
    pub title: String,
    /// Below the horizontal axis.
    pub x: String,
    /// Beside the vertical axis, which begins at 0.
    pub y: String,
    /// The lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Room for title, labels and numbers: left, right, top, bottom.
const MARGINS: [f64; 4] = [70.0, 24.0, 48.0, 56.0];
const COLOURS: &[&str] = &["#1f6feb", "#d1242f", "#1a7f37", "#9a6700"];
/// Most points with numbers of their own on the horizontal axis.
const LABELS: usize = 16;
/// Beyond this from the least to the most, the horizontal axis is logarithmic.
const WIDE: f64 = 10.0;

impl Plot {
    /// The picture.
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let least = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let most = points().map(|p| p.0).fold(0.0, f64::max);
        let step = step(points().map(|p| p.1).fold(0.0, f64::max));
        let top = step * (points().map(|p| p.1).fold(0.0, f64::max) / step).ceil().max(1.0);
        let [left, right, above, below] = MARGINS;
        // There is no logarithm of 0.
        let wide = least > 0.0 && most > least * WIDE;
        let scale = |x: f64| if wide { x.ln() } else { x };
        let x_of = |x: f64| {
            let span = (scale(most) - scale(least)).max(f64::MIN_POSITIVE);
            let at = if most > least {
                (scale(x) - scale(least)) / span
            } else {
                0.5
            };
            left + 12.0 + at * (WIDTH - left - right - 24.0)
        };
        let y_of = |y: f64| HEIGHT - below - y / top * (HEIGHT - above - below);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{left}\" y=\"24\" font-size=\"15\">{}</text>\n",
            escape(&self.title)
        );
        self.axes(&mut out, &x_of, &y_of, step, top);
        for (i, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let path: Vec<String> = line
                .points
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
                .collect();
            if line.is_joined {
                let _ = writeln!(
                    out,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                    path.join(" ")
                );
            }
            for (x, y) in &line.points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"><title>{}: {y:.1}</title></circle>",
                    x_of(*x),
                    y_of(*y),
                    escape(&line.name)
                );
            }
            let at = WIDTH - right - 110.0 * (self.lines.len() - i) as f64;
            let _ = writeln!(
                out,
                "<rect x=\"{at}\" y=\"34\" width=\"12\" height=\"4\" fill=\"{colour}\"/><text x=\"{}\" y=\"41\">{}</text>",
                at + 18.0,
                escape(&line.name)
            );
        }
        out.push_str("</svg>\n");
        out
    }

    /// Axes with numbers, grid lines and labels.
    fn axes(&self, out: &mut String, x_of: &dyn Fn(f64) -> f64, y_of: &dyn Fn(f64) -> f64, step: f64, top: f64) {
        let [left, right, above, below] = MARGINS;
        let (bottom, end) = (HEIGHT - below, WIDTH - right);
        for i in 0..=(top / step).round() as usize {
            let value = i as f64 * step;
            let y = y_of(value);
            let _ = writeln!(
                out,
                "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{end}\" y2=\"{y:.1}\" stroke=\"#d8dee4\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.5,
                short(value)
            );
        }
        let mut xs: Vec<f64> = self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        if let [first, .., last] = xs[..]
            && xs.len() > LABELS
        {
            // Round numbers, where each point would have one.
            let step = self::step(last - first);
            let from = (first / step).ceil() as i64;
            xs = (from..=(last / step).floor() as i64).map(|i| i as f64 * step).collect();
            xs.retain(|x| *x > 0.0 || first <= 0.0);
        }
        for x in xs {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                x_of(x),
                bottom + 18.0,
                short(x)
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M{left},{above} V{bottom} H{end}\" fill=\"none\" stroke=\"#24292f\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
             <text x=\"18\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 18 {})\">{}</text>",
            f64::midpoint(left, end),
            HEIGHT - 14.0,
            escape(&self.x),
            f64::midpoint(above, bottom),
            f64::midpoint(above, bottom),
            escape(&self.y)
        );
    }
}

/// A round number of which three to seven reach the most.
fn step(most: f64) -> f64 {
    let rough = (most / 5.0).max(1e-3);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// A number in few characters.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 && (v / 1e5).fract() == 0.0 => format!("{}M", v / 1e6),
        v if v >= 1e3 && (v / 1e2).fract() == 0.0 => format!("{}k", v / 1e3),
        v if v.fract() == 0.0 => format!("{v}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_has_its_lines_numbers_and_labels() {
        let line = |name: &str, y: f64| Line::new(name, vec![(1000.0, y), (1_000_000.0, 2.0 * y)]);
        let plot = Plot {
            title: "a < b".to_owned(),
            x: "table entries".to_owned(),
            y: "cycles per packet".to_owned(),
            lines: vec![line("jit", 30.0), line("ceiling", 21.0)],
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        for part in [
            "a &lt; b",
            "table entries",
            "cycles per packet",
            ">1k<",
            ">1M<",
            ">60<",
            "ceiling",
            "</svg>",
        ] {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn a_plot_without_points_is_one_all_the_same() {
        let plot = Plot {
            title: String::new(),
            x: String::new(),
            y: String::new(),
            lines: Vec::new(),
        };
        assert!(!plot.svg().contains("NaN"));
        assert_eq!((step(60.0), step(400.0), step(0.0)), (20.0, 100.0, 0.001));
    }
}
