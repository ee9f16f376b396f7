//! Reads and writes the text form of messages (`.txtpb` files), and writes their JSON.

use crate::POOL;
use crate::google::rpc;
use crate::p4::config::v1 as config;
use crate::p4::v1;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor};

/// A message that has a text form.
pub trait Text: Message + Default {
    /// Its full name in the `.proto` files.
    const NAME: &'static str;
}

macro_rules! text_messages {
    ($($message:ty = $name:literal),* $(,)?) => {
        $(impl Text for $message {
            const NAME: &'static str = $name;
        })*
        #[cfg(test)]
        const NAMES: &[&str] = &[$($name),*];
    };
}

text_messages! {
    config::P4Info = "p4.config.v1.P4Info",
    v1::WriteRequest = "p4.v1.WriteRequest",
    v1::ReadRequest = "p4.v1.ReadRequest",
    v1::ReadResponse = "p4.v1.ReadResponse",
    v1::Entity = "p4.v1.Entity",
    v1::TableEntry = "p4.v1.TableEntry",
    v1::StreamMessageRequest = "p4.v1.StreamMessageRequest",
    v1::StreamMessageResponse = "p4.v1.StreamMessageResponse",
    v1::Error = "p4.v1.Error",
    v1::ForwardingPipelineConfig = "p4.v1.ForwardingPipelineConfig",
    rpc::Status = "google.rpc.Status",
}

/// A text that does not parse as the expected message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a {message}: {reason}")]
pub struct TextError {
    /// Full name of the expected message.
    pub message: &'static str,
    /// The error and its position in the text.
    pub reason: String,
}

fn descriptor<M: Text>() -> MessageDescriptor {
    POOL.get_message_by_name(M::NAME).expect("the tests look up every name")
}

/// The text form: one field per line, nested messages indented by two blanks.
#[must_use]
pub fn to_text<M: Text>(message: &M) -> String {
    let dynamic = DynamicMessage::decode(descriptor::<M>(), message.encode_to_vec().as_slice());
    let dynamic = dynamic.expect("a message and its descriptor come from one file");
    let mut text = String::new();
    write::message(&mut text, &dynamic, 0);
    text
}

/// Protobuf's JSON form, indented.
#[must_use]
pub fn to_json<M: Text>(message: &M) -> String {
    let dynamic = DynamicMessage::decode(descriptor::<M>(), message.encode_to_vec().as_slice());
    let dynamic = dynamic.expect("a message and its descriptor come from one file");
    format!("{:#}\n", json::message(&dynamic))
}

/// Reads the text form.
///
/// # Errors
///
/// The text does not parse, or names an unknown field.
pub fn from_text<M: Text>(text: &str) -> Result<M, TextError> {
    let error = |reason: String| TextError {
        message: M::NAME,
        reason,
    };
    let dynamic = DynamicMessage::parse_text_format(descriptor::<M>(), text).map_err(|e| error(e.to_string()))?;
    M::decode(dynamic.encode_to_vec().as_slice()).map_err(|e| error(e.to_string()))
}

/// The JSON of messages whose type is known only at run time: names in camel case, integers of 64
/// bits as strings, bytes in base64, enumerators by name. prost-reflect has it, too, with a library
/// whose operators make those of big integers ambiguous in crates that use both.
mod json {
    use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage, Value};
    use serde_json::Value as Json;

    pub(super) fn message(message: &DynamicMessage) -> Json {
        let mut fields: Vec<_> = message.fields().collect();
        let order = message.descriptor();
        let place = |f: &FieldDescriptor| order.fields().position(|g| g.number() == f.number());
        fields.sort_by_key(|(field, _)| place(field));
        let fields = fields.into_iter();
        Json::Object(
            fields
                .map(|(field, value)| (field.json_name().to_owned(), json(&field, value)))
                .collect(),
        )
    }

    fn json(field: &FieldDescriptor, value: &Value) -> Json {
        match value {
            Value::Bool(value) => (*value).into(),
            Value::I32(value) => (*value).into(),
            Value::U32(value) => (*value).into(),
            Value::I64(value) => value.to_string().into(),
            Value::U64(value) => value.to_string().into(),
            Value::F32(value) => (*value).into(),
            Value::F64(value) => (*value).into(),
            Value::String(value) => value.as_str().into(),
            Value::Bytes(value) => base64(value).into(),
            Value::EnumNumber(number) => {
                let name = match field.kind() {
                    Kind::Enum(kind) => kind.get_value(*number).map(|v| v.name().to_owned()),
                    _ => None,
                };
                name.map_or_else(|| (*number).into(), Json::from)
            }
            Value::Message(value) => message(value),
            Value::List(items) => items.iter().map(|item| json(field, item)).collect(),
            Value::Map(entries) => {
                let mut sorted: Vec<_> = entries.iter().collect();
                sorted.sort_by(|a, b| a.0.cmp(b.0));
                let value_of = match field.kind() {
                    Kind::Message(entry) => entry.map_entry_value_field(),
                    _ => field.clone(),
                };
                let pairs = sorted.into_iter().map(|(key, value)| {
                    let key = match Value::from(key.clone()) {
                        Value::String(text) => text,
                        number => number.to_string(),
                    };
                    (key, json(&value_of, value))
                });
                Json::Object(pairs.collect())
            }
        }
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for part in bytes.chunks(3) {
            let at = |i: usize| part.get(i).map_or(0, |byte| u32::from(*byte));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for digit in 0..4 {
                let index = bits >> (18 - 6 * digit) & 63;
                let is_there = digit <= part.len();
                text.push(if is_there {
                    char::from(DIGITS[index as usize])
                } else {
                    '='
                });
            }
        }
        text
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn bytes_are_written_in_base64() {
            for (bytes, text) in [
                ("", ""),
                ("f", "Zg=="),
                ("fo", "Zm8="),
                ("foo", "Zm9v"),
                ("foob", "Zm9vYg=="),
            ] {
                assert_eq!(base64(bytes.as_bytes()), text);
            }
        }
    }
}

/// Writes messages whose type is known only at run time. Unlike prost-reflect's printer it repeats
/// the name of a repeated field, as the reference tools do.
mod write {
    use prost_reflect::{DynamicMessage, FieldDescriptor, MapKey, ReflectMessage, Value};
    use std::fmt::Write;

    pub(super) fn message(out: &mut String, message: &DynamicMessage, depth: usize) {
        let mut fields: Vec<_> = message.fields().collect();
        let order = message.descriptor();
        let place = |f: &FieldDescriptor| order.fields().position(|g| g.number() == f.number());
        fields.sort_by_key(|(field, _)| place(field));
        for (descriptor, value) in fields {
            match value {
                Value::List(items) => {
                    for item in items {
                        field(out, descriptor.name(), &descriptor, item, depth);
                    }
                }
                Value::Map(entries) => map(out, &descriptor, entries, depth),
                single => field(out, descriptor.name(), &descriptor, single, depth),
            }
        }
    }

    fn map(
        out: &mut String,
        descriptor: &FieldDescriptor,
        entries: &std::collections::HashMap<MapKey, Value>,
        depth: usize,
    ) {
        let mut sorted: Vec<_> = entries.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        let prost_reflect::Kind::Message(entry) = descriptor.kind() else {
            return;
        };
        for (key, value) in sorted {
            indent(out, depth);
            let _ = writeln!(out, "{} {{", descriptor.name());
            field(out, "key", &entry.map_entry_key_field(), &key.clone().into(), depth + 1);
            field(out, "value", &entry.map_entry_value_field(), value, depth + 1);
            indent(out, depth);
            out.push_str("}\n");
        }
    }

    fn field(out: &mut String, name: &str, descriptor: &FieldDescriptor, value: &Value, depth: usize) {
        indent(out, depth);
        out.push_str(name);
        if let Value::Message(inner) = value {
            out.push_str(" {\n");
            message(out, inner, depth + 1);
            indent(out, depth);
            out.push_str("}\n");
            return;
        }
        out.push_str(": ");
        scalar(out, descriptor, value);
        out.push('\n');
    }

    fn scalar(out: &mut String, descriptor: &FieldDescriptor, value: &Value) {
        let _ = match value {
            Value::Bool(v) => write!(out, "{v}"),
            Value::I32(v) => write!(out, "{v}"),
            Value::I64(v) => write!(out, "{v}"),
            Value::U32(v) => write!(out, "{v}"),
            Value::U64(v) => write!(out, "{v}"),
            Value::F32(v) => write!(out, "{v}"),
            Value::F64(v) => write!(out, "{v}"),
            Value::String(v) => {
                quoted(out, v.as_bytes());
                Ok(())
            }
            Value::Bytes(v) => {
                quoted(out, v);
                Ok(())
            }
            Value::EnumNumber(number) => {
                let known = match descriptor.kind() {
                    prost_reflect::Kind::Enum(kind) => kind.get_value(*number),
                    _ => None,
                };
                match known {
                    Some(known) => write!(out, "{}", known.name()),
                    None => write!(out, "{number}"),
                }
            }
            Value::Message(_) | Value::List(_) | Value::Map(_) => Ok(()),
        };
    }

    fn indent(out: &mut String, depth: usize) {
        out.extend(std::iter::repeat_n("  ", depth));
    }

    /// Octal escapes, as in the reference tools: they end after three digits, unlike hexadecimal
    /// ones.
    fn quoted(out: &mut String, bytes: &[u8]) {
        out.push('"');
        for &byte in bytes {
            match byte {
                b'\n' => out.push_str("\\n"),
                b'\r' => out.push_str("\\r"),
                b'\t' => out.push_str("\\t"),
                b'"' => out.push_str("\\\""),
                b'\\' => out.push_str("\\\\"),
                b' '..=b'~' => out.push(char::from(byte)),
                _ => {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
        out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_with_a_text_form_has_a_descriptor() {
        for name in NAMES {
            assert!(POOL.get_message_by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn bytes_enums_lists_and_maps_survive_the_text_form() {
        let table = config::Table {
            preamble: Some(config::Preamble {
                id: 1,
                annotations: vec!["@a(\"ü\\\")".into(), "@b".into()],
                ..Default::default()
            }),
            match_fields: vec![config::MatchField {
                r#match: Some(config::match_field::Match::MatchType(
                    config::match_field::MatchType::Lpm.into(),
                )),
                ..Default::default()
            }],
            initial_default_action: Some(config::TableActionCall {
                action_id: 3,
                arguments: vec![config::table_action_call::Argument {
                    param_id: 1,
                    value: vec![0, 0o377, b'7', b'"', b'\n'],
                }],
            }),
            ..Default::default()
        };
        let types = config::P4TypeInfo {
            new_types: [("b".into(), Default::default()), ("a".into(), Default::default())].into(),
            ..Default::default()
        };
        let info = config::P4Info {
            tables: vec![table],
            type_info: Some(types),
            ..Default::default()
        };
        let text = to_text(&info);
        assert!(text.contains("match_type: LPM"), "{text}");
        assert!(text.contains(r#"value: "\000\3777\"\n""#), "{text}");
        assert!(text.contains(r#"annotations: "@a(\"\303\274\\\")""#), "{text}");
        assert_eq!(from_text::<config::P4Info>(&text), Ok(info));
    }

    #[test]
    fn a_wrong_text_says_where() {
        let error = from_text::<config::P4Info>("tables { sizes: 3 }").unwrap_err();
        assert!(error.to_string().starts_with("not a p4.config.v1.P4Info: "), "{error}");
        assert!(error.reason.contains("sizes"), "{error}");
    }
}
