//! Reads ids of named objects, and the number of entries in a table.

use super::ReadContext;
use crate::bfrt::fixed::{self, Source};
use crate::bfrt::schema::{Kind, Table};
use crate::refusal::Refusal;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_proto::bfrt_proto::object_id::table_object::Names;
use weir_proto::bfrt_proto::object_id::{LearnObject, Object, TableObject};
use weir_switch::Switch;

/// Finds the id of a named object.
pub(super) fn find(context: &ReadContext, requested: &pb::ObjectId) -> Result<pb::Entity, Refusal> {
    let id = match &requested.object {
        Some(Object::TableObject(object)) => in_table(context, object)?,
        Some(Object::LearnObject(object)) => in_learn(context, object)?,
        None => return Err(Refusal::malformed("the object is missing")),
    };
    Ok(pb::Entity {
        entity: Some(Entity::ObjectId(pb::ObjectId {
            id,
            ..requested.clone()
        })),
    })
}

fn unknown(what: &str, name: &str) -> Refusal {
    Refusal::not_found(format!("there is no {what} `{name}`"))
}

fn in_table(context: &ReadContext, object: &TableObject) -> Result<u32, Refusal> {
    let table = context.schema.table_named(&object.table_name);
    let table = table.ok_or_else(|| unknown("table", &object.table_name))?;
    match &object.names {
        None => Ok(table.id),
        Some(Names::ActionName(name)) => {
            let action = table.actions.iter().find(|a| a.name == name.action);
            action.map(|a| a.id).ok_or_else(|| unknown("action", &name.action))
        }
        Some(Names::KeyFieldName(name)) => {
            let priority = match &table.kind {
                Kind::Match(match_table) if name.field == "$MATCH_PRIORITY" => match_table.priority,
                _ => None,
            };
            let key = table.keys.iter().find(|k| k.name == name.field).map(|k| k.id);
            key.or(priority).ok_or_else(|| unknown("key", &name.field))
        }
        Some(Names::DataFieldName(name)) => {
            let common = table.data.iter().find(|f| f.name == name.field).map(|f| f.id);
            let of_action = table.actions.iter().filter(|a| a.name == name.action).find_map(|a| {
                let param = a.params.iter().find(|p| p.name == name.field).map(|p| p.id);
                param.or_else(|| a.fields.iter().find(|f| f.name == name.field).map(|f| f.id))
            });
            of_action.or(common).ok_or_else(|| unknown("field", &name.field))
        }
    }
}

fn in_learn(context: &ReadContext, object: &LearnObject) -> Result<u32, Refusal> {
    let learn = context.schema.learns.iter().find(|l| l.name == object.learn_name);
    let learn = learn.ok_or_else(|| unknown("digest", &object.learn_name))?;
    match &object.data_field_name {
        None => Ok(learn.id),
        Some(name) => {
            let field = learn.fields.iter().find(|(_, n)| *n == name.field);
            field.map(|(id, _)| *id).ok_or_else(|| unknown("field", &name.field))
        }
    }
}

/// The number of entries in a table.
pub(super) fn usage(context: &ReadContext, table: &Table, switch: &Switch) -> Result<u32, Refusal> {
    let profile = |id| switch.state().profile(id);
    let count = match &table.kind {
        Kind::Match(match_table) => switch.table_state(match_table.table)?.table.len(),
        Kind::Members(instances) => instances
            .first()
            .and_then(|id| profile(*id))
            .map_or(0, |p| p.members().count()),
        Kind::Groups(selector) => profile(*selector).map_or(0, |p| p.groups().count()),
        Kind::ValueSet(set) => switch.state().value_set(*set).map_or(0, weir_table::Table::len),
        Kind::PortMetadata => switch.state().port_metadata.len(),
        Kind::Fixed(fixed) => {
            let source = Source {
                switch,
                ports: &context.ports,
                cpu_port: context.cpu_port,
                pipe: None,
            };
            fixed::read(*fixed, table, None, 0, &source)?.places.count()
        }
        Kind::Array(_) | Kind::Parameter(_) | Kind::GetMember(_) => {
            return Err(Refusal::unsupported(
                "the table has no usage: all of its entries are always there",
            ));
        }
    };
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}
