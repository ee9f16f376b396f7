//! The paper's Figures 4 to 11, of this machine.

use crate::bench::{Line, Plot};
use weir_latency::data::Data;

/// A figure: its file, title, horizontal axis, and lines. A line is a name and what the names of
/// its points begin and end with; the number between is the place on the axis.
struct Figure {
    file: &'static str,
    title: &'static str,
    x: &'static str,
    lines: &'static [(&'static str, &'static str, &'static str)],
}

const FIGURES: &[Figure] = &[
    Figure {
        file: "parser.svg",
        title: "Parser states (as the paper's Figures 4 to 6), packets of 200 bytes",
        x: "states after Ethernet",
        lines: &[
            ("2 bytes", "parser-", "x2-200"),
            ("5 bytes", "parser-", "x5-200"),
            ("10 bytes", "parser-", "x10-200"),
            ("20 bytes", "parser-", "x20-200"),
        ],
    },
    Figure {
        file: "size.svg",
        title: "Packet size (as the paper's Figure 6), headers of 2 bytes",
        x: "bytes of the packet",
        lines: &[
            ("0 states", "parser-0x2-", ""),
            ("5 states", "parser-5x2-", ""),
            ("10 states", "parser-10x2-", ""),
        ],
    },
    Figure {
        file: "exact.svg",
        title: "Exact tables (as the paper's Figures 7 and 8), 64 entries",
        x: "tables",
        lines: &[
            ("8 bits", "control-", "x1x8-exact-64-8-300"),
            ("16 bits", "control-", "x1x16-exact-64-8-300"),
            ("32 bits", "control-", "x1x32-exact-64-8-300"),
        ],
    },
    Figure {
        file: "lpm.svg",
        title: "LPM tables (as the paper's Figure 11), 64 entries",
        x: "tables",
        lines: &[
            ("8 bits", "control-", "x1x8-lpm-64-8-300"),
            ("16 bits", "control-", "x1x16-lpm-64-8-300"),
            ("32 bits", "control-", "x1x32-lpm-64-8-300"),
        ],
    },
    Figure {
        file: "ternary.svg",
        title: "Ternary tables with eight masks, 64 entries",
        x: "tables",
        lines: &[
            ("8 bits", "control-", "x1x8-ternary-64-8-300"),
            ("16 bits", "control-", "x1x16-ternary-64-8-300"),
            ("32 bits", "control-", "x1x32-ternary-64-8-300"),
        ],
    },
    Figure {
        file: "entries.svg",
        title: "Entries of one table (as the paper's Figure 10), a key of 32 bits",
        x: "entries",
        lines: &[
            ("exact", "control-1x1x32-exact-", "-8-300"),
            ("lpm", "control-1x1x32-lpm-", "-8-300"),
            ("ternary", "control-1x1x32-ternary-", "-8-300"),
        ],
    },
];

/// File names and pictures of all figures.
pub fn all(data: &Data) -> Vec<(&'static str, String)> {
    FIGURES
        .iter()
        .map(|figure| (figure.file, figure.plot(data).svg()))
        .collect()
}

impl Figure {
    fn plot(&self, data: &Data) -> Plot {
        let line = |(name, begin, end): &(&str, &str, &str)| {
            let number = |case: &str| case.strip_prefix(begin)?.strip_suffix(end)?.parse::<f64>().ok();
            let point = |row: &weir_latency::data::Row| Some((number(&row.case)?, row.measured));
            let mut points: Vec<(f64, f64)> = data.rows.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line::new(name, points)
        };
        Plot {
            title: self.title.to_owned(),
            x: self.x.to_owned(),
            y: "cycles per packet".to_owned(),
            lines: self.lines.iter().map(line).collect(),
        }
    }
}
