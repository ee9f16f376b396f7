//! What is run: a program and a packet test, both as text, so that a person can run them again.

/// Between the program and the test where both are one file.
const MARK: &str = "\n//--- test ---\n";

/// A program with what comes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Case {
    /// P4.
    pub source: String,
    /// STF. Packets that follow each other are one vector; `wait` ends it.
    pub test: String,
}

impl Case {
    /// Both as one text.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{}{MARK}{}", self.source, self.test).into_bytes()
    }

    /// The two parts of a text.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (source, test) = text.split_once(MARK).unwrap_or((&text, ""));
        Case {
            source: source.to_owned(),
            test: test.to_owned(),
        }
    }
}
