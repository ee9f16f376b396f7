//! A plot with logarithmic axes.

use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 290.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 50.0;
const COLORS: [&str; 11] = [
    "#9a9a9a", "#4d4d4d", "#a6cee3", "#1f78b4", "#08306b", "#6a3d9a", "#b2df8a", "#33a02c", "#00441b", "#cab2d6",
    "#e31a1c",
];

/// Seconds over entries, one line per method.
pub fn svg(lines: &[(&str, Vec<(f64, f64)>)]) -> String {
    let (x_min, x_max, y_min, y_max) = (0.0_f64, 6.0_f64, -5.0_f64, 1.5_f64);
    let x = |v: f64| LEFT + (v.log10() - x_min) / (x_max - x_min) * (WIDTH - LEFT - RIGHT);
    let y =
        |v: f64| HEIGHT - BOTTOM - (v.log10().clamp(y_min, y_max) - y_min) / (y_max - y_min) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for power in 0..=6 {
        let at = x(10_f64.powi(power));
        let _ = writeln!(
            out,
            "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">10<tspan dy=\"-5\" font-size=\"9\">{power}</tspan></text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 18.0
        );
    }
    for power in -5..=1 {
        let at = y(10_f64.powi(power));
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">10<tspan dy=\"-5\" font-size=\"9\">{power}</tspan></text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">entries</text>\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">seconds</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 12.0,
        (TOP + HEIGHT - BOTTOM) / 2.0
    );
    for (i, (name, points)) in lines.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let path: Vec<String> = points
            .iter()
            .map(|(px, py)| format!("{:.1},{:.1}", x(*px), y(*py)))
            .collect();
        let row = TOP + 14.0 + 20.0 * i as f64;
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <line x1=\"{:.1}\" y1=\"{row}\" x2=\"{:.1}\" y2=\"{row}\" stroke=\"{color}\" stroke-width=\"3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            path.join(" "),
            WIDTH - RIGHT + 15.0,
            WIDTH - RIGHT + 40.0,
            WIDTH - RIGHT + 46.0,
            row + 4.0
        );
    }
    out + "</svg>\n"
}
