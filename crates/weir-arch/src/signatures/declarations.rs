//! The heads of extern declarations, read from P4 text.

use std::collections::{HashMap, HashSet};

/// How an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    None,
    In,
    Out,
    InOut,
}

/// A parameter of a function, method or constructor.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    pub name: String,
    /// Its type without spaces.
    pub ty: String,
    pub direction: Direction,
    pub optional: bool,
}

/// A function, method or constructor.
#[derive(Debug, Clone)]
pub(super) struct Signature {
    pub type_parameters: Vec<String>,
    pub parameters: Vec<Parameter>,
    /// Type of the result without spaces; empty for a constructor.
    pub result: String,
    /// A macro stands among the parameters: what it stands for is not read.
    pub is_open: bool,
}

/// An extern type.
#[derive(Debug, Default)]
pub(super) struct ExternType {
    /// Its type parameters, as each of its heads has them.
    pub parameters: Vec<Vec<String>>,
    /// Methods and constructors by name.
    pub methods: HashMap<String, Vec<Signature>>,
}

/// The declarations of files.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    pub types: HashMap<String, ExternType>,
    pub functions: HashMap<String, Vec<Signature>>,
    /// Widths of enums and names of bit strings.
    names: HashMap<String, u32>,
    /// Functions and methods that macros declare: these are not read.
    pub in_macros: HashSet<String>,
}

impl Declarations {
    pub(super) fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Declarations::default();
        let texts: Vec<&str> = texts.collect();
        all.in_macros = texts.iter().flat_map(|text| named_in_macros(text)).collect();
        let texts = texts.into_iter();
        for text in texts {
            let tokens = tokens(text);
            all.named_widths(&tokens);
            all.externs(&tokens);
        }
        all
    }

    /// Bits of a type that is one scalar, where that is known.
    pub(super) fn width(&self, ty: &str) -> Option<u32> {
        match ty {
            "bool" => Some(1),
            "error" => Some(32),
            _ => bits(ty).or_else(|| self.names.get(ty).copied()),
        }
    }

    /// `enum NAME {`, `enum bit<W> NAME {`, `typedef bit<W> NAME;`, `type bit<W> NAME`.
    fn named_widths(&mut self, tokens: &[&str]) {
        for (index, token) in tokens.iter().enumerate() {
            let rest = &tokens[index + 1..];
            match (*token, rest) {
                ("enum", [name, "{", ..]) => {
                    self.names.insert((*name).to_owned(), 32);
                }
                ("enum" | "typedef" | "type", ["bit" | "int", "<", width, ">", name, ..]) => {
                    if let Ok(width) = width.parse() {
                        self.names.insert((*name).to_owned(), width);
                    }
                }
                _ => {}
            }
        }
    }

    fn externs(&mut self, tokens: &[&str]) {
        let mut heads: Vec<Vec<String>> = Vec::new();
        for (index, _) in tokens.iter().enumerate().filter(|(_, t)| **t == "extern") {
            let rest = &tokens[index + 1..];
            let end = rest.iter().position(|t| matches!(*t, "(" | "{" | ";" | "extern"));
            let Some(end) = end else { continue };
            let (head, rest) = rest.split_at(end);
            match (head, rest.first()) {
                // One of several heads of the same type, of which `#if` chooses one.
                ([_, parameters @ ..], Some(&"extern")) => heads.push(list(parameters)),
                ([name, parameters @ ..], Some(&"{")) => {
                    let ty = self.types.entry((*name).to_owned()).or_default();
                    ty.parameters.append(&mut heads);
                    ty.parameters.push(list(parameters));
                    let body = up_to_close(&rest[1..]);
                    for member in body.split(|t| *t == ";") {
                        if let Some((name, signature)) = signature(member) {
                            ty.methods.entry(name).or_default().push(signature);
                        }
                    }
                }
                (_, Some(&"(")) => {
                    let end = rest.iter().position(|t| *t == ";").unwrap_or(rest.len());
                    if let Some((name, signature)) = signature(&tokens[index + 1..index + 1 + head.len() + end]) {
                        self.functions.entry(name).or_default().push(signature);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The width in `bit<8>` and `int<8>`.
fn bits(ty: &str) -> Option<u32> {
    let inner = ty.strip_prefix("bit<").or_else(|| ty.strip_prefix("int<"))?;
    inner.strip_suffix('>')?.parse().ok()
}

/// Words and punctuation of a P4 text, without comments, lines for the preprocessor and annotations
/// but `@optional`.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut in_comment = false;
    for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
        let mut rest = line.split("//").next().unwrap_or("").trim_start();
        while let Some(c) = rest.chars().next() {
            if in_comment || rest.starts_with("/*") {
                let end = rest.find("*/");
                in_comment = end.is_none();
                rest = end.map_or("", |end| &rest[end + 2..]).trim_start();
                continue;
            }
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = match c {
                '@' => 1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1),
                '"' => rest[1..].find('"').map_or(rest.len(), |e| e + 2),
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            found.push(&rest[..length]);
            rest = rest[length..].trim_start();
        }
    }
    without_annotations(&found)
}

fn without_annotations<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        if tokens[index].starts_with('@') && tokens[index] != "@optional" {
            index += 1;
            if tokens.get(index) == Some(&"(") {
                index += tokens[index..].iter().position(|t| *t == ")").map_or(1, |e| e + 1);
            }
            continue;
        }
        found.push(tokens[index]);
        index += 1;
    }
    found
}

/// The tokens up to the closing brace.
fn up_to_close<'a, 'b>(tokens: &'b [&'a str]) -> &'b [&'a str] {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" => depth += 1,
            "}" if depth == 0 => return &tokens[..index],
            "}" => depth -= 1,
            _ => {}
        }
    }
    tokens
}

/// Names before a parenthesis in the bodies of `#define`, which may continue over several lines.
fn named_in_macros(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let bodies = joined
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("#define"));
    let names = bodies.flat_map(|body| {
        let heads = body.split('(').rev().skip(1).map(|before| {
            let before = before.trim_end();
            // Type parameters stand between.
            let before = before
                .rsplit_once('<')
                .filter(|_| before.ends_with('>'))
                .map_or(before, |(name, _)| name);
            let start = before
                .rfind(|c: char| !c.is_alphanumeric() && c != '_')
                .map_or(0, |index| index + 1);
            before[start..].to_owned()
        });
        heads.collect::<Vec<_>>()
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// `<A, B>`
fn list(tokens: &[&str]) -> Vec<String> {
    let names = tokens.iter().filter(|t| !matches!(**t, "<" | ">" | ","));
    names.map(|t| (*t).to_owned()).collect()
}

/// `[abstract] RESULT NAME<TYPES>(PARAMETERS)`
fn signature(tokens: &[&str]) -> Option<(String, Signature)> {
    let tokens: Vec<&str> = tokens.iter().copied().filter(|t| *t != "abstract").collect();
    let open = tokens.iter().position(|t| *t == "(")?;
    let close = tokens.iter().rposition(|t| *t == ")")?;
    let (mut head, parameters) = (&tokens[..open], tokens.get(open + 1..close)?);
    let mut type_parameters = Vec::new();
    if head.last() == Some(&">") {
        let start = head.iter().rposition(|t| *t == "<")?;
        type_parameters = list(&head[start..]);
        head = &head[..start];
    }
    let (name, result) = head.split_last()?;
    let parts = split(parameters);
    // A parameter has a type and a name at least.
    let is_open = parts.iter().any(|part| part.len() == 1);
    let signature = Signature {
        type_parameters,
        parameters: parts.into_iter().filter_map(parameter).collect(),
        result: result.concat(),
        is_open,
    };
    Some(((*name).to_owned(), signature))
}

/// Parts between commas that are in no brackets.
fn split<'a, 'b>(tokens: &'b [&'a str]) -> Vec<&'b [&'a str]> {
    let mut depth = 0;
    tokens
        .split(|token| {
            match *token {
                "<" | "(" | "{" => depth += 1,
                ">" | ")" | "}" => depth -= 1,
                _ => {}
            }
            *token == "," && depth == 0
        })
        .collect()
}

fn parameter(tokens: &[&str]) -> Option<Parameter> {
    // The default value of a parameter follows `=`.
    let end = tokens.iter().position(|t| *t == "=").unwrap_or(tokens.len());
    let optional = tokens.contains(&"@optional") || end < tokens.len();
    let tokens: Vec<&str> = tokens[..end].iter().copied().filter(|t| *t != "@optional").collect();
    let (name, ty) = tokens.split_last()?;
    let (direction, ty) = match ty.first() {
        Some(&"in") => (Direction::In, &ty[1..]),
        Some(&"out") => (Direction::Out, &ty[1..]),
        Some(&"inout") => (Direction::InOut, &ty[1..]),
        _ => (Direction::None, ty),
    };
    Some(Parameter {
        name: (*name).to_owned(),
        ty: ty.concat(),
        direction,
        optional,
    })
}
