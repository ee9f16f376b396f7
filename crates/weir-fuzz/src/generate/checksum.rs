//! Checksums: those that are verified, computed again after what they cover has changed, and others
//! over anything.

use super::Generator;
use super::model::{HeaderRef, Place, Scope, Ty};

/// Name of the fields that are there for a checksum.
pub(super) const SUM: &str = "sum";

/// A checksum that packets have, and are made to have again.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// The header that it is in.
    pub header: HeaderRef,
    /// What it covers, as it is verified.
    pub data: Vec<String>,
}

impl Checked {
    fn field(&self) -> String {
        format!("{}.{SUM}", self.header.path)
    }

    /// Fields that it covers and that code can change.
    fn covered(&self, scope: &Scope) -> Vec<(String, Ty)> {
        let covered = scope
            .variables
            .iter()
            .filter(|v| v.writable && self.data.contains(&v.path));
        covered.map(|v| (v.path.clone(), v.ty)).collect()
    }
}

impl Generator {
    pub(super) fn verify(&mut self) {
        self.open("control V(inout headers_t hdr, inout meta_t meta)");
        self.open("apply");
        let scope = self.model.scope(Place::Checksum);
        for at in 0..self.model.checked.len() {
            let data = self.covering(&scope, at);
            self.model.checked[at].data.clone_from(&data);
            self.checked("verify", &scope, at, &data);
        }
        self.checksums("verify", &scope);
        self.close();
        self.close();
    }

    pub(super) fn compute(&mut self) {
        self.open("control C(inout headers_t hdr, inout meta_t meta)");
        self.open("apply");
        let scope = self.model.scope(Place::Checksum);
        for at in 0..self.model.checked.len() {
            let mut data = self.model.checked[at].data.clone();
            if self.rng.chance(20) {
                self.other_data(&scope, &mut data);
            }
            self.checked("update", &scope, at, &data);
        }
        self.checksums("update", &scope);
        self.close();
        self.close();
    }

    fn checked(&mut self, what: &str, scope: &Scope, at: usize, data: &[String]) {
        let checked = self.model.checked[at].clone();
        let condition = match self.rng.below(20) {
            0..7 => "true".to_owned(),
            7..17 => format!("{}.isValid()", checked.header.path),
            _ => self.condition(scope, 1),
        };
        let (data, field) = (data.join(", "), checked.field());
        self.line(&format!(
            "{what}_checksum({condition}, {{ {data} }}, {field}, HashAlgorithm.csum16);"
        ));
    }

    /// What a checksum covers: its header without itself as a rule.
    fn covering(&mut self, scope: &Scope, at: usize) -> Vec<String> {
        let HeaderRef { path, ty } = self.model.checked[at].header.clone();
        let ty = self.model.types[ty].clone();
        let fields = ty.fields.iter().filter(|(name, ty)| name != SUM && *ty != Ty::Bool);
        let mut data: Vec<String> = fields.map(|(name, _)| format!("{path}.{name}")).collect();
        match self.rng.below(10) {
            0 => data.retain(|_| self.rng.chance(70)),
            1 if !data.is_empty() => {
                let (i, j) = (self.rng.below(data.len()), self.rng.below(data.len()));
                data.swap(i, j);
            }
            _ => {}
        }
        if self.rng.chance(30) {
            for _ in 0..self.rng.between(1, 3) {
                self.more_data(scope, &mut data);
            }
        }
        // Of unknown length only the last may be.
        let own = ty.varbit.map(|(name, _)| format!("{path}.{name}"));
        let others = scope.headers.iter().filter_map(|h| {
            let (name, _) = self.model.types[h.ty].varbit.as_ref()?;
            Some(format!("{}.{name}", h.path))
        });
        let others: Vec<String> = others.collect();
        match own {
            Some(varbit) if self.rng.chance(85) => data.push(varbit),
            None if self.rng.chance(30) => data.extend(self.rng.pick(&others).cloned()),
            _ => {}
        }
        if data.is_empty() {
            data.push(self.literal(Ty::Bit(16)));
        }
        data
    }

    /// Something else that is covered: a constant, a variable, or a header like the one that a
    /// pseudo header stands for.
    fn more_data(&mut self, scope: &Scope, data: &mut Vec<String>) {
        let at = self.rng.below(data.len() + 1);
        match self.rng.below(4) {
            0 | 1 => {
                let width = self.rng.one([8, 16, 16, 32, 3]);
                data.insert(at, self.literal(Ty::Bit(width)));
            }
            2 => {
                let fitting: Vec<String> = scope
                    .variables
                    .iter()
                    .filter(|v| v.ty != Ty::Bool && !v.path.ends_with(SUM))
                    .map(|v| v.path.clone())
                    .collect();
                if let Some(path) = self.rng.pick(&fitting).cloned() {
                    data.insert(at, path);
                }
            }
            _ => {
                let Some(header) = self.rng.pick(&scope.headers).cloned() else {
                    return;
                };
                let fields = &self.model.types[header.ty].fields;
                let fields = fields.iter().filter(|(name, ty)| name != SUM && *ty != Ty::Bool);
                data.splice(at..at, fields.map(|(name, _)| format!("{}.{name}", header.path)));
            }
        }
    }

    /// Makes what is covered something else.
    fn other_data(&mut self, scope: &Scope, data: &mut Vec<String>) {
        let (at, other) = (self.rng.below(data.len()), self.rng.below(data.len()));
        match self.rng.below(4) {
            0 => {
                let ty = scope.variables.iter().find(|v| v.path == data[at]).map(|v| v.ty);
                if let Some(ty) = ty {
                    // Of the same width, so that all the rest stays where it is.
                    let variable = self.variable(scope, ty).filter(|_| self.rng.chance(60));
                    data[at] = variable.unwrap_or_else(|| self.literal(ty));
                }
            }
            1 if data.len() > 1 => drop(data.remove(at)),
            // A varbit stays the last.
            2 if at + 1 < data.len() && other + 1 < data.len() => data.swap(at, other),
            _ => data.insert(at, self.literal(Ty::Bit(16))),
        }
    }

    /// Fields of 16 or 32 bits that a checksum may lie in, with their widths.
    fn checksum_fields(&self, scope: &Scope) -> Vec<(String, u32)> {
        let fields = scope.variables.iter().filter(|v| v.path.starts_with("hdr."));
        fields
            .filter_map(|v| match v.ty {
                Ty::Bit(w @ (16 | 32)) => Some((v.path.clone(), w)),
                _ => None,
            })
            .collect()
    }

    /// Checksums over anything.
    fn checksums(&mut self, what: &str, scope: &Scope) {
        let fields = self.checksum_fields(scope);
        let mut count = self.rng.below(4) / 2;
        if !self.model.checked.is_empty() && self.rng.chance(if self.model.strict { 90 } else { 50 }) {
            // What packets have right has a chance only where nothing else is wrong.
            count = 0;
        }
        for _ in 0..count {
            let Some((field, width)) = self.rng.pick(&fields).cloned() else {
                return;
            };
            let algorithm = match width {
                16 => self.rng.one(["csum16", "csum16", "csum16", "csum16", "crc16", "xor16"]),
                _ => self.rng.one(["crc32", "csum16", "identity"]),
            };
            let header = field.rsplit_once('.').map_or("", |f| f.0).to_owned();
            let condition = match self.rng.below(4) {
                0 => "true".to_owned(),
                1 => self.condition(scope, 2),
                _ => format!("{header}.isValid()"),
            };
            let data = self.data(scope, false);
            let payload = if self.rng.chance(20) { "_with_payload" } else { "" };
            self.line(&format!(
                "{what}_checksum{payload}({condition}, {data}, {field}, HashAlgorithm.{algorithm});"
            ));
        }
    }

    // ------------------------------------------------------------------------------------- changes

    /// An action that gives fields that a checksum covers, by its data; with the types of these.
    pub(super) fn rewrite(&mut self, scope: &Scope) -> Option<(String, Vec<Ty>)> {
        let checked = self.rng.pick(&self.model.checked)?.clone();
        let fields = checked.covered(scope);
        let mut chosen = Vec::new();
        for _ in 0..self.rng.between(1, 3) {
            chosen.push(self.rng.pick(&fields)?.clone());
        }
        let name = self.name("rewrite");
        let list: Vec<String> = chosen
            .iter()
            .enumerate()
            .map(|(i, (_, ty))| format!("{} p{i}", ty.text()))
            .collect();
        self.open(&format!("action {name}({})", list.join(", ")));
        for (i, (path, _)) in chosen.iter().enumerate() {
            self.line(&format!("{path} = p{i};"));
        }
        self.close();
        Some((name, chosen.into_iter().map(|c| c.1).collect()))
    }

    /// What is done with packets whose checksums are verified: as a rule the wrong ones leave, and
    /// of the others something changes.
    pub(super) fn checked_packets(&mut self, scope: &Scope) {
        if self.model.checked.is_empty() {
            return;
        }
        if scope.place == Place::Egress {
            if self.rng.chance(if self.model.strict { 10 } else { 25 }) {
                self.changes(scope);
            }
            return;
        }
        let wrong = self.rng.one([
            "sm.checksum_error == 1",
            "sm.checksum_error != 0",
            "(bool)sm.checksum_error",
            "sm.parser_error != error.NoError || sm.checksum_error == 1",
            "sm.parser_error != error.NoError || sm.checksum_error == 1",
        ]);
        let ways = if self.model.strict { 7 } else { 10 };
        match self.rng.below(ways) {
            0..5 => {
                let drop = match self.model.strict || self.rng.chance(70) {
                    true => "mark_to_drop(sm); ",
                    false => "",
                };
                let leave = self.rng.one(["exit", "return"]);
                self.line(&format!("if ({wrong}) {{ {drop}{leave}; }}"));
                self.changes(scope);
            }
            5 | 6 => {
                self.open(&format!("if ({wrong})"));
                self.line("mark_to_drop(sm);");
                self.close();
                self.open("else");
                self.changes(scope);
                self.close();
            }
            7..9 => {
                self.open("if (sm.checksum_error == 0)");
                self.changes(scope);
                self.close();
            }
            _ => self.changes(scope),
        }
    }

    fn changes(&mut self, scope: &Scope) {
        for checked in self.model.checked.clone() {
            let is_guarded = self.rng.chance(50);
            if is_guarded {
                self.open(&format!("if ({}.isValid())", checked.header.path));
            }
            let fields = checked.covered(scope);
            let most = if self.model.strict { 4 } else { 5 };
            for _ in 0..self.rng.between(1, most) {
                let Some((path, ty)) = self.rng.pick(&fields).cloned() else {
                    break;
                };
                if self.rng.chance(15) {
                    let condition = self.condition(scope, 1);
                    self.open(&format!("if ({condition})"));
                    self.change(scope, &fields, &path, ty);
                    self.close();
                } else {
                    self.change(scope, &fields, &path, ty);
                }
            }
            if !self.model.strict || self.rng.chance(30) {
                self.change_whole(scope, &checked);
            }
            if is_guarded {
                self.close();
            }
        }
        let rewrites = scope
            .tables
            .iter()
            .find(|t| t.1.iter().any(|a| a.starts_with("rewrite")));
        if let Some((table, _)) = rewrites.cloned()
            && self.rng.chance(70)
        {
            self.line(&format!("{table}.apply();"));
        }
    }

    /// Changes a field.
    fn change(&mut self, scope: &Scope, fields: &[(String, Ty)], path: &str, ty: Ty) {
        let same: Vec<String> = fields
            .iter()
            .filter(|f| f.1 == ty && f.0 != path)
            .map(|f| f.0.clone())
            .collect();
        let other = self.rng.pick(&same).cloned();
        let value = match (self.rng.below(10), other) {
            (0..3, _) => {
                let by = self.literal(ty);
                format!("{path} {} {by}", self.rng.one(["-", "+", "^", "|-|"]))
            }
            (3 | 4, _) => self.literal(ty),
            (5 | 6, Some(other)) => other,
            (7, Some(other)) => {
                let name = self.name("kept");
                self.line(&format!("{} {name} = {path};", ty.text()));
                self.line(&format!("{path} = {other};"));
                self.line(&format!("{other} = {name};"));
                return;
            }
            (8, _) if ty.width() > 1 => {
                let low = self.rng.below(ty.width() as usize) as u32;
                let high = self.rng.between(low as usize, ty.width() as usize - 1) as u32;
                let value = self.literal(Ty::Bit(high - low + 1));
                self.line(&format!("{path}[{high}:{low}] = {value};"));
                return;
            }
            _ => self.expression(scope, ty, 2),
        };
        self.line(&format!("{path} = {value};"));
    }

    /// Now and then: changes the checksum itself, or which headers there are.
    fn change_whole(&mut self, scope: &Scope, checked: &Checked) {
        let path = &checked.header.path;
        match self.rng.below(30) {
            0 => self.line(&format!("{path}.setInvalid();")),
            1 => self.line(&format!("{path}.setValid();")),
            2 => {
                self.line(&format!("{path}.setInvalid();"));
                self.line(&format!("{path}.setValid();"));
            }
            3 | 4 => {
                if let Some(other) = self.rng.pick(&scope.headers).cloned() {
                    let what = self.rng.one(["setInvalid", "setValid"]);
                    self.line(&format!("{}.{what}();", other.path));
                }
            }
            5..8 => {
                let value = self.literal(Ty::Bit(16));
                self.line(&format!("{} = {value};", checked.field()));
            }
            _ => {}
        }
    }
}
