//! Names of the control plane: exact, or any dotted suffix that is unique.

use thiserror::Error;

/// A name that could not be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing is called so.
    #[error("no {kind} is called `{name}`; there {}", list_of(.known))]
    Unknown {
        /// `table`, `action`, …
        kind: &'static str,
        /// The name that was looked up.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Several things have exactly this name.
    #[error("{count} objects of the kind {kind} are called `{name}`; give them different names by `@name`")]
    Duplicate {
        /// `table`, `action`, …
        kind: &'static str,
        /// The name that was looked up.
        name: String,
        /// How many there are.
        count: usize,
    },
    /// Several things are called so.
    #[error("`{name}` may be the {kind} {}; give more of the name", .candidates.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(" or "))]
    Ambiguous {
        /// `table`, `action`, …
        kind: &'static str,
        /// The name that was looked up.
        name: String,
        /// What it may be.
        candidates: Vec<String>,
    },
}

fn list_of(names: &[String]) -> String {
    match names {
        [] => "are none".to_owned(),
        [one] => format!("is only `{one}`"),
        many => format!("are `{}`", many.join("`, `")),
    }
}

/// Finds `name` among `candidates`: the one with exactly this name, else the only one that ends in
/// `.` and this name. A leading dot is ignored.
///
/// # Errors
/// There is none, or more than one, even by the whole name.
pub fn resolve<T: Copy, S: AsRef<str>>(
    kind: &'static str,
    name: &str,
    candidates: impl Iterator<Item = (S, T)>,
) -> Result<T, NameError> {
    let wanted = name.strip_prefix('.').unwrap_or(name);
    let mut known = Vec::new();
    let mut exact = Vec::new();
    let mut suffixed = Vec::new();
    for (candidate, id) in candidates {
        let full = candidate.as_ref();
        let plain = full.strip_prefix('.').unwrap_or(full);
        if plain == wanted {
            exact.push(id);
        }
        if plain.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.')) {
            suffixed.push((full.to_owned(), id));
        }
        known.push(full.to_owned());
    }
    match exact.as_slice() {
        [] => {}
        [id] => return Ok(*id),
        many => {
            return Err(NameError::Duplicate {
                kind,
                name: name.to_owned(),
                count: many.len(),
            });
        }
    }
    match suffixed.as_slice() {
        [(_, id)] => Ok(*id),
        [] => Err(NameError::Unknown {
            kind,
            name: name.to_owned(),
            known,
        }),
        many => {
            let candidates = many.iter().map(|(n, _)| n.clone()).collect();
            Err(NameError::Ambiguous {
                kind,
                name: name.to_owned(),
                candidates,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unique_suffix_is_enough_and_an_exact_name_wins() {
        let names = ["ingress.t", "egress.t", "t2", "a.t2", "ingress.sub.u"];
        let find = |n| resolve("table", n, names.iter().zip(0..));
        assert_eq!(find("ingress.t"), Ok(0));
        assert_eq!(find("t2"), Ok(2));
        assert_eq!(find("u"), Ok(4));
        assert_eq!(find("sub.u"), Ok(4));
        assert!(matches!(find("t"), Err(NameError::Ambiguous { .. })));
        assert!(matches!(find("ub.u"), Err(NameError::Unknown { .. })));
    }
}
