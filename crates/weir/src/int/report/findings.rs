//! What stands out: a hop or link that is slower than the others, loss, drops, changes.

use serde_json::Value;
use std::collections::BTreeMap;
use weir_store::Rows;

/// A value is conspicuous from this multiple of the median of its kind on.
const MULTIPLE: f64 = 3.0;

/// Something with a number.
struct Valued<'a> {
    name: &'a str,
    value: f64,
}

/// Rows of which a number is a multiple of the median of all.
pub fn slower_than_others(rows: &Rows, name: &str, value: &str, what: &str) -> Vec<String> {
    let (Some(name), Some(value)) = (at(rows, name), at(rows, value)) else {
        return Vec::new();
    };
    let valued =
        |row: &'_ Vec<Value>| -> Option<(String, f64)> { Some((row[name].as_str()?.to_owned(), row[value].as_f64()?)) };
    let all: Vec<(String, f64)> = rows.rows.iter().filter_map(valued).collect();
    let mut sorted: Vec<f64> = all.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    // The lower one of two in the middle: of two things one can stand out.
    let Some(&median) = sorted.get(sorted.len().saturating_sub(1) / 2) else {
        return Vec::new();
    };
    let conspicuous = all
        .iter()
        .map(|(name, value)| Valued { name, value: *value })
        .filter(|valued| valued.value > MULTIPLE * median.max(1.0));
    conspicuous
        .map(|valued| {
            format!(
                "{what} {}: median latency {}; a typical one has {}",
                valued.name,
                super::page::time(valued.value),
                super::page::time(median)
            )
        })
        .collect()
}

/// Links on which packets are lost: those that all lossy flows share, as far as paths tell them
/// apart. Flows: path, packets that came, packets lost.
pub fn lossy_links(flows: &[(String, u64, u64)]) -> Vec<String> {
    #[derive(Default)]
    struct Link {
        received: u64,
        lost: u64,
        lossless: u64,
    }
    let mut links: BTreeMap<String, Link> = BTreeMap::new();
    for (path, received, lost) in flows {
        let nodes: Vec<&str> = path.split(' ').collect();
        for pair in nodes.windows(2) {
            let link = links
                .entry(format!("{} -> {}", node(pair[0]), node(pair[1])))
                .or_default();
            link.received += received;
            link.lost += lost;
            link.lossless += if *lost == 0 { *received } else { 0 };
        }
    }
    // A link that carries many packets of flows without loss is not where packets are lost.
    let suspects = links
        .iter()
        .filter(|(_, link)| link.lost > 0 && link.lossless * 10 < link.received);
    suspects
        .map(|(name, link)| {
            format!(
                "link {name}: {:.2} % of the packets of its flows are lost ({} of {})",
                100.0 * link.lost as f64 / (link.lost + link.received) as f64,
                link.lost,
                link.lost + link.received
            )
        })
        .collect()
}

/// The node of a hop of a path.
fn node(hop: &str) -> &str {
    hop.split('(').next().unwrap_or(hop)
}

/// The place of a column.
fn at(rows: &Rows, name: &str) -> Option<usize> {
    rows.columns.iter().position(|column| column == name)
}

#[cfg(test)]
mod tests {
    use super::{lossy_links, slower_than_others};
    use weir_store::Rows;

    #[test]
    fn the_link_that_lossy_flows_share_is_found() {
        let flow = |path: &str, lost| (path.to_owned(), 1000, lost);
        let flows = [
            flow("1(1>2) 2(1>2) 3(1>2)", 50),
            flow("4(1>2) 2(1>2) 3(1>2)", 40),
            flow("1(1>2) 2(1>2)", 0),
            flow("4(1>2) 2(1>2)", 0),
            flow("5(1>2) 3(1>2)", 0),
        ];
        assert_eq!(
            lossy_links(&flows),
            ["link 2 -> 3: 4.31 % of the packets of its flows are lost (90 of 2090)"]
        );
        assert!(lossy_links(&[]).is_empty());
    }

    #[test]
    fn the_slow_one_of_three_stands_out() {
        let row = |name: &str, p50: i64| vec![name.into(), p50.into()];
        let rows = Rows {
            columns: vec!["port".into(), "p50".into()],
            rows: vec![row("1:2", 900), row("2:2", 50_000), row("3:2", 1000)],
            is_cut: false,
        };
        let found = slower_than_others(&rows, "port", "p50", "port");
        assert_eq!(found, ["port 2:2: median latency 50.0 µs; a typical one has 1.00 µs"]);
    }
}
