//! Rows as aligned text.

use serde_json::Value;
use weir_store::Rows;

/// The longest cell that is shown whole.
const WIDEST: usize = 80;

/// Rows as JSON: a list of objects.
pub fn json(rows: &Rows) -> Value {
    let object = |row: &Vec<Value>| -> Value {
        let pairs = rows.columns.iter().cloned().zip(row.iter().cloned());
        Value::Object(pairs.collect())
    };
    rows.rows.iter().map(object).collect()
}

/// Rows with a line of names above them; numbers to the right.
pub fn text(rows: &Rows) -> String {
    let cells: Vec<Vec<String>> = rows.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let width = |at: usize| {
        let longest = cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        longest.max(rows.columns[at].chars().count())
    };
    let widths: Vec<usize> = (0..rows.columns.len()).map(width).collect();
    let is_number = |at: usize| rows.rows.iter().all(|row| !row[at].is_string());
    let numbers: Vec<bool> = (0..rows.columns.len()).map(is_number).collect();
    let line = |row: &[String]| {
        let cells = row.iter().enumerate().map(|(at, cell)| match numbers[at] {
            true => format!("{cell:>width$}", width = widths[at]),
            false => format!("{cell:<width$}", width = widths[at]),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    let mut text = line(&rows.columns);
    cells.iter().for_each(|row| text.push_str(&line(row)));
    if rows.is_cut {
        text.push_str("(there are more rows)\n");
    }
    text
}

/// A value as text. Control characters, which could come from a capture, are not printed.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => format!("{float:.1}"),
            None => number.to_string(),
        },
        Value::String(text) => {
            let text: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            match text.char_indices().nth(WIDEST) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::text;
    use weir_store::Rows;

    #[test]
    fn numbers_are_aligned_to_the_right_and_texts_to_the_left() {
        let rows = Rows {
            columns: vec!["name".into(), "n".into()],
            rows: vec![vec!["a\u{1b}".into(), 5.into()], vec!["long".into(), 1234.into()]],
            is_cut: false,
        };
        assert_eq!(text(&rows), "name     n\na?       5\nlong  1234\n");
    }
}
