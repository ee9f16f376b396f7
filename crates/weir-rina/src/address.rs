//! Assignment of addresses to members of a DIF.

use crate::efcp::Address;
use std::collections::{BTreeMap, BTreeSet};

/// Why no address is assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoAddress {
    /// All addresses of the range are assigned.
    #[error("all addresses of the range are assigned")]
    Exhausted,
    /// The name has no address in the table, and there is no range.
    #[error("the name is not in the address table")]
    NotInTable,
}

/// Two members have the same address. The one with the smaller name gets another (as in rlite).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressConflict {
    /// The address.
    pub address: Address,
    /// The member that keeps the address.
    pub keeps: String,
    /// The member that needs another address.
    pub changes: String,
}

/// The addresses of a DIF, as one member knows them.
///
/// A name keeps its address: a member that enrols again gets the one that it had.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    table: BTreeMap<String, Address>,
    range: Option<(u32, u32)>,
    assigned: BTreeMap<String, Address>,
    taken: BTreeMap<Address, String>,
    reserved: BTreeSet<Address>,
}

impl Addresses {
    /// Addresses from a table, and for other names from a range, both ends inclusive. 0 is never
    /// assigned, nor are addresses of the table to names outside it.
    #[must_use]
    pub fn new(table: BTreeMap<String, Address>, range: Option<(u32, u32)>) -> Self {
        let reserved = table.values().copied().collect();
        Addresses {
            table,
            range,
            reserved,
            ..Addresses::default()
        }
    }

    /// The address of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Address> {
        self.assigned.get(name).copied()
    }

    /// The name that has an address.
    #[must_use]
    pub fn holder(&self, address: Address) -> Option<&str> {
        self.taken.get(&address).map(String::as_str)
    }

    /// Assigns an address: that of the table, else the one it has, else the one it proposes, if the
    /// range has it free, else the first free one of the range.
    ///
    /// # Errors
    /// There is none.
    pub fn assign(&mut self, name: &str, proposed: Address) -> Result<Address, NoAddress> {
        if let Some(address) = self.table.get(name).copied() {
            self.record(name, address);
            return Ok(address);
        }
        if let Some(address) = self.get(name) {
            return Ok(address);
        }
        let (first, last) = self.range.ok_or(NoAddress::NotInTable)?;
        let is_free = |address: &Address| {
            address.0 != 0
                && (first..=last).contains(&address.0)
                && !self.taken.contains_key(address)
                && !self.reserved.contains(address)
        };
        let proposed = [proposed].into_iter();
        let address = proposed
            .chain((first..=last).map(Address))
            .find(is_free)
            .ok_or(NoAddress::Exhausted)?;
        self.record(name, address);
        Ok(address)
    }

    /// Notes the address of a member that another member has assigned.
    ///
    /// Returns the conflict if a member with another name has it; the one that keeps the address
    /// stays recorded with it.
    pub fn observe(&mut self, name: &str, address: Address) -> Option<AddressConflict> {
        let holder = self.taken.get(&address).filter(|holder| *holder != name).cloned();
        let Some(holder) = holder else {
            self.record(name, address);
            return None;
        };
        let (keeps, changes) = if holder.as_str() > name {
            (holder, name.to_owned())
        } else {
            (name.to_owned(), holder)
        };
        self.release(&changes);
        self.record(&keeps, address);
        Some(AddressConflict {
            address,
            keeps,
            changes,
        })
    }

    /// Frees the addresses of all names but those to keep.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str) -> bool) {
        self.assigned.retain(|name, _| is_kept(name));
        let assigned = &self.assigned;
        self.taken.retain(|_, name| assigned.contains_key(name));
    }

    /// Frees the address of a name.
    pub fn release(&mut self, name: &str) {
        if let Some(address) = self.assigned.remove(name) {
            self.taken.remove(&address);
        }
    }

    fn record(&mut self, name: &str, address: Address) {
        if self.get(name) == Some(address) {
            return;
        }
        self.release(name);
        if let Some(former) = self.taken.insert(address, name.to_owned()) {
            self.assigned.remove(&former);
        }
        self.assigned.insert(name.to_owned(), address);
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressConflict, Addresses, NoAddress};
    use crate::efcp::Address;
    use std::collections::BTreeMap;

    fn addresses() -> Addresses {
        let table = BTreeMap::from([("fixed".to_owned(), Address(2))]);
        Addresses::new(table, Some((0, 4)))
    }

    #[test]
    fn names_keep_their_addresses() {
        let mut addresses = addresses();
        assert_eq!(addresses.assign("a", Address(0)), Ok(Address(1)));
        assert_eq!(addresses.assign("b", Address(4)), Ok(Address(4)));
        assert_eq!(addresses.assign("c", Address(4)), Ok(Address(3)));
        assert_eq!(addresses.assign("d", Address(2)), Err(NoAddress::Exhausted));
        assert_eq!(addresses.assign("fixed", Address(9)), Ok(Address(2)));
        assert_eq!(addresses.assign("a", Address(3)), Ok(Address(1)));
        addresses.release("c");
        assert_eq!(addresses.assign("d", Address(2)), Ok(Address(3)));
        addresses.retain(|name| name != "b");
        assert_eq!(addresses.assign("e", Address(4)), Ok(Address(4)));
        assert_eq!(addresses.assign("a", Address(3)), Ok(Address(1)));
        let mut without_range = Addresses::new(BTreeMap::new(), None);
        assert_eq!(without_range.assign("a", Address(1)), Err(NoAddress::NotInTable));
    }

    #[test]
    fn of_two_members_with_one_address_the_smaller_name_changes() {
        for names in [["a", "b"], ["b", "a"]] {
            let mut addresses = addresses();
            assert_eq!(addresses.observe(names[0], Address(3)), None);
            let conflict = AddressConflict {
                address: Address(3),
                keeps: "b".to_owned(),
                changes: "a".to_owned(),
            };
            assert_eq!(addresses.observe(names[1], Address(3)), Some(conflict));
            assert_eq!((addresses.get("a"), addresses.get("b")), (None, Some(Address(3))));
            assert_eq!(addresses.observe("b", Address(4)), None);
            assert_eq!(addresses.observe("a", Address(3)), None);
        }
    }
}
