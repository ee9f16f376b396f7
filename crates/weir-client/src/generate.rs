//! Generates Rust types for the tables of a program: see [`crate::typed`].
//!
//! In a build script:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_client::{Schema, generate};
//! // What `weir build -o DIR` has written.
//! let text = std::fs::read_to_string("router.p4info.txtpb")?;
//! let info = weir_proto::text::from_text(&text)?;
//! let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?).join("router.rs");
//! std::fs::write(out, generate::module(&Schema::from_p4info(&info)))?;
//! # Ok(()) }
//! ```
//!
//! and `include!(concat!(env!("OUT_DIR"), "/router.rs"));` in a module.

use crate::schema::{Digest, Field, Kind, MatchKind, Schema, Table, Type};
use crate::typed::{has_a_type, without_a_type};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The source of a module with a type per table, key, action, digest and register. Objects without
/// a type (indirect tables, keys that are texts or have more than 128 bits) are listed in a
/// comment; they can be accessed by name.
#[must_use]
pub fn module(schema: &Schema) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_module(&mut out, schema);
    out
}

fn write_module(out: &mut String, schema: &Schema) -> std::fmt::Result {
    writeln!(
        out,
        "// Made by `weir build --emit rust`: changes are lost when it is made again.\n"
    )?;
    let untyped = without_a_type(schema);
    if !untyped.is_empty() {
        writeln!(
            out,
            "// Without a type, to be written by name: {}.\n",
            untyped.join(", ")
        )?;
    }
    let tables: Vec<&Table> = schema.tables.iter().map(|t| &**t).filter(|t| has_a_type(t)).collect();
    let records: Vec<(&str, Vec<Field>, &str)> = registers(schema).chain(digests(schema)).collect();
    let all = tables
        .iter()
        .map(|t| t.name.as_str())
        .chain(records.iter().map(|(name, ..)| *name));
    let names = type_names(all);
    for table in &tables {
        write_table(out, table, &names[table.name.as_str()])?;
    }
    for (name, fields, what) in &records {
        write_record(out, name, fields, what, &names[*name])?;
    }
    Ok(())
}

fn fits(field: &Field) -> bool {
    field.ty.width().is_some_and(|w| (1..=128).contains(&w)) && !field.is_list
}

fn registers(schema: &Schema) -> impl Iterator<Item = (&str, Vec<Field>, &'static str)> {
    let registers = schema.tables.iter().filter(|t| t.kind == Kind::Register);
    let registers = registers.filter(|t| !t.data.is_empty() && t.data.iter().all(fits));
    registers.map(|t| (t.name.as_str(), t.data.clone(), "A value of the register"))
}

fn digests(schema: &Schema) -> impl Iterator<Item = (&str, Vec<Field>, &'static str)> {
    let fields = |digest: &Digest| match &digest.ty {
        Type::Record(fields) if fields.iter().all(fits) => Some(fields.clone()),
        ty if ty.width().is_some() => Some(vec![Field::new(0, "value", ty.clone())]),
        _ => None,
    };
    schema
        .digests
        .iter()
        .filter_map(move |d| fields(d).map(|f| (d.name.as_str(), f, "An element of the digest")))
}

fn write_table(out: &mut String, table: &Table, name: &str) -> std::fmt::Result {
    let keys = field_names(table.keys.iter().map(|k| k.name.as_str()));
    let priority = if table.priority.is_some() { "self.priority" } else { "0" };
    writeln!(out, "/// An entry of `{}`.", table.name)?;
    writeln!(
        out,
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub struct {name} {{"
    )?;
    writeln!(out, "    /// What it matches.\n    pub key: {name}Key,")?;
    if table.priority.is_some() {
        writeln!(
            out,
            "    /// Which of several entries that match wins.\n    pub priority: u32,"
        )?;
    }
    writeln!(out, "    /// What it does.\n    pub action: {name}Action,\n}}\n")?;

    writeln!(out, "/// The key of `{}`.", table.name)?;
    writeln!(
        out,
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub struct {name}Key {{"
    )?;
    for (key, field) in table.keys.iter().zip(&keys) {
        let ty = key_type(key.kind, key.ty.width().unwrap_or(1));
        writeln!(
            out,
            "    /// `{}`: {}.\n    pub {field}: {ty},",
            key.name,
            key.kind.name()
        )?;
    }
    writeln!(out, "}}\n")?;
    write_key_impl(out, table, name, &keys)?;
    write_actions(out, table, name)?;

    writeln!(out, "impl weir_client::typed::TableEntry for {name} {{")?;
    writeln!(out, "    const NAME: &'static str = {:?};", table.name)?;
    writeln!(out, "    const HAS_PRIORITY: bool = {};", table.priority.is_some())?;
    writeln!(out, "    type Key = {name}Key;\n    type Action = {name}Action;")?;
    writeln!(out, "    fn key(&self) -> &{name}Key {{\n        &self.key\n    }}")?;
    writeln!(out, "    fn priority(&self) -> u32 {{\n        {priority}\n    }}")?;
    writeln!(
        out,
        "    fn action(&self) -> &{name}Action {{\n        &self.action\n    }}"
    )?;
    let (parameter, field) = if table.priority.is_some() {
        ("priority", "priority, ")
    } else {
        ("_", "")
    };
    writeln!(
        out,
        "    fn new(key: {name}Key, {parameter}: u32, action: {name}Action) -> Self {{"
    )?;
    writeln!(out, "        {name} {{ key, {field}action }}\n    }}\n}}\n")
}

fn write_key_impl(out: &mut String, table: &Table, name: &str, keys: &[String]) -> std::fmt::Result {
    let is_empty = keys.is_empty();
    writeln!(out, "impl weir_client::typed::TableKey for {name}Key {{")?;
    writeln!(
        out,
        "    const KEYS: &'static [(&'static str, (u32, &'static str))] = &["
    )?;
    for key in &table.keys {
        let ty = key_type(key.kind, key.ty.width().unwrap_or(1));
        writeln!(
            out,
            "        ({:?}, <{ty} as weir_client::typed::Key>::SHAPE),",
            key.name
        )?;
    }
    writeln!(out, "    ];")?;
    let numbers = if is_empty { "_" } else { "out" };
    writeln!(out, "    fn numbers(&self, {numbers}: &mut Vec<u128>) -> bool {{")?;
    let calls = keys
        .iter()
        .map(|k| format!("weir_client::typed::Key::numbers(&self.{k}, out)"));
    let calls: Vec<String> = calls.collect();
    let body = if is_empty {
        "true".to_owned()
    } else {
        calls.join("\n            && ")
    };
    writeln!(out, "        {body}\n    }}")?;
    let matches = keys
        .iter()
        .map(|k| format!("weir_client::typed::Key::to_match(&self.{k})"));
    let matches: Vec<String> = matches.collect();
    writeln!(out, "    fn to_matches(&self) -> Vec<weir_client::Match> {{")?;
    writeln!(out, "        vec![{}]\n    }}", matches.join(", "))?;
    writeln!(
        out,
        "    fn from_matches(keys: &[weir_client::Match]) -> Option<Self> {{"
    )?;
    let places: Vec<String> = (0..keys.len()).map(|i| format!("k{i}")).collect();
    writeln!(
        out,
        "        let [{}] = keys else {{\n            return None;\n        }};",
        places.join(", ")
    )?;
    writeln!(out, "        Some({name}Key {{")?;
    for (field, place) in keys.iter().zip(&places) {
        writeln!(
            out,
            "            {field}: weir_client::typed::Key::from_match({place})?,"
        )?;
    }
    writeln!(out, "        }})\n    }}\n}}\n")
}

fn write_actions(out: &mut String, table: &Table, name: &str) -> std::fmt::Result {
    let variants = type_names(table.actions.iter().map(|a| a.name.as_str()));
    let params: Vec<Vec<String>> = table
        .actions
        .iter()
        .map(|a| field_names(a.params.iter().map(|p| p.name.as_str())))
        .collect();
    let actions = || table.actions.iter().zip(&params);
    writeln!(out, "/// What an entry of `{}` does.", table.name)?;
    writeln!(
        out,
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub enum {name}Action {{"
    )?;
    for (action, params) in actions() {
        writeln!(out, "    /// `{}`", action.name)?;
        let variant = &variants[action.name.as_str()];
        if params.is_empty() {
            writeln!(out, "    {variant},")?;
            continue;
        }
        writeln!(out, "    {variant} {{")?;
        for (param, field) in action.params.iter().zip(params) {
            let ty = number_type(param.ty.width().unwrap_or(1));
            writeln!(out, "        /// `{}`\n        {field}: {ty},", param.name)?;
        }
        writeln!(out, "    }},")?;
    }
    writeln!(out, "}}\n\nimpl weir_client::typed::TableAction for {name}Action {{")?;
    writeln!(
        out,
        "    const ACTIONS: &'static [(&'static str, &'static [weir_client::typed::Shape])] = &["
    )?;
    for (action, _) in actions() {
        let shapes = action
            .params
            .iter()
            .map(|p| format!("({:?}, {})", p.name, p.ty.width().unwrap_or(1)));
        writeln!(
            out,
            "        ({:?}, &[{}]),",
            action.name,
            shapes.collect::<Vec<_>>().join(", ")
        )?;
    }
    writeln!(out, "    ];\n    fn place(&self) -> usize {{\n        match self {{")?;
    for (place, (action, params)) in actions().enumerate() {
        let rest = if params.is_empty() { "" } else { " { .. }" };
        writeln!(
            out,
            "            {name}Action::{}{rest} => {place},",
            variants[action.name.as_str()]
        )?;
    }
    let has_params = params.iter().any(|p| !p.is_empty());
    let parameter = if has_params { "out" } else { "_" };
    writeln!(
        out,
        "        }}\n    }}\n    fn numbers(&self, {parameter}: &mut Vec<u128>) {{\n        match self {{"
    )?;
    for (action, params) in actions() {
        let variant = &variants[action.name.as_str()];
        if params.is_empty() {
            writeln!(out, "            {name}Action::{variant} => {{}}")?;
            continue;
        }
        let numbers: Vec<String> = params
            .iter()
            .map(|p| format!("weir_client::typed::Number::to_number(*{p})"))
            .collect();
        writeln!(
            out,
            "            {name}Action::{variant} {{ {} }} => {{",
            params.join(", ")
        )?;
        writeln!(
            out,
            "                out.extend([{}]);\n            }}",
            numbers.join(", ")
        )?;
    }
    writeln!(
        out,
        "        }}\n    }}\n    fn from_numbers(place: usize, arguments: &[u128]) -> Option<Self> {{"
    )?;
    writeln!(out, "        match (place, arguments) {{")?;
    for (place, (action, params)) in actions().enumerate() {
        let variant = &variants[action.name.as_str()];
        let arguments: Vec<String> = (0..params.len()).map(|i| format!("a{i}")).collect();
        write!(
            out,
            "            ({place}, [{}]) => Some({name}Action::{variant}",
            arguments.join(", ")
        )?;
        if !params.is_empty() {
            let fields = params.iter().zip(&arguments);
            let fields = fields.map(|(p, a)| format!("{p}: weir_client::typed::Number::from_number(*{a})?"));
            write!(out, " {{ {} }}", fields.collect::<Vec<_>>().join(", "))?;
        }
        writeln!(out, "),")?;
    }
    writeln!(out, "            _ => None,\n        }}\n    }}\n}}\n")
}

fn write_record(out: &mut String, full: &str, fields: &[Field], what: &str, name: &str) -> std::fmt::Result {
    let names = field_names(fields.iter().map(|f| f.name.as_str()));
    writeln!(out, "/// {what} `{full}`.")?;
    writeln!(
        out,
        "#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\npub struct {name} {{"
    )?;
    for (field, ident) in fields.iter().zip(&names) {
        let ty = number_type(field.ty.width().unwrap_or(1));
        writeln!(out, "    /// `{}`\n    pub {ident}: {ty},", field.name)?;
    }
    writeln!(out, "}}\n\nimpl weir_client::typed::Record for {name} {{")?;
    writeln!(out, "    const NAME: &'static str = {full:?};")?;
    let shapes = fields
        .iter()
        .map(|f| format!("({:?}, {})", f.name, f.ty.width().unwrap_or(1)));
    let shapes: Vec<String> = shapes.collect();
    writeln!(
        out,
        "    const FIELDS: &'static [weir_client::typed::Shape] = &[{}];",
        shapes.join(", ")
    )?;
    let places: Vec<String> = (0..fields.len()).map(|i| format!("n{i}")).collect();
    writeln!(out, "    fn from_numbers(numbers: &[u128]) -> Option<Self> {{")?;
    writeln!(
        out,
        "        let [{}] = numbers else {{\n            return None;\n        }};",
        places.join(", ")
    )?;
    let values = names.iter().zip(&places);
    let values = values.map(|(n, p)| format!("{n}: weir_client::typed::Number::from_number(*{p})?"));
    writeln!(
        out,
        "        Some({name} {{ {} }})\n    }}",
        values.collect::<Vec<_>>().join(", ")
    )?;
    let numbers = names
        .iter()
        .map(|n| format!("weir_client::typed::Number::to_number(self.{n})"));
    let numbers: Vec<String> = numbers.collect();
    writeln!(
        out,
        "    fn numbers(&self) -> Vec<u128> {{\n        vec![{}]\n    }}\n}}\n",
        numbers.join(", ")
    )
}

fn number_type(width: u32) -> String {
    match width {
        8 | 16 | 32 | 64 | 128 => format!("u{width}"),
        other => format!("weir_client::typed::Bits<{other}>"),
    }
}

fn key_type(kind: MatchKind, width: u32) -> String {
    let number = number_type(width);
    match kind {
        MatchKind::Exact => number,
        MatchKind::Lpm => format!("weir_client::typed::Prefix<{number}>"),
        MatchKind::Ternary => format!("weir_client::typed::Masked<{number}>"),
        MatchKind::Range => format!("weir_client::typed::Range<{number}>"),
        MatchKind::Optional => format!("Option<{number}>"),
    }
}

/// Type names: the shortest unique ones, `RouterIngress.ipv4_lpm` as `Ipv4Lpm`.
fn type_names<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, String> {
    let names: Vec<&str> = names.collect();
    let mut chosen = HashMap::new();
    let mut taken = HashSet::new();
    for name in &names {
        let parts: Vec<&str> = name.split('.').collect();
        let tail = |count: usize| parts[parts.len() - count..].join("_");
        let is_unique = |count: usize| {
            let end = format!(".{}", parts[parts.len() - count..].join("."));
            names.iter().filter(|n| format!(".{n}").ends_with(&end)).count() == 1
        };
        let count = (1..=parts.len()).find(|count| is_unique(*count)).unwrap_or(parts.len());
        let mut ident = camel(&tail(count));
        while !taken.insert(ident.clone()) {
            ident.push('X');
        }
        chosen.insert(*name, ident);
    }
    chosen
}

fn camel(name: &str) -> String {
    let mut out = String::new();
    for word in name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
    {
        let (first, rest) = word.split_at(1);
        out += &first.to_ascii_uppercase();
        out += rest;
    }
    match out.chars().next() {
        Some(first) if first.is_ascii_alphabetic() && out != "Self" => out,
        _ => format!("T{out}"),
    }
}

/// Field names: the last part if it is unique, `hdr.ipv4.dst_addr` as `dst_addr`.
fn field_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let last = |name: &str| snake(name.rsplit('.').next().unwrap_or(name));
    let short: Vec<String> = names.iter().map(|n| last(n)).collect();
    let mut taken = HashSet::new();
    names
        .iter()
        .zip(&short)
        .map(|(name, ident)| {
            let is_unique = short.iter().filter(|s| *s == ident).count() == 1;
            let mut ident = if is_unique { ident.clone() } else { snake(name) };
            while !taken.insert(ident.clone()) {
                ident.push('_');
            }
            ident
        })
        .collect()
}

/// Keywords of Rust.
const KEYWORDS: &str = " abstract as async await become box break const continue crate do dyn else enum extern false final fn for \
                        gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super \
                        trait true try type typeof unsafe unsized use virtual where while yield _ ";

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
    }
    let out = out.trim_end_matches('_').to_owned();
    let is_number = out.chars().next().is_none_or(|c| c.is_ascii_digit());
    if is_number {
        return format!("f{out}");
    }
    if KEYWORDS.contains(&format!(" {out} ")) {
        format!("{out}_")
    } else {
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_as_short_as_they_are_unique() {
        let names = type_names(["A.x_y", "B.x_y", "A.acl", "A.1"].into_iter());
        assert_eq!(names["A.x_y"], "AXY");
        assert_eq!(names["B.x_y"], "BXY");
        assert_eq!(names["A.acl"], "Acl");
        assert_eq!(names["A.1"], "T1");
        let fields = field_names(["h.a.dst", "h.b.dst", "h.type", "h.v[0].isValid()"].into_iter());
        assert_eq!(fields, ["h_a_dst", "h_b_dst", "type_", "isvalid"]);
    }
}
