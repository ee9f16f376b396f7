//! Messages of CDAP.

use super::proto::{Field, Writer, fields, unzigzag, zigzag};
use crate::error::{Expected, Reason, WireError};
use crate::name::ApplicationName;
use crate::read::Reader;

/// Values of [`Message::result`].
pub mod result {
    /// The operation succeeded.
    pub const SUCCESS: i32 = 0;
    /// The operation failed, without a more specific reason (weir).
    pub const ERROR: i32 = -1;
    /// No object of this name (weir).
    pub const NO_SUCH_OBJECT: i32 = -2;
    /// The object does not support the operation (weir).
    pub const NOT_SUPPORTED: i32 = -3;
    /// The object exists already, with another class or value (weir).
    pub const EXISTS: i32 = -4;
    /// The class is not that of the object, or the value not one of the class (weir).
    pub const WRONG_TYPE: i32 = -5;
    /// The sender may not do this: authentication failed, or it is not enrolled (weir).
    pub const REFUSED: i32 = -6;
    /// A limit of the receiver is exhausted (weir).
    pub const LIMIT: i32 = -7;
}

/// What differs between the messages of implementations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum CdapDialect {
    /// Abstract syntax 73; authentication has a mechanism (field 17) and a value (18).
    #[default]
    Rlite,
    /// Abstract syntax 0x73; authentication is a policy (18).
    Irati,
}

impl CdapDialect {
    /// The abstract syntax of M_CONNECT.
    #[must_use]
    pub const fn abstract_syntax(self) -> i32 {
        match self {
            CdapDialect::Rlite => 73,
            CdapDialect::Irati => 0x73,
        }
    }
}

/// The operation of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opcode {
    /// M_CONNECT, 0: opens an application connection.
    Connect,
    /// M_CONNECT_R, 1.
    ConnectR,
    /// M_RELEASE, 2: closes an application connection.
    Release,
    /// M_RELEASE_R, 3.
    ReleaseR,
    /// M_CREATE, 4: creates an object.
    Create,
    /// M_CREATE_R, 5.
    CreateR,
    /// M_DELETE, 6: deletes an object.
    Delete,
    /// M_DELETE_R, 7.
    DeleteR,
    /// M_READ, 8: reads the value of an object.
    Read,
    /// M_READ_R, 9.
    ReadR,
    /// M_CANCELREAD, 10: stops a read that has several results.
    CancelRead,
    /// M_CANCELREAD_R, 11.
    CancelReadR,
    /// M_WRITE, 12: writes the value of an object.
    Write,
    /// M_WRITE_R, 13.
    WriteR,
    /// M_START, 14: starts the operation of an object.
    Start,
    /// M_START_R, 15.
    StartR,
    /// M_STOP, 16: stops the operation of an object.
    Stop,
    /// M_STOP_R, 17.
    StopR,
}

impl Opcode {
    /// All codes, in the order of their values.
    pub const ALL: [Opcode; 18] = [
        Opcode::Connect,
        Opcode::ConnectR,
        Opcode::Release,
        Opcode::ReleaseR,
        Opcode::Create,
        Opcode::CreateR,
        Opcode::Delete,
        Opcode::DeleteR,
        Opcode::Read,
        Opcode::ReadR,
        Opcode::CancelRead,
        Opcode::CancelReadR,
        Opcode::Write,
        Opcode::WriteR,
        Opcode::Start,
        Opcode::StartR,
        Opcode::Stop,
        Opcode::StopR,
    ];

    /// The value on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The operation of a value.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        let index = usize::try_from(code).ok()?;
        Self::ALL.get(index).copied()
    }

    /// Whether this is a response.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self as u8 & 1 == 1
    }

    /// The request that this response answers; `None` for requests.
    #[must_use]
    pub fn request(self) -> Option<Self> {
        if !self.is_response() {
            return None;
        }
        Self::from_code(u64::from(self.code()) - 1)
    }

    /// The response to this request; `None` for responses.
    #[must_use]
    pub fn response(self) -> Option<Self> {
        if self.is_response() {
            return None;
        }
        Self::from_code(u64::from(self.code()) + 1)
    }
}

/// The value of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// `intval`, field 1.
    Int(i32),
    /// `sintval`, field 2.
    Sint(i32),
    /// `int64val`, field 3.
    Int64(i64),
    /// `sint64val`, field 4.
    Sint64(i64),
    /// `strval`, field 5.
    Text(String),
    /// `byteval`, field 6: mostly an encoded object.
    Bytes(Vec<u8>),
    /// `floatval`, field 7: 32 bits.
    Fixed32(u32),
    /// `doubleval`, field 8: 64 bits.
    Fixed64(u64),
    /// `boolval`, field 9.
    Bool(bool),
}

impl Value {
    /// The bytes of an encoded object.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            Value::Int(_)
            | Value::Sint(_)
            | Value::Int64(_)
            | Value::Sint64(_)
            | Value::Text(_)
            | Value::Fixed32(_)
            | Value::Fixed64(_)
            | Value::Bool(_) => None,
        }
    }

    /// Reads a value; of several fields the last one counts.
    fn read(reader: Reader<'_>, value: &mut Option<Value>) -> Result<(), WireError> {
        fields(reader, |field| {
            *value = Some(match field.number {
                1 => Value::Int(field.int32("CDAP objValue.intval")?),
                2 => Value::Sint(unzigzag(field.uint32("CDAP objValue.sintval")?.into()) as i32),
                3 => Value::Int64(field.varint("CDAP objValue.int64val")? as i64),
                4 => Value::Sint64(unzigzag(field.varint("CDAP objValue.sint64val")?)),
                5 => Value::Text(field.string("CDAP objValue.strval")?),
                6 => Value::Bytes(field.bytes("CDAP objValue.byteval")?),
                7 => Value::Fixed32(field.fixed32("CDAP objValue.floatval")?),
                8 => Value::Fixed64(field.fixed64("CDAP objValue.doubleval")?),
                9 => Value::Bool(field.boolean("CDAP objValue.boolval")?),
                _ => return Ok(()),
            });
            Ok(())
        })
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Value::Int(value) => writer.varint(1, i64::from(*value) as u64),
            Value::Sint(value) => writer.varint(2, zigzag((*value).into()) & 0xffff_ffff),
            Value::Int64(value) => writer.varint(3, *value as u64),
            Value::Sint64(value) => writer.varint(4, zigzag(*value)),
            Value::Text(value) => writer.bytes(5, value.as_bytes()),
            Value::Bytes(value) => writer.bytes(6, value),
            Value::Fixed32(value) => writer.fixed32(7, *value),
            Value::Fixed64(value) => writer.fixed64(8, *value),
            Value::Bool(value) => writer.varint(9, u64::from(*value)),
        }
    }
}

/// The authentication fields of a message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// rlite: fields 17 and 18.
    Mechanism {
        /// `authMech`: 0 none, 1 password; others are private.
        mechanism: i32,
        /// `authName`.
        name: String,
        /// `authPassword`.
        password: String,
        /// `authOther`.
        other: Vec<u8>,
    },
    /// IRATI: field 18.
    Policy {
        /// The name, such as `PSOC_authentication-none`.
        name: String,
        /// The versions that the sender supports.
        versions: Vec<String>,
        /// Options of the policy.
        options: Vec<u8>,
    },
}

impl Authentication {
    fn empty(dialect: CdapDialect) -> Self {
        match dialect {
            CdapDialect::Rlite => Authentication::Mechanism {
                mechanism: 0,
                name: String::new(),
                password: String::new(),
                other: Vec::new(),
            },
            CdapDialect::Irati => Authentication::Policy {
                name: String::new(),
                versions: Vec::new(),
                options: Vec::new(),
            },
        }
    }

    fn read(&mut self, reader: Reader<'_>) -> Result<(), WireError> {
        fields(reader, |field| {
            match (&mut *self, field.number) {
                (Authentication::Mechanism { name, .. }, 1) => *name = field.string("CDAP authValue.authName")?,
                (Authentication::Mechanism { password, .. }, 2) => {
                    *password = field.string("CDAP authValue.authPassword")?;
                }
                (Authentication::Mechanism { other, .. }, 3) => *other = field.bytes("CDAP authValue.authOther")?,
                (Authentication::Policy { name, .. }, 1) => *name = field.string("CDAP authPolicy.name")?,
                (Authentication::Policy { versions, .. }, 2) => {
                    versions.push(field.string("CDAP authPolicy.versions")?);
                }
                (Authentication::Policy { options, .. }, 3) => *options = field.bytes("CDAP authPolicy.options")?,
                (Authentication::Mechanism { .. } | Authentication::Policy { .. }, _) => {}
            }
            Ok(())
        })
    }

    fn write(&self, writer: &mut Writer) {
        match self {
            Authentication::Mechanism {
                mechanism,
                name,
                password,
                other,
            } => {
                writer.varint(17, i64::from(*mechanism) as u64);
                if !(name.is_empty() && password.is_empty() && other.is_empty()) {
                    writer.message(18, |value| {
                        value.bytes_unless_empty(1, name.as_bytes());
                        value.bytes_unless_empty(2, password.as_bytes());
                        value.bytes_unless_empty(3, other);
                    });
                }
            }
            Authentication::Policy {
                name,
                versions,
                options,
            } => writer.message(18, |value| {
                value.bytes_unless_empty(1, name.as_bytes());
                for version in versions {
                    value.bytes(2, version.as_bytes());
                }
                value.bytes_unless_empty(3, options);
            }),
        }
    }
}

/// A message of CDAP. Fields that are absent have their default.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Message {
    /// The abstract syntax (1), in M_CONNECT and its response.
    pub abstract_syntax: i32,
    /// The operation (2).
    pub opcode: Opcode,
    /// Matches responses with requests (3); 0 demands no response.
    pub invoke_id: i32,
    /// 1: synchronous, 2: more results follow (4).
    pub flags: i32,
    /// The class of the object (5).
    pub object_class: String,
    /// The name of the object (6).
    pub object_name: String,
    /// The instance of the object (7).
    pub object_instance: i64,
    /// The value of the object (8).
    pub value: Option<Value>,
    /// The result of the operation (9), [`result`].
    pub result: i32,
    /// The levels below the object that the operation covers (10).
    pub scope: i32,
    /// A filter on the objects of the scope (11).
    pub filter: Vec<u8>,
    /// Authentication (17, 18).
    pub authentication: Option<Authentication>,
    /// The application that the message is for (19 to 22).
    pub destination: ApplicationName,
    /// The application that has sent the message (23 to 26).
    pub source: ApplicationName,
    /// An explanation of the result, for people (27).
    pub result_reason: String,
    /// The version of the RIB, or of the class (28).
    pub version: i64,
}

impl Message {
    /// A message with defaults in all fields but the operation.
    #[must_use]
    pub fn new(opcode: Opcode) -> Self {
        Message {
            abstract_syntax: 0,
            opcode,
            invoke_id: 0,
            flags: 0,
            object_class: String::new(),
            object_name: String::new(),
            object_instance: 0,
            value: None,
            result: result::SUCCESS,
            scope: 0,
            filter: Vec::new(),
            authentication: None,
            destination: ApplicationName::default(),
            source: ApplicationName::default(),
            result_reason: String::new(),
            version: 0,
        }
    }

    /// A message about an object.
    #[must_use]
    pub fn about(opcode: Opcode, class: &str, name: &str, value: Option<Value>) -> Self {
        Message {
            object_class: class.to_owned(),
            object_name: name.to_owned(),
            value,
            ..Message::new(opcode)
        }
    }

    /// The response to this request, with its object and invoke id; `None` for responses.
    #[must_use]
    pub fn response(&self, result: i32, reason: &str) -> Option<Message> {
        Some(Message {
            invoke_id: self.invoke_id,
            object_class: self.object_class.clone(),
            object_name: self.object_name.clone(),
            object_instance: self.object_instance,
            result,
            result_reason: reason.to_owned(),
            ..Message::new(self.opcode.response()?)
        })
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The bytes are no message of protocol buffers, a field has the wrong type, or the operation
    /// code is missing or unknown.
    pub fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError> {
        let mut message = Message::new(Opcode::Connect);
        let mut opcode = None;
        fields(Reader::new(bytes), |field| {
            if field.number == 2 {
                opcode = Some(read_opcode(&field)?);
                return Ok(());
            }
            message.read_field(&field, dialect)
        })?;
        let Some(opcode) = opcode else {
            let expected = Expected::OneOf("an operation code");
            return Err(WireError::new(
                Reason::Missing,
                "CDAP opCode",
                bytes.len(),
                expected,
                0_u8,
            ));
        };
        message.opcode = opcode;
        Ok(message)
    }

    fn read_field(&mut self, field: &Field<'_>, dialect: CdapDialect) -> Result<(), WireError> {
        match field.number {
            1 => self.abstract_syntax = field.int32("CDAP absSyntax")?,
            3 => self.invoke_id = field.int32("CDAP invokeID")?,
            4 => self.flags = field.int32("CDAP flags")?,
            5 => self.object_class = field.string("CDAP objClass")?,
            6 => self.object_name = field.string("CDAP objName")?,
            7 => self.object_instance = field.varint("CDAP objInst")? as i64,
            8 => Value::read(field.message("CDAP objValue")?, &mut self.value)?,
            9 => self.result = field.int32("CDAP result")?,
            10 => self.scope = field.int32("CDAP scope")?,
            11 => self.filter = field.bytes("CDAP filter")?,
            17 | 18 => self.read_authentication(field, dialect)?,
            19 => self.destination.entity_instance = field.string("CDAP destAEInst")?,
            20 => self.destination.entity = field.string("CDAP destAEName")?,
            21 => self.destination.process_instance = field.string("CDAP destApInst")?,
            22 => self.destination.process = field.string("CDAP destApName")?,
            23 => self.source.entity_instance = field.string("CDAP srcAEInst")?,
            24 => self.source.entity = field.string("CDAP srcAEName")?,
            25 => self.source.process_instance = field.string("CDAP srcApInst")?,
            26 => self.source.process = field.string("CDAP srcApName")?,
            27 => self.result_reason = field.string("CDAP resultReason")?,
            28 => self.version = field.varint("CDAP version")? as i64,
            _ => {}
        }
        Ok(())
    }

    fn read_authentication(&mut self, field: &Field<'_>, dialect: CdapDialect) -> Result<(), WireError> {
        if field.number == 17 && dialect == CdapDialect::Irati {
            return Ok(());
        }
        let authentication = self
            .authentication
            .get_or_insert_with(|| Authentication::empty(dialect));
        match (authentication, field.number) {
            (Authentication::Mechanism { mechanism, .. }, 17) => *mechanism = field.int32("CDAP authMech")?,
            (authentication, _) => authentication.read(field.message("CDAP authValue")?)?,
        }
        Ok(())
    }

    /// The message on the wire, in the order of field numbers.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.int32_unless_zero(1, self.abstract_syntax);
        out.varint(2, self.opcode.code().into());
        out.int32_unless_zero(3, self.invoke_id);
        out.int32_unless_zero(4, self.flags);
        out.bytes_unless_empty(5, self.object_class.as_bytes());
        out.bytes_unless_empty(6, self.object_name.as_bytes());
        out.varint_unless_zero(7, self.object_instance as u64);
        if let Some(value) = &self.value {
            out.message(8, |writer| value.write(writer));
        }
        out.int32_unless_zero(9, self.result);
        out.int32_unless_zero(10, self.scope);
        out.bytes_unless_empty(11, &self.filter);
        if let Some(authentication) = &self.authentication {
            authentication.write(&mut out);
        }
        for (first, name) in [(19, &self.destination), (23, &self.source)] {
            out.bytes_unless_empty(first, name.entity_instance.as_bytes());
            out.bytes_unless_empty(first + 1, name.entity.as_bytes());
            out.bytes_unless_empty(first + 2, name.process_instance.as_bytes());
            out.bytes_unless_empty(first + 3, name.process.as_bytes());
        }
        out.bytes_unless_empty(27, self.result_reason.as_bytes());
        out.varint_unless_zero(28, self.version as u64);
        out.finish()
    }
}

fn read_opcode(field: &Field<'_>) -> Result<Opcode, WireError> {
    let code = field.varint("CDAP opCode")?;
    Opcode::from_code(code)
        .ok_or_else(|| WireError::new(Reason::Opcode, "CDAP opCode", field.offset, Expected::AtMost(17), code))
}
