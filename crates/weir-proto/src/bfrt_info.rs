//! The description of tables of a BF Runtime device: the document known as `bfrt.json`.
//!
//! Writers make these values and call [`BfrtInfo::to_json`]; readers call [`BfrtInfo::from_json`].
//! Unknown fields are ignored, as other compilers add their own.
//!
//! Source: the schema, version 1.0.0, of p4lang/open-p4studio.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema version that is written.
pub const SCHEMA_VERSION: &str = "1.0.0";

/// A whole document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BfrtInfo {
    /// [`SCHEMA_VERSION`].
    pub schema_version: String,
    /// Tables: of the program, or those that every device has.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Digests.
    #[serde(default)]
    pub learn_filters: Vec<LearnFilter>,
}

impl Default for BfrtInfo {
    fn default() -> Self {
        BfrtInfo {
            schema_version: SCHEMA_VERSION.to_owned(),
            tables: Vec::new(),
            learn_filters: Vec::new(),
        }
    }
}

impl BfrtInfo {
    /// The JSON document, indented.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Serialising fails only for maps with keys other than strings and for failing writers;
        // there are none here.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Parses a document.
    ///
    /// # Errors
    ///
    /// It is not JSON, or deviates from the schema; the error states the position.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The table with this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

/// A table: of entries, counters or anything else with keys and data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Name, with the pipe: `pipe.SwitchIngress.forward`.
    pub name: String,
    /// Id, unique among all tables.
    pub id: u32,
    /// Its type, e.g. `MatchAction_Direct`.
    pub table_type: String,
    /// The most entries that it holds.
    pub size: u64,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Ids of tables that must have an entry before this one can refer to it.
    #[serde(default)]
    pub depends_on: Vec<u32>,
    /// The default action is const. Only match-action tables have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_const_default_action: Option<bool>,
    /// Keys.
    #[serde(default)]
    pub key: Vec<KeyField>,
    /// Actions. Only tables whose entries have one have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_specs: Option<Vec<ActionSpec>>,
    /// Data of entries, independent of their action.
    #[serde(default)]
    pub data: Vec<TableData>,
    /// Operations on the whole table.
    #[serde(default)]
    pub supported_operations: Vec<String>,
    /// Attributes of the whole table.
    #[serde(default)]
    pub attributes: Vec<String>,
    /// Calls that clients may make, by name, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported_apis: Option<BTreeMap<String, SupportedApi>>,
    /// Entries are read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// The parameters of a call that clients may make for a table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SupportedApi {
    /// Fields of the target that the call accepts, e.g. `dev_id` and `pipe_id`.
    #[serde(default)]
    pub target_attributes: Vec<String>,
    /// A description for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An annotation: `{"name": "@defaultonly"}`, or with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// Name, with the `@` of the source.
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyField {
    /// Id, unique in the table.
    pub id: u32,
    /// Name.
    pub name: String,
    /// It is a list.
    #[serde(default)]
    pub repeated: bool,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Every entry must have it.
    #[serde(default)]
    pub mandatory: bool,
    /// `Exact`, `LPM`, `Ternary`, `Range`, `Optional` or `ATCAM`.
    pub match_type: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: FieldType,
}

/// The type of a field.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FieldType {
    /// `bytes`, `uint32`, `uint64`, `bool`, `float`, `string`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Of `bytes`: the width in bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<serde_json::Value>,
    /// Of `string`: the valid values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
    /// Of an exact key: the bits that are matched, as `0x…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mask: Option<String>,
}

impl FieldType {
    /// A number of `width` bits, big-endian in the fewest bytes that hold them.
    #[must_use]
    pub fn bytes(width: u32) -> Self {
        FieldType {
            kind: "bytes".to_owned(),
            width: Some(width),
            ..FieldType::default()
        }
    }

    /// A type without parameters.
    #[must_use]
    pub fn named(kind: &str) -> Self {
        FieldType {
            kind: kind.to_owned(),
            ..FieldType::default()
        }
    }

    /// One of these strings.
    #[must_use]
    pub fn choice(choices: &[&str]) -> Self {
        FieldType {
            kind: "string".to_owned(),
            choices: Some(choices.iter().map(|c| (*c).to_owned()).collect()),
            ..FieldType::default()
        }
    }

    /// The same with a default.
    #[must_use]
    pub fn or(mut self, default: impl Into<serde_json::Value>) -> Self {
        self.default_value = Some(default.into());
        self
    }
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionSpec {
    /// Id.
    pub id: u32,
    /// Name, without the pipe.
    pub name: String,
    /// `TableAndDefault`, `TableOnly` or `DefaultOnly`.
    #[serde(default = "everywhere")]
    pub action_scope: String,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Its parameters.
    #[serde(default)]
    pub data: Vec<ActionData>,
}

fn everywhere() -> String {
    "TableAndDefault".to_owned()
}

/// A parameter of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionData {
    /// Id, unique in the action.
    pub id: u32,
    /// Name.
    pub name: String,
    /// It is a list.
    #[serde(default)]
    pub repeated: bool,
    /// Every entry must have it.
    #[serde(default)]
    pub mandatory: bool,
    /// It is read-only.
    #[serde(default)]
    pub read_only: bool,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: FieldType,
}

/// Data of an entry outside of its action: one field, or one of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableData {
    /// Every entry must have it.
    #[serde(default)]
    pub mandatory: bool,
    /// It is read-only.
    #[serde(default)]
    pub read_only: bool,
    /// The field.
    #[serde(flatten)]
    pub field: DataChoice,
}

/// The field of [`TableData`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DataChoice {
    /// This one.
    #[serde(rename = "singleton")]
    One(DataField),
    /// One of these.
    #[serde(rename = "oneof")]
    OneOf(Vec<DataField>),
}

/// A field of data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataField {
    /// Id, unique in the table.
    pub id: u32,
    /// Name.
    pub name: String,
    /// It is a list.
    #[serde(default)]
    pub repeated: bool,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Its type, or the fields that each element has.
    #[serde(flatten)]
    pub shape: DataShape,
}

/// The type of a [`DataField`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum DataShape {
    /// A value.
    #[serde(rename = "type")]
    Value(FieldType),
    /// Fields.
    #[serde(rename = "container")]
    Container(Vec<TableData>),
}

/// A digest that the program sends to the control plane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnFilter {
    /// Name, with the pipe.
    pub name: String,
    /// Id.
    pub id: u32,
    /// Annotations of the source.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
    /// Its fields.
    #[serde(default)]
    pub fields: Vec<DataField>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(shape: DataShape) -> DataField {
        DataField {
            id: 7,
            name: "f".to_owned(),
            repeated: false,
            annotations: Vec::new(),
            shape,
        }
    }

    #[test]
    fn every_shape_of_data_is_written_as_the_schema_says_and_read_back() {
        let plain = field(DataShape::Value(FieldType::bytes(9)));
        let parts = vec![TableData {
            mandatory: false,
            read_only: true,
            field: DataChoice::One(field(DataShape::Value(FieldType::choice(&["A", "B"]).or("A")))),
        }];
        let data = [
            DataChoice::One(plain.clone()),
            DataChoice::OneOf(vec![plain.clone(), plain]),
            DataChoice::One(field(DataShape::Container(parts))),
        ];
        let texts = data.map(|field| {
            let data = TableData {
                mandatory: true,
                read_only: false,
                field,
            };
            let text = serde_json::to_string(&data).unwrap();
            assert_eq!(serde_json::from_str::<TableData>(&text).unwrap(), data);
            text
        });
        assert!(
            texts[0].contains(
                r#""singleton":{"id":7,"name":"f","repeated":false,"annotations":[],"type":{"type":"bytes","width":9}}"#
            ),
            "{}",
            texts[0]
        );
        assert!(texts[1].contains(r#""oneof":[{"#));
        assert!(texts[2].contains(r#""container":[{"#));
    }

    #[test]
    fn what_is_left_out_or_unknown_is_no_mistake() {
        let text =
            r#"{"schema_version":"1.0.0","x":1,"tables":[{"name":"t","id":1,"table_type":"Counter","size":2,"y":{}}]}"#;
        let info = BfrtInfo::from_json(text).unwrap();
        assert_eq!(info.table("t").map(|t| t.size), Some(2));
        assert!(BfrtInfo::from_json(r#"{"tables":3}"#).is_err());
    }
}
