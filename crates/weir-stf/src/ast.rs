//! A test as data.

use crate::generator::GeneratorDirective;
use crate::value::Value;
use weir_switch::{CrcParameters, LpfConfig, WredConfig};

/// A test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Test {
    /// Its directives in order.
    pub lines: Vec<Line>,
}

/// A directive and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Line number, from 1.
    pub number: u32,
    /// What it says.
    pub directive: Directive,
}

/// What must go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Hexadecimal digits in lower case, `*` for any.
    pub digits: String,
    /// The packet ends with the digits.
    pub exact: bool,
}

/// One of the things that may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alternative {
    /// A packet goes out at a port; `None`: whatever it holds.
    Packet(u32, Option<Pattern>),
    /// None of the packets goes out.
    Drop,
}

/// `KEY:VALUE`
#[derive(Debug, Clone, PartialEq)]
pub struct KeyValue {
    /// The name as written, without quotes.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// `NAME:VALUE` or `VALUE`
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The parameter's name, if given.
    pub name: Option<String>,
    /// The value.
    pub value: Value,
}

/// `ACTION(…)`
#[derive(Debug, Clone, PartialEq)]
pub struct ActionUse {
    /// The name as written, without quotes.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
}

/// Which counter of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum CounterIndex {
    /// This one.
    Number(u64),
    /// That of the entry that was added as `= ID`.
    Entry(String),
}

/// What of a counter is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after their signs")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether it holds.
    #[must_use]
    pub fn holds<T: PartialOrd>(self, left: &T, right: &T) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }

    /// Its sign.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

/// `RATE:BURST` of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Tokens per µs.
    pub rate: f64,
    /// Tokens.
    pub burst: u64,
}

/// Unit of a port's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateUnit {
    /// Packets per second.
    Packets,
    /// Bits per second.
    Bits,
}

/// A line of a test. See the crate's root for what they mean.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the crate's root lists them with their arguments")]
pub enum Directive {
    Packet {
        port: u32,
        bytes: Vec<u8>,
    },
    Receive {
        port: u32,
        bytes: Vec<u8>,
    },
    Drain,
    Expect(Vec<Alternative>),
    NoPacket,
    ExpectDrop {
        reason: String,
    },
    ExpectDigest {
        name: String,
        fields: Vec<KeyValue>,
    },
    Add {
        table: String,
        priority: Option<u32>,
        keys: Vec<KeyValue>,
        action: ActionUse,
        id: Option<String>,
    },
    SetDefault {
        table: String,
        action: ActionUse,
    },
    Modify {
        table: String,
        id: String,
        action: ActionUse,
    },
    Delete {
        table: String,
        id: String,
    },
    RemoveAll,
    Wait,
    CheckCounter {
        name: String,
        index: CounterIndex,
        check: Option<(Quantity, Comparison, u64)>,
    },
    CounterWrite {
        name: String,
        index: u64,
        packets: u64,
        bytes: u64,
    },
    RegisterRead {
        name: String,
        index: CounterIndex,
        /// A value, or one for each scalar of the cell.
        check: Option<(Comparison, Vec<Value>)>,
    },
    /// A key of an extern instance; without bytes it is removed.
    ExternKey {
        name: String,
        index: u64,
        bytes: Vec<u8>,
    },
    RegisterWrite {
        name: String,
        index: u64,
        /// One for each scalar of the cell.
        values: Vec<Value>,
    },
    RegisterReset {
        name: String,
    },
    MeterGetRates {
        name: String,
        index: u64,
    },
    MeterSetRates {
        name: String,
        index: u64,
        rates: [Rate; 2],
    },
    MeterArraySetRates {
        name: String,
        rates: [Rate; 2],
    },
    MirroringAdd {
        session: u32,
        port: u32,
    },
    MirroringAddGroup {
        session: u32,
        group: u32,
    },
    MirroringDelete {
        session: u32,
    },
    MirroringGet {
        session: u32,
    },
    GroupCreate {
        group: u32,
    },
    NodeCreate {
        rid: u32,
        ports: Vec<u32>,
    },
    NodeUpdate {
        handle: u32,
        ports: Vec<u32>,
    },
    NodeAssociate {
        group: u32,
        handle: u32,
        exclusion: Option<u32>,
    },
    PortList {
        number: u32,
        ports: Vec<u32>,
    },
    Member {
        profile: String,
        id: u32,
        action: ActionUse,
    },
    SelectorGroup {
        profile: String,
        id: u32,
        members: Vec<(u32, u32)>,
    },
    ValueSet {
        name: String,
        values: Vec<Value>,
    },
    Now {
        by_ns: u64,
    },
    PortRate {
        port: u32,
        unit: RateUnit,
        rate: u64,
    },
    Port {
        port: u32,
        up: bool,
    },
    Loopback {
        port: u32,
    },
    PortMetadata {
        port: u32,
        bytes: Vec<u8>,
    },
    Deflection {
        port: u32,
    },
    /// Bytes after every packet that are counted with it.
    FrameCheck {
        bytes: u64,
    },
    /// Parameters of `crc16_custom` or `crc32_custom`, by their width, or of one calculation.
    CustomCrc {
        name: String,
        parameters: CrcParameters,
    },
    Lpf {
        name: String,
        index: CounterIndex,
        config: LpfConfig,
    },
    Wred {
        name: String,
        index: CounterIndex,
        config: WredConfig,
    },
    QueueCapacity {
        port: u32,
        packets: u64,
    },
    Generator(GeneratorDirective),
}

impl Directive {
    /// The ports that it is about, which must be such as a program's metadata can hold.
    pub(crate) fn ports(&self) -> Vec<u32> {
        match self {
            Directive::Packet { port, .. }
            | Directive::Receive { port, .. }
            | Directive::MirroringAdd { port, .. }
            | Directive::PortRate { port, .. }
            | Directive::Port { port, .. }
            | Directive::Loopback { port }
            | Directive::PortMetadata { port, .. }
            | Directive::Deflection { port }
            | Directive::QueueCapacity { port, .. } => vec![*port],
            Directive::NodeCreate { ports, .. }
            | Directive::NodeUpdate { ports, .. }
            | Directive::PortList { ports, .. } => ports.clone(),
            _ => Vec::new(),
        }
    }
}
