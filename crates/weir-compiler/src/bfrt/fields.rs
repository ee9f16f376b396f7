//! Fields whose numbers are the same in every program.

use weir_proto::bfrt_info::{Annotation, DataChoice, DataField, DataShape, FieldType, KeyField, TableData};

const MATCH_PRIORITY: u32 = 65537;
const ACTION_MEMBER_ID: u32 = 65539;
const SELECTOR_GROUP_ID: u32 = 65540;
const ENTRY_TTL: u32 = 65543;
const ENTRY_HIT_STATE: u32 = 65544;
const METER_KBPS: u32 = 65545;
const METER_PPS: u32 = 65549;
const COUNTER_BYTES: u32 = 65553;
const COUNTER_PACKETS: u32 = 65554;
const METER_INDEX: u32 = 65555;
const COUNTER_INDEX: u32 = 65556;
const REGISTER_INDEX: u32 = 65557;
const FILTER_INDEX: u32 = 65560;
const EARLY_DROP_INDEX: u32 = 65561;
const GET_MEMBER_ID: u32 = 65562;
const GET_MEMBER_GROUP: u32 = 65563;
const MEMBER_STATUS: u32 = 65564;
const MAX_GROUP_SIZE: u32 = 65565;
const FILTER_SPEC: u32 = 65566;
const EARLY_DROP_SPEC: u32 = 65570;
const PORT_METADATA_PORT: u32 = 65574;
const PORT_METADATA_DEFAULT: u32 = 65575;
const HASH_VALUE: u32 = 65581;

/// A field with a value.
pub(super) fn value(id: u32, name: &str, ty: FieldType) -> DataField {
    DataField {
        id,
        name: name.to_owned(),
        repeated: false,
        annotations: Vec::new(),
        shape: DataShape::Value(ty),
    }
}

/// A field of table data by itself.
pub(super) fn one(mandatory: bool, field: DataField) -> TableData {
    TableData {
        mandatory,
        read_only: false,
        field: DataChoice::One(field),
    }
}

fn number(bits: u32) -> FieldType {
    FieldType::named(if bits == 32 { "uint32" } else { "uint64" })
}

/// A key that is compared as a whole.
pub(super) fn key(id: u32, name: &str, ty: FieldType, mandatory: bool) -> KeyField {
    KeyField {
        id,
        name: name.to_owned(),
        repeated: false,
        annotations: Vec::new(),
        mandatory,
        match_type: "Exact".to_owned(),
        ty,
    }
}

/// Which entry wins.
pub(super) fn priority() -> KeyField {
    key(MATCH_PRIORITY, "$MATCH_PRIORITY", number(32), false)
}

/// Which member of an action profile.
pub(super) fn member(mandatory: bool) -> TableData {
    one(mandatory, value(ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number(32)))
}

/// Which member, or which group.
pub(super) fn member_or_group() -> TableData {
    TableData {
        mandatory: true,
        read_only: false,
        field: DataChoice::OneOf(vec![
            value(ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number(32)),
            value(SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", number(32)),
        ]),
    }
}

/// The key of an action profile.
pub(super) fn member_key() -> KeyField {
    key(ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number(32), true)
}

/// The key of a selector.
pub(super) fn group_key() -> KeyField {
    key(SELECTOR_GROUP_ID, "$SELECTOR_GROUP_ID", number(32), true)
}

/// The data of a selector.
pub(super) fn group_data(largest: u64) -> Vec<TableData> {
    let list = |id, name, ty| {
        let field = DataField {
            repeated: true,
            ..value(id, name, ty)
        };
        one(false, field)
    };
    vec![
        list(ACTION_MEMBER_ID, "$ACTION_MEMBER_ID", number(32)),
        list(MEMBER_STATUS, "$ACTION_MEMBER_STATUS", FieldType::named("bool")),
        one(false, value(MAX_GROUP_SIZE, "$MAX_GROUP_SIZE", number(32).or(largest))),
    ]
}

/// The keys of the table that tells which member is chosen.
pub(super) fn get_member_keys() -> Vec<KeyField> {
    vec![
        key(GET_MEMBER_GROUP, "$SELECTOR_GROUP_ID", number(64), true),
        key(HASH_VALUE, "hash_value", number(64), true),
    ]
}

/// Its data.
pub(super) fn get_member_data() -> TableData {
    one(false, value(GET_MEMBER_ID, "$ACTION_MEMBER_ID", number(64)))
}

/// State and time to live of an entry.
pub(super) fn idle_time() -> [TableData; 2] {
    let states = FieldType::choice(&["ENTRY_IDLE", "ENTRY_ACTIVE"]);
    [
        one(false, value(ENTRY_HIT_STATE, "$ENTRY_HIT_STATE", states)),
        one(false, value(ENTRY_TTL, "$ENTRY_TTL", number(32).or(0))),
    ]
}

/// What a counter counts.
pub(super) fn counter_data((bytes, packets): (bool, bool)) -> Vec<TableData> {
    let fields = [
        (bytes, COUNTER_BYTES, "$COUNTER_SPEC_BYTES"),
        (packets, COUNTER_PACKETS, "$COUNTER_SPEC_PKTS"),
    ];
    let there = fields.into_iter().filter(|(is_there, ..)| *is_there);
    there
        .map(|(_, id, name)| one(false, value(id, name, number(64).or(0))))
        .collect()
}

/// The rates and bursts of a meter: without any, everything is green.
pub(super) fn meter_data(bytes: bool) -> Vec<TableData> {
    let (first, rates, bursts) = if bytes {
        (METER_KBPS, "KBPS", "KBITS")
    } else {
        (METER_PPS, "PPS", "PKTS")
    };
    let names = [("CIR", rates), ("PIR", rates), ("CBS", bursts), ("PBS", bursts)];
    let fields = (first..).zip(names).map(|(id, (what, unit))| {
        let name = format!("$METER_SPEC_{what}_{unit}");
        one(false, value(id, &name, number(64).or(u64::MAX)))
    });
    fields.collect()
}

/// The parameters of a low-pass filter.
pub(super) fn filter_data() -> Vec<TableData> {
    let float = || FieldType::named("float");
    let fields = [
        ("$LPF_SPEC_TYPE", FieldType::choice(&["RATE", "SAMPLE"])),
        ("$LPF_SPEC_GAIN_TIME_CONSTANT_NS", float()),
        ("$LPF_SPEC_DECAY_TIME_CONSTANT_NS", float()),
        ("$LPF_SPEC_OUT_SCALE_DOWN_FACTOR", number(32)),
    ];
    let numbered = (FILTER_SPEC..).zip(fields);
    numbered
        .map(|(id, (name, ty))| one(true, value(id, name, ty)))
        .collect()
}

/// The parameters of a filter for random early drops.
pub(super) fn early_drop_data() -> Vec<TableData> {
    let float = || FieldType::named("float");
    let fields = [
        ("$WRED_SPEC_TIME_CONSTANT_NS", float()),
        ("$WRED_SPEC_MIN_THRESH_CELLS", number(32)),
        ("$WRED_SPEC_MAX_THRESH_CELLS", number(32)),
        ("$WRED_SPEC_MAX_PROBABILITY", float()),
    ];
    let numbered = (EARLY_DROP_SPEC..).zip(fields);
    numbered
        .map(|(id, (name, ty))| one(true, value(id, name, ty)))
        .collect()
}

/// The key of an array of counters, meters, …
#[derive(Clone, Copy)]
pub(super) enum Index {
    Counter,
    Meter,
    Register,
    Filter,
    EarlyDrop,
}

pub(super) fn index_key(index: Index) -> KeyField {
    let (id, name) = match index {
        Index::Counter => (COUNTER_INDEX, "$COUNTER_INDEX"),
        Index::Meter => (METER_INDEX, "$METER_INDEX"),
        Index::Register => (REGISTER_INDEX, "$REGISTER_INDEX"),
        Index::Filter => (FILTER_INDEX, "$LPF_INDEX"),
        Index::EarlyDrop => (EARLY_DROP_INDEX, "$WRED_INDEX"),
    };
    key(id, name, number(32), true)
}

/// A register's field, marked as what packets may change.
pub(super) fn register_field(mut field: DataField) -> TableData {
    field.annotations.push(Annotation {
        name: "$bfrt_field_class".to_owned(),
        value: Some("register_data".to_owned()),
    });
    one(true, field)
}

/// The port of port metadata.
pub(super) fn port_key(metadata: &str, width: u32) -> KeyField {
    let name = format!("{metadata}.ingress_port");
    key(PORT_METADATA_PORT, &name, FieldType::bytes(width), true)
}

/// Port metadata of no type.
pub(super) fn port_default(width: u32) -> TableData {
    let field = value(PORT_METADATA_DEFAULT, "$DEFAULT_FIELD", FieldType::bytes(width));
    one(false, field)
}
