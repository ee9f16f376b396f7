//! From the routes that an IPC process has computed to the entries of its switch, as differences.

use std::collections::{BTreeMap, BTreeSet};
use weir_rina::arp::MacAddress;
use weir_rina::efcp::Address;
use weir_rina::routing::{Change, changes};

/// The most groups of next hops: the size of the table `next_hops`.
pub const MAX_GROUPS: usize = 1024;

/// Where PDUs go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// Egress port of the switch.
    pub port: u32,
    /// VLAN id; 0: untagged.
    pub vlan: u16,
    /// MAC address of the neighbour.
    pub mac: MacAddress,
}

/// What the switch has to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarding {
    /// Addresses of this IPC process: layer management for them goes to the control plane, and so
    /// do all other PDUs.
    pub own: BTreeSet<Address>,
    /// Next hops by destination, at least one each.
    pub routes: BTreeMap<Address, BTreeSet<NextHop>>,
    /// Source MAC address by port.
    pub macs: BTreeMap<u32, MacAddress>,
}

/// The action of an entry of `efcp_exact`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteEntry {
    /// `efcp_forward`
    Forward(NextHop),
    /// `efcp_multipath`
    Group(u16),
    /// `to_cpu`
    Cpu,
    /// Another one, which an IPC process does not write.
    Other,
}

/// The entries that the switch has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entries {
    /// `own_addresses`
    pub own: BTreeMap<Address, ()>,
    /// `efcp_exact`
    pub routes: BTreeMap<Address, RouteEntry>,
    /// `next_hops`; a group that was not written by an IPC process may be empty.
    pub groups: BTreeMap<u16, BTreeSet<NextHop>>,
    /// `port_macs`
    pub macs: BTreeMap<u32, MacAddress>,
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Of `own_addresses`.
    Own(Change<Address, ()>),
    /// Of `efcp_exact`.
    Route(Change<Address, RouteEntry>),
    /// Of `next_hops`.
    Group(Change<u16, BTreeSet<NextHop>>),
    /// Of `port_macs`.
    Mac(Change<u32, MacAddress>),
}

/// More sets of next hops than the switch has groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the routes have {0} sets of next hops: expected at most {MAX_GROUPS}")]
pub struct TooManyGroups(usize);

impl Entries {
    /// The entries for `forwarding`, with as few changes as possible: a group whose destinations
    /// all get the same new set of next hops is modified, and its destinations are not.
    ///
    /// # Errors
    /// There are too many groups.
    pub fn towards(&self, forwarding: &Forwarding) -> Result<Entries, TooManyGroups> {
        let groups = self.assign_groups(forwarding)?;
        let by_set: BTreeMap<&BTreeSet<NextHop>, u16> = groups.iter().map(|(id, set)| (set, *id)).collect();
        let route = |set: &BTreeSet<NextHop>| match (by_set.get(set), set.first()) {
            (Some(id), _) => Some(RouteEntry::Group(*id)),
            (None, Some(hop)) => Some(RouteEntry::Forward(*hop)),
            (None, None) => None,
        };
        let routes = forwarding.routes.iter();
        let mut routes: BTreeMap<Address, RouteEntry> =
            routes.filter_map(|(to, set)| Some((*to, route(set)?))).collect();
        routes.extend(forwarding.own.iter().map(|address| (*address, RouteEntry::Cpu)));
        Ok(Entries {
            own: forwarding.own.iter().map(|address| (*address, ())).collect(),
            routes,
            groups,
            macs: forwarding.macs.clone(),
        })
    }

    /// Whether the switch forwards to more destinations than `forwarding` has: own addresses and
    /// entries of others do not count.
    pub(crate) fn has_more_routes(&self, forwarding: &Forwarding) -> bool {
        let is_route = |entry: &&RouteEntry| match entry {
            RouteEntry::Forward(_) | RouteEntry::Group(_) => true,
            RouteEntry::Cpu | RouteEntry::Other => false,
        };
        self.routes.values().filter(is_route).count() > forwarding.routes.len()
    }

    /// The group of each set that needs one.
    fn assign_groups(&self, forwarding: &Forwarding) -> Result<BTreeMap<u16, BTreeSet<NextHop>>, TooManyGroups> {
        let mut needed: BTreeSet<&BTreeSet<NextHop>> = forwarding.routes.values().filter(|set| set.len() > 1).collect();
        let mut groups = BTreeMap::new();
        // A group that has the set already.
        for (id, set) in &self.groups {
            if needed.remove(set) {
                groups.insert(*id, set.clone());
            }
        }
        // A group all of whose destinations get the set, which may then have one next hop.
        for id in self.groups.keys() {
            if groups.contains_key(id) {
                continue;
            }
            if let Some(set) = self.common_set(*id, forwarding)
                && (needed.remove(set) || set.len() == 1)
                && !groups.values().any(|known| known == set)
            {
                groups.insert(*id, set.clone());
            }
        }
        // Groups of one next hop save updates, no more: their destinations get `efcp_forward`.
        if groups.len() + needed.len() > MAX_GROUPS {
            groups.retain(|_, set: &mut BTreeSet<NextHop>| set.len() > 1);
        }
        let mut free = (1..=u16::MAX).filter(|id| !self.groups.contains_key(id));
        let count = groups.len() + needed.len();
        for set in needed {
            let id = free.next().filter(|_| count <= MAX_GROUPS);
            groups.insert(id.ok_or(TooManyGroups(count))?, set.clone());
        }
        Ok(groups)
    }

    /// The set of next hops that all destinations of a group get.
    fn common_set<'a>(&self, group: u16, forwarding: &'a Forwarding) -> Option<&'a BTreeSet<NextHop>> {
        let users = self
            .routes
            .iter()
            .filter(|(_, entry)| **entry == RouteEntry::Group(group));
        let mut sets = users.filter_map(|(to, _)| forwarding.routes.get(to));
        let first = sets.next()?;
        sets.all(|set| set == first).then_some(first)
    }

    /// The updates from these entries to others. Each entry refers to a group that exists, and the
    /// switch never has more than [`MAX_GROUPS`]: groups without references are deleted before
    /// others are inserted. Where that is not enough, destinations have one of their new next hops
    /// until the new groups exist.
    pub fn updates(&self, to: &Entries) -> Vec<Update> {
        let mut all: Vec<Update> = changes(&self.macs, &to.macs).into_iter().map(Update::Mac).collect();
        let (mut modified, mut inserted, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for change in changes(&self.groups, &to.groups) {
            match change {
                Change::Modify(..) => modified.push(change),
                Change::Insert(..) => inserted.push(change),
                Change::Delete(id) => deleted.push(id),
            }
        }
        let is_new = |entry: &RouteEntry| matches!(entry, RouteEntry::Group(id) if !self.groups.contains_key(id));
        let (later, first): (Vec<_>, Vec<_>) =
            changes(&self.routes, &to.routes)
                .into_iter()
                .partition(|change| match change {
                    Change::Insert(_, entry) | Change::Modify(_, entry) => is_new(entry),
                    Change::Delete(_) => false,
                });
        // These refer to the groups of before until their last step.
        let waiting: BTreeSet<Address> = later
            .iter()
            .map(|change| match change {
                Change::Insert(to, _) | Change::Modify(to, _) | Change::Delete(to) => *to,
            })
            .collect();
        let in_use: BTreeSet<u16> = self
            .routes
            .iter()
            .filter(|(to, _)| waiting.contains(to))
            .filter_map(|(_, entry)| match entry {
                RouteEntry::Group(id) => Some(*id),
                RouteEntry::Forward(_) | RouteEntry::Cpu | RouteEntry::Other => None,
            })
            .collect();
        let (mut last, mut early): (Vec<u16>, Vec<u16>) = deleted.into_iter().partition(|id| in_use.contains(id));
        let peak = (self.groups.len() + inserted.len()).saturating_sub(early.len());
        let bridges = if peak > MAX_GROUPS {
            early.append(&mut last);
            self.bridges(to, &waiting)
        } else {
            Vec::new()
        };
        all.extend(modified.into_iter().map(Update::Group));
        all.extend(first.into_iter().chain(bridges).map(Update::Route));
        all.extend(early.into_iter().map(|id| Update::Group(Change::Delete(id))));
        all.extend(inserted.into_iter().map(Update::Group));
        all.extend(later.into_iter().map(Update::Route));
        all.extend(changes(&self.own, &to.own).into_iter().map(Update::Own));
        all.extend(last.into_iter().map(|id| Update::Group(Change::Delete(id))));
        all
    }

    /// Routes without groups for destinations whose new groups cannot exist beside the old ones.
    fn bridges(&self, to: &Entries, waiting: &BTreeSet<Address>) -> Vec<Change<Address, RouteEntry>> {
        let bridge = |destination: &Address| {
            let (Some(RouteEntry::Group(_)), Some(RouteEntry::Group(id))) =
                (self.routes.get(destination), to.routes.get(destination))
            else {
                return None;
            };
            let hop = to.groups.get(id)?.first()?;
            Some(Change::Modify(*destination, RouteEntry::Forward(*hop)))
        };
        waiting.iter().filter_map(bridge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hop(port: u32) -> NextHop {
        NextHop {
            port,
            vlan: 0,
            mac: MacAddress([2, 0, 0, 0, 0, port as u8]),
        }
    }

    fn forwarding(routes: &[(u32, &[u32])]) -> Forwarding {
        let route = |(to, ports): &(u32, &[u32])| (Address(*to), ports.iter().map(|port| hop(*port)).collect());
        Forwarding {
            own: [Address(9)].into(),
            routes: routes.iter().map(route).collect(),
            macs: [(1, MacAddress([2; 6]))].into(),
        }
    }

    /// Where the entries forward to, by the meaning of the program's tables.
    fn meaning(entries: &Entries) -> Forwarding {
        let next = |entry: &RouteEntry| match entry {
            RouteEntry::Forward(hop) => Some([*hop].into()),
            RouteEntry::Group(id) => Some(entries.groups.get(id).cloned().expect("the group exists")),
            RouteEntry::Cpu => None,
            RouteEntry::Other => panic!("not written"),
        };
        Forwarding {
            own: entries.own.keys().copied().collect(),
            routes: entries
                .routes
                .iter()
                .filter_map(|(to, e)| Some((*to, next(e)?)))
                .collect(),
            macs: entries.macs.clone(),
        }
    }

    /// Applies a change as a switch does.
    fn apply<K: Ord + Clone, V>(table: &mut BTreeMap<K, V>, change: Change<K, V>) {
        match change {
            Change::Insert(key, value) => assert!(table.insert(key, value).is_none(), "it exists"),
            Change::Modify(key, value) => assert!(table.insert(key, value).is_some(), "it does not exist"),
            Change::Delete(key) => assert!(table.remove(&key).is_some(), "it does not exist"),
        }
    }

    fn apply_all(entries: &mut Entries, updates: Vec<Update>) {
        for update in updates {
            match update {
                Update::Own(change) => apply(&mut entries.own, change),
                Update::Route(change) => apply(&mut entries.routes, change),
                Update::Group(change) => apply(&mut entries.groups, change),
                Update::Mac(change) => apply(&mut entries.macs, change),
            }
            assert!(entries.groups.len() <= MAX_GROUPS, "too many groups");
            let groups = entries.routes.values().filter_map(|entry| match entry {
                RouteEntry::Group(id) => Some(id),
                RouteEntry::Forward(_) | RouteEntry::Cpu | RouteEntry::Other => None,
            });
            assert!(groups.into_iter().all(|id| entries.groups.contains_key(id)), "no group");
        }
    }

    #[test]
    fn a_lost_link_changes_a_group_and_not_the_destinations_behind_it() {
        let many: Vec<(u32, &[u32])> = (100..200).map(|to| (to, &[1, 2][..])).collect();
        let before = Entries::default().towards(&forwarding(&many)).unwrap();
        assert_eq!((before.groups.len(), before.routes.len()), (1, 101));
        let less: Vec<(u32, &[u32])> = (100..200).map(|to| (to, &[2][..])).collect();
        let after = before.towards(&forwarding(&less)).unwrap();
        let expected = Update::Group(Change::Modify(1, [hop(2)].into()));
        assert_eq!(before.updates(&after), [expected]);
        // The link is back.
        let again = after.towards(&forwarding(&many)).unwrap();
        assert_eq!(after.updates(&again).len(), 1);
    }

    #[test]
    fn what_others_wrote_is_replaced() {
        let mut entries = Entries::default();
        entries.routes.insert(Address(5), RouteEntry::Other);
        entries.routes.insert(Address(6), RouteEntry::Group(77));
        entries.groups.insert(77, BTreeSet::new());
        let to = entries.towards(&forwarding(&[(5, &[1])])).unwrap();
        let updates = entries.updates(&to);
        assert!(updates.contains(&Update::Route(Change::Delete(Address(6)))));
        assert!(updates.contains(&Update::Group(Change::Delete(77))));
        apply_all(&mut entries, updates);
        assert_eq!(meaning(&entries), forwarding(&[(5, &[1])]));
    }

    #[test]
    fn more_sets_than_groups_are_refused() {
        let sets: Vec<(u32, [u32; 2])> = (0..=MAX_GROUPS as u32).map(|n| (1000 + n, [n, n + 1])).collect();
        let routes: Vec<(u32, &[u32])> = sets.iter().map(|(to, ports)| (*to, &ports[..])).collect();
        let error = Entries::default().towards(&forwarding(&routes)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the routes have 1025 sets of next hops: expected at most 1024"
        );
    }

    /// As many sets of two next hops, from a port on.
    fn sets(count: u32, port: u32) -> Forwarding {
        let ports: Vec<[u32; 2]> = (0..count).map(|n| [port + n, port + n + 1]).collect();
        let routes: Vec<(u32, &[u32])> = (1000..).zip(&ports).map(|(to, ports)| (to, &ports[..])).collect();
        forwarding(&routes)
    }

    #[test]
    fn groups_that_are_not_needed_make_room() {
        // Most destinations lose a link: their groups stay, with one next hop each.
        let before = Entries::default().towards(&sets(1000, 0)).unwrap();
        let mut less = sets(1000, 0);
        for set in less.routes.values_mut() {
            set.pop_last();
        }
        let mut entries = before.towards(&less).unwrap();
        assert_eq!(entries.groups.len(), 1000);
        // Then others get sets of their own.
        let mut more = less;
        let others = sets(600, 2000).routes.into_iter();
        more.routes.extend(others.map(|(to, set)| (Address(to.0 + 5000), set)));
        let to = entries.towards(&more).unwrap();
        let updates = entries.updates(&to);
        apply_all(&mut entries, updates);
        assert_eq!((meaning(&entries), entries.groups.len()), (more, 600));
    }

    #[test]
    fn all_groups_can_be_replaced_at_once() {
        // Two destinations share each group; afterwards other pairs do.
        let shared = |shift: usize, port: u32| {
            let routes = (0..2 * MAX_GROUPS).map(|n| {
                let set = ((n + shift) / 2 % MAX_GROUPS) as u32 + port;
                (Address(1000 + n as u32), [hop(set), hop(set + 1)].into())
            });
            Forwarding {
                routes: routes.collect(),
                ..forwarding(&[])
            }
        };
        let mut entries = Entries::default().towards(&shared(0, 0)).unwrap();
        let forwarding = shared(1, 5000);
        let to = entries.towards(&forwarding).unwrap();
        let updates = entries.updates(&to);
        apply_all(&mut entries, updates);
        assert_eq!(entries, to);
        assert_eq!((meaning(&entries), entries.groups.len()), (forwarding, MAX_GROUPS));
    }

    #[test]
    fn routes_of_before_are_counted_without_those_that_are_none() {
        let routes = forwarding(&[(5, &[3]), (6, &[2, 3])]);
        let mut entries = Entries::default().towards(&routes).unwrap();
        assert!(!entries.has_more_routes(&routes), "the own address is no route");
        entries.routes.insert(Address(77), RouteEntry::Other);
        assert!(!entries.has_more_routes(&routes));
        assert!(entries.has_more_routes(&forwarding(&[(6, &[2, 3])])));
    }

    fn any_forwarding() -> impl Strategy<Value = Forwarding> {
        let ports = prop::collection::btree_set(1_u32..5, 1..4);
        prop::collection::btree_map(10_u32..30, ports, 0..15).prop_map(|routes| {
            let routes = routes.into_iter();
            Forwarding {
                own: [Address(9)].into(),
                routes: routes
                    .map(|(to, ports)| (Address(to), ports.into_iter().map(hop).collect()))
                    .collect(),
                macs: BTreeMap::new(),
            }
        })
    }

    proptest! {
        #[test]
        fn updates_lead_to_the_routes_and_groups_always_exist(all in prop::collection::vec(any_forwarding(), 1..6)) {
            let mut entries = Entries::default();
            for forwarding in all {
                let to = entries.towards(&forwarding).unwrap();
                let updates = entries.updates(&to);
                apply_all(&mut entries, updates);
                prop_assert_eq!(&entries, &to);
                prop_assert_eq!(meaning(&entries), forwarding);
            }
        }
    }
}
