//! The JSON file that stands where bmv2's compiler output stands, and `p4.tmp.P4DeviceConfig`.
//!
//! `weir bmv2 p4c-bm2-ss` writes a JSON object that carries a saved program ([`encode`]).
//! `simple_switch` and SetForwardingPipelineConfig read it back ([`decode`]), alone or within the
//! message that controllers of bmv2 put around it ([`device_data`]). The JSON that p4c writes
//! describes bmv2's own objects; it is recognised and refused.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use weir_ir::Program;

/// The version of the format.
const FORMAT: u32 = 1;

/// The bmv2 JSON version that is announced to those who look for one.
pub const JSON_VERSION: [u32; 2] = [2, 23];

/// The file.
#[derive(Serialize, Deserialize)]
struct File<'a> {
    /// The source file, as p4c has it.
    #[serde(borrow, default)]
    program: Cow<'a, str>,
    #[serde(rename = "__meta__", borrow, default)]
    meta: Option<Meta<'a>>,
    #[serde(borrow, default)]
    weir: Option<Saved<'a>>,
    /// As bmv2 lists them, for clients that set parameters of custom CRCs.
    #[serde(skip_deserializing)]
    calculations: Vec<Calculation<'a>>,
    /// Something that only p4c writes.
    #[serde(default, skip_serializing)]
    pipelines: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize)]
struct Calculation<'a> {
    name: String,
    id: u32,
    algo: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Meta<'a> {
    #[serde(default)]
    version: Vec<u32>,
    #[serde(borrow, default)]
    compiler: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    format: u32,
    #[serde(borrow)]
    saved: Cow<'a, str>,
}

/// A file that holds no program for weir.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// It was written by p4c.
    #[error(
        "it is the JSON of p4c{}, which describes objects of bmv2 and no program; compile the P4 source with weir: \
         `weir bmv2 p4c-bm2-ss -o FILE.json PROG.p4`, or with `weir bmv2 install DIR` first on the path", .0.as_deref().map(|c| format!(" ({c})")).unwrap_or_default()
    )]
    OfP4c(Option<String>),
    /// It is JSON of something else.
    #[error("it is JSON without a program; expected is what `weir bmv2 p4c-bm2-ss -o FILE.json PROG.p4` writes")]
    NoProgram,
    /// It was written by a version of weir with another format.
    #[error("it has format {found}, this version of weir reads {FORMAT}: compile the program again")]
    Format {
        /// The format.
        found: u32,
    },
    /// The saved program is damaged or of another version.
    #[error("its program is none of this version of weir: {0}")]
    Program(String),
}

/// The JSON file of a program. `source` is the name of its source file.
#[must_use]
pub fn encode(program: &Program, source: &str) -> String {
    let calculations = weir_arch::calculations(program).into_iter().map(|c| Calculation {
        name: weir_arch::calculation_name(c.number),
        id: c.number,
        algo: c.algorithm.unwrap_or("unknown"),
    });
    let file = File {
        program: source.into(),
        meta: Some(Meta {
            version: JSON_VERSION.to_vec(),
            compiler: concat!("weir ", env!("CARGO_PKG_VERSION")).into(),
        }),
        weir: Some(Saved {
            format: FORMAT,
            saved: weir_ir::print::print(program).into(),
        }),
        calculations: calculations.collect(),
        pipelines: None,
    };
    // Strings and numbers have a JSON form, so there is no failure to report.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

/// Whether text is JSON rather than P4 source or a saved program.
#[must_use]
pub fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The program in a JSON file.
///
/// # Errors
/// There is none that weir can read.
pub fn decode(text: &str) -> Result<Program, ContainerError> {
    let file: File<'_> = serde_json::from_str(text).map_err(|e| ContainerError::NotJson(e.to_string()))?;
    let Some(saved) = file.weir else {
        return Err(match file.pipelines {
            Some(_) => {
                let compiler = file.meta.map(|m| m.compiler.into_owned());
                ContainerError::OfP4c(compiler.filter(|c| !c.is_empty()))
            }
            None => ContainerError::NoProgram,
        });
    };
    if saved.format != FORMAT {
        return Err(ContainerError::Format { found: saved.format });
    }
    let program = weir_ir::parse::parse(&saved.saved).map_err(|e| ContainerError::Program(e.to_string()))?;
    match weir_arch::nonconformities(&program).first() {
        Some(error) => Err(ContainerError::Program(error.to_string())),
        None => Ok(program),
    }
}

/// `p4.tmp.P4DeviceConfig`, as far as it matters here.
#[derive(Clone, PartialEq, prost::Message)]
struct P4DeviceConfig {
    #[prost(bool, tag = "1")]
    reassign: bool,
    #[prost(bytes = "vec", tag = "3")]
    device_data: Vec<u8>,
}

/// The first bytes of a `P4DeviceConfig`: the keys of its fields. No text begins with these control
/// characters.
const FIELD_KEYS: [u8; 3] = [0x08, 0x12, 0x1a];

/// The content of a device config: the data in a `P4DeviceConfig`, or the bytes themselves.
#[must_use]
pub fn device_data(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_message = bytes.first().is_some_and(|first| FIELD_KEYS.contains(first));
    if is_message && let Ok(config) = <P4DeviceConfig as prost::Message>::decode(bytes) {
        return Cow::Owned(config.device_data);
    }
    Cow::Borrowed(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    fn reflector() -> Program {
        weir_switch::testing::reflector()
    }

    #[test]
    fn a_program_is_read_back_from_its_json() {
        let program = reflector();
        let text = encode(&program, "reflector.p4");
        assert!(is_json(&text));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["program"], "reflector.p4");
        let read = decode(&text).unwrap();
        assert_eq!(weir_ir::print::print(&read), weir_ir::print::print(&program));
    }

    #[test]
    fn json_of_p4c_and_of_anything_else_is_refused_by_name() {
        let p4c = r#"{"program": "a.p4", "__meta__": {"version": [2, 23], "compiler": "p4c"}, "pipelines": [{}]}"#;
        assert_eq!(decode(p4c).unwrap_err(), ContainerError::OfP4c(Some("p4c".to_owned())));
        let old = r#"{"header_types": [], "pipelines": []}"#;
        let refused = decode(old).unwrap_err();
        assert_eq!(refused, ContainerError::OfP4c(None));
        assert!(refused.to_string().contains("weir bmv2 p4c-bm2-ss"), "{refused}");
        assert_eq!(decode("{}").unwrap_err(), ContainerError::NoProgram);
        assert!(matches!(decode("{").unwrap_err(), ContainerError::NotJson(_)));
        let later = r#"{"weir": {"format": 7, "saved": ""}}"#;
        assert_eq!(decode(later).unwrap_err(), ContainerError::Format { found: 7 });
        let damaged = r#"{"weir": {"format": 1, "saved": "x"}}"#;
        assert!(matches!(decode(damaged).unwrap_err(), ContainerError::Program(_)));
    }

    #[test]
    fn a_device_config_is_unwrapped_and_text_stays() {
        let config = P4DeviceConfig {
            reassign: true,
            device_data: b"{}".to_vec(),
        };
        assert_eq!(&*device_data(&config.encode_to_vec()), b"{}");
        for text in [&b"{\"a\": 1}"[..], b"#include <core.p4>", b"weir 2", b"\n// x", b""] {
            assert_eq!(&*device_data(text), text);
        }
        // Not a message: left as it is.
        assert_eq!(&*device_data(b"\x1a\xff"), b"\x1a\xff");
    }
}
