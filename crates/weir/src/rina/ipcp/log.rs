//! Structured logs: `key=value`, or JSON.

use crate::output::Messages;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_ipcp::Event;

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
            Value::Object(fields).to_string()
        } else {
            let field = |(key, value): (String, Value)| match value {
                Value::String(text) if !text.contains([' ', '"', '=']) => format!("{key}={text}"),
                value => format!("{key}={value}"),
            };
            fields.into_iter().map(field).collect::<Vec<_>>().join(" ")
        };
        self.messages.line(line);
    }
}
