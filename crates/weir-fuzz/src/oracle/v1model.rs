//! v1model: its blocks in order, and what the traffic manager does to a packet.

use super::externs::DROP;
use super::instance::{Package, Part};
use super::machine::Machine;
use super::marks::Marks;
use super::packet::{Packet, Written, header_bits};
use super::replication::Replication;
use super::stop::{Eval, Stop, unknown};
use super::value::{Object, Value};
use std::collections::VecDeque;
use weir_compiler::tools::{DefKind, Ty, TyKind};
use weir_stf::Directive;
use weir_syntax::ast::{Annotation, AnnotationBody, AnnotationTokenKind, Name};

/// `instance_type`
const NORMAL: u8 = 0;
const INGRESS_CLONE: u8 = 1;
const EGRESS_CLONE: u8 = 2;
const RECIRCULATED: u8 = 4;
const REPLICATION: u8 = 5;
const RESUBMITTED: u8 = 6;

/// Runs of ingress and egress that one packet causes, after which it is too much.
const MOST_RUNS: usize = 100;

/// Outputs of a packet: port and bytes.
pub(super) type Outputs = Vec<(u32, Vec<u8>)>;

/// The switch.
pub(super) struct V1<'a> {
    /// Its program.
    pub machine: Machine<'a>,
    parser: usize,
    verify: usize,
    ingress: usize,
    egress: usize,
    compute: usize,
    deparser: usize,
    metadata: Ty,
    standard: Ty,
    /// Fields that `@field_list(n)` keeps: whether they are of the standard metadata, the path, the
    /// numbers.
    kept: Vec<(bool, Vec<Name>, Vec<u64>)>,
    replication: Replication,
}

/// A packet that comes to ingress.
struct Arriving {
    port: u32,
    bytes: Vec<u8>,
    metadata: Value,
    standard: Value,
    kind: u8,
}

/// A packet on its way out.
#[derive(Clone)]
struct Leaving {
    headers: Value,
    metadata: Value,
    standard: Value,
    packet: Packet,
    port_in: u32,
    /// Length in bytes as the switch keeps it, and the bits of headers that it was true for.
    length: i64,
    header_bits: i64,
    truncate: Option<u64>,
    recirculate: Option<u64>,
}

enum Job {
    Ingress(Box<Arriving>),
    Egress(u32, Box<Leaving>),
}

fn set(metadata: &mut Value, field: &str, number: u64) {
    if let Some(field) = metadata.field_mut(field)
        && let Value::Bit { width, .. } = field
    {
        *field = Value::bit(*width, number);
    }
}

fn get(metadata: &Value, field: &str) -> u64 {
    metadata.field(field).and_then(Value::small).unwrap_or(0)
}

impl<'a> V1<'a> {
    /// The switch of a program.
    pub fn new(mut machine: Machine<'a>, main: &Package) -> Eval<Self> {
        let block = |at: usize| match main.get(at) {
            Some((_, Part::Value(Value::Object(Object::Block(block))))) => Ok(*block),
            _ => unknown("a package with other blocks"),
        };
        let [parser, verify, ingress, egress, compute, deparser] =
            [block(0)?, block(1)?, block(2)?, block(3)?, block(4)?, block(5)?];
        let params = machine.block_params(machine.blocks[parser].def)?;
        let [_, _, metadata, standard] = params.as_slice() else {
            return unknown("a parser with other parameters");
        };
        let (metadata, standard) = (metadata.ty, standard.ty);
        let mut kept = Vec::new();
        for (is_standard, ty) in [(false, metadata), (true, standard)] {
            kept_fields(&mut machine, is_standard, ty, &mut Vec::new(), &[], &mut kept)?;
        }
        Ok(V1 {
            machine,
            parser,
            verify,
            ingress,
            egress,
            compute,
            deparser,
            metadata,
            standard,
            kept,
            replication: Replication::default(),
        })
    }

    /// Does what a directive says that the switch has accepted.
    pub fn directive(&mut self, directive: &Directive) -> Eval<()> {
        if self.replication.directive(directive) {
            return Ok(());
        }
        self.machine.directive(directive)
    }

    /// What a packet becomes, in no order.
    pub fn inject(&mut self, port: u32, bytes: &[u8], now_ns: u64) -> Eval<Outputs> {
        let mut standard = self.machine.zero(self.standard)?;
        set(&mut standard, "ingress_port", port.into());
        set(&mut standard, "ingress_global_timestamp", now_ns / 1000);
        let first = Arriving {
            port,
            bytes: bytes.to_vec(),
            metadata: self.machine.zero(self.metadata)?,
            standard,
            kind: NORMAL,
        };
        let (mut jobs, mut outputs) = (VecDeque::from([Job::Ingress(Box::new(first))]), Vec::new());
        if !self.replication.is_up(port) {
            return Ok(outputs);
        }
        let (mut runs, mut later_state) = (0, false);
        while let Some(job) = jobs.pop_front() {
            runs += 1;
            if runs > MOST_RUNS {
                return unknown("very many copies of a packet");
            }
            self.machine.marks = Marks::default();
            match job {
                Job::Ingress(arriving) => self.ingress(*arriving, &mut jobs)?,
                Job::Egress(port, leaving) => self.egress(port, *leaving, now_ns, &mut jobs, &mut outputs)?,
            }
            later_state |= runs > 1 && self.machine.marks.state;
        }
        // One run of ingress and one of egress have an order.
        if later_state && runs > 2 {
            return unknown("the order in which copies of a packet meet a register");
        }
        Ok(outputs)
    }

    // ------------------------------------------------------------------------------------- blocks

    /// Runs a block with the packet's headers and metadata; what they are afterwards. `None`: the
    /// packet is dropped.
    fn run(&mut self, block: usize, values: Vec<Value>) -> Eval<Option<Vec<Value>>> {
        match self.machine.run_top(block, values)? {
            (_, Some(Stop::Abort)) => Ok(None),
            (_, Some(Stop::Reject(_))) => unknown("an error of a parser outside of one"),
            (after, _) => Ok(Some(after)),
        }
    }

    /// Parses; gives headers, metadata and standard metadata.
    fn parse(&mut self, bytes: Vec<u8>, metadata: Value, standard: Value) -> Eval<Option<[Value; 3]>> {
        self.machine.packet = Packet::new(bytes);
        let values = vec![Value::Object(Object::Packet), Value::Void, metadata, standard];
        let (after, stop) = self.machine.run_top(self.parser, values)?;
        let Ok([_, headers, metadata, mut standard]) = <[Value; 4]>::try_from(after) else {
            return unknown("a parser with other parameters");
        };
        let error = match stop {
            Some(Stop::Reject(error)) => error,
            Some(Stop::Abort) => return Ok(None),
            Some(Stop::Exit | Stop::Unknown(_)) | None => "NoError".into(),
        };
        if let Some(field) = standard.field_mut("parser_error") {
            *field = Value::Error(error);
        }
        Ok(Some([headers, metadata, standard]))
    }

    fn ingress(&mut self, arriving: Arriving, jobs: &mut VecDeque<Job>) -> Eval<()> {
        let length = arriving.bytes.len();
        let mut standard = arriving.standard;
        set(&mut standard, "instance_type", arriving.kind.into());
        set(&mut standard, "packet_length", length as u64);
        let Some(parsed) = self.parse(arriving.bytes.clone(), arriving.metadata, standard)? else {
            return Ok(());
        };
        let [headers, metadata, mut standard] = parsed;
        let bits = header_bits(&headers);
        let Some(after) = self.run(self.verify, vec![headers, metadata])? else {
            return Ok(());
        };
        set(
            &mut standard,
            "checksum_error",
            self.machine.marks.checksum_error.into(),
        );
        let values = after.into_iter().chain([standard]).collect();
        let Some(after) = self.run(self.ingress, values)? else {
            return Ok(());
        };
        let Ok([headers, metadata, standard]) = <[Value; 3]>::try_from(after) else {
            return unknown("an ingress with other parameters");
        };
        let leaving = Leaving {
            headers,
            metadata,
            standard,
            packet: self.machine.packet.clone(),
            port_in: arriving.port,
            length: length as i64,
            header_bits: bits,
            truncate: self.machine.marks.truncate,
            recirculate: self.machine.marks.recirculate,
        };
        self.end_of_ingress(leaving, jobs)
    }

    /// Clone, then one of: resubmit, multicast, drop, unicast.
    fn end_of_ingress(&mut self, mut leaving: Leaving, jobs: &mut VecDeque<Job>) -> Eval<()> {
        let marks = self.machine.marks.clone();
        if let Some((session, list)) = marks.clone {
            self.ingress_clone(session, list, &leaving, jobs)?;
        }
        if let Some(list) = marks.resubmit {
            let again = self.again(&leaving, leaving.packet.bytes.clone(), RESUBMITTED, Some(list))?;
            jobs.push_back(Job::Ingress(Box::new(again)));
            return Ok(());
        }
        let group = get(&leaving.standard, "mcast_grp");
        if group != 0 {
            set(&mut leaving.standard, "instance_type", REPLICATION.into());
            leaving.measure();
            self.multicast(group as u32, &leaving, jobs);
            return Ok(());
        }
        let port = get(&leaving.standard, "egress_spec");
        if port == DROP {
            return Ok(());
        }
        set(&mut leaving.standard, "instance_type", NORMAL.into());
        leaving.measure();
        self.enqueue(port as u32, leaving, jobs);
        Ok(())
    }

    fn enqueue(&self, port: u32, leaving: Leaving, jobs: &mut VecDeque<Job>) {
        if self.replication.is_up(port) {
            jobs.push_back(Job::Egress(port, Box::new(leaving)));
        }
    }

    fn multicast(&self, group: u32, leaving: &Leaving, jobs: &mut VecDeque<Job>) {
        for (rid, port) in self.replication.copies(group) {
            let mut copy = leaving.clone();
            set(&mut copy.standard, "egress_rid", rid.into());
            copy.recirculate = None;
            self.enqueue(port, copy, jobs);
        }
    }

    /// A clone goes where its session says: to a port, or to a multicast group.
    fn send_clone(&self, session: u32, mut clone: Leaving, jobs: &mut VecDeque<Job>) {
        clone.recirculate = None;
        let Some(session) = self.replication.session(session) else {
            return;
        };
        if let Some(port) = session.port {
            self.enqueue(port, clone.clone(), jobs);
        }
        if let Some(group) = session.group {
            self.multicast(group, &clone, jobs);
        }
    }

    /// The packet as it came in, parsed again, with the fields of a list as they are at the end of
    /// ingress.
    fn ingress_clone(
        &mut self,
        session: u32,
        list: Option<u64>,
        original: &Leaving,
        jobs: &mut VecDeque<Job>,
    ) -> Eval<()> {
        let (packet, marks) = (self.machine.packet.clone(), self.machine.marks.clone());
        let mut standard = self.machine.zero(self.standard)?;
        set(&mut standard, "ingress_port", original.port_in.into());
        let metadata = self.machine.zero(self.metadata)?;
        let parsed = self.parse(original.packet.bytes.clone(), metadata, standard)?;
        let cloned = std::mem::replace(&mut self.machine.packet, packet);
        self.machine.marks = marks;
        let Some([headers, ..]) = parsed else { return Ok(()) };
        let (metadata, mut standard) = self.kept(list, &original.metadata, &original.standard)?;
        set(&mut standard, "instance_type", INGRESS_CLONE.into());
        let clone = Leaving {
            header_bits: header_bits(&headers),
            headers,
            metadata,
            standard,
            length: cloned.bytes.len() as i64,
            packet: cloned,
            port_in: original.port_in,
            truncate: None,
            recirculate: None,
        };
        self.send_clone(session, clone, jobs);
        Ok(())
    }

    /// Metadata of zeros but for the fields of a list.
    fn kept(&mut self, list: Option<u64>, metadata: &Value, standard: &Value) -> Eval<(Value, Value)> {
        let (mut user, mut other) = (self.machine.zero(self.metadata)?, self.machine.zero(self.standard)?);
        for (is_standard, path, lists) in &self.kept {
            if list.is_none_or(|list| !lists.contains(&list)) {
                continue;
            }
            let (from, to) = if *is_standard {
                (standard, &mut other)
            } else {
                (metadata, &mut user)
            };
            let value = path.iter().try_fold(from, |v, name| v.field(name));
            let place = path.iter().try_fold(to, |v, name| v.field_mut(name));
            if let (Some(value), Some(place)) = (value, place) {
                *place = value.clone();
            }
        }
        Ok((user, other))
    }

    fn again(&mut self, packet: &Leaving, bytes: Vec<u8>, kind: u8, list: Option<u64>) -> Eval<Arriving> {
        let (metadata, standard) = self.kept(list, &packet.metadata, &packet.standard)?;
        Ok(Arriving {
            port: packet.port_in,
            bytes,
            metadata,
            standard,
            kind,
        })
    }

    fn egress(
        &mut self,
        port: u32,
        mut leaving: Leaving,
        now_ns: u64,
        jobs: &mut VecDeque<Job>,
        outputs: &mut Outputs,
    ) -> Eval<()> {
        let standard = &mut leaving.standard;
        set(standard, "egress_global_timestamp", now_ns / 1000);
        set(standard, "enq_timestamp", now_ns / 1000);
        set(standard, "egress_port", port.into());
        set(standard, "egress_spec", DROP + 1);
        set(standard, "packet_length", u64::try_from(leaving.length).unwrap_or(0));
        self.machine.packet = leaving.packet.clone();
        let values = vec![
            leaving.headers.clone(),
            leaving.metadata.clone(),
            leaving.standard.clone(),
        ];
        let Some(after) = self.run(self.egress, values)? else {
            return Ok(());
        };
        let Ok([headers, metadata, standard]) = <[Value; 3]>::try_from(after) else {
            return unknown("an egress with other parameters");
        };
        (leaving.headers, leaving.metadata, leaving.standard) = (headers, metadata, standard);
        if let Some((session, list)) = self.machine.marks.clone {
            let mut clone = leaving.clone();
            (clone.metadata, clone.standard) = self.kept(list, &leaving.metadata, &leaving.standard)?;
            set(&mut clone.standard, "instance_type", EGRESS_CLONE.into());
            clone.truncate = None;
            clone.measure();
            self.send_clone(session, clone, jobs);
        }
        if get(&leaving.standard, "egress_spec") == DROP {
            return Ok(());
        }
        self.deparse(port, leaving, jobs, outputs)
    }

    fn deparse(
        &mut self,
        port: u32,
        mut leaving: Leaving,
        jobs: &mut VecDeque<Job>,
        outputs: &mut Outputs,
    ) -> Eval<()> {
        let values = vec![leaving.headers.clone(), leaving.metadata.clone()];
        let Some(after) = self.run(self.compute, values)? else {
            return Ok(());
        };
        let Ok([headers, metadata]) = <[Value; 2]>::try_from(after) else {
            return unknown("a checksum control with other parameters");
        };
        (leaving.headers, leaving.metadata) = (headers, metadata);
        self.machine.written = Written::default();
        let values = vec![Value::Object(Object::Packet), leaving.headers.clone()];
        if self.run(self.deparser, values)?.is_none() {
            return Ok(());
        }
        let written = std::mem::take(&mut self.machine.written);
        let mut bytes = written.finish(&self.machine.packet);
        let limits = [self.machine.marks.truncate, leaving.truncate];
        if let Some(limit) = limits.into_iter().flatten().min() {
            bytes.truncate(limit as usize);
        }
        match self.machine.marks.recirculate.or(leaving.recirculate) {
            Some(list) => {
                let again = self.again(&leaving, bytes, RECIRCULATED, Some(list))?;
                jobs.push_back(Job::Ingress(Box::new(again)));
            }
            None => outputs.push((port, bytes)),
        }
        Ok(())
    }
}

impl Leaving {
    /// The length changes by what headers have come and gone.
    fn measure(&mut self) {
        let bits = header_bits(&self.headers);
        self.length += (bits - self.header_bits) / 8;
        self.header_bits = bits;
    }
}

/// Paths of all fields below a type that are in field lists; an annotation of a struct is one of
/// its fields.
fn kept_fields(
    machine: &mut Machine<'_>,
    is_standard: bool,
    ty: Ty,
    path: &mut Vec<Name>,
    lists: &[u64],
    to: &mut Vec<(bool, Vec<Name>, Vec<u64>)>,
) -> Eval<()> {
    let concrete = machine.concrete(ty);
    let annotations: Vec<&[Annotation]> = match machine.checked.types.get(concrete).clone() {
        TyKind::Struct(def, _) => match machine.def(def) {
            DefKind::Struct { fields, .. } => fields.iter().map(|f| f.annotations).collect(),
            _ => Vec::new(),
        },
        _ => {
            if !lists.is_empty() {
                to.push((is_standard, path.clone(), lists.to_vec()));
            }
            return Ok(());
        }
    };
    for ((name, field), annotations) in machine.fields(concrete).into_iter().zip(annotations) {
        let mut lists = lists.to_vec();
        for annotation in annotations.iter().filter(|a| &*a.name.name == "field_list") {
            lists.extend(numbers(machine, annotation)?);
        }
        path.push(name);
        kept_fields(machine, is_standard, field, path, &lists, to)?;
        path.pop();
    }
    Ok(())
}

/// Numbers of an annotation, some of them constants or members of enums by name.
fn numbers(machine: &mut Machine<'_>, annotation: &Annotation) -> Eval<Vec<u64>> {
    let AnnotationBody::Unstructured(tokens) = &annotation.body else {
        return unknown("a field list of another form");
    };
    let mut numbers = Vec::new();
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        match &token.kind {
            AnnotationTokenKind::Integer(value) => numbers.extend(u64::try_from(value).ok()),
            AnnotationTokenKind::Word => {
                let Some(&def) = machine.checked.globals.get(&token.text).and_then(|d| d.first()) else {
                    return unknown("a field list of another form");
                };
                let value = match machine.def(def) {
                    DefKind::Enum { .. } => {
                        let ty = machine.checked.types.intern(TyKind::Enum(def));
                        // After the name come a dot and the member.
                        let member = tokens.nth(1).map_or("", |t| &t.text);
                        machine.represented(ty, member)?
                    }
                    _ => Some(machine.meaning(def)?),
                };
                numbers.extend(value.and_then(|v| v.small()));
            }
            AnnotationTokenKind::String | AnnotationTokenKind::Punctuation => {}
        }
    }
    Ok(numbers)
}
