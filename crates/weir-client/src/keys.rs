//! Keys of externs: set and removed, never read back.

use crate::client::Client;
use crate::error::Error;
use crate::schema::{Kind, Table};
use crate::{Entry, Operation, Value};
use std::fmt;
use std::sync::Arc;
use weir_proto::extern_keys::{INDEX, KEY};
use zeroize::Zeroize;

/// The bytes of a key, in the order of the algorithm's specification. They are overwritten when it
/// is dropped, and neither `Debug` nor `Display` shows them. Requests that are being sent hold
/// copies.
///
/// ```
/// use weir_client::KeyMaterial;
/// let key = KeyMaterial::from_hex("000102030405060708090a0b0c0d0e0f").unwrap();
/// assert_eq!(key.to_string(), "a key of 16 bytes");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct KeyMaterial(Vec<u8>);

impl KeyMaterial {
    /// A key of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> KeyMaterial {
        KeyMaterial(bytes)
    }

    /// A key written as hexadecimal digits, with white space between bytes or without.
    ///
    /// # Errors
    /// The text is something else, or empty. The error does not show it.
    pub fn from_hex(text: &str) -> Result<KeyMaterial, Error> {
        let wrong = |what: &str| Error::Input(format!("a key is written as pairs of hexadecimal digits: {what}"));
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let mut key = KeyMaterial(Vec::with_capacity(digits.len() / 2));
        let mut high = None;
        for (at, character) in digits.chars().enumerate() {
            match (character.to_digit(16), high) {
                (None, None) if character.is_ascii_whitespace() => {}
                (None, _) => return Err(wrong(&format!("character {} is none", at + 1))),
                (Some(digit), None) => high = Some(digit as u8),
                (Some(digit), Some(first)) => {
                    key.0.push(first << 4 | digit as u8);
                    high = None;
                }
            }
        }
        match (high, key.0.is_empty()) {
            (Some(_), _) => Err(wrong("there is an odd number")),
            (None, true) => Err(wrong("there are none")),
            (None, false) => Ok(key),
        }
    }

    /// The key whose hexadecimal digits these bytes are, as [`KeyMaterial::from_hex`] takes them.
    ///
    /// # Errors
    /// They are something else.
    pub fn parse_hex(&self) -> Result<KeyMaterial, Error> {
        let text = std::str::from_utf8(&self.0);
        KeyMaterial::from_hex(text.map_err(|_| Error::Input("a key that is not text; --raw takes bytes".to_owned()))?)
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for KeyMaterial {
    fn from(bytes: Vec<u8>) -> Self {
        KeyMaterial(bytes)
    }
}

impl From<KeyMaterial> for Value {
    fn from(key: KeyMaterial) -> Self {
        Value::Key(key)
    }
}

impl fmt::Display for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of {} bytes", self.0.len())
    }
}

impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Drop for KeyMaterial {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Client {
    /// The table of the keys of an extern instance.
    ///
    /// # Errors
    /// There is no such instance, or it has no keys.
    pub fn extern_keys(&self, instance: &str) -> Result<Arc<Table>, Error> {
        let table = self.table(instance)?;
        if table.kind == Kind::ExternKeys {
            return Ok(table);
        }
        Err(Error::Unsupported(format!(
            "{}: a {} has no keys; `{}` is the kind that has",
            table.name,
            table.kind.name(),
            Kind::ExternKeys.name()
        )))
    }

    /// Sets a key of an extern instance by its number, whether one is set already or not.
    ///
    /// ```no_run
    /// # use weir_client::{Client, Error, KeyMaterial};
    /// # async fn with(client: &Client) -> Result<(), Error> {
    /// let key = KeyMaterial::from_hex("000102030405060708090a0b0c0d0e0f10111213")?;
    /// client.set_key("outbound", 0, key).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// There is no such instance, or the target refuses: there is no key of this number, or it has
    /// the wrong length.
    pub async fn set_key(&self, instance: &str, index: u64, key: KeyMaterial) -> Result<(), Error> {
        let entry = numbered(&self.extern_keys(instance)?, index).data(KEY, key);
        self.update(Operation::InsertOrModify, &entry).await
    }

    /// Removes a key of an extern instance. Instances that keep sequence numbers or windows in
    /// place of keys reset them.
    ///
    /// # Errors
    /// There is no such instance, or the target refuses: the key is not set.
    pub async fn remove_key(&self, instance: &str, index: u64) -> Result<(), Error> {
        let entry = numbered(&self.extern_keys(instance)?, index);
        self.update(Operation::Delete, &entry).await
    }

    /// The numbers of the keys of an extern instance that are set. No target returns the keys.
    ///
    /// # Errors
    /// There is no such instance, or the target refuses.
    pub async fn keys_set(&self, instance: &str) -> Result<Vec<u64>, Error> {
        let entries = self.entries(&self.extern_keys(instance)?).await?;
        let number = |entry: &Entry| entry.key_of(INDEX)?.exact()?.as_u64();
        Ok(entries.iter().filter_map(number).collect())
    }
}

fn numbered(table: &Arc<Table>, index: u64) -> Entry {
    Entry::of(table).key(INDEX, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_digits_and_not_shown() {
        let key = KeyMaterial::from_hex(" 00ff Ab\n10 ").expect("is right");
        assert_eq!(key.bytes(), [0, 255, 0xab, 0x10]);
        assert_eq!(
            format!("{key:?} {:?}", Value::from(key.clone())),
            "a key of 4 bytes Key(a key of 4 bytes)"
        );
        for wrong in ["", " ", "0", "0x", "00f", "0 0", "secret", "é0"] {
            let error = KeyMaterial::from_hex(wrong).expect_err("is wrong").to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
