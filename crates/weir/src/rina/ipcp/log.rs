//! Structured logs: `key=value`, or JSON.

use crate::output::Messages;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_ipcp::{Event, PortId};

/// The log of an IPC process.
pub struct Log {
    is_json: bool,
    messages: Messages,
    name: String,
}

impl Log {
    /// A log that names the IPC process.
    pub fn new(is_json: bool, messages: Messages, name: &str) -> Self {
        Log {
            is_json,
            messages,
            name: name.to_owned(),
        }
    }

    /// Something has happened.
    pub fn event(&self, event: &Event) {
        self.write(serde_json::to_value(event).unwrap_or(Value::Null));
    }

    /// The switch has new entries.
    pub fn written(&self, updates: usize, time: Duration, is_resynchronised: bool) {
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.write(json!({
            "event": "switch_written",
            "updates": updates,
            "microseconds": microseconds,
            "resynchronised": is_resynchronised,
        }));
    }

    /// A device has failed, or works again.
    pub fn device(&self, port: PortId, error: Option<&str>) {
        let event = if error.is_some() { "device_lost" } else { "device_back" };
        let mut value = json!({ "event": event, "port": port.0 });
        if let (Some(reason), Value::Object(fields)) = (error, &mut value) {
            fields.insert("reason".to_owned(), json!(reason));
        }
        self.write(value);
    }

    /// The switch cannot be written; it is tried again.
    pub fn switch_failed(&self, reason: &str) {
        self.write(json!({ "event": "switch_failed", "reason": reason }));
    }

    /// The state cannot be written.
    pub fn state_failed(&self, error: &anyhow::Error) {
        self.write(json!({ "event": "state_failed", "reason": format!("{error:#}") }));
    }

    fn write(&self, value: Value) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut fields = Map::new();
        fields.insert("time".to_owned(), json!(time.as_secs_f64()));
        fields.insert("process".to_owned(), json!(self.name));
        if let Value::Object(of_event) = value {
            fields.extend(of_event);
        }
        let line = if self.is_json {
            json_line(fields)
        } else {
            text_line(fields)
        };
        self.messages.line(line);
    }
}

/// Others choose the names in a log: what is not plain is quoted and escaped, so that a line is
/// one line, and no value looks like other fields.
fn text_line(fields: Map<String, Value>) -> String {
    let is_plain = |text: &str| {
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '=' | '\\');
        !text.is_empty() && text.chars().all(is_plain)
    };
    let field = |(key, value): (String, Value)| match value {
        Value::String(text) if is_plain(&text) => format!("{key}={text}"),
        Value::String(text) => format!("{key}={text:?}"),
        value => format!("{key}={}", printable(&value.to_string())),
    };
    fields.into_iter().map(field).collect::<Vec<_>>().join(" ")
}

fn json_line(fields: Map<String, Value>) -> String {
    printable(&Value::Object(fields).to_string())
}

/// JSON permits some control characters in strings, which terminals obey.
pub fn printable(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() && c != '\n' {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(name: &str) -> Map<String, Value> {
        let event = Event::NeighbourUp {
            neighbour: name.to_owned(),
            port: PortId(1),
        };
        match serde_json::to_value(&event) {
            Ok(Value::Object(fields)) => fields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_of_others_forge_no_lines_fields_or_escape_sequences() {
        let plain = text_line(fields("leaf-1.a"));
        assert!(plain.contains("neighbour=leaf-1.a"), "{plain}");
        for name in [
            "a\nevent=joined",
            "\u{1b}[2J",
            "a b",
            "a=b",
            "\"",
            "",
            "\u{9b}31m",
            "\u{7f}",
            "\u{202e}x",
            "a\\",
        ] {
            let line = text_line(fields(name));
            assert!(line.contains("neighbour=\""), "{line:?}");
            assert!(line.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
            let json = json_line(fields(name));
            assert!(!json.chars().any(char::is_control), "{json:?}");
            let back: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(back["neighbour"], *name);
        }
    }
}
