//! The actions of entries (specification, sections "Action Specification", "One Shot Action
//! Selector Programming").

use super::bytes;
use super::refusal::Refusal;
use super::schema::{Action, Implementation, Profile, Schema, SizeSemantics, Table};
use smallvec::SmallVec;
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, ExternId};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::action_profile_action_set::{ActionSelectionMode, SizeSemantics as PbSemantics};
use weir_proto::p4::v1::table_action::Type;
use weir_table::{EntryAction, Note, OneShotMember, PortForm, WatchedPort};

/// The ids of parameters and their values, as a request has them.
pub type GivenParams<'a> = SmallVec<[(u32, &'a [u8]); 4]>;

fn params(given: &pb::Action) -> GivenParams<'_> {
    given.params.iter().map(|p| (p.param_id, p.value.as_slice())).collect()
}

/// The arguments of an action, in the order of its parameters.
fn arguments(action: &Action, given: &[(u32, &[u8])]) -> Result<Vec<Bits>, Refusal> {
    let mut values = Vec::with_capacity(action.params.len());
    for param in action.params.iter() {
        let mut of_param = given.iter().filter(|g| g.0 == param.id);
        let place = || format!("action `{}`, parameter `{}`", action.name, param.name);
        match (of_param.next(), of_param.next()) {
            (Some(value), None) => values.push(param.codec.decode(value.1).map_err(|e| e.within(&place()))?),
            (None, _) => return Err(Refusal::malformed("it is missing").within(&place())),
            (Some(_), Some(_)) => return Err(Refusal::malformed("it is given twice").within(&place())),
        }
    }
    if given.len() > values.len() {
        let extra = given.iter().find(|g| !action.params.iter().any(|p| p.id == g.0));
        let id = extra.map_or(0, |e| e.0);
        return Err(Refusal::malformed(format!(
            "action `{}` has no parameter with the id {id}",
            action.name
        )));
    }
    Ok(values)
}

/// An action of a table.
pub fn call(table: &Table, given: &pb::Action) -> Result<ActionCall, Refusal> {
    call_of(table, given.action_id, &params(given))
}

/// As [`call`], by the action's id and its parameters.
pub fn call_of(table: &Table, id: u32, params: &[(u32, &[u8])]) -> Result<ActionCall, Refusal> {
    let (index, action) = table.action(id)?;
    Ok(ActionCall {
        action: index,
        arguments: arguments(action, params)?,
    })
}

/// An action of a profile.
pub fn profile_call(profile: &Profile, given: Option<&pb::Action>) -> Result<ActionCall, Refusal> {
    let given = given.ok_or_else(|| Refusal::malformed("the member has no action"))?;
    let found = profile.actions.iter().enumerate();
    let found = found.clone().find(|(_, a)| a.id == given.action_id && a.id != 0);
    let (index, action) = found.ok_or_else(|| {
        let known: Vec<String> = profile
            .actions
            .iter()
            .map(|a| format!("`{}` ({:#x})", a.name, a.id))
            .collect();
        Refusal::malformed(format!(
            "the tables of `{}` have no action with the id {:#x} for entries; they have {}",
            profile.name,
            given.action_id,
            known.join(", ")
        ))
    })?;
    Ok(ActionCall {
        action: index,
        arguments: arguments(action, &params(given))?,
    })
}

/// A port in bytes, or in the number that came before those.
pub fn port(bytes: &[u8]) -> Result<u32, Refusal> {
    let number = bytes::decode(32, bytes).map_err(|e| e.within("port"))?;
    Ok(number.to_u64_saturating() as u32)
}

/// The port of a member: none where it is not set. `old`: the deprecated field.
pub fn watch_port(bytes: Option<&[u8]>, old: Option<i32>) -> Result<Option<WatchedPort>, Refusal> {
    match (bytes, old) {
        (Some(b), _) if !b.is_empty() => Ok(Some(port(b)?.into())),
        (_, Some(n)) if n != 0 => {
            let port = u32::try_from(n).map_err(|_| Refusal::malformed("the watched port is negative"))?;
            Ok(Some(WatchedPort {
                port,
                form: PortForm::Number,
            }))
        }
        _ => Ok(None),
    }
}

/// The weight of a member.
pub fn weight(given: i32) -> Result<u32, Refusal> {
    let weight = u32::try_from(given).ok().filter(|w| *w > 0);
    weight.ok_or_else(|| Refusal::malformed(format!("a member has the weight {given}; weights are 1 or more")))
}

/// Settings of an entry's one-shot set besides its members, and the entry's metadata, in the form
/// of the switch's note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    mode: u8,
    semantics: u8,
}

/// The note that holds settings and metadata.
#[must_use]
pub fn note(settings: Settings, metadata: &[u8]) -> Note {
    if settings == Settings::default() && metadata.is_empty() {
        return None;
    }
    let mut bytes = vec![settings.mode, settings.semantics];
    bytes.extend_from_slice(metadata);
    Some(Arc::from(bytes))
}

/// Settings and metadata of a note. The notes of other protocols are metadata.
#[must_use]
pub fn read_note(note: &Note) -> (Settings, &[u8]) {
    match note.as_deref() {
        Some([mode, semantics, metadata @ ..]) => {
            let settings = Settings {
                mode: *mode,
                semantics: *semantics,
            };
            (settings, metadata)
        }
        _ => (Settings::default(), &[]),
    }
}

/// The action of an entry, with the settings of a one-shot set.
///
/// # Errors
/// It is not of the form that the table's entries have, or its parts do not fit.
pub fn decode(schema: &Schema, table: &Table, given: &pb::TableAction) -> Result<(EntryAction, Settings), Refusal> {
    let none = Settings::default();
    match (table.implementation, &given.r#type) {
        (Implementation::Direct, Some(Type::Action(action))) => Ok((EntryAction::Call(call(table, action)?), none)),
        (Implementation::Profile(_) | Implementation::Selector(_), Some(Type::ActionProfileMemberId(id))) => {
            Ok((EntryAction::Member(id_of(*id)?), none))
        }
        (Implementation::Selector(_), Some(Type::ActionProfileGroupId(id))) => {
            Ok((EntryAction::Group(id_of(*id)?), none))
        }
        (Implementation::Selector(profile), Some(Type::ActionProfileActionSet(set))) => {
            one_shot(table, schema.profile(profile)?, set)
        }
        (_, None) => Err(Refusal::malformed("the action has no type")),
        (Implementation::Direct, Some(_)) => Err(Refusal::malformed(format!(
            "the entries of `{}` take an action",
            table.name
        ))),
        (Implementation::Profile(_), Some(_)) => Err(Refusal::malformed(format!(
            "the entries of `{}` take an action profile member",
            table.name
        ))),
        (Implementation::Selector(_), Some(_)) => Err(Refusal::malformed(format!(
            "the entries of `{}` take a member, a group or an action set",
            table.name
        ))),
    }
}

fn id_of(id: u32) -> Result<u32, Refusal> {
    if id == 0 {
        return Err(Refusal::malformed("ids of members and groups are not 0"));
    }
    Ok(id)
}

fn one_shot(
    table: &Table,
    profile: &Profile,
    set: &pb::ActionProfileActionSet,
) -> Result<(EntryAction, Settings), Refusal> {
    if set.group_action.is_some() {
        return Err(Refusal::unsupported(
            "a switch cannot run an action of the group before that of a member; leave out group_action",
        ));
    }
    let settings = settings(profile, set)?;
    let mut members = Vec::with_capacity(set.action_profile_actions.len());
    for given in &set.action_profile_actions {
        use pb::action_profile_action::WatchKind;
        let action = given.action.as_ref();
        let action = action.ok_or_else(|| Refusal::malformed("a member of the action set has no action"))?;
        let (bytes, old) = match &given.watch_kind {
            Some(WatchKind::WatchPort(bytes)) => (Some(bytes.as_slice()), None),
            Some(WatchKind::Watch(number)) => (None, Some(*number)),
            None => (None, None),
        };
        members.push(OneShotMember {
            watch: watch_port(bytes, old)?,
            ..OneShotMember::new(call(table, action)?, weight(given.weight)?)
        });
    }
    if members.is_empty() {
        return Err(Refusal::malformed("the action set is empty"));
    }
    let weights = members.iter().map(|m| m.weight);
    check_size(profile, weights, profile.max_group_size)?;
    Ok((EntryAction::OneShot(members), settings))
}

/// Checks the size of a group against what P4Info says.
pub fn check_size(profile: &Profile, weights: impl Iterator<Item = u32> + Clone, limit: u32) -> Result<(), Refusal> {
    let size = match profile.semantics {
        SizeSemantics::SumOfWeights => weights.map(u64::from).sum(),
        SizeSemantics::SumOfMembers(largest) => {
            if largest > 0 && weights.clone().any(|w| w > largest) {
                return Err(Refusal::malformed(format!(
                    "a member of `{}` weighs more than {largest}",
                    profile.name
                )));
            }
            weights.count() as u64
        }
    };
    if limit > 0 && size > u64::from(limit) {
        return Err(Refusal::malformed(format!(
            "a group of `{}` has the size {size}, and at most {limit} is allowed",
            profile.name
        )));
    }
    Ok(())
}

/// The selection mode and size semantics of a set: the selector's, by default or explicitly.
fn settings(profile: &Profile, set: &pb::ActionProfileActionSet) -> Result<Settings, Refusal> {
    let mode = ActionSelectionMode::try_from(set.action_selection_mode)
        .map_err(|_| Refusal::malformed("there is no such action selection mode"))?;
    let semantics = PbSemantics::try_from(set.size_semantics)
        .map_err(|_| Refusal::malformed("there are no such size semantics"))?;
    let own_mode = match profile.is_random {
        true => ActionSelectionMode::Random,
        false => ActionSelectionMode::Hash,
    };
    let own_semantics = match profile.semantics {
        SizeSemantics::SumOfWeights => PbSemantics::SumOfWeights,
        SizeSemantics::SumOfMembers(_) => PbSemantics::SumOfMembers,
    };
    let default_mode = ActionSelectionMode::DefaultModeDeterminedByActionSelector;
    let default_semantics = PbSemantics::DefaultSizeDeterminedByActionSelector;
    if ![default_mode, own_mode].contains(&mode) || ![default_semantics, own_semantics].contains(&semantics) {
        return Err(Refusal::unsupported(format!(
            "the groups of `{}` all choose by {} and count {}",
            profile.name,
            own_mode.as_str_name(),
            own_semantics.as_str_name()
        )));
    }
    Ok(Settings {
        mode: mode as u8,
        semantics: semantics as u8,
    })
}

/// An action for the control plane.
#[must_use]
pub fn encode_call(actions: &[Action], call: &ActionCall) -> pb::Action {
    let Some(action) = actions.get(call.action) else {
        return pb::Action::default();
    };
    let params = action.params.iter().zip(&call.arguments);
    pb::Action {
        action_id: action.id,
        params: params
            .map(|(param, value)| pb::action::Param {
                param_id: param.id,
                value: param.codec.encode(value),
            })
            .collect(),
    }
}

/// Whether an entry's action executes a direct resource of its table; of an action set, whether one
/// of its actions does. Without an action, and where members have the actions, it may.
#[must_use]
pub fn executes(table: &Table, given: Option<&pb::TableAction>, resource: ExternId) -> bool {
    let does = |action: &pb::Action| {
        let action = table.action(action.action_id);
        action.is_ok_and(|(_, a)| a.executes.contains(&resource))
    };
    match given.and_then(|g| g.r#type.as_ref()) {
        Some(Type::Action(action)) => does(action),
        Some(Type::ActionProfileActionSet(set)) => {
            let mut actions = set.action_profile_actions.iter().filter_map(|a| a.action.as_ref());
            actions.any(does)
        }
        _ => true,
    }
}

/// The action of an entry for the control plane.
#[must_use]
pub fn encode(table: &Table, action: &EntryAction, settings: Settings) -> pb::TableAction {
    let ty = match action {
        EntryAction::Call(call) => Type::Action(encode_call(&table.actions, call)),
        EntryAction::Member(id) => Type::ActionProfileMemberId(*id),
        EntryAction::Group(id) => Type::ActionProfileGroupId(*id),
        EntryAction::OneShot(members) => Type::ActionProfileActionSet(pb::ActionProfileActionSet {
            group_action: None,
            action_profile_actions: members
                .iter()
                .map(|m| pb::ActionProfileAction {
                    action: Some(encode_call(&table.actions, &m.action)),
                    weight: i32::try_from(m.weight).unwrap_or(i32::MAX),
                    watch_kind: m.watch.map(encode_watch),
                })
                .collect(),
            action_selection_mode: settings.mode.into(),
            size_semantics: settings.semantics.into(),
        }),
    };
    pb::TableAction { r#type: Some(ty) }
}

/// A watched port in the form in which it was written.
fn encode_watch(watched: WatchedPort) -> pb::action_profile_action::WatchKind {
    use pb::action_profile_action::WatchKind;
    match watched.form {
        PortForm::Bytes => WatchKind::WatchPort(encode_port(watched.port)),
        PortForm::Number => WatchKind::Watch(watched.port.cast_signed()),
    }
}

/// A port in bytes.
#[must_use]
pub fn encode_port(port: u32) -> Vec<u8> {
    bytes::encode(&Bits::new(32, port.into()))
}
