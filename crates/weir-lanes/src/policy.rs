//! What happens to a call when its lane is full.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// What happens to a call when its lane is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullPolicy {
    /// The worker executes it itself.
    #[default]
    Inline,
    /// The worker waits until the lane has room: back-pressure.
    Wait,
    /// The packet is dropped and counted.
    Drop,
}

impl FullPolicy {
    /// Every policy.
    pub const ALL: [FullPolicy; 3] = [FullPolicy::Inline, FullPolicy::Wait, FullPolicy::Drop];

    /// Its name in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FullPolicy::Inline => "inline",
            FullPolicy::Wait => "wait",
            FullPolicy::Drop => "drop",
        }
    }
}

impl fmt::Display for FullPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is not one of a [`FullPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown policy `{0}`; expected `inline`, `wait` or `drop`")]
pub struct UnknownPolicy(pub String);

impl FromStr for FullPolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let found = FullPolicy::ALL.into_iter().find(|policy| policy.name() == text);
        found.ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_back_from_its_name() {
        for policy in FullPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("block".parse::<FullPolicy>(), Err(UnknownPolicy("block".to_owned())));
    }
}
