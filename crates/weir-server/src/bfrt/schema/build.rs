//! Builds a schema from a program and its `bfrt.json` descriptions.
//!
//! The description has ids, names and types; the program has the objects of the switch. Both are
//! matched by name.

use super::{Action, Field, Key, Kind, Learn, MatchTable, Param, Resources, Role, Schema, Style, Table};
use crate::bfrt::fixed::Fixed;
use crate::bfrt::value::{Type, Value};
use crate::refusal::Refusal;
use weir_ir::target::{ControlSpec, ResourceKind};
use weir_ir::{ConstValue, ExternId, MatchKind, Program, ValueSetId};
use weir_proto::bfrt_info::{self as info, BfrtInfo, DataChoice, DataShape};
use weir_proto::{custom_crc, extern_keys};
use weir_switch::CrcScope;

/// The only key field that is not matched.
const PRIORITY: &str = "$MATCH_PRIORITY";

/// Builds the schema. `described` was made by weir from the same program, `fixed` is the device's.
///
/// # Errors
/// The description has a table or type that this server does not know.
pub(crate) fn schema(program: &Program, described: &BfrtInfo, fixed: &BfrtInfo) -> Result<Schema, Refusal> {
    let control = weir_arch::targets().iter().find(|t| t.name == program.target);
    let builder = Builder {
        program,
        control: control.map(|t| t.control),
    };
    let mut schema = Schema::default();
    for table in &described.tables {
        let made = builder.table(table);
        schema.add(made.map_err(|e| Refusal::unsupported(format!("table `{}` has {e}", table.name)))?);
    }
    for table in &fixed.tables {
        let made = plain(table, Kind::Fixed(Fixed::of(&table.table_type)));
        schema.add(made.map_err(|e| Refusal::unsupported(format!("table `{}` has {e}", table.name)))?);
    }
    schema.learns = described.learn_filters.iter().map(|d| learn(program, d)).collect();
    Ok(schema)
}

/// The name of an object in the program. With several pipelines, names begin with that of the
/// pipeline in the program, too.
fn without_pipe<'n>(program: &Program, name: &'n str) -> &'n str {
    let given = name.strip_prefix("pipe.").filter(|_| program.pipelines.is_empty());
    given.unwrap_or(name)
}

fn learn(program: &Program, described: &info::LearnFilter) -> Learn {
    Learn {
        id: described.id,
        name: described.name.clone(),
        digest: without_pipe(program, &described.name).to_owned(),
        fields: described.fields.iter().map(|f| (f.id, f.name.clone())).collect(),
    }
}

/// The default value of a field in a description.
fn default_of(ty: &Type, described: &info::FieldType) -> Option<Value> {
    let given = described.default_value.as_ref()?;
    match ty {
        Type::Bits(width) if *width <= 64 => {
            let signed = || given.as_i64().map(|n| n as u64);
            given.as_u64().or_else(signed).map(Value::Number)
        }
        Type::Bool => given.as_bool().map(Value::Bool),
        Type::Float => given.as_f64().map(|n| Value::Float(n as f32)),
        Type::Text(_) => given.as_str().map(|t| Value::Text(t.to_owned())),
        _ => None,
    }
}

fn field(described: &info::DataField, mandatory: bool, read_only: bool) -> Result<Field, String> {
    let (ty, default) = match &described.shape {
        DataShape::Value(described) => {
            let ty = Type::of(described)?;
            let default = default_of(&ty, described);
            (ty, default)
        }
        DataShape::Container(parts) => (Type::Container(fields(parts)?), None),
    };
    Ok(Field {
        id: described.id,
        name: described.name.clone(),
        role: role(&described.name),
        ty,
        repeated: described.repeated || matches!(described.shape, DataShape::Container(_)),
        mandatory,
        read_only,
        default,
    })
}

fn fields(described: &[info::TableData]) -> Result<Vec<Field>, String> {
    let mut all = Vec::new();
    for data in described {
        match &data.field {
            DataChoice::One(one) => all.push(field(one, data.mandatory, data.read_only)?),
            DataChoice::OneOf(several) => {
                for one in several {
                    all.push(field(one, false, data.read_only)?);
                }
            }
        }
    }
    Ok(all)
}

/// The meaning of a data field, by its name.
fn role(name: &str) -> Role {
    match name {
        "$COUNTER_SPEC_BYTES" => Role::CounterBytes,
        "$COUNTER_SPEC_PKTS" => Role::CounterPackets,
        "$METER_SPEC_CIR_KBPS" | "$METER_SPEC_CIR_PPS" => Role::Meter(0),
        "$METER_SPEC_PIR_KBPS" | "$METER_SPEC_PIR_PPS" => Role::Meter(1),
        "$METER_SPEC_CBS_KBITS" | "$METER_SPEC_CBS_PKTS" => Role::Meter(2),
        "$METER_SPEC_PBS_KBITS" | "$METER_SPEC_PBS_PKTS" => Role::Meter(3),
        "$LPF_SPEC_TYPE" => Role::Lpf(0),
        "$LPF_SPEC_GAIN_TIME_CONSTANT_NS" => Role::Lpf(1),
        "$LPF_SPEC_DECAY_TIME_CONSTANT_NS" => Role::Lpf(2),
        "$LPF_SPEC_OUT_SCALE_DOWN_FACTOR" => Role::Lpf(3),
        "$WRED_SPEC_TIME_CONSTANT_NS" => Role::Wred(0),
        "$WRED_SPEC_MIN_THRESH_CELLS" => Role::Wred(1),
        "$WRED_SPEC_MAX_THRESH_CELLS" => Role::Wred(2),
        "$WRED_SPEC_MAX_PROBABILITY" => Role::Wred(3),
        "$ENTRY_TTL" => Role::Ttl,
        "$ENTRY_HIT_STATE" => Role::HitState,
        "$ACTION_MEMBER_ID" => Role::Member,
        "$SELECTOR_GROUP_ID" => Role::Group,
        "$ACTION_MEMBER_STATUS" => Role::MemberStatus,
        "$MAX_GROUP_SIZE" => Role::MaxGroupSize,
        _ => Role::Plain,
    }
}

fn key(described: &info::KeyField, kind: MatchKind) -> Result<Key, String> {
    let ty = Type::of(&described.ty)?;
    Ok(Key {
        id: described.id,
        name: described.name.clone(),
        kind,
        width: match ty {
            Type::Bits(width) => width,
            _ => 0,
        },
        ty,
    })
}

/// A table with exact keys only, whose actions only group fields.
fn plain(described: &info::Table, kind: Kind) -> Result<Table, String> {
    let keys = described.key.iter().map(|k| key(k, MatchKind::Exact));
    let actions = described.action_specs.iter().flatten().map(|spec| {
        let of_action = spec.data.iter().map(|d| {
            let ty = Type::of(&d.ty)?;
            Ok(Field {
                id: d.id,
                name: d.name.clone(),
                default: default_of(&ty, &d.ty),
                ty,
                repeated: d.repeated,
                mandatory: d.mandatory,
                read_only: d.read_only,
                role: Role::Plain,
            })
        });
        Ok(Action {
            id: spec.id,
            name: spec.name.clone(),
            numbers: Vec::new(),
            params: Vec::new(),
            fields: of_action.collect::<Result<_, String>>()?,
        })
    });
    Ok(Table {
        id: described.id,
        name: described.name.clone(),
        kind,
        keys: keys.collect::<Result<_, _>>()?,
        data: fields(&described.data)?,
        actions: actions.collect::<Result<_, String>>()?,
        operations: described.supported_operations.clone(),
        attributes: described.attributes.clone(),
        read_only: described.read_only.unwrap_or(false),
    })
}

struct Builder<'a> {
    program: &'a Program,
    control: Option<ControlSpec>,
}

impl Builder<'_> {
    fn kind_of(&self, id: ExternId) -> Option<ResourceKind> {
        let instance = self.program.externs.get(id)?;
        Some(self.control?.resource(&instance.type_name)?.kind)
    }

    /// The extern instance with this name and kind.
    fn instance(&self, name: &str, kind: ResourceKind) -> Result<ExternId, String> {
        let mut found = self.program.externs.iter().filter(|(_, e)| e.name == name);
        let found = found.find(|(id, _)| self.kind_of(*id) == Some(kind));
        found.map(|(id, _)| id).ok_or_else(|| format!("no instance `{name}`"))
    }

    fn table(&self, described: &info::Table) -> Result<Table, String> {
        let name = without_pipe(self.program, &described.name);
        let array = |kind| self.instance(name, kind);
        match described.table_type.as_str() {
            "MatchAction_Direct" => self.match_table(described, name, Style::Direct),
            "MatchAction_Indirect" => self.match_table(described, name, Style::Member),
            "MatchAction_Indirect_Selector" => self.match_table(described, name, Style::Selector),
            "Action" => self.members(described, name),
            "Selector" => plain(described, Kind::Groups(array(ResourceKind::ActionSelector)?)),
            "SelectorGetMember" => {
                let selector = name.strip_suffix("_get_member").unwrap_or(name);
                let id = self.instance(selector, ResourceKind::ActionSelector)?;
                plain(described, Kind::GetMember(id))
            }
            "Counter" => {
                let counter = Some(array(ResourceKind::Counter)?);
                self.array(
                    described,
                    Resources {
                        counter,
                        ..Resources::default()
                    },
                    false,
                )
            }
            "Meter" => {
                let meter = Some((array(ResourceKind::Meter)?, counts_bytes(described)));
                self.array(
                    described,
                    Resources {
                        meter,
                        ..Resources::default()
                    },
                    false,
                )
            }
            "Register" => {
                let registers = vec![array(ResourceKind::Register)?];
                self.array(
                    described,
                    Resources {
                        registers,
                        ..Resources::default()
                    },
                    false,
                )
            }
            "RegisterParam" => {
                let registers = vec![array(ResourceKind::RegisterParameter)?];
                self.array(
                    described,
                    Resources {
                        registers,
                        ..Resources::default()
                    },
                    true,
                )
            }
            "Lpf" => {
                let lpf = Some(array(ResourceKind::Filter)?);
                self.array(
                    described,
                    Resources {
                        lpf,
                        ..Resources::default()
                    },
                    false,
                )
            }
            "Wred" => {
                let wred = Some(array(ResourceKind::EarlyDrop)?);
                self.array(
                    described,
                    Resources {
                        wred,
                        ..Resources::default()
                    },
                    false,
                )
            }
            "ParserValueSet" => self.value_set(described, name),
            "PortMetadata" => plain(described, Kind::PortMetadata),
            custom_crc::TABLE_TYPE => {
                let crc = custom_crc::ALL.iter().find(|c| c.table == name);
                let of_width = crc.map(|crc| CrcScope::Width(crc.width));
                let number = custom_crc::calculation_of_table(described.id);
                let scope = of_width.or(number.map(CrcScope::Calculation));
                let scope = scope.ok_or_else(|| format!("no custom CRC `{name}`"))?;
                plain(described, Kind::Fixed(Fixed::CustomCrc(scope)))
            }
            extern_keys::TABLE_TYPE => {
                let mut all = self.program.externs.iter();
                let found = all.find(|(_, e)| e.name == name && e.key_count().is_some());
                let (id, _) = found.ok_or_else(|| format!("no extern with keys `{name}`"))?;
                plain(described, Kind::Fixed(Fixed::ExternKeys(id)))
            }
            other => Err(format!("the type `{other}`, which this server does not know")),
        }
    }

    fn array(&self, described: &info::Table, resources: Resources, is_parameter: bool) -> Result<Table, String> {
        let is_register = !resources.registers.is_empty();
        let kind = if is_parameter {
            Kind::Parameter(resources)
        } else {
            Kind::Array(resources)
        };
        let mut table = plain(described, kind)?;
        if is_register {
            for (scalar, field) in table.data.iter_mut().enumerate() {
                field.role = Role::Register(0, scalar);
            }
        }
        Ok(table)
    }

    fn value_set(&self, described: &info::Table, name: &str) -> Result<Table, String> {
        let mut sets = self.program.value_sets.iter();
        let found: Option<(ValueSetId, _)> = sets.find(|(_, s)| s.name == name);
        let (id, set) = found.ok_or_else(|| format!("no value set `{name}`"))?;
        let mut table = plain(described, Kind::ValueSet(id))?;
        for (key, field) in table.keys.iter_mut().zip(&set.fields) {
            key.kind = field.match_kind;
        }
        Ok(table)
    }

    fn match_table(&self, described: &info::Table, name: &str, style: Style) -> Result<Table, String> {
        let (id, declared) = self
            .program
            .tables
            .iter()
            .find(|(_, t)| t.name == name)
            .ok_or("no table in the program")?;
        let matched = declared.keys.iter().filter(|k| k.match_kind != MatchKind::Selector);
        let kinds: Vec<MatchKind> = matched.map(|k| k.match_kind).collect();
        let described_keys = described.key.iter().filter(|k| k.name != PRIORITY);
        let keys = described_keys
            .zip(&kinds)
            .map(|(k, kind)| key(k, *kind))
            .collect::<Result<_, _>>()?;
        let lpm = kinds.iter().filter(|k| **k == MatchKind::Lpm).count();
        let masked = |k: &MatchKind| matches!(k, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional);
        let actions = described.action_specs.iter().flatten().map(|spec| {
            let number = declared
                .actions
                .iter()
                .position(|a| self.program.actions[a.action].name == spec.name);
            action(spec, number.into_iter().collect())
        });
        let mut resources = Resources::default();
        let mut data = fields(&described.data)?;
        for direct in &declared.direct {
            match self.kind_of(*direct) {
                Some(ResourceKind::DirectCounter) => resources.counter = Some(*direct),
                Some(ResourceKind::DirectMeter) => resources.meter = Some((*direct, counts_bytes(described))),
                Some(ResourceKind::DirectRegister) => {
                    // Names of its fields begin with the name of the register.
                    let begin = format!("{}.", self.program.externs[*direct].name);
                    let which = resources.registers.len();
                    let own = data.iter_mut().filter(|f| f.name.starts_with(&begin));
                    own.enumerate()
                        .for_each(|(scalar, f)| f.role = Role::Register(which, scalar));
                    resources.registers.push(*direct);
                }
                Some(ResourceKind::DirectFilter) => resources.lpf = Some(*direct),
                Some(ResourceKind::DirectEarlyDrop) => resources.wred = Some(*direct),
                _ => {}
            }
        }
        Ok(Table {
            id: described.id,
            name: described.name.clone(),
            keys,
            data,
            actions: actions.collect(),
            operations: described.supported_operations.clone(),
            attributes: described.attributes.clone(),
            read_only: false,
            kind: Kind::Match(MatchTable {
                table: id,
                priority: described.key.iter().find(|k| k.name == PRIORITY).map(|k| k.id),
                is_ranked: lpm > 1 || kinds.iter().any(masked),
                style,
                resources,
                const_entries: declared.const_entries,
                const_default: declared.const_default,
                idle_timeout: declared.idle_timeout,
            }),
        })
    }

    /// A table of members, and the profiles of the switch that it represents: those that tables
    /// use, with a selector or without.
    fn members(&self, described: &info::Table, name: &str) -> Result<Table, String> {
        let is_given = |id: ExternId| {
            let arguments = &self.program.externs[id].arguments;
            arguments.iter().any(|(_, value)| match value {
                ConstValue::Extern(profile) => self.program.externs[*profile].name == name,
                _ => false,
            })
        };
        let stands_for = |id: ExternId| match self.kind_of(id) {
            Some(ResourceKind::ActionProfile) => self.program.externs[id].name == name,
            Some(ResourceKind::ActionSelector) => {
                is_given(id) || name.strip_suffix("_ap") == Some(self.program.externs[id].name.as_str())
            }
            _ => false,
        };
        let candidates: Vec<ExternId> = self
            .program
            .externs
            .iter()
            .map(|(id, _)| id)
            .filter(|id| stands_for(*id))
            .collect();
        let used = |id: &ExternId| self.program.tables.iter().any(|(_, t)| t.implementation == Some(*id));
        let mut instances: Vec<ExternId> = candidates.iter().copied().filter(used).collect();
        if instances.is_empty() {
            instances.extend(candidates.first());
        }
        if instances.is_empty() {
            return Err(format!("no action profile `{name}`"));
        }
        let numbers = |action: &str| {
            instances
                .iter()
                .map(|id| self.number_in(*id, action))
                .collect::<Option<Vec<_>>>()
        };
        let actions = described.action_specs.iter().flatten();
        let actions = actions
            .map(|spec| action(spec, numbers(&spec.name).unwrap_or_default()))
            .collect();
        let described = info::Table {
            action_specs: None,
            ..described.clone()
        };
        let mut table = plain(&described, Kind::Members(instances))?;
        table.actions = actions;
        Ok(table)
    }

    /// The index of an action in a profile: the actions for entries of all its tables, each once.
    fn number_in(&self, profile: ExternId, name: &str) -> Option<usize> {
        let mut seen = Vec::new();
        let tables = self.program.tables.iter().map(|(_, t)| t);
        let listed = tables
            .filter(|t| t.implementation == Some(profile))
            .flat_map(|t| &t.actions);
        for listed_action in listed.filter(|a| !a.default_only) {
            if !seen.contains(&listed_action.action) {
                seen.push(listed_action.action);
            }
        }
        seen.iter().position(|a| self.program.actions[*a].name == name)
    }
}

fn counts_bytes(described: &info::Table) -> bool {
    described.data.iter().any(|d| match &d.field {
        DataChoice::One(f) => f.name == "$METER_SPEC_CIR_KBPS",
        DataChoice::OneOf(_) => false,
    })
}

fn action(spec: &info::ActionSpec, numbers: Vec<usize>) -> Action {
    let params = spec.data.iter().map(|d| Param {
        id: d.id,
        name: d.name.clone(),
        width: d.ty.width.unwrap_or(0),
    });
    Action {
        id: spec.id,
        name: spec.name.clone(),
        numbers,
        params: params.collect(),
        fields: Vec::new(),
    }
}
