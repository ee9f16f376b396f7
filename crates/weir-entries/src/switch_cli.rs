//! Lines of `simple_switch_CLI` that weir's directives call otherwise: `table_add` and
//! `table_set_default`. The rest of them have the same names here.

use super::{MAX_PRIORITY, Names, action_text, quoted};
use crate::error::{Context, Result, ensure};
use std::borrow::Cow;
use std::fmt::Write;

/// The text with these lines as directives; as it is where there are none.
///
/// # Errors
/// The program has no such table or action, or it has another number of keys or parameters.
pub fn directives<'a>(names: &impl Names, text: &'a str) -> Result<Cow<'a, str>> {
    let is_one = |line: &str| matches!(line.split_whitespace().next(), Some("table_add" | "table_set_default"));
    if !text.lines().any(is_one) {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len() * 2);
    for (number, line) in text.lines().enumerate() {
        if is_one(line) {
            out.push_str(&directive(names, line).with_context(|| format!("line {}", number + 1))?);
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    Ok(Cow::Owned(out))
}

fn directive(names: &impl Names, line: &str) -> Result<String> {
    let code = line.split('#').next().unwrap_or(line);
    let mut words = code.split_whitespace();
    let command = words.next().unwrap_or_default();
    let name = words.next().with_context(|| format!("{command}: expected a table"))?;
    let action = words.next().with_context(|| format!("{command}: expected an action"))?;
    let table = names.table(name)?;
    let parameters = names.parameters(&table, action)?;
    let rest: Vec<&str> = words.collect();
    let quoted_table = quoted(&table.name)?;
    if command == "table_set_default" {
        let values = rest.strip_prefix(&["=>"]).unwrap_or(&rest);
        let call = call(action, &parameters, values)?;
        return Ok(format!("setdefault {quoted_table} {call}"));
    }
    let (keys, values) = match rest.iter().position(|word| *word == "=>") {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (&rest[..], &rest[rest.len()..]),
    };
    let count = table.keys.len();
    ensure!(
        keys.len() == count,
        "table `{}`: expected {count} key{}, found {}",
        table.name,
        if count == 1 { "" } else { "s" },
        keys.len()
    );
    let mut text = format!("add {quoted_table}");
    let values = match table.has_priorities() {
        false => values,
        true => {
            ensure!(
                values.len() == parameters.len() + 1,
                "table `{}`: expected a priority behind the parameters of the action",
                table.name
            );
            let (last, values) = values.split_last().context("expected a priority")?;
            let priority: u32 = last
                .parse()
                .ok()
                .filter(|priority| *priority < MAX_PRIORITY)
                .with_context(|| format!("expected a priority below {MAX_PRIORITY}, found `{last}`"))?;
            // There the lowest number wins, here the highest.
            let _ = write!(text, " {}", MAX_PRIORITY - priority);
            values
        }
    };
    for (key, value) in table.keys.iter().zip(keys) {
        let _ = write!(text, " {}:{value}", quoted(&key.name)?);
    }
    Ok(format!("{text} {}", call(action, &parameters, values)?))
}

fn call(action: &str, parameters: &[(String, u32)], values: &[&str]) -> Result<String> {
    let count = parameters.len();
    ensure!(
        values.len() == count,
        "action `{action}`: expected {count} parameter{}, found {}",
        if count == 1 { "" } else { "s" },
        values.len()
    );
    let pairs = parameters.iter().zip(values);
    let arguments: Vec<(String, String)> = pairs
        .map(|((name, _), value)| (name.clone(), (*value).to_owned()))
        .collect();
    action_text(action, &arguments)
}
