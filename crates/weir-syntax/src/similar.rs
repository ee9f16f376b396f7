//! How alike two words are, for messages that guess what was meant.

/// Longer words are compared up to here.
const MAX_LENGTH: usize = 64;

/// The least number of characters to insert, delete or replace that makes `b` of `a` (Levenshtein
/// distance).
///
/// ```
/// assert_eq!(weir_syntax::similar::edit_distance("inlcude", "include"), 2);
/// ```
#[must_use]
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(MAX_LENGTH).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(MAX_LENGTH).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let next = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = next;
        }
    }
    row[b.len()]
}
