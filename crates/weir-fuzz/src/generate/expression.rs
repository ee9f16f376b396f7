//! Expressions of every type.

use super::Generator;
use super::model::{Place, Scope, Ty, WIDEST, width};
use weir_ir::Bits;

impl Generator {
    /// A constant of a type.
    pub(super) fn literal(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bit(0) => "0w0".to_owned(),
            Ty::Bool => self.rng.one(["true", "false"]).to_owned(),
            Ty::Bit(w) => format!("{w}w0x{:x}", self.number(w).to_biguint()),
            Ty::Int(w) => {
                let value = self.number(w).to_signed_bigint();
                let text = value.to_string();
                match text.strip_prefix('-') {
                    // The least value has no positive counterpart.
                    Some(_) if value == Bits::new(w, 1).shl(u64::from(w) - 1).to_signed_bigint() => {
                        format!("(-{w}s{} - {w}s1)", -(value + 1u8))
                    }
                    Some(magnitude) => format!("(-{w}s{magnitude})"),
                    None => format!("{w}s{text}"),
                }
            }
        }
    }

    /// A value, one that others have too if it can be.
    pub(super) fn number(&mut self, width: u32) -> Bits {
        match self.rng.below(8) {
            0 => Bits::zero(width),
            1 => Bits::new(width, 1),
            2 => Bits::ones(width),
            3 => Bits::new(width, 1).shl(self.rng.below(width as usize) as u64),
            4..6 => Bits::new(width, self.rng.below(10) as u128),
            _ => {
                let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| self.rng.number() as u8).collect();
                Bits::from_bytes(width, &bytes)
            }
        }
    }

    /// A variable of exactly this type.
    pub(super) fn variable(&mut self, scope: &Scope, ty: Ty) -> Option<String> {
        let fitting: Vec<&str> = scope
            .variables
            .iter()
            .filter(|v| v.ty == ty)
            .map(|v| v.path.as_str())
            .collect();
        self.rng.pick(&fitting).map(|s| (*s).to_owned())
    }

    /// Something that can be written.
    pub(super) fn target(&mut self, scope: &Scope) -> Option<(String, Ty)> {
        let writable: Vec<(String, Ty)> = scope
            .variables
            .iter()
            .filter(|v| v.writable)
            .map(|v| (v.path.clone(), v.ty))
            .collect();
        self.rng.pick(&writable).cloned()
    }

    /// A variable of any type, made into this one.
    pub(super) fn converted(&mut self, scope: &Scope, ty: Ty) -> Option<String> {
        let variable = self.rng.pick(&scope.variables)?.clone();
        let path = variable.path;
        let (from, to) = (variable.ty.width(), ty.width());
        Some(match (variable.ty, ty) {
            (a, b) if a == b => path,
            (Ty::Bool, Ty::Bool) => path,
            (Ty::Bool, Ty::Bit(_)) => format!("((bit<{to}>)(bit<1>){path})"),
            (Ty::Bool, Ty::Int(_)) => format!("((int<{to}>)(bit<{to}>)(bit<1>){path})"),
            (_, Ty::Bool) => format!("({path} == {})", self.literal(variable.ty)),
            (_, Ty::Bit(_)) if to < from && self.rng.chance(70) => {
                let low = self.rng.below((from - to + 1) as usize) as u32;
                format!("{path}[{}:{low}]", low + to - 1)
            }
            (Ty::Int(_), Ty::Bit(_)) => format!("((bit<{to}>)(bit<{from}>){path})"),
            (Ty::Bit(_), Ty::Int(_)) => format!("((int<{to}>)(bit<{to}>){path})"),
            (Ty::Bit(_), Ty::Bit(_)) | (Ty::Int(_), Ty::Int(_)) => format!("(({}){path})", ty.text()),
        })
    }

    fn leaf(&mut self, scope: &Scope, ty: Ty) -> String {
        let found = match self.rng.below(10) {
            0..2 => None,
            2..6 => self.variable(scope, ty),
            _ => self.converted(scope, ty),
        };
        found.unwrap_or_else(|| self.literal(ty))
    }

    /// An expression.
    pub(super) fn expression(&mut self, scope: &Scope, ty: Ty, depth: u32) -> String {
        if depth == 0 || self.rng.chance(25) {
            return self.leaf(scope, ty);
        }
        match ty {
            Ty::Bool => self.condition(scope, depth),
            Ty::Bit(w) => self.unsigned(scope, w, depth),
            Ty::Int(w) => self.signed(scope, w, depth),
        }
    }

    fn pair(&mut self, scope: &Scope, ty: Ty, depth: u32, operator: &str) -> String {
        let (a, b) = (
            self.expression(scope, ty, depth - 1),
            self.expression(scope, ty, depth - 1),
        );
        format!("({a} {operator} {b})")
    }

    fn mux(&mut self, scope: &Scope, ty: Ty, depth: u32) -> String {
        let condition = self.condition(scope, depth - 1);
        let (a, b) = (
            self.expression(scope, ty, depth - 1),
            self.expression(scope, ty, depth - 1),
        );
        format!("({condition} ? {a} : {b})")
    }

    /// By how much to shift: a constant, or something small.
    fn distance(&mut self, scope: &Scope, width: u32, depth: u32) -> String {
        match self.rng.below(3) {
            0 => self.rng.below(width as usize + 2).to_string(),
            1 => {
                let w = self.rng.between(1, 9) as u32;
                self.expression(scope, Ty::Bit(w), depth - 1)
            }
            _ => {
                let w = self.rng.between(1, 70) as u32;
                self.leaf(scope, Ty::Bit(w))
            }
        }
    }

    fn unsigned(&mut self, scope: &Scope, w: u32, depth: u32) -> String {
        let ty = Ty::Bit(w);
        match self.rng.below(25) {
            24 if w < WIDEST => self.bits_summed(scope, w),
            0..10 => {
                let operator = self
                    .rng
                    .one(["+", "-", "*", "&", "|", "^", "+", "-", "|+|", "|-|", "&", "^"]);
                self.pair(scope, ty, depth, operator)
            }
            10 => format!("(~{})", self.expression(scope, ty, depth - 1)),
            11 => format!("(-{})", self.expression(scope, ty, depth - 1)),
            12..14 => {
                let value = self.expression(scope, ty, depth - 1);
                let distance = self.distance(scope, w, depth);
                format!("({value} {} {distance})", self.rng.one(["<<", ">>"]))
            }
            14..16 if w > 1 => {
                let left = self.rng.between(1, w as usize - 1) as u32;
                let a = self.expression(scope, Ty::Bit(left), depth - 1);
                let b = self.expression(scope, Ty::Bit(w - left), depth - 1);
                format!("({a} ++ {b})")
            }
            16 if w < WIDEST => {
                let more = self.rng.between(1, 40) as u32;
                let inside = self.expression(scope, Ty::Bit(w + more), depth - 1);
                let low = self.rng.below(more as usize + 1) as u32;
                // A slice of a literal would be one of a constant, which is dull.
                format!("({inside})[{}:{low}]", low + w - 1)
            }
            17..19 => {
                let from = width(&mut self.rng, WIDEST);
                format!("((bit<{w}>){})", self.expression(scope, Ty::Bit(from), depth - 1))
            }
            19 if w > 1 => format!("((bit<{w}>){})", self.expression(scope, Ty::Int(w), depth - 1)),
            20 => {
                let divisor = self.number(w);
                let divisor = if divisor.is_zero() { Bits::new(w, 1) } else { divisor };
                let value = self.expression(scope, ty, depth - 1);
                let operator = self.rng.one(["/", "%"]);
                format!("({value} {operator} {w}w0x{:x})", divisor.to_biguint())
            }
            21 if w == 1 => format!("((bit<1>)({}))", self.condition(scope, depth - 1)),
            _ => self.mux(scope, ty, depth),
        }
    }

    /// A sum of single bits, as programs count those of a bitmap: mostly of one variable, some of
    /// them twice or more times as much.
    fn bits_summed(&mut self, scope: &Scope, w: u32) -> String {
        let maps: Vec<(&str, u32)> = scope
            .variables
            .iter()
            .filter_map(|v| match v.ty {
                Ty::Bit(width @ 2..) => Some((v.path.as_str(), width)),
                _ => None,
            })
            .collect();
        let Some(&first) = self.rng.pick(&maps) else {
            return self.leaf(scope, Ty::Bit(w));
        };
        let mut sum = String::new();
        for i in 0..self.rng.between(2, 9) {
            let other = self.rng.pick(&maps).copied().filter(|_| self.rng.chance(15));
            let (path, width) = other.unwrap_or(first);
            // Mostly each of them once, in order.
            let bit = match self.rng.chance(80) {
                true => i as u32 % width,
                false => self.rng.below(width as usize) as u32,
            };
            let term = format!("((bit<{w}>){path}[{bit}:{bit}])");
            let term = match self.rng.below(6) {
                0 => format!("({term} << {})", self.rng.below(5)),
                _ => term,
            };
            sum = if i == 0 { term } else { format!("({sum} + {term})") };
        }
        sum
    }

    fn signed(&mut self, scope: &Scope, w: u32, depth: u32) -> String {
        let ty = Ty::Int(w);
        match self.rng.below(14) {
            0..6 => {
                let operator = self.rng.one(["+", "-", "*", "&", "|", "^", "|+|", "|-|", "+"]);
                self.pair(scope, ty, depth, operator)
            }
            6 => format!("(~{})", self.expression(scope, ty, depth - 1)),
            7 => format!("(-{})", self.expression(scope, ty, depth - 1)),
            8..10 => {
                let value = self.expression(scope, ty, depth - 1);
                let distance = self.distance(scope, w, depth);
                format!("({value} {} {distance})", self.rng.one(["<<", ">>"]))
            }
            10 => {
                let from = width(&mut self.rng, WIDEST).max(2);
                format!("((int<{w}>){})", self.expression(scope, Ty::Int(from), depth - 1))
            }
            11 => format!("((int<{w}>){})", self.expression(scope, Ty::Bit(w), depth - 1)),
            _ => self.mux(scope, ty, depth),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &Scope, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(scope, Ty::Bool);
        }
        match self.rng.below(20) {
            0..9 => {
                let ty = match self.rng.pick(&scope.variables) {
                    Some(v) if self.rng.chance(80) => v.ty,
                    _ => Ty::Bit(width(&mut self.rng, WIDEST)),
                };
                let operator = match ty {
                    Ty::Bool => self.rng.one(["==", "!="]),
                    _ => self.rng.one(["==", "!=", "<", "<=", ">", ">=", "=="]),
                };
                self.pair(scope, ty, depth, operator)
            }
            9..12 => {
                let operator = self.rng.one(["&&", "||"]);
                self.pair(scope, Ty::Bool, depth, operator)
            }
            12 => format!("(!{})", self.expression(scope, Ty::Bool, depth - 1)),
            13..17 => match self.rng.pick(&scope.headers).cloned() {
                Some(header) => format!("{}.isValid()", header.path),
                None => self.leaf(scope, Ty::Bool),
            },
            17 => {
                let header = self.rng.pick(&scope.headers).cloned();
                let other = header.as_ref().and_then(|h| {
                    let same: Vec<_> = scope.headers.iter().filter(|o| o.ty == h.ty).cloned().collect();
                    self.rng.pick(&same).cloned()
                });
                match (header, other) {
                    (Some(a), Some(b)) => format!("({} {} {})", a.path, self.rng.one(["==", "!="]), b.path),
                    _ => self.leaf(scope, Ty::Bool),
                }
            }
            18 if matches!(scope.place, Place::Ingress | Place::Egress) && self.rng.chance(30) => {
                let error = self.rng.one(["NoError", "NoMatch", "PacketTooShort", "Strange"]);
                format!("(sm.parser_error {} error.{error})", self.rng.one(["==", "!="]))
            }
            18 => format!("((bool){})", self.expression(scope, Ty::Bit(1), depth - 1)),
            _ => self.mux(scope, Ty::Bool, depth),
        }
    }
}
