//! What a target has.

use anyhow::Result;
use serde_json::json;
use std::io::Write;
use weir_client::schema::{Field, Kind, Scope, Type};
use weir_client::{Client, Table};

/// Lists tables.
pub fn list(client: &Client, pattern: Option<&str>, is_json: bool) -> Result<u8> {
    let schema = client.schema();
    let mut out = crate::output::stdout();
    let pattern = pattern.map(str::to_ascii_lowercase);
    let mut is_empty = true;
    for table in &schema.tables {
        let is_wanted = pattern
            .as_deref()
            .is_none_or(|p| table.name.to_ascii_lowercase().contains(p));
        if !is_wanted {
            continue;
        }
        is_empty = false;
        if is_json {
            writeln!(out, "{}", as_json(table))?;
        } else {
            describe(&mut out, table)?;
        }
    }
    for digest in &schema.digests {
        if pattern
            .as_deref()
            .is_some_and(|p| !digest.name.to_ascii_lowercase().contains(p))
        {
            continue;
        }
        is_empty = false;
        if is_json {
            writeln!(
                out,
                "{}",
                json!({"name": digest.name, "id": digest.id, "kind": "digest"})
            )?;
        } else {
            writeln!(out, "{}  digest: {}", digest.name, type_text(&digest.ty))?;
        }
    }
    if is_empty {
        match pattern {
            Some(pattern) => crate::output::message(format!("no table has a name with `{pattern}` in it")),
            None => crate::output::message("the target runs no program"),
        }
        return Ok(1);
    }
    Ok(0)
}

fn describe(out: &mut impl Write, table: &Table) -> std::io::Result<()> {
    write!(out, "{}  {}", table.name, table.kind.name())?;
    if table.size > 0 {
        write!(out, ", size {}", table.size)?;
    }
    if table.is_const {
        write!(out, ", const")?;
    }
    writeln!(out)?;
    for key in &table.keys {
        writeln!(
            out,
            "    key     {}: {} {}",
            key.name,
            key.kind.name(),
            type_text(&key.ty)
        )?;
    }
    if table.priority.is_some() {
        writeln!(out, "    key     priority")?;
    }
    for action in &table.actions {
        let params: Vec<String> = action.params.iter().map(field_text).collect();
        let scope = match action.scope {
            Scope::Both => "",
            Scope::Entries => "  (entries only)",
            Scope::Default => "  (default only)",
        };
        writeln!(out, "    action  {}({}){scope}", action.name, params.join(", "))?;
    }
    if table.has_const_default {
        let action = table.const_default_action.as_deref().unwrap_or("by the program");
        writeln!(out, "    default {action}  (constant)")?;
    }
    for field in &table.data {
        let access = if field.is_read_only { "  (read only)" } else { "" };
        writeln!(out, "    data    {}{access}", field_text(field))?;
    }
    Ok(())
}

fn field_text(field: &Field) -> String {
    let list = if field.is_list { "[]" } else { "" };
    format!("{}: {}{list}", field.name, type_text(&field.ty))
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::Bits(width) => format!("bit<{width}>"),
        Type::NumberedEnum(width) => format!("enum bit<{width}>"),
        Type::Varbit(width) => format!("varbit<{width}>"),
        Type::Bool => "bool".to_owned(),
        Type::Float => "float".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Error => "error".to_owned(),
        Type::Text(choices) if choices.is_empty() => "string".to_owned(),
        Type::Text(choices) | Type::Enum(choices) => choices.join(" | "),
        Type::Record(fields) | Type::Header(fields) => {
            let fields: Vec<String> = fields.iter().map(field_text).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Type::Tuple(types) => {
            let types: Vec<String> = types.iter().map(type_text).collect();
            format!("({})", types.join(", "))
        }
        Type::Stack(inner) => format!("{}[]", type_text(inner)),
        Type::Unknown(name) => format!("{name} (not supported)"),
    }
}

fn as_json(table: &Table) -> serde_json::Value {
    let fields = |fields: &[Field]| -> Vec<serde_json::Value> {
        let field = |f: &Field| json!({"name": f.name, "type": type_text(&f.ty), "list": f.is_list, "read_only": f.is_read_only});
        fields.iter().map(field).collect()
    };
    let keys = table
        .keys
        .iter()
        .map(|k| json!({"name": k.name, "match": k.kind.name(), "type": type_text(&k.ty)}));
    let actions = table
        .actions
        .iter()
        .map(|a| json!({"name": a.name, "params": fields(&a.params)}));
    json!({
        "name": table.name,
        "id": table.id,
        "kind": table.kind.name(),
        "size": table.size,
        "const": table.is_const,
        "const_default": table.has_const_default,
        "const_default_action": table.const_default_action,
        "priority": table.priority.is_some(),
        "keys": keys.collect::<Vec<_>>(),
        "actions": actions.collect::<Vec<_>>(),
        "data": fields(&table.data),
    })
}

/// Ports of a BF Runtime device.
pub async fn ports(client: &Client, is_json: bool) -> Result<u8> {
    let schema = client.schema();
    let found = schema.tables.iter().find(|t| t.name == "$PORT");
    let Some(table) = found.filter(|t| matches!(t.kind, Kind::Other(_))) else {
        anyhow::bail!("P4Runtime tells nothing of ports; `weir run --watch` and its --http ADDR do");
    };
    let mut out = crate::output::stdout();
    for entry in client.entries(table).await? {
        if is_json {
            writeln!(out, "{}", weir_client::bulk::entry_to_json(&entry))?;
            continue;
        }
        let shown = |name: &str| entry.get(name).map_or_else(|| "-".to_owned(), ToString::to_string);
        let state = match entry.get("$PORT_UP").and_then(weir_client::Value::as_bool) {
            Some(true) => "up",
            _ => "down",
        };
        let number = entry.matches().first().map(ToString::to_string).unwrap_or_default();
        writeln!(
            out,
            "{number:>6}  {:<8} {state:<5} {:<16} {}",
            shown("$PORT_NAME"),
            shown("$SPEED"),
            if shown("$PORT_ENABLE") == "true" {
                "enabled"
            } else {
                "disabled"
            },
        )?;
    }
    Ok(0)
}
