//! Keys of externs.
//!
//! The object of an extern instance is shared by all workers, and a key cannot be taken back: with
//! it an object may reset sequence numbers, and a number that is used twice with a key breaks most
//! ciphers. So a write is checked and noted at first. [`Switch::set_noted_keys`] sets the key in
//! the object once the write stays, and on one of the switches that share it.

use super::ControlError;
use crate::switch::Switch;
use std::sync::Arc;
use weir_arch::{Architecture, KeyBytes};
use weir_extern_api::Keys;
use weir_ir::ExternId;

/// Keys of writes that may still be taken back, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotedKeys {
    keys: Vec<(ExternId, u64, KeyBytes)>,
    /// Another switch sets the keys of the objects, which this one shares with it.
    is_follower: bool,
}

impl Switch {
    /// From now on this switch only keeps account of the keys of externs: another one, of which it
    /// is a clone, is given the same writes and sets the keys in the objects that both share.
    pub fn follow_keys(&mut self) {
        self.noted_keys.is_follower = true;
    }

    /// Whether a key of an extern instance is set.
    ///
    /// # Errors
    /// There is no such key, or the instance has none.
    pub fn is_key_set(&self, id: ExternId, index: u64) -> Result<bool, ControlError> {
        let arch = Arc::clone(&self.arch);
        // Every key may be removed, so this checks the number.
        keys_of(&*arch, id)?
            .check(index, &[])
            .map_err(|error| ControlError::Key {
                name: arch.program().externs[id].name.clone(),
                error,
            })?;
        Ok(self.state.extern_keys.contains_key(&(id, index)))
    }

    /// Whether an extern instance takes no keys: removing one resets what its number stands for.
    ///
    /// # Errors
    /// The instance has no keys.
    pub fn only_resets(&self, id: ExternId) -> Result<bool, ControlError> {
        Ok(keys_of(&*self.arch, id)?.only_resets())
    }

    /// Checks a key, and notes it. Returns the one before.
    pub(super) fn note_key(&mut self, id: ExternId, index: u64, key: KeyBytes) -> Result<KeyBytes, ControlError> {
        let arch = Arc::clone(&self.arch);
        let checked = keys_of(&*arch, id)?.check(index, key.bytes());
        checked.map_err(|error| ControlError::Key {
            name: arch.program().externs[id].name.clone(),
            error,
        })?;
        self.noted_keys.keys.push((id, index, key.clone()));
        Ok(self.replace_key(id, index, key).unwrap_or_default())
    }

    fn replace_key(&mut self, id: ExternId, index: u64, key: KeyBytes) -> Option<KeyBytes> {
        match key.bytes().is_empty() {
            true => self.state.extern_keys.remove(&(id, index)),
            false => self.state.extern_keys.insert((id, index), key),
        }
    }

    /// Takes the key back that was noted last. `was` is the one before.
    pub(super) fn take_back_key(&mut self, id: ExternId, index: u64, was: KeyBytes) {
        self.noted_keys.keys.pop();
        self.replace_key(id, index, was);
    }

    /// The writes stay: gives the objects their keys.
    pub(super) fn set_noted_keys(&mut self) {
        if self.noted_keys.keys.is_empty() {
            return;
        }
        let noted = std::mem::take(&mut self.noted_keys.keys);
        if self.noted_keys.is_follower {
            return;
        }
        for (id, index, key) in noted {
            if let Ok(keys) = keys_of(&*self.arch, id) {
                // It was checked.
                let _ = keys.set(index, key.bytes());
            }
        }
    }
}

/// The keys of an instance.
fn keys_of(arch: &dyn Architecture, id: ExternId) -> Result<&dyn Keys, ControlError> {
    let Some(instance) = arch.program().externs.get(id) else {
        return Err(ControlError::NoSuchResource {
            what: "extern instance",
            id: id.index(),
        });
    };
    let object = arch.registered().and_then(|externs| externs.object(id));
    let keys = object.and_then(|object| object.keys());
    keys.ok_or_else(|| ControlError::WrongResource {
        name: instance.name.clone(),
        expected: "extern with keys",
        found: instance.type_name.clone(),
    })
}
