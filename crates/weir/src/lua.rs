//! `weir build --emit lua`: the program's parser as a dissector for Wireshark.
//!
//! The dissector runs the parser: [`code`] translates each basic block to a function of Lua;
//! `values.lua` has values of any width, `runtime.lua` has packet operations, preferences and the
//! tree. So every parser can be expressed whose decisions depend on no externs but those of
//! [`externs`]. [`needed`] says which variables take part in these decisions; code for others is
//! left out.

mod code;
mod externs;
mod fields;
mod needed;

use needed::Needed;
use weir_ir::{Block, BlockKind, Loc, Program, Type};

/// What a dissector cannot express, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    message: String,
    loc: Loc,
}

impl Unsupported {
    fn new(message: impl Into<String>, loc: Loc) -> Self {
        let message = message.into();
        Unsupported { message, loc }
    }

    /// The message with its place: `FILE:LINE:COLUMN: …`.
    pub fn with_place(&self, program: &Program) -> String {
        if self.loc.line == 0 {
            return self.message.clone();
        }
        format!("{}: {}", weir_arch::place(program, self.loc), self.message)
    }
}

/// Bytes of the header that a Tofino puts before a frame.
const TOFINO_HEADER: u32 = 8;
/// Bytes of the port's metadata that follow it, by target.
const TOFINO_METADATA: [(&str, u32); 2] = [("tna", 8), ("t2na", 24)];
const TOFINO_HEADER_TYPE: &str = "ingress_intrinsic_metadata_t";

/// The script for a program of this name.
///
/// # Errors
/// It has no parser of received frames, or such a parser decides by what Lua cannot compute.
pub fn script(program: &Program, stem: &str) -> Result<String, Vec<Unsupported>> {
    let parsers: Vec<&Block> = program.blocks.iter().filter(|block| takes_frames(block)).collect();
    if parsers.is_empty() {
        return Err(vec![Unsupported::new(
            "there is no parser of received frames",
            Loc::default(),
        )]);
    }
    let stem = identifier(stem);
    let mut text = format!(
        "-- A dissector for Wireshark: the parser of {stem}, written by `weir build --emit lua`.\n\n{}",
        concat!(include_str!("lua/values.lua"), "\n", include_str!("lua/runtime.lua"))
    );
    let mut errors = Vec::new();
    for block in &parsers {
        let name = match parsers.len() {
            1 => format!("p4_{stem}"),
            _ => format!("p4_{stem}_{}", identifier(&block.role)),
        };
        match definition(program, block, &name) {
            Ok(definition) => text += &format!("\n{definition}"),
            Err(mut found) => errors.append(&mut found),
        }
    }
    if errors.is_empty() { Ok(text) } else { Err(errors) }
}

/// Whether a block is a parser of frames as they are received. Egress parsers are not: there is no
/// capture of what they read.
fn takes_frames(block: &Block) -> bool {
    block.kind == BlockKind::Parser && !block.role.contains("egress")
}

/// The call that registers a parser.
fn definition(program: &Program, block: &Block, name: &str) -> Result<String, Vec<Unsupported>> {
    let needed = Needed::of(program, block)?;
    let fields = fields::Fields::of(program, block, name);
    let prefix = prefix(program);
    let inputs = inputs(program, &needed, prefix.is_some());
    let sets = needed.sets.iter().map(|id| {
        let set = &program.value_sets[*id];
        let widths: Vec<String> = set.fields.iter().map(|field| field.width.to_string()).collect();
        format!(
            "        {{ pref = {}, label = {}, widths = {{ {} }} }},\n",
            quote(&identifier(&set.name)),
            quote(&format!("Value set {}", set.name)),
            widths.join(", ")
        )
    });
    let sets: String = sets.collect();
    let blocks = code::Code::new(program, block, &needed).text()?;
    let title = quote(&format!("P4 program {}", name.trim_start_matches("p4_")));
    let errors: Vec<String> = program
        .errors
        .iter()
        .enumerate()
        .map(|(code, error)| format!("[{code}] = {}", quote(error)))
        .collect();
    let codes = ["PacketTooShort", "HeaderTooShort", "ParserInvalidArgument"]
        .iter()
        .filter_map(|error| Some(format!("{error} = {}", program.error_code(error)?)));
    let codes: Vec<String> = codes.collect();
    Ok(format!(
        "register({{\n    name = {name}, title = {title},\n    fields = {{\n{fields}    }},\n    headers = {{\n{headers}    }},\n    \
         inputs = {{\n{inputs}    }},\n    sets = {{\n{sets}    }},\n    prefix = {prefix},\n    \
         errors = {{ {errors} }},\n    codes = {{ {codes} }},\n{blocks}}})\n",
        name = quote(name),
        fields = fields.list(),
        headers = fields.headers(),
        prefix = prefix.unwrap_or_else(|| "nil".to_owned()),
        errors = errors.join(", "),
        codes = codes.join(", "),
    ))
}

/// What a Tofino puts before a frame: its width, and the place of the ingress port.
fn prefix(program: &Program) -> Option<String> {
    let (_, metadata) = TOFINO_METADATA.iter().find(|(target, _)| *target == program.target)?;
    let width = (TOFINO_HEADER + metadata) * 8;
    let header = program
        .header_types
        .iter()
        .find(|(_, ty)| ty.name == TOFINO_HEADER_TYPE);
    let mut place = String::new();
    let mut at = 0;
    for field in header.iter().flat_map(|(_, ty)| &ty.fields) {
        if let Type::Bits(bits) = field.ty {
            if field.name == "ingress_port" {
                place = format!(", port = {at}, port_width = {bits}");
            }
            at += bits;
        }
    }
    Some(format!("{{ width = {width}{place} }}"))
}

/// What the architecture gives the parser beside the packet. Variables that have the same last name
/// share a preference.
fn inputs(program: &Program, needed: &Needed, has_prefix: bool) -> String {
    let mut text = String::new();
    if has_prefix {
        text += "        { pref = \"ingress_port\", label = \"Ingress port\", width = 32 },\n";
    }
    for var in &needed.inputs {
        let variable = &program.vars[*var];
        let last = variable.name.rsplit('.').next().unwrap_or(&variable.name);
        text += &format!(
            "        {{ var = {}, pref = {}, label = {}, width = {} }},\n",
            var.index(),
            quote(&identifier(last)),
            quote(&variable.name),
            variable.ty.width()
        );
    }
    text
}

/// A name as filters and preferences allow it.
fn identifier(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// A string of Lua. Names of programs are printable, but file names may have anything.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted += &format!("\\{}", byte as char),
            b' '..=b'~' => quoted.push(byte as char),
            _ => quoted += &format!("\\{byte:03}"),
        }
    }
    quoted + "\""
}
