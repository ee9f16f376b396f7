//! Why a model cannot be used.

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is no model.
    #[error("expected a model as JSON (docs/latency-models.md): {0}")]
    Json(#[from] serde_json::Error),
    /// It is a model of another version.
    #[error(
        "expected schema {}, found {found}: fit the model anew with this version of weir",
        super::SCHEMA
    )]
    Schema {
        /// What the file says.
        found: u32,
    },
    /// Its parts do not fit together.
    #[error("damaged model: {what}")]
    Damaged {
        /// What does not fit.
        what: String,
    },
    /// It does not know the port's speed.
    #[error("model {model} knows ports of {} Gbit/s, not {found}", list(known))]
    Port {
        /// Its name.
        model: String,
        /// The speed in Gbit/s.
        found: u32,
        /// What it knows.
        known: Vec<u32>,
    },
}

/// Speeds with `and` between them.
pub(crate) fn list(ports: &[u32]) -> String {
    let all: Vec<String> = ports.iter().map(ToString::to_string).collect();
    all.join(" and ")
}
