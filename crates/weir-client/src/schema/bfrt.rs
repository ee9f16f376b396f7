//! Builds a schema from `bfrt.json` documents.

use super::{Action, Digest, Field, Key, Kind, MatchKind, Protocol, Schema, Scope, Table, Type};
use weir_proto::bfrt_info as info;

/// A description that this library cannot use.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not a `bfrt.json`.
    #[error("the target's description of its tables is no bfrt.json: {0}")]
    Json(#[from] serde_json::Error),
}

/// The key that is the priority of an entry.
const PRIORITY: &str = "$MATCH_PRIORITY";

impl Schema {
    /// The schema of a program from its `bfrt.json`, and that of the fixed tables of the device.
    #[must_use]
    pub fn from_bfrt(program: &str, documents: &[info::BfrtInfo]) -> Schema {
        let tables = documents.iter().flat_map(|d| &d.tables).map(table).collect();
        let digests = documents.iter().flat_map(|d| &d.learn_filters).map(|filter| Digest {
            id: filter.id,
            name: filter.name.clone(),
            ty: Type::Record(filter.fields.iter().map(|f| field(f, false, false)).collect()),
        });
        let digests = digests.collect();
        Schema::new(Protocol::BfRuntime, program.to_owned(), tables, digests)
    }

    /// The same, from JSON texts.
    ///
    /// # Errors
    /// A text is not a `bfrt.json`.
    pub fn from_bfrt_json(program: &str, documents: &[&[u8]]) -> Result<Schema, SchemaError> {
        let parsed: Result<Vec<info::BfrtInfo>, _> = documents.iter().map(|d| serde_json::from_slice(d)).collect();
        Ok(Schema::from_bfrt(program, &parsed?))
    }
}

fn table(source: &info::Table) -> Table {
    let kind = match source.table_type.as_str() {
        "MatchAction_Direct" => Kind::Match,
        "MatchAction_Indirect" | "MatchAction_Indirect_Selector" => Kind::MatchIndirect,
        "Action" => Kind::Members,
        "Selector" => Kind::Groups,
        "Counter" => Kind::Counter,
        "Meter" => Kind::Meter,
        "Register" => Kind::Register,
        weir_proto::custom_crc::TABLE_TYPE => Kind::CustomCrc,
        weir_proto::extern_keys::TABLE_TYPE => Kind::ExternKeys,
        other => Kind::Other(other.to_owned()),
    };
    let (priority, keys): (Vec<_>, Vec<_>) = source.key.iter().partition(|k| k.name == PRIORITY);
    let actions = source.action_specs.iter().flatten().map(|action| Action {
        id: action.id,
        name: action.name.clone(),
        scope: match action.action_scope.as_str() {
            "TableOnly" => Scope::Entries,
            "DefaultOnly" => Scope::Default,
            _ => Scope::Both,
        },
        params: action.data.iter().map(parameter).collect(),
    });
    super::extern_keys::with_bytes(Table {
        protocol: Protocol::BfRuntime,
        id: source.id,
        name: source.name.clone(),
        kind,
        size: source.size,
        keys: keys.into_iter().map(key).collect(),
        priority: priority.first().map(|k| k.id),
        actions: actions.collect(),
        data: source.data.iter().flat_map(data).collect(),
        elements: Vec::new(),
        is_const: source.read_only == Some(true) || source.attributes.iter().any(|a| a == "ConstTable"),
        has_const_default: source.has_const_default_action == Some(true),
        const_default_action: None,
        operations: source.supported_operations.clone(),
        attributes: source.attributes.clone(),
    })
}

fn key(key: &info::KeyField) -> Key {
    Key {
        id: key.id,
        name: key.name.clone(),
        kind: match key.match_type.as_str() {
            "LPM" => MatchKind::Lpm,
            "Ternary" | "ATCAM" => MatchKind::Ternary,
            "Range" => MatchKind::Range,
            "Optional" => MatchKind::Optional,
            _ => MatchKind::Exact,
        },
        ty: value_type(&key.ty),
    }
}

fn value_type(ty: &info::FieldType) -> Type {
    match ty.kind.as_str() {
        "bytes" => Type::Bits(ty.width.unwrap_or(0)),
        "bool" => Type::Bool,
        "float" => Type::Float,
        "string" => Type::Text(ty.choices.clone().unwrap_or_default()),
        other => {
            let width = other.strip_prefix("uint").or_else(|| other.strip_prefix("int"));
            let width = width.and_then(|w| w.parse().ok());
            width.map_or_else(|| Type::Unknown(other.to_owned()), Type::Bits)
        }
    }
}

fn parameter(data: &info::ActionData) -> Field {
    Field {
        id: data.id,
        name: data.name.clone(),
        ty: value_type(&data.ty),
        is_list: data.repeated,
        is_read_only: data.read_only,
        is_mandatory: data.mandatory,
    }
}

fn data(data: &info::TableData) -> Vec<Field> {
    match &data.field {
        info::DataChoice::One(one) => vec![field(one, data.read_only, data.mandatory)],
        info::DataChoice::OneOf(several) => several.iter().map(|f| field(f, data.read_only, false)).collect(),
    }
}

fn field(source: &info::DataField, is_read_only: bool, is_mandatory: bool) -> Field {
    let ty = match &source.shape {
        info::DataShape::Value(ty) => value_type(ty),
        info::DataShape::Container(parts) => Type::Record(parts.iter().flat_map(data).collect()),
    };
    Field {
        id: source.id,
        name: source.name.clone(),
        // Containers are always lists.
        is_list: source.repeated || matches!(ty, Type::Record(_)),
        ty,
        is_read_only,
        is_mandatory,
    }
}
