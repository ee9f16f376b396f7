//! The lines in which two texts differ.

/// Longest table of common lines that is made.
const MOST_CELLS: usize = 40_000_000;

/// Lines of `a` that `b` does not have (`-`), and the other way round (`+`), with their numbers.
pub(crate) fn diff(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let start = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = |of: &[&str]| of.len() - start;
    let ends = a.iter().rev().zip(b.iter().rev()).take(rest(&a).min(rest(&b)));
    let end = ends.take_while(|(x, y)| x == y).count();
    let (x, y) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    if x.len() * y.len() > MOST_CELLS {
        return format!("{} lines instead of {}\n", y.len(), x.len());
    }
    let lengths = common(x, y);
    let (mut i, mut j) = (0, 0);
    let mut out = String::new();
    while i < x.len() || j < y.len() {
        if i < x.len() && j < y.len() && x[i] == y[j] {
            i += 1;
            j += 1;
        } else if j == y.len() || (i < x.len() && lengths[i + 1][j] >= lengths[i][j + 1]) {
            out.push_str(&format!("{:>5} - {}\n", start + i + 1, x[i]));
            i += 1;
        } else {
            out.push_str(&format!("{:>5} + {}\n", start + j + 1, y[j]));
            j += 1;
        }
    }
    out
}

/// The lengths of the longest common sequences of the lines from each place on.
fn common(x: &[&str], y: &[&str]) -> Vec<Vec<u32>> {
    let mut lengths = vec![vec![0; y.len() + 1]; x.len() + 1];
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            lengths[i][j] = match x[i] == y[j] {
                true => lengths[i + 1][j + 1] + 1,
                false => lengths[i + 1][j].max(lengths[i][j + 1]),
            };
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::diff;

    #[test]
    fn only_lines_that_differ_are_shown() {
        assert_eq!(diff("a\nb\nc\nd", "a\nx\nc\ny\nd"), "    2 - b\n    2 + x\n    4 + y\n");
        assert_eq!(diff("a\nb", "a\nb"), "");
    }
}
