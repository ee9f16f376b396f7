//! Action profiles and selectors: members and groups.

use super::dump::action_text;
use super::tables::spec;
use super::values;
use super::{Argument, Call, MANY, Spec};
use anyhow::{Context, Result, bail};
use weir_ir::ExternId;
use weir_switch::{ResourceKind, Switch, Write};
use weir_table::{ActionProfile, Group, GroupMember, Implementation, Member, ProfileOp};

const PROFILE: &[Argument] = &[Argument::Profile];
const PROFILE_AND_ACTION: &[Argument] = &[Argument::Profile, Argument::ProfileAction];
const TABLE: &[Argument] = &[Argument::Table];
const TABLE_AND_ACTION: &[Argument] = &[Argument::Table, Argument::TableAction];

/// A command on a profile, and the same on the profile of a table.
macro_rules! both {
    ($name:literal, $of_table:literal, $usage:literal, $about:literal, $count:expr, $action:expr, $run:path) => {
        [
            Spec {
                name: $name,
                usage: concat!("PROFILE", $usage),
                about: $about,
                count: $count,
                arguments: if $action { PROFILE_AND_ACTION } else { PROFILE },
                run: $run,
            },
            Spec {
                name: $of_table,
                usage: concat!("TABLE", $usage),
                about: concat!("as ", $name, ", of the profile of a table"),
                count: $count,
                arguments: if $action { TABLE_AND_ACTION } else { TABLE },
                run: $run,
            },
        ]
    };
}

pub const COMMANDS: &[Spec] = &flatten(
    [
        both!(
            "act_prof_create_member",
            "table_indirect_create_member",
            " ACTION PARAMETER…",
            "add a member",
            (2, MANY),
            true,
            create_member
        ),
        both!(
            "act_prof_modify_member",
            "table_indirect_modify_member",
            " ACTION MEMBER [=>] PARAMETER…",
            "give a member another action",
            (3, MANY),
            true,
            modify_member
        ),
        both!(
            "act_prof_delete_member",
            "table_indirect_delete_member",
            " MEMBER",
            "delete a member",
            (2, 2),
            false,
            delete_member
        ),
        both!(
            "act_prof_create_group",
            "table_indirect_create_group",
            "",
            "add a group without members",
            (1, 1),
            false,
            create_group
        ),
        both!(
            "act_prof_delete_group",
            "table_indirect_delete_group",
            " GROUP",
            "delete a group",
            (2, 2),
            false,
            delete_group
        ),
        both!(
            "act_prof_add_member_to_group",
            "table_indirect_add_member_to_group",
            " MEMBER GROUP",
            "put a member into a group",
            (3, 3),
            false,
            join
        ),
        both!(
            "act_prof_remove_member_from_group",
            "table_indirect_remove_member_from_group",
            " MEMBER GROUP",
            "take a member out of a group",
            (3, 3),
            false,
            leave
        ),
        both!(
            "act_prof_dump_member",
            "table_dump_member",
            " MEMBER",
            "show a member",
            (2, 2),
            false,
            dump_member
        ),
        both!(
            "act_prof_dump_group",
            "table_dump_group",
            " GROUP",
            "show a group",
            (2, 2),
            false,
            dump_group
        ),
    ],
    Spec {
        name: "act_prof_dump",
        usage: "PROFILE",
        about: "show all members and groups",
        count: (1, 1),
        arguments: PROFILE,
        run: dump,
    },
);

/// The commands of all pairs, and one more.
const fn flatten(pairs: [[Spec; 2]; 9], last: Spec) -> [Spec; 19] {
    let [[a, b], [c, d], [e, f], [g, h], [i, j], [k, l], [m, n], [o, p], [q, r]] = pairs;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, last]
}

/// The profile that the first argument names, or that of the table that it names.
fn profile(call: &Call<'_>) -> Result<ExternId> {
    let name = call.argument(0, "the profile")?;
    if call.name.starts_with("act_prof_") {
        return Ok(call.switch.resource(ResourceKind::Profile, name)?);
    }
    match spec(call.switch, call.table()?)?.implementation {
        Implementation::Profile(id) | Implementation::Selector(id) => Ok(id),
        Implementation::Direct => bail!("table {name} has no action profile"),
    }
}

fn state(switch: &Switch, id: ExternId) -> Result<&ActionProfile> {
    switch.state().profile(id).context("the profile is gone")
}

fn change(call: &mut Call<'_>, id: ExternId, op: ProfileOp) -> Result<()> {
    call.switch.write(Write::Profile(id, op))?;
    Ok(())
}

/// The smallest number from 0 that is not taken; numbers come in ascending order.
fn free(taken: impl Iterator<Item = u32>) -> u32 {
    let mut next = 0;
    for number in taken {
        if number > next {
            break;
        }
        next = number.saturating_add(1);
    }
    next
}

fn create_member(call: &mut Call<'_>) -> Result<String> {
    let id = profile(call)?;
    let profile = state(call.switch, id)?;
    let number = free(profile.members().map(|(id, _)| id));
    let name = call.argument(1, "the action")?;
    let action = values::call(&profile.spec().actions, name, &call.arguments[2..])?;
    change(call, id, ProfileOp::InsertMember(number, Member { action }))?;
    Ok(format!("Member has been created with handle {number}\n"))
}

fn modify_member(call: &mut Call<'_>) -> Result<String> {
    let id = profile(call)?;
    let profile = state(call.switch, id)?;
    let number = call.number(2, "member")?;
    let data = match call.arguments.get(3) {
        Some(&"=>") => &call.arguments[4..],
        _ => &call.arguments[3..],
    };
    let action = values::call(&profile.spec().actions, call.argument(1, "the action")?, data)?;
    change(call, id, ProfileOp::ModifyMember(number, Member { action }))?;
    Ok(String::new())
}

fn delete_member(call: &mut Call<'_>) -> Result<String> {
    let (id, number) = (profile(call)?, call.number(1, "member")?);
    change(call, id, ProfileOp::DeleteMember(number))?;
    Ok(String::new())
}

fn create_group(call: &mut Call<'_>) -> Result<String> {
    let id = profile(call)?;
    let number = free(state(call.switch, id)?.groups().map(|(id, _)| id));
    change(call, id, ProfileOp::InsertGroup(number, Group::default()))?;
    Ok(format!("Group has been created with handle {number}\n"))
}

fn delete_group(call: &mut Call<'_>) -> Result<String> {
    let (id, number) = (profile(call)?, call.number(1, "group")?);
    change(call, id, ProfileOp::DeleteGroup(number))?;
    Ok(String::new())
}

/// The profile, the member, the number of the group, and the group.
fn membership(call: &Call<'_>) -> Result<(ExternId, u32, u32, Group)> {
    let id = profile(call)?;
    let (member, number) = (call.number(1, "member")?, call.number(2, "group")?);
    let group = state(call.switch, id)?.group(number).cloned();
    let group = group.with_context(|| format!("there is no group {number}"))?;
    Ok((id, member, number, group))
}

fn join(call: &mut Call<'_>) -> Result<String> {
    let (id, member, number, mut group) = membership(call)?;
    if group.members.iter().any(|m| m.member == member) {
        bail!("member {member} is in group {number} already");
    }
    group.members.push(GroupMember::new(member, 1));
    change(call, id, ProfileOp::ModifyGroup(number, group))?;
    Ok(String::new())
}

fn leave(call: &mut Call<'_>) -> Result<String> {
    let (id, member, number, mut group) = membership(call)?;
    let before = group.members.len();
    group.members.retain(|m| m.member != member);
    if group.members.len() == before {
        bail!("member {member} is not in group {number}");
    }
    change(call, id, ProfileOp::ModifyGroup(number, group))?;
    Ok(String::new())
}

fn member_text(profile: &ActionProfile, id: u32, member: &Member) -> String {
    format!(
        "Dumping member {id}\n{}",
        action_text(&profile.spec().actions, &member.action)
    )
}

fn group_text(id: u32, group: &Group) -> String {
    let members = values::list(group.members.iter().map(|m| m.member));
    format!("Dumping group {id}\nMembers: [{members}]\n")
}

/// All members and groups.
pub(super) fn dump_text(profile: &ActionProfile) -> String {
    let mut text = "==========\nMEMBERS\n".to_owned();
    for (id, member) in profile.members() {
        text += "**********\n";
        text += &member_text(profile, id, member);
    }
    if profile.spec().selector {
        text += "==========\nGROUPS\n";
        for (id, group) in profile.groups() {
            text += "**********\n";
            text += &group_text(id, group);
        }
    }
    text
}

fn dump_member(call: &mut Call<'_>) -> Result<String> {
    let profile = state(call.switch, profile(call)?)?;
    let number = call.number(1, "member")?;
    let member = profile.member(number);
    let member = member.with_context(|| format!("there is no member {number}"))?;
    Ok(member_text(profile, number, member))
}

fn dump_group(call: &mut Call<'_>) -> Result<String> {
    let profile = state(call.switch, profile(call)?)?;
    let number = call.number(1, "group")?;
    let group = profile.group(number);
    let group = group.with_context(|| format!("there is no group {number}"))?;
    Ok(group_text(number, group))
}

fn dump(call: &mut Call<'_>) -> Result<String> {
    Ok(dump_text(state(call.switch, profile(call)?)?))
}
