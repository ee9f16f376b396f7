//! Headers and their fields, as Wireshark knows them.

use super::{identifier, quote};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::{Block, Call, Display, HeaderField, HeaderId, InLeaf, InstKind, Program, Type};

/// How a field is shown: the kind of its values in `runtime.lua`, and the function of `ProtoField`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    kind: &'static str,
    constructor: &'static str,
    /// Members of an enum: value and name.
    names: Vec<(u64, String)>,
}

/// A field of a filter.
#[derive(Debug)]
struct Field {
    abbreviation: String,
    label: String,
    shape: Shape,
}

/// The headers that a parser extracts, or sums up.
#[derive(Debug, Default)]
pub(super) struct Fields {
    fields: Vec<Field>,
    /// The lines of the table of headers.
    headers: String,
}

impl Fields {
    /// Those of a parser whose names begin with `name`.
    pub fn of(program: &Program, block: &Block, name: &str) -> Self {
        let mut used = BTreeSet::new();
        for basic in block.body.blocks.iter().map(|(_, basic)| basic) {
            for inst in &basic.insts {
                match &inst.kind {
                    InstKind::Extract { header, .. } => {
                        used.insert(*header);
                    }
                    InstKind::Call(call) => used.extend(headers(call)),
                    InstKind::Assign { .. }
                    | InstKind::Lookahead { .. }
                    | InstKind::Advance { .. }
                    | InstKind::PacketLength { .. }
                    | InstKind::Emit { .. }
                    | InstKind::Mark(_) => {}
                }
            }
        }
        let mut fields = Fields::default();
        let mut numbers = BTreeMap::new();
        for header in used {
            fields.add_header(program, header, name, &mut numbers);
        }
        fields
    }

    fn add_header(&mut self, program: &Program, id: HeaderId, name: &str, numbers: &mut BTreeMap<String, usize>) {
        let header = &program.headers[id];
        let ty = &program.header_types[header.ty];
        let prefix = format!("{name}.{}", path(program, &header.name));
        let mut members = String::new();
        let mut varbit = 0;
        // A header that is before the frame is read and not shown.
        let is_shown = ty.name != super::TOFINO_HEADER_TYPE;
        for (field, var) in ty.fields.iter().zip(&header.fields) {
            let number = if is_shown {
                format!("field = {}, ", self.number(program, &prefix, field, numbers))
            } else {
                String::new()
            };
            let size = match field.ty {
                Type::Bits(width) => format!("width = {width}"),
                Type::Varbit(most) => {
                    varbit = most;
                    "varbit = true".to_owned()
                }
            };
            members += &format!("            {{ var = {}, {number}{size} }},\n", var.index());
        }
        self.headers += &format!(
            "        [{}] = {{ label = {}, valid = {}, width = {}, varbit = {varbit}, fields = {{\n{members}        }} }},\n",
            id.index(),
            quote(&format!("{} ({})", header.name, ty.name)),
            header.valid.index(),
            ty.fixed_width(),
        );
    }

    /// The number of a field, from 1. Elements of a stack have the same fields; other headers whose
    /// names are alike in filters get names of their own where their fields differ.
    fn number(
        &mut self,
        program: &Program,
        prefix: &str,
        field: &HeaderField,
        numbers: &mut BTreeMap<String, usize>,
    ) -> usize {
        let shape = shape(program, field);
        let plain = format!("{prefix}.{}", dotted(&field.name));
        let mut abbreviation = plain.clone();
        for attempt in 2.. {
            match numbers.get(&abbreviation) {
                Some(number) if self.fields[*number - 1].shape == shape => return *number,
                Some(_) => abbreviation = format!("{plain}_{attempt}"),
                None => break,
            }
        }
        self.fields.push(Field {
            abbreviation: abbreviation.clone(),
            label: field.name.clone(),
            shape,
        });
        numbers.insert(abbreviation, self.fields.len());
        self.fields.len()
    }

    /// The table of fields.
    pub fn list(&self) -> String {
        let lines = self.fields.iter().map(|field| {
            let names: Vec<String> = field
                .shape
                .names
                .iter()
                .map(|(value, name)| format!("[{value}] = {}", quote(name)))
                .collect();
            let names = if names.is_empty() {
                String::new()
            } else {
                format!(", names = {{ {} }}", names.join(", "))
            };
            format!(
                "        {{ abbr = {}, label = {}, kind = {}, type = {}{names} }},\n",
                quote(&field.abbreviation),
                quote(&field.label),
                quote(field.shape.kind),
                quote(field.shape.constructor)
            )
        });
        lines.collect()
    }

    /// The table of headers, by their numbers in the IR.
    pub fn headers(&self) -> &str {
        &self.headers
    }
}

/// The headers that a call is given.
fn headers(call: &Call) -> impl Iterator<Item = HeaderId> + '_ {
    let leaves = (0..call.arguments.len()).flat_map(|index| call.inputs(index));
    leaves.filter_map(|leaf| match leaf {
        InLeaf::Header(id) => Some(*id),
        InLeaf::Value(_) => None,
    })
}

/// A header's name in filters: without the name of the group around it, and without indices.
fn path(program: &Program, name: &str) -> String {
    let groups = program.shared.iter().map(|group| group.name.as_str());
    let inner = groups
        .filter_map(|group| name.strip_prefix(group)?.strip_prefix('.'))
        .next()
        .unwrap_or(name);
    let mut plain = String::new();
    let mut depth = 0;
    for c in inner.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    dotted(&plain)
}

/// A path with its dots.
fn dotted(path: &str) -> String {
    path.split('.').map(identifier).collect::<Vec<_>>().join(".")
}

/// How a field is shown.
fn shape(program: &Program, field: &HeaderField) -> Shape {
    let shape = |kind, constructor| Shape {
        kind,
        constructor,
        names: Vec::new(),
    };
    let width = match field.ty {
        Type::Varbit(_) => return shape("bytes", "bytes"),
        Type::Bits(width) => width,
    };
    match field.display {
        Display::Bool => return shape("bool", "bool"),
        Display::Signed if width <= 32 => return shape("int", "int32"),
        Display::Signed if width <= 64 => return shape("int64", "int64"),
        Display::Enum(id) if width <= 32 => {
            let ty = &program.enums[id];
            let values = ty.values.iter().flatten().filter_map(weir_ir::Bits::to_u64);
            return Shape {
                names: values.zip(ty.members.iter().cloned()).collect(),
                ..shape("uint", "uint32")
            };
        }
        Display::Unsigned | Display::Signed | Display::Error | Display::Enum(_) => {}
    }
    let is_address = is_address(&field.name);
    match width {
        48 if is_address => shape("ether", "ether"),
        32 if is_address => shape("ipv4", "ipv4"),
        128 if is_address => shape("ipv6", "ipv6"),
        0..=8 => shape("uint", "uint8"),
        9..=16 => shape("uint", "uint16"),
        17..=24 => shape("uint", "uint24"),
        25..=32 => shape("uint", "uint32"),
        33..=64 => shape("uint64", "uint64"),
        _ => shape("bytes", "bytes"),
    }
}

/// Whether a field of the width of an address is one, by its name: P4 has no types for them.
fn is_address(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or(&name);
    let mut words = last.split('_');
    let whole = ["dst", "src", "mac", "ip", "sha", "tha", "spa", "tpa"];
    words.any(|word| whole.contains(&word)) || last.contains("addr")
}
