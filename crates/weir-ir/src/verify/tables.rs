//! Tables, their entries, and value sets.

use super::Verifier;
use crate::parse::MAX_WIDTH;
use crate::program::*;

impl Verifier<'_> {
    pub(super) fn table(&mut self, t: &Table) {
        let p = self.program;
        for a in &t.actions {
            let Some(action) = p.actions.get(a.action) else {
                self.error(format!("there is no action {:?}", a.action));
                continue;
            };
            self.require(action.parameters.len() == a.parameters.len(), || {
                format!("action {} has other parameters", action.name)
            });
            for (&v, parameter) in a.parameters.iter().zip(&action.parameters) {
                self.width_is(v, parameter.width);
            }
            self.require(a.executes.iter().all(|x| t.direct.contains(x)), || {
                format!("action {} executes what is not direct to the table", action.name)
            });
        }
        self.action_call(t, &t.default_action);
        let table_only = t.actions.get(t.default_action.action).is_some_and(|a| a.table_only);
        self.require(!table_only, || "the default action is for entries only".into());
        for &x in t.implementation.iter().chain(&t.direct) {
            self.extern_id(x);
        }
        self.keys(&t.keys);
        let keys: Vec<&Key> = t.keys.iter().filter(|k| k.match_kind != MatchKind::Selector).collect();
        for e in &t.entries {
            self.action_call(t, &e.action);
            let default_only = t.actions.get(e.action.action).is_some_and(|a| a.default_only);
            self.require(!default_only, || {
                "an entry has an action that is for the default only".into()
            });
            self.require(e.matches.len() == keys.len(), || {
                format!("an entry has {} matches for {} keys", e.matches.len(), keys.len())
            });
            for (m, k) in e.matches.iter().zip(&keys) {
                self.key_match(m, k);
            }
        }
    }

    pub(super) fn keys(&mut self, keys: &[Key]) {
        for key in keys {
            self.display(key.display, || format!("key {}", key.name));
            self.require(key.width <= MAX_WIDTH, || {
                format!("key {} has more than {MAX_WIDTH} bits", key.name)
            });
        }
    }

    fn key_match(&mut self, m: &KeyMatch, k: &Key) {
        let good = match m {
            KeyMatch::Exact(v) => v.width() == k.width,
            KeyMatch::Lpm { value, prefix_length } => value.width() == k.width && *prefix_length <= k.width,
            KeyMatch::Ternary { value: a, mask: b } | KeyMatch::Range { low: a, high: b } => {
                a.width() == k.width && b.width() == k.width
            }
            KeyMatch::Optional(v) => v.as_ref().is_none_or(|v| v.width() == k.width),
        };
        self.require(good, || {
            format!("a match of key {} does not have its {} bits", k.name, k.width)
        });
        let kind = match m {
            KeyMatch::Exact(_) => MatchKind::Exact,
            KeyMatch::Lpm { .. } => MatchKind::Lpm,
            KeyMatch::Ternary { .. } => MatchKind::Ternary,
            KeyMatch::Range { .. } => MatchKind::Range,
            KeyMatch::Optional(_) => MatchKind::Optional,
        };
        self.require(kind == k.match_kind, || {
            format!(
                "a match of key {} is {}, but the key is {}",
                k.name,
                kind.name(),
                k.match_kind.name()
            )
        });
        if good {
            self.canonical(m, k);
        }
    }

    /// No bit is set that is not compared.
    fn canonical(&mut self, m: &KeyMatch, k: &Key) {
        let good = match m {
            KeyMatch::Exact(_) | KeyMatch::Optional(_) | KeyMatch::Range { .. } => true,
            KeyMatch::Lpm { value, prefix_length } => {
                let rest = k.width - prefix_length;
                rest == 0 || value.slice(rest - 1, 0).is_zero()
            }
            KeyMatch::Ternary { value, mask } => value.and(mask) == *value,
        };
        self.require(good, || {
            format!("a match of key {} has bits that it does not compare", k.name)
        });
    }

    pub(super) fn action_call(&mut self, t: &Table, call: &ActionCall) {
        let Some(a) = t.actions.get(call.action) else {
            // A table without actions has nothing to run.
            let empty = t.actions.is_empty() && call.action == 0;
            self.require(empty, || format!("there is no action {} in the table", call.action));
            return;
        };
        let widths: Vec<u32> = self
            .program
            .actions
            .get(a.action)
            .map_or(Vec::new(), |a| a.parameters.iter().map(|p| p.width).collect());
        let given: Vec<u32> = call.arguments.iter().map(crate::Bits::width).collect();
        self.require(widths == given, || {
            format!("arguments of {given:?} bits for parameters of {widths:?}")
        });
    }
}
