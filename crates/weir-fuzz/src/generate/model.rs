//! What programs are made of before they are text.

use super::call::Callable;
use super::checksum::{Checked, SUM};
use super::tna::Execute;
use crate::rng::Rng;

/// Most bits of a generated type.
pub(super) const WIDEST: u32 = 200;

/// A scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ty {
    Bit(u32),
    Int(u32),
    Bool,
}

impl Ty {
    pub fn text(self) -> String {
        match self {
            Ty::Bit(w) => format!("bit<{w}>"),
            Ty::Int(w) => format!("int<{w}>"),
            Ty::Bool => "bool".to_owned(),
        }
    }

    pub fn width(self) -> u32 {
        match self {
            Ty::Bit(w) | Ty::Int(w) => w,
            Ty::Bool => 1,
        }
    }
}

/// Something that can be read, perhaps written.
#[derive(Debug, Clone)]
pub(super) struct Variable {
    pub path: String,
    pub ty: Ty,
    pub writable: bool,
}

/// A header type.
#[derive(Debug, Clone)]
pub(super) struct HeaderType {
    pub name: String,
    pub fields: Vec<(String, Ty)>,
    /// Its last field, and the most bits it can have.
    pub varbit: Option<(String, u32)>,
}

/// A member of the struct of headers.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub name: String,
    /// Position of its type.
    pub ty: usize,
    /// Elements of a stack.
    pub stack: Option<u32>,
}

/// A header as code names it.
#[derive(Debug, Clone)]
pub(super) struct HeaderRef {
    pub path: String,
    pub ty: usize,
}

/// Where code stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Parser,
    Ingress,
    Egress,
    /// Of checksums.
    Checksum,
    Deparser,
    /// A control that others apply.
    Sub,
    /// A function.
    Function,
}

/// What code can see.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub place: Place,
    pub variables: Vec<Variable>,
    pub headers: Vec<HeaderRef>,
    /// Stacks: path, type, elements.
    pub stacks: Vec<(String, usize, u32)>,
    /// Tables to be applied, with the names of their actions.
    pub tables: Vec<(String, Vec<String>)>,
    /// Those of them whose only key is a prefix of a variable, which can be written.
    pub routed: Vec<(String, String, Ty)>,
    /// Actions to be called: name and parameters.
    pub actions: Vec<(String, Vec<Ty>)>,
    pub counters: Vec<String>,
    pub meters: Vec<String>,
    pub registers: Vec<(String, Ty)>,
    /// What can be called with arguments that are copied in and out.
    pub calls: Vec<Callable>,
    /// Register actions and hashes.
    pub executes: Vec<Execute>,
    /// `hdr` is all headers, and can be written.
    pub has_headers: bool,
    /// `meta` is all metadata, and can be written.
    pub has_metadata: bool,
    pub in_action: bool,
    pub in_loop: bool,
    /// Code may call registered externs.
    pub may_wait: bool,
}

impl Scope {
    pub fn new(place: Place) -> Self {
        Scope {
            place,
            variables: Vec::new(),
            headers: Vec::new(),
            stacks: Vec::new(),
            tables: Vec::new(),
            routed: Vec::new(),
            actions: Vec::new(),
            counters: Vec::new(),
            meters: Vec::new(),
            registers: Vec::new(),
            calls: Vec::new(),
            executes: Vec::new(),
            has_headers: false,
            has_metadata: false,
            in_action: false,
            in_loop: false,
            may_wait: false,
        }
    }

    pub fn add(&mut self, path: impl Into<String>, ty: Ty, writable: bool) {
        self.variables.push(Variable {
            path: path.into(),
            ty,
            writable,
        });
    }
}

/// The declared types and instances of a program.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub types: Vec<HeaderType>,
    pub instances: Vec<Instance>,
    /// Metadata: path below `meta`, type, whether a field list keeps it.
    pub metadata: Vec<(String, Ty, bool)>,
    /// Fields of the digest.
    pub digest: Vec<Ty>,
    /// Checksums that packets have.
    pub checked: Vec<Checked>,
    /// Little happens to those that are wrong, or to the others besides what is meant to: else what
    /// was verified seldom still counts where it is computed again.
    pub strict: bool,
    /// Little but fields that are copied and tables: then code knows most of packets and rewrites
    /// them where they are.
    pub plain: bool,
    /// A header that shows all metadata at the end.
    pub shows: bool,
    /// It is for the Tofino Native Architecture.
    pub tna: bool,
    /// It is for an oracle that runs no engine: nothing depends on random numbers or time.
    pub judged: bool,
    /// Values that the first byte of packets is compared with.
    pub version_2020: bool,
    /// It calls registered externs, for which packets may wait. Then it has no state that a packet
    /// reads and another one has written.
    pub waiting: bool,
    /// All packets make the same calls, with this order.
    pub order: Option<&'static str>,
}

/// A width: small, common, odd, wide.
pub(super) fn width(rng: &mut Rng, widest: u32) -> u32 {
    let width = match rng.below(20) {
        0..5 => rng.between(1, 8) as u32,
        5..11 => rng.one([8, 16, 16, 24, 32, 32, 48, 64]),
        11..18 => rng.between(1, 64) as u32,
        18 => rng.between(65, 130) as u32,
        _ => rng.between(65, WIDEST as usize) as u32,
    };
    if width > widest {
        rng.between(1, widest.min(64) as usize) as u32
    } else {
        width
    }
}

pub(super) fn ty(rng: &mut Rng, widest: u32) -> Ty {
    match rng.below(20) {
        0 => Ty::Bool,
        1..4 => Ty::Int(width(rng, widest).max(2)),
        _ => Ty::Bit(width(rng, widest)),
    }
}

/// A header type of whole bytes.
fn header_type(rng: &mut Rng, number: usize) -> HeaderType {
    let mut fields = Vec::new();
    // Selects like small fields in front.
    if rng.chance(60) {
        fields.push(Ty::Bit(rng.one([4, 8, 8, 16])));
    }
    for _ in 0..rng.between(0, 5) {
        let widest = if rng.chance(85) { 64 } else { WIDEST };
        fields.push(ty(rng, widest));
    }
    let bits: u32 = fields.iter().map(|t| t.width()).sum();
    let missing = (8 - bits % 8) % 8;
    if missing > 0 || fields.is_empty() {
        let at = rng.below(fields.len() + 1);
        fields.insert(at, Ty::Bit(if missing == 0 { 8 } else { missing }));
    }
    // The internet checksum wants 16 bits.
    if rng.chance(30) {
        fields.push(Ty::Bit(16));
    }
    let varbit = rng.chance(15).then(|| ("v".to_owned(), 8 * rng.between(1, 20) as u32));
    HeaderType {
        name: format!("h{number}_t"),
        fields: fields
            .into_iter()
            .enumerate()
            .map(|(i, ty)| (format!("f{i}"), ty))
            .collect(),
        varbit,
    }
}

/// A header type of few widths, so that there is much to copy.
fn plain_type(rng: &mut Rng, number: usize) -> HeaderType {
    let mut fields = Vec::new();
    for _ in 0..rng.between(1, 6) {
        match rng.below(8) {
            0 => fields.extend([Ty::Bit(4), Ty::Bit(4)]),
            1 => fields.extend([Ty::Bit(3), Ty::Bit(13)]),
            _ => fields.push(Ty::Bit(rng.one([8, 8, 16, 16, 32, 48]))),
        }
    }
    let named = fields.into_iter().enumerate();
    HeaderType {
        name: format!("h{number}_t"),
        fields: named.map(|(i, ty)| (format!("f{i}"), ty)).collect(),
        varbit: None,
    }
}

/// A header type with a checksum of its own.
fn summed_type(rng: &mut Rng, number: usize) -> HeaderType {
    let mut fields: Vec<(String, Ty)> = Vec::new();
    let mut add = |width| fields.push((format!("f{}", fields.len()), Ty::Bit(width)));
    if rng.chance(30) {
        // As IPv4 has them.
        [4, 4, 8, 16, 16, 3, 13, 8, 8, 32, 32].into_iter().for_each(&mut add);
    } else {
        for _ in 0..rng.between(2, 7) {
            add(rng.one([1, 3, 4, 4, 8, 8, 8, 12, 13, 16, 16, 24, 32, 32, 48, 64, 7]));
        }
    }
    let bits: u32 = fields.iter().map(|f| f.1.width()).sum();
    if !bits.is_multiple_of(8) {
        fields.push(("rest".to_owned(), Ty::Bit(8 - bits % 8)));
    }
    // Mostly at a whole byte.
    let begin = |at: usize| fields[..at].iter().map(|f| f.1.width()).sum::<u32>();
    let is_whole = !rng.chance(20);
    let places: Vec<usize> = (0..=fields.len())
        .filter(|&at| begin(at).is_multiple_of(8) == is_whole)
        .collect();
    let at = rng.pick(&places).copied().unwrap_or(0);
    fields.insert(at, (SUM.to_owned(), Ty::Bit(16)));
    let varbit = rng.chance(25).then(|| ("v".to_owned(), 8 * rng.between(1, 40) as u32));
    HeaderType {
        name: format!("h{number}_t"),
        fields,
        varbit,
    }
}

impl Model {
    pub fn new(rng: &mut Rng) -> Self {
        let (version_2020, plain) = (rng.chance(15), rng.chance(25));
        let mut model = Model {
            version_2020,
            plain,
            shows: rng.chance(60) && !plain,
            ..Model::default()
        };
        for i in 0..rng.between(1, 5) {
            model.types.push(match model.plain {
                true => plain_type(rng, i),
                false => header_type(rng, i),
            });
        }
        model.types[0].varbit = None;
        model.instances.push(Instance {
            name: "first".to_owned(),
            ty: 0,
            stack: None,
        });
        for i in 0..rng.between(if model.plain { 2 } else { 0 }, 5) {
            let ty = rng.below(model.types.len());
            let stack = rng
                .chance(if model.plain { 0 } else { 25 })
                .then(|| rng.between(1, 4) as u32);
            // Stacks of varbits are moved about element by element: few programs have them.
            let stack = stack.filter(|_| model.types[ty].varbit.is_none() || rng.chance(20));
            model.instances.push(Instance {
                name: format!("h{i}"),
                ty,
                stack,
            });
        }
        let count = match rng.below(25) {
            _ if model.plain => 0,
            0..5 => 1,
            5..7 => 2,
            _ => 0,
        };
        model.strict = count > 0 && rng.chance(65);
        for i in 0..count {
            model.checked_header(rng, i);
        }
        for i in 0..rng.between(1, 7) {
            let widest = if rng.chance(80) { 64 } else { WIDEST };
            let path = if rng.chance(20) {
                format!("inner.m{i}")
            } else {
                format!("m{i}")
            };
            let kept = rng.chance(30) && !path.starts_with("inner");
            model.metadata.push((path, ty(rng, widest), kept));
        }
        for _ in 0..rng.between(1, 3) {
            model.digest.push(Ty::Bit(width(rng, 64)));
        }
        model
    }

    /// Adds a header with a checksum: the one that all packets begin with, or another one.
    fn checked_header(&mut self, rng: &mut Rng, number: usize) {
        let (path, ty) = if number == 0 && rng.chance(if self.strict { 60 } else { 40 }) {
            self.types[0] = summed_type(rng, 0);
            self.types[0].varbit = None;
            ("hdr.first".to_owned(), 0)
        } else {
            let ty = self.types.len();
            self.types.push(summed_type(rng, ty));
            let (name, stack) = (format!("c{number}"), rng.chance(12).then(|| rng.between(1, 3) as u32));
            let path = match stack {
                Some(n) => format!("hdr.{name}[{}]", rng.below(n as usize)),
                None => format!("hdr.{name}"),
            };
            self.instances.push(Instance { name, ty, stack });
            (path, ty)
        };
        self.checked.push(Checked {
            header: HeaderRef { path, ty },
            data: Vec::new(),
        });
    }

    /// A stack or header of the model as code names it.
    pub fn fields_of(&self, path: &str, ty: usize) -> Vec<Variable> {
        self.types[ty]
            .fields
            .iter()
            .map(|(name, ty)| Variable {
                path: format!("{path}.{name}"),
                ty: *ty,
                writable: true,
            })
            .collect()
    }

    /// What controls see of headers, metadata and standard metadata.
    pub fn scope(&self, place: Place) -> Scope {
        let mut scope = Scope::new(place);
        for instance in &self.instances {
            let path = format!("hdr.{}", instance.name);
            match instance.stack {
                None => scope.headers.push(HeaderRef { path, ty: instance.ty }),
                Some(n) => {
                    for i in 0..n {
                        let path = format!("{path}[{i}]");
                        scope.headers.push(HeaderRef { path, ty: instance.ty });
                    }
                    scope.stacks.push((path, instance.ty, n));
                }
            }
        }
        for header in &scope.headers {
            scope.variables.extend(self.fields_of(&header.path, header.ty));
        }
        if place == Place::Deparser {
            // It sees headers alone, and cannot change them.
            scope.variables.iter_mut().for_each(|v| v.writable = false);
            return scope;
        }
        for (path, ty, _) in &self.metadata {
            scope.add(format!("meta.{path}"), *ty, true);
        }
        scope.has_headers = matches!(place, Place::Ingress | Place::Egress);
        scope.has_metadata = scope.has_headers;
        if place != Place::Checksum {
            standard(&mut scope);
        }
        if self.judged {
            let of_time = |path: &str| path.contains("qdepth") || path.contains("timedelta");
            scope.variables.retain(|v| !of_time(&v.path));
        }
        scope
    }
}

fn standard(scope: &mut Scope) {
    for (name, width) in [
        ("ingress_port", 9),
        ("instance_type", 32),
        ("packet_length", 32),
        ("ingress_global_timestamp", 48),
    ] {
        scope.add(format!("sm.{name}"), Ty::Bit(width), false);
    }
    match scope.place {
        Place::Ingress => {
            scope.add("sm.egress_spec", Ty::Bit(9), true);
            scope.add("sm.checksum_error", Ty::Bit(1), false);
        }
        Place::Egress => {
            for (name, width) in [
                ("egress_port", 9),
                ("egress_rid", 16),
                ("enq_timestamp", 32),
                ("enq_qdepth", 19),
                ("deq_timedelta", 32),
                ("deq_qdepth", 19),
                ("egress_global_timestamp", 48),
                ("mcast_grp", 16),
                ("checksum_error", 1),
            ] {
                scope.add(format!("sm.{name}"), Ty::Bit(width), false);
            }
        }
        _ => {}
    }
}
