//! Values as the control plane sees them: `@p4runtime_translation` (specification, section
//! "User-defined types").

use super::bytes;
use super::refusal::Refusal;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use weir_ir::{Bits, ControlType};

/// Names that one translated type may have.
const MAX_NAMES: usize = 1 << 16;
/// Longest name in bytes.
const MAX_NAME: usize = 1024;

/// The strings that stand for the values of one type.
///
/// Some have the value that `@p4runtime_translation_mappings` gives them. Of the others, a string
/// that is a decimal
/// number without zeros before it is that number, unless another string stands for it. Any other,
/// the empty one too,
/// gets a number when it is first used, from the largest one down, and keeps it as long as the
/// program runs.
#[derive(Debug, Default)]
pub struct Dictionary {
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    values: FxHashMap<String, Bits>,
    names: FxHashMap<Bits, String>,
    /// Values tried so far for strings that have none.
    given: u64,
}

impl Dictionary {
    /// With what the program maps.
    fn new(mappings: &[(String, Bits)]) -> Self {
        let mut names = Names::default();
        for (text, value) in mappings {
            names.add(text, value.clone());
        }
        Dictionary {
            names: Mutex::new(names),
        }
    }

    fn value(&self, width: u32, text: &[u8]) -> Result<Bits, Refusal> {
        let text = std::str::from_utf8(text).map_err(|_| Refusal::malformed("the value is a string, in UTF-8"))?;
        if text.len() > MAX_NAME {
            return Err(Refusal::out_of_range(format!(
                "the value is a string of at most {MAX_NAME} bytes"
            )));
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = names.values.get(text) {
            return Ok(value.clone());
        }
        if is_decimal(text) {
            let number: Option<u128> = text.parse().ok();
            let fits = |n: &u128| width >= 128 || n >> width == 0;
            let number = number.filter(fits).map(|n| Bits::new(width, n)).ok_or_else(|| {
                Refusal::out_of_range(format!("the number {text} does not fit in the type's {width} bits"))
            })?;
            if !names.names.contains_key(&number) {
                return Ok(number);
            }
        }
        let value = names.free(width)?;
        names.add(text, value.clone());
        Ok(value)
    }

    fn name(&self, value: &Bits) -> Vec<u8> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.names.get(value) {
            Some(name) => name.clone().into_bytes(),
            None => value.to_biguint().to_string().into_bytes(),
        }
    }
}

impl Names {
    fn add(&mut self, text: &str, value: Bits) {
        self.values.insert(text.to_string(), value.clone());
        self.names.insert(value, text.to_string());
    }

    /// The largest value without a name.
    fn free(&mut self, width: u32) -> Result<Bits, Refusal> {
        let used = self.values.len();
        if used >= MAX_NAMES || (width < 64 && used as u64 >= 1 << width) {
            return Err(Refusal::exhausted("all values of the type have names already"));
        }
        loop {
            let value = Bits::ones(width).sub(&Bits::new(width, self.given.into()));
            self.given += 1;
            if !self.names.contains_key(&value) {
                return Ok(value);
            }
        }
    }
}

fn is_decimal(text: &str) -> bool {
    text == "0" || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0'))
}

/// All dictionaries of a program, by the name of the type.
#[derive(Debug, Default)]
pub struct Dictionaries(FxHashMap<String, Arc<Dictionary>>);

/// How the values of a key, parameter or field are written.
#[derive(Debug, Clone)]
pub struct Codec {
    /// Bits of a value in the switch.
    pub width: u32,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    /// The number itself, of at most this many bits: the smaller width of both sides.
    Number(u32),
    /// Text.
    Text(Arc<Dictionary>),
}

impl Codec {
    /// For values of this width and type.
    pub fn new(width: u32, control: &ControlType, dictionaries: &mut Dictionaries) -> Self {
        let form = match &control.translation {
            Some(translation) if translation.sdn_width.is_none() => {
                let name = control.type_name.as_ref().unwrap_or(&translation.uri);
                let dictionary = || Arc::new(Dictionary::new(&translation.mappings));
                Form::Text(Arc::clone(
                    dictionaries.0.entry(name.clone()).or_insert_with(dictionary),
                ))
            }
            Some(translation) => Form::Number(translation.sdn_width.unwrap_or(width).min(width)),
            None => Form::Number(width),
        };
        Codec { width, form }
    }

    /// Whether values are strings: then they have no masks, prefixes or order.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Text(_))
    }

    /// A value from the control plane.
    ///
    /// # Errors
    /// It does not fit.
    pub fn decode(&self, bytes: &[u8]) -> Result<Bits, Refusal> {
        match &self.form {
            Form::Number(limit) => Ok(bytes::decode(*limit, bytes)?.zero_extend(self.width)),
            Form::Text(dictionary) => dictionary.value(self.width, bytes),
        }
    }

    /// A value for the control plane.
    #[must_use]
    pub fn encode(&self, value: &Bits) -> Vec<u8> {
        match &self.form {
            Form::Number(_) => bytes::encode(value),
            Form::Text(dictionary) => dictionary.name(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_ir::Translation;

    fn text(width: u32) -> Codec {
        mapped(width, &[])
    }

    fn mapped(width: u32, mappings: &[(&str, u128)]) -> Codec {
        let mappings = mappings
            .iter()
            .map(|(text, value)| ((*text).to_owned(), Bits::new(width, *value)));
        let control = ControlType {
            type_name: Some("port_t".to_string()),
            translation: Some(Translation {
                uri: String::new(),
                sdn_width: None,
                mappings: mappings.collect(),
            }),
        };
        Codec::new(width, &control, &mut Dictionaries::default())
    }

    #[test]
    fn strings_are_numbers_or_get_one_and_come_back_as_they_were() {
        let codec = text(9);
        assert_eq!(codec.decode(b"17"), Ok(Bits::new(9, 17)));
        let eth0 = codec.decode(b"eth0").expect("a new name");
        assert_eq!(codec.decode(b"eth0"), Ok(eth0.clone()));
        assert_ne!(codec.decode(b"eth1"), Ok(eth0.clone()));
        assert_eq!(codec.encode(&eth0), b"eth0");
        assert_eq!(codec.encode(&Bits::new(9, 17)), b"17");
        assert!(codec.decode(b"512").is_err() && codec.decode(&[0xff]).is_err());
    }

    #[test]
    fn the_empty_string_is_a_string() {
        let codec = text(9);
        let empty = codec.decode(b"").expect("a new name");
        assert_eq!(codec.encode(&empty), b"");
        assert_ne!(codec.decode(b"eth0"), Ok(empty));
    }

    #[test]
    fn a_program_says_what_some_strings_stand_for() {
        let codec = mapped(10, &[("", 0), ("top", 1023)]);
        assert_eq!(codec.decode(b""), Ok(Bits::new(10, 0)));
        assert_eq!(codec.encode(&Bits::new(10, 0)), b"");
        let fresh = codec.decode(b"vrf-7").expect("a new name");
        assert_eq!(fresh, Bits::new(10, 1022), "1023 has a name");
        let zero = codec.decode(b"0").expect("a new name");
        assert_ne!(
            zero,
            Bits::new(10, 0),
            "0 has a name, and what was written is read back"
        );
        assert_eq!(codec.encode(&zero), b"0");
    }

    #[test]
    fn a_type_has_no_more_names_than_values() {
        let codec = text(1);
        assert!(codec.decode(b"a").is_ok() && codec.decode(b"b").is_ok());
        assert!(codec.decode(b"c").is_err());
    }

    /// Ports in replicas and watch ports have no P4Info that says how they are written: they are
    /// numbers, which is right as long as no architecture has ports that are strings.
    #[test]
    fn ports_of_every_architecture_are_numbers() {
        let files = weir_compiler::system_files(weir_arch::targets());
        let mut translations = 0;
        for (name, text) in &files {
            for line in text.lines().filter(|l| l.contains("@p4runtime_translation(")) {
                assert!(!line.contains("string"), "{name:?}: {line}");
                translations += 1;
            }
        }
        assert!(translations > 0, "PSA has some");
    }
}
