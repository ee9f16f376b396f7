//! Short ways to say what a table and its fields are.

use weir_proto::bfrt_info::{
    ActionData, ActionSpec, Annotation, DataChoice, DataField, DataShape, FieldType, KeyField, SupportedApi, Table,
    TableData,
};

/// What clients of the reference translate by: which of the names of a port a field holds.
const PORT_CLASS: &str = "$bfrt_port_type_class";
/// How prominently shells show a field.
const LEVEL: &str = "$bfrt_field_imp_level";

fn annotation(name: &str, value: &str) -> Annotation {
    Annotation {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    }
}

/// A type known by its name.
pub(super) fn ty(kind: &str) -> FieldType {
    FieldType::named(kind)
}

/// A table without keys and data.
pub(super) fn table(id: u32, name: &str, table_type: &str, size: u64) -> Table {
    Table {
        name: name.to_owned(),
        id,
        table_type: table_type.to_owned(),
        size,
        annotations: Vec::new(),
        depends_on: Vec::new(),
        has_const_default_action: None,
        key: Vec::new(),
        action_specs: None,
        data: Vec::new(),
        supported_operations: Vec::new(),
        attributes: Vec::new(),
        supported_apis: None,
        read_only: None,
    }
}

/// What clients may do with a table: each call with what the target of the call may say.
pub(super) fn apis(calls: &[(&str, &[&str])]) -> Option<std::collections::BTreeMap<String, SupportedApi>> {
    let api = |targets: &[&str]| SupportedApi {
        target_attributes: targets.iter().map(|t| (*t).to_owned()).collect(),
        description: None,
    };
    Some(
        calls
            .iter()
            .map(|(name, targets)| ((*name).to_owned(), api(targets)))
            .collect(),
    )
}

/// An exact key.
pub(super) fn key(id: u32, name: &str, ty: FieldType) -> KeyField {
    KeyField {
        id,
        name: name.to_owned(),
        repeated: false,
        annotations: Vec::new(),
        mandatory: true,
        match_type: "Exact".to_owned(),
        ty,
    }
}

/// A key that tells ports apart.
pub(super) fn port_key(id: u32, name: &str, class: &str, ty: FieldType) -> KeyField {
    KeyField {
        annotations: vec![annotation(PORT_CLASS, class)],
        ..key(id, name, ty)
    }
}

/// The key of tables that have an entry per port.
pub(super) fn dev_port_key(name: &str) -> KeyField {
    port_key(1, name, "dev_port", ty("uint32"))
}

/// A field of data; where it belongs is said by the methods.
pub(super) struct Field {
    field: DataField,
    mandatory: bool,
    read_only: bool,
}

/// A field that clients may leave out, with one value.
pub(super) fn field(id: u32, name: &str, ty: FieldType) -> Field {
    Field {
        field: DataField {
            id,
            name: name.to_owned(),
            repeated: false,
            annotations: Vec::new(),
            shape: DataShape::Value(ty),
        },
        mandatory: false,
        read_only: false,
    }
}

/// A field that is a list of entries with fields of their own.
pub(super) fn container(id: u32, name: &str, fields: impl IntoIterator<Item = Field>) -> Field {
    let mut made = field(id, name, FieldType::default()).list();
    made.field.shape = DataShape::Container(data(fields));
    made
}

impl Field {
    /// It is a list.
    pub(super) fn list(mut self) -> Self {
        self.field.repeated = true;
        self
    }

    /// It has to be given.
    pub(super) fn mandatory(mut self) -> Self {
        self.mandatory = true;
        self
    }

    /// It cannot be given.
    pub(super) fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// It holds a name of a port, of this class.
    pub(super) fn port(mut self, class: &str) -> Self {
        self.field.annotations.push(annotation(PORT_CLASS, class));
        self
    }

    /// Shells show it at once.
    pub(super) fn shown(mut self) -> Self {
        self.field.annotations.push(annotation(LEVEL, "2"));
        self
    }

    /// It can be set to nothing but zero.
    pub(super) fn clear_only(mut self) -> Self {
        self.field.annotations.push(annotation("clear_only", "true"));
        self
    }
}

/// Fields as data of a table.
pub(super) fn data(fields: impl IntoIterator<Item = Field>) -> Vec<TableData> {
    let fields = fields.into_iter();
    fields
        .map(|f| TableData {
            mandatory: f.mandatory,
            read_only: f.read_only,
            field: DataChoice::One(f.field),
        })
        .collect()
}

/// An action with the fields that only it has: values without annotations.
pub(super) fn action(id: u32, name: &str, fields: &[(u32, &str, FieldType)]) -> ActionSpec {
    let fields = fields.iter();
    ActionSpec {
        id,
        name: name.to_owned(),
        action_scope: "TableAndDefault".to_owned(),
        annotations: Vec::new(),
        data: fields
            .map(|(id, name, ty)| ActionData {
                id: *id,
                name: (*name).to_owned(),
                repeated: false,
                mandatory: false,
                read_only: false,
                annotations: Vec::new(),
                ty: ty.clone(),
            })
            .collect(),
    }
}
