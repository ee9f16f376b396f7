//! Objects of layer management: values of CDAP messages, and where each implementation keeps them.
//!
//! Field numbers are those of rlite's `BaseRIB.proto` and IRATI's messages. Fields that weir does
//! not use, such as policies, are ignored.

mod flow;

pub use flow::{ConnectionId, FlowRequest, QosRequest};

use super::message::{CdapDialect, Value};
use super::proto::{Field, Writer, fields};
use crate::error::{Expected, Reason, WireError};
use crate::name::ApplicationName;
use crate::read::Reader;

/// Class and name of an object of layer management.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId {
    /// The class.
    pub class: &'static str,
    /// The name of the object, or of the parent of the objects of the class.
    pub name: &'static str,
}

/// An object of layer management that both implementations have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WellKnown {
    /// Enrolment: [`Enrolment`].
    Enrolment,
    /// Whether the IPC process is a member of the DIF; started at the end of enrolment.
    OperationalStatus,
    /// Link states: [`LinkStates`].
    LinkStates,
    /// The directory of application names: [`Directory`].
    Directory,
    /// Candidates for enrolment: [`Neighbours`].
    Neighbours,
    /// Requests to allocate a flow: [`FlowRequest`].
    Flows,
    /// Keepalive of neighbours, read periodically.
    Keepalive,
    /// A message for an IPC process that is no neighbour: [`AData`].
    AData,
    /// Claims of addresses: [`AddressClaim`]. Only rlite has them.
    Addresses,
}

impl WellKnown {
    /// All objects.
    pub const ALL: [WellKnown; 9] = [
        WellKnown::Enrolment,
        WellKnown::OperationalStatus,
        WellKnown::LinkStates,
        WellKnown::Directory,
        WellKnown::Neighbours,
        WellKnown::Flows,
        WellKnown::Keepalive,
        WellKnown::AData,
        WellKnown::Addresses,
    ];

    /// Class and name in a dialect. Where the sources name only one of the two, or neither, weir
    /// has chosen the other in the same style.
    #[must_use]
    pub const fn id(self, dialect: CdapDialect) -> ObjectId {
        let (class, name) = match (dialect, self) {
            (CdapDialect::Rlite, WellKnown::Enrolment) => ("enrollment", "/mgmt/enrollment"),
            (CdapDialect::Rlite, WellKnown::OperationalStatus) => ("operational_status", "/mgmt/operational_status"),
            (CdapDialect::Rlite, WellKnown::LinkStates) => ("lfdb_entries", "/mgmt/routing/routing"),
            (CdapDialect::Rlite, WellKnown::Directory) => ("dft_entries", "/mgmt/flowalloc/dft"),
            (CdapDialect::Rlite, WellKnown::Neighbours) => ("neighbors", "/mgmt/neighbors"),
            (CdapDialect::Rlite, WellKnown::Flows) => ("flow", "/mgmt/flowalloc/flows"),
            (CdapDialect::Rlite, WellKnown::Keepalive) => ("keepalive", "/mgmt/keepalive"),
            (CdapDialect::Rlite, WellKnown::AData) => ("a_data", "/a_data"),
            (CdapDialect::Rlite, WellKnown::Addresses) => ("aareq", "/mgmt/addralloc"),
            (CdapDialect::Irati, WellKnown::Enrolment) => ("Enrollment", "/difm/enr"),
            (CdapDialect::Irati, WellKnown::OperationalStatus) => ("OperationalStatus", "/difm/ops"),
            (CdapDialect::Irati, WellKnown::LinkStates) => ("FlowStateObjects", "/ra/fsos"),
            (CdapDialect::Irati, WellKnown::Directory) => ("DirectoryForwardingTableEntries", "/difm/nsm/dft"),
            (CdapDialect::Irati, WellKnown::Neighbours) => ("Neighbors", "/difm/enr/neighs"),
            (CdapDialect::Irati, WellKnown::Flows) => ("Flow", "/fa/flows"),
            (CdapDialect::Irati, WellKnown::Keepalive) => ("Watchdog", "/difm/enr/wd"),
            (CdapDialect::Irati, WellKnown::AData) => ("a_data", "a_data"),
            (CdapDialect::Irati, WellKnown::Addresses) => ("AddressClaim", "/difm/nsm/claims"),
        };
        ObjectId { class, name }
    }
}

/// A value with an encoding of its own.
pub trait Object: Sized {
    /// The encoded value.
    fn encode(&self, dialect: CdapDialect) -> Vec<u8>;

    /// Reads an encoded value.
    ///
    /// # Errors
    /// No message of protocol buffers, a field of the wrong type, or a missing field.
    fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError>;

    /// The value as that of an object.
    fn to_value(&self, dialect: CdapDialect) -> Value {
        Value::Bytes(self.encode(dialect))
    }
}

fn missing<T>(name: &'static str, bytes: &[u8]) -> Result<T, WireError> {
    let expected = Expected::OneOf("a value");
    Err(WireError::new(Reason::Missing, name, bytes.len(), expected, 0_u8))
}

/// Reads each element of a list, which is field 1.
fn list<T>(
    bytes: &[u8],
    name: &'static str,
    read: impl Fn(Reader<'_>) -> Result<T, WireError>,
) -> Result<Vec<T>, WireError> {
    let mut elements = Vec::new();
    fields(Reader::new(bytes), |field| {
        if field.number == 1 {
            elements.push(read(field.message(name)?)?);
        }
        Ok(())
    })?;
    Ok(elements)
}

/// Contents of M_START, its response, and M_STOP of the enrolment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enrolment {
    /// The address that the enrollee has or proposes, or that the enroller assigns (1); 0 is none.
    pub address: u64,
    /// The names of the DIFs below that the sender is a member of (2).
    pub lower_difs: Vec<String>,
    /// M_STOP: whether the enrollee may operate before it is started (3).
    pub start_early: Option<bool>,
    /// IRATI, M_STOP: a token of the enroller (4).
    pub token: u64,
}

impl Object for Enrolment {
    fn encode(&self, dialect: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        out.varint_unless_zero(1, self.address);
        for dif in &self.lower_difs {
            out.bytes(2, dif.as_bytes());
        }
        if let Some(start_early) = self.start_early {
            out.varint(3, start_early.into());
        }
        match dialect {
            CdapDialect::Rlite => {}
            CdapDialect::Irati => out.varint_unless_zero(4, self.token),
        }
        out.finish()
    }

    fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError> {
        let mut object = Enrolment::default();
        fields(Reader::new(bytes), |field| {
            match (dialect, field.number) {
                (_, 1) => object.address = field.varint("enrolment address")?,
                (_, 2) => object.lower_difs.push(field.string("enrolment lower DIF")?),
                (_, 3) => object.start_early = Some(field.boolean("enrolment start early")?),
                (CdapDialect::Irati, 4) => object.token = field.varint("enrolment token")?,
                (CdapDialect::Irati | CdapDialect::Rlite, _) => {}
            }
            Ok(())
        })?;
        Ok(object)
    }
}

/// A CDAP message for an IPC process that is no neighbour, the value of an M_WRITE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AData {
    /// The address of the sender (1).
    pub source: u32,
    /// The address of the receiver (2).
    pub destination: u32,
    /// The encoded message (3).
    pub message: Vec<u8>,
}

impl Object for AData {
    fn encode(&self, _: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        out.varint(1, self.source.into());
        out.varint(2, self.destination.into());
        out.bytes(3, &self.message);
        out.finish()
    }

    fn decode(bytes: &[u8], _: CdapDialect) -> Result<Self, WireError> {
        let mut object = AData::default();
        fields(Reader::new(bytes), |field| {
            match field.number {
                1 => object.source = field.uint32("a_data source")?,
                2 => object.destination = field.uint32("a_data destination")?,
                3 => object.message = field.bytes("a_data message")?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(object)
    }
}

/// One direction of a link between neighbours: IRATI's flow state object, rlite's lower flow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkStateObject {
    /// The name of the IPC process that announces the link.
    pub origin: String,
    /// The addresses of the origin; IRATI only.
    pub origin_addresses: Vec<u64>,
    /// The name of its neighbour.
    pub neighbour: String,
    /// The addresses of the neighbour; IRATI only.
    pub neighbour_addresses: Vec<u64>,
    /// The cost of the link.
    pub cost: u32,
    /// The sequence number of the origin for this link.
    pub sequence: u32,
    /// Whether the link is up.
    pub is_up: bool,
    /// Seconds since the origin announced this; IRATI counts ticks of 997 ms.
    pub age: u32,
}

impl LinkStateObject {
    fn write(&self, dialect: CdapDialect, out: &mut Writer) {
        // Field numbers of name, neighbour, cost, sequence number, state and age.
        let numbers = match dialect {
            CdapDialect::Rlite => [1, 2, 3, 4, 5, 6],
            CdapDialect::Irati => [1, 3, 5, 6, 7, 8],
        };
        out.bytes(numbers[0], self.origin.as_bytes());
        if dialect == CdapDialect::Irati {
            self.origin_addresses.iter().for_each(|address| out.varint(2, *address));
        }
        out.bytes(numbers[1], self.neighbour.as_bytes());
        if dialect == CdapDialect::Irati {
            self.neighbour_addresses
                .iter()
                .for_each(|address| out.varint(4, *address));
        }
        out.varint(numbers[2], self.cost.into());
        out.varint(numbers[3], self.sequence.into());
        out.varint(numbers[4], self.is_up.into());
        out.varint(numbers[5], self.age.into());
    }

    fn read(reader: Reader<'_>, dialect: CdapDialect) -> Result<Self, WireError> {
        let mut object = LinkStateObject::default();
        fields(reader, |field| {
            match (dialect, field.number) {
                (CdapDialect::Rlite | CdapDialect::Irati, 1) => object.origin = field.string("link state origin")?,
                (CdapDialect::Irati, 2) => {
                    field.varints("link state origin's addresses", &mut object.origin_addresses)?;
                }
                (CdapDialect::Irati, 4) => {
                    field.varints("link state neighbour's addresses", &mut object.neighbour_addresses)?;
                }
                (CdapDialect::Rlite, 2) | (CdapDialect::Irati, 3) => {
                    object.neighbour = field.string("link state neighbour")?;
                }
                (CdapDialect::Rlite, 3) | (CdapDialect::Irati, 5) => object.cost = field.uint32("link state cost")?,
                (CdapDialect::Rlite, 4) | (CdapDialect::Irati, 6) => {
                    object.sequence = field.uint32("link state sequence number")?;
                }
                (CdapDialect::Rlite, 5) | (CdapDialect::Irati, 7) => {
                    object.is_up = field.boolean("link state state")?
                }
                (CdapDialect::Rlite, 6) | (CdapDialect::Irati, 8) => object.age = field.uint32("link state age")?,
                (CdapDialect::Rlite | CdapDialect::Irati, _) => {}
            }
            Ok(())
        })?;
        Ok(object)
    }
}

/// A list of link states (field 1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkStates(pub Vec<LinkStateObject>);

impl Object for LinkStates {
    fn encode(&self, dialect: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        for state in &self.0 {
            out.message(1, |out| state.write(dialect, out));
        }
        out.finish()
    }

    fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError> {
        list(bytes, "link state", |reader| LinkStateObject::read(reader, dialect)).map(LinkStates)
    }
}

/// An IPC process: rlite refers to it by name, IRATI by address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// By name.
    Name(String),
    /// By address.
    Address(u64),
}

impl Node {
    fn write(&self, number: u32, out: &mut Writer) {
        match self {
            Node::Name(name) => out.bytes(number, name.as_bytes()),
            Node::Address(address) => out.varint(number, *address),
        }
    }

    fn read(field: &Field<'_>, dialect: CdapDialect, name: &'static str) -> Result<Self, WireError> {
        Ok(match dialect {
            CdapDialect::Rlite => Node::Name(field.string(name)?),
            CdapDialect::Irati => Node::Address(field.varint(name)?),
        })
    }
}

fn write_name(name: &ApplicationName, number: u32, out: &mut Writer) {
    out.message(number, |out| {
        out.bytes(1, name.process.as_bytes());
        out.bytes_unless_empty(2, name.process_instance.as_bytes());
        out.bytes_unless_empty(3, name.entity.as_bytes());
        out.bytes_unless_empty(4, name.entity_instance.as_bytes());
    });
}

fn read_name(field: &Field<'_>) -> Result<ApplicationName, WireError> {
    let mut name = ApplicationName::default();
    fields(field.message("application name")?, |field| {
        match field.number {
            1 => name.process = field.string("application name")?,
            2 => name.process_instance = field.string("application instance")?,
            3 => name.entity = field.string("application entity")?,
            4 => name.entity_instance = field.string("application entity instance")?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(name)
}

/// An entry of the directory: where an application is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The application (1).
    pub application: ApplicationName,
    /// The IPC process it is registered with (2).
    pub node: Node,
    /// The sequence number, or time, of the registration (3); the newest counts.
    pub sequence: u64,
}

/// A list of directory entries (field 1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory(pub Vec<DirectoryEntry>);

impl Object for Directory {
    fn encode(&self, _: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        for entry in &self.0 {
            out.message(1, |out| {
                write_name(&entry.application, 1, out);
                entry.node.write(2, out);
                out.varint(3, entry.sequence);
            });
        }
        out.finish()
    }

    fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError> {
        list(bytes, "directory entry", |reader| {
            let (mut application, mut node, mut sequence) = (None, None, 0);
            fields(reader, |field| {
                match field.number {
                    1 => application = Some(read_name(&field)?),
                    2 => node = Some(Node::read(&field, dialect, "directory entry's node")?),
                    3 => sequence = field.varint("directory entry's sequence number")?,
                    _ => {}
                }
                Ok(())
            })?;
            let (Some(application), Some(node)) = (application, node) else {
                return missing("directory entry's application or node", bytes);
            };
            Ok(DirectoryEntry {
                application,
                node,
                sequence,
            })
        })
        .map(Directory)
    }
}

/// A member of the DIF that others may enrol with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbour {
    /// The name of the IPC process (1).
    pub process: String,
    /// Its instance (2).
    pub process_instance: String,
    /// Its address (3).
    pub address: u64,
    /// The DIFs below that it is a member of (4).
    pub lower_difs: Vec<String>,
}

/// A list of neighbours (field 1), with rlite's field numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours(pub Vec<Neighbour>);

impl Object for Neighbours {
    fn encode(&self, _: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        for neighbour in &self.0 {
            out.message(1, |out| {
                out.bytes(1, neighbour.process.as_bytes());
                out.bytes_unless_empty(2, neighbour.process_instance.as_bytes());
                out.varint_unless_zero(3, neighbour.address);
                for dif in &neighbour.lower_difs {
                    out.bytes(4, dif.as_bytes());
                }
            });
        }
        out.finish()
    }

    fn decode(bytes: &[u8], _: CdapDialect) -> Result<Self, WireError> {
        list(bytes, "neighbour", |reader| {
            let mut neighbour = Neighbour::default();
            fields(reader, |field| {
                match field.number {
                    1 => neighbour.process = field.string("neighbour name")?,
                    2 => neighbour.process_instance = field.string("neighbour instance")?,
                    3 => neighbour.address = field.varint("neighbour address")?,
                    4 => neighbour.lower_difs.push(field.string("neighbour lower DIF")?),
                    _ => {}
                }
                Ok(())
            })?;
            Ok(neighbour)
        })
        .map(Neighbours)
    }
}

/// A claim of an address by an IPC process (rlite's distributed allocation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressClaim {
    /// The name of the IPC process (1).
    pub requestor: String,
    /// The address (2).
    pub address: u64,
}

impl Object for AddressClaim {
    fn encode(&self, _: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        out.bytes(1, self.requestor.as_bytes());
        out.varint(2, self.address);
        out.finish()
    }

    fn decode(bytes: &[u8], _: CdapDialect) -> Result<Self, WireError> {
        let (mut requestor, mut address) = (None, None);
        fields(Reader::new(bytes), |field| {
            match field.number {
                1 => requestor = Some(field.string("address claim's requestor")?),
                2 => address = Some(field.varint("address claim's address")?),
                _ => {}
            }
            Ok(())
        })?;
        match (requestor, address) {
            (Some(requestor), Some(address)) => Ok(AddressClaim { requestor, address }),
            _ => missing("address claim's requestor or address", bytes),
        }
    }
}
