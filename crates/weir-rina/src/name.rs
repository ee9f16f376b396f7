//! Names of application processes, and their forms in shim DIFs.

use crate::error::{EncodeError, Expected, Reason, WireError};
use std::fmt;

/// The name of an application process, perhaps of one of its instances and entities.
///
/// IPC processes are application processes of the DIFs below, and are named so, too. An empty
/// component is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationName {
    /// The application process (AP), such as `leaf1.fabric`.
    pub process: String,
    /// The instance of the process.
    pub process_instance: String,
    /// The application entity (AE).
    pub entity: String,
    /// The instance of the entity.
    pub entity_instance: String,
}

/// The text form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameForm {
    /// rlite: components separated by `|`; trailing empty ones are omitted.
    Rlite,
    /// IRATI: four components separated by `/`.
    Irati,
}

impl NameForm {
    /// The character between components.
    #[must_use]
    pub const fn separator(self) -> char {
        match self {
            NameForm::Rlite => '|',
            NameForm::Irati => '/',
        }
    }
}

impl ApplicationName {
    /// A name of only a process.
    #[must_use]
    pub fn process(name: impl Into<String>) -> Self {
        ApplicationName {
            process: name.into(),
            ..ApplicationName::default()
        }
    }

    fn components(&self) -> [&str; 4] {
        [
            &self.process,
            &self.process_instance,
            &self.entity,
            &self.entity_instance,
        ]
    }

    /// The text form.
    ///
    /// # Errors
    /// The process is empty, or a component contains the separator or a zero byte.
    pub fn to_text(&self, form: NameForm) -> Result<String, EncodeError> {
        let separator = form.separator();
        let components = self.components();
        let is_ambiguous = |component: &&str| component.contains([separator, '\0']);
        if self.process.is_empty() || components.iter().any(is_ambiguous) {
            let field = "application name";
            return Err(EncodeError::Name { field, separator });
        }
        let text = components.join(&separator.to_string());
        Ok(match form {
            NameForm::Rlite => text.trim_end_matches(separator).to_owned(),
            NameForm::Irati => text,
        })
    }

    /// Reads a text form; fewer than four components are accepted.
    ///
    /// # Errors
    /// No UTF-8, an empty process, or more than four components.
    pub fn from_text(text: &[u8], form: NameForm) -> Result<Self, WireError> {
        let error = |offset: usize, expected, found: usize| {
            WireError::new(Reason::Name, "application name", offset, expected, found as u64)
        };
        let text =
            std::str::from_utf8(text).map_err(|e| error(e.valid_up_to(), Expected::OneOf("UTF-8"), text.len()))?;
        let mut components = text.split(form.separator());
        let mut next = || components.next().unwrap_or_default().to_owned();
        let name = ApplicationName {
            process: next(),
            process_instance: next(),
            entity: next(),
            entity_instance: next(),
        };
        if name.process.is_empty() {
            return Err(error(0, Expected::OneOf("a name of a process"), 0));
        }
        let more = components.count();
        if more > 0 {
            return Err(error(0, Expected::AtMost(4), 4 + more));
        }
        Ok(name)
    }
}

impl fmt::Display for ApplicationName {
    /// The components separated by `|`, without trailing empty ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.components().join("|").trim_end_matches('|'))
    }
}

#[cfg(test)]
mod tests {
    use super::{ApplicationName, NameForm};

    #[test]
    fn each_form_has_its_separator() {
        let name = ApplicationName {
            process: "a".into(),
            process_instance: "1".into(),
            ..ApplicationName::default()
        };
        assert_eq!(name.to_text(NameForm::Rlite).unwrap(), "a|1");
        assert_eq!(name.to_text(NameForm::Irati).unwrap(), "a/1//");
        for form in [NameForm::Rlite, NameForm::Irati] {
            let text = name.to_text(form).unwrap();
            assert_eq!(ApplicationName::from_text(text.as_bytes(), form).unwrap(), name);
        }
        assert_eq!(name.to_string(), "a|1");
    }

    #[test]
    fn ambiguous_and_impossible_names_are_refused() {
        let form = NameForm::Irati;
        for process in ["", "a/b", "a\0"] {
            assert!(ApplicationName::process(process).to_text(form).is_err());
        }
        for text in [&b""[..], b"/1/2/3", b"a/b/c/d/e", b"\xff"] {
            assert!(ApplicationName::from_text(text, form).is_err());
        }
    }
}
