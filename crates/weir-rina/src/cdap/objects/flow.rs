//! Requests to allocate flows.

use super::{Node, Object, missing, read_name, write_name};
use crate::cdap::CdapDialect;
use crate::cdap::proto::{Field, Writer, fields};
use crate::error::WireError;
use crate::name::ApplicationName;
use crate::read::Reader;

/// The connection of a flow (EFCP).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionId {
    /// The QoS cube (1).
    pub qos: u32,
    /// The source's endpoint (2).
    pub source_cep: u32,
    /// The destination's endpoint (3).
    pub destination_cep: u32,
}

/// The QoS that an application requests, as far as weir uses it; field numbers of rlite.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QosRequest {
    /// The QoS cube (2), 0 if any.
    pub qos: u32,
    /// Average bandwidth in bytes/s (3), 0 if any.
    pub average_bandwidth: u64,
    /// Whether SDUs are delivered in order (9).
    pub in_order: bool,
    /// The most SDUs that may be lost in a row (10): 0 none, −1 any.
    pub max_gap: i32,
    /// The most delay in ms (11), 0 if any.
    pub delay: u32,
}

/// A request to allocate a flow, the value of the M_CREATE and of its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowRequest {
    /// The application that requests the flow (1).
    pub source_application: ApplicationName,
    /// The application that it is for (2).
    pub destination_application: ApplicationName,
    /// The source's port-id (3).
    pub source_port: u64,
    /// The destination's port-id (4); 0 in the request.
    pub destination_port: u64,
    /// The source's IPC process (5).
    pub source: Node,
    /// The destination's IPC process (6).
    pub destination: Option<Node>,
    /// The connections of the flow (7).
    pub connections: Vec<ConnectionId>,
    /// The index of the current connection (8).
    pub current_connection: u32,
    /// The state of the flow (9).
    pub state: u32,
    /// The requested QoS (10).
    pub qos: Option<QosRequest>,
}

impl Object for FlowRequest {
    fn encode(&self, _: CdapDialect) -> Vec<u8> {
        let mut out = Writer::default();
        write_name(&self.source_application, 1, &mut out);
        write_name(&self.destination_application, 2, &mut out);
        out.varint(3, self.source_port);
        out.varint_unless_zero(4, self.destination_port);
        self.source.write(5, &mut out);
        if let Some(destination) = &self.destination {
            destination.write(6, &mut out);
        }
        for connection in &self.connections {
            out.message(7, |out| {
                out.varint(1, connection.qos.into());
                out.varint(2, connection.source_cep.into());
                out.varint(3, connection.destination_cep.into());
            });
        }
        out.varint_unless_zero(8, self.current_connection.into());
        out.varint_unless_zero(9, self.state.into());
        if let Some(qos) = self.qos {
            out.message(10, |out| {
                out.varint_unless_zero(2, qos.qos.into());
                out.varint_unless_zero(3, qos.average_bandwidth);
                out.varint(9, qos.in_order.into());
                out.varint(10, i64::from(qos.max_gap) as u64);
                out.varint_unless_zero(11, qos.delay.into());
            });
        }
        out.finish()
    }

    fn decode(bytes: &[u8], dialect: CdapDialect) -> Result<Self, WireError> {
        let (mut applications, mut source) = ([None, None], None);
        let mut rest = FlowRequest {
            source_application: ApplicationName::default(),
            destination_application: ApplicationName::default(),
            source_port: 0,
            destination_port: 0,
            source: Node::Address(0),
            destination: None,
            connections: Vec::new(),
            current_connection: 0,
            state: 0,
            qos: None,
        };
        fields(Reader::new(bytes), |field| {
            match field.number {
                1 => applications[0] = Some(read_name(&field)?),
                2 => applications[1] = Some(read_name(&field)?),
                3 => rest.source_port = field.varint("flow source port")?,
                4 => rest.destination_port = field.varint("flow destination port")?,
                5 => source = Some(Node::read(&field, dialect, "flow source")?),
                6 => rest.destination = Some(Node::read(&field, dialect, "flow destination")?),
                7 => rest.connections.push(read_connection(&field)?),
                8 => rest.current_connection = field.uint32("flow current connection")?,
                9 => rest.state = field.uint32("flow state")?,
                10 => rest.qos = Some(read_qos(&field)?),
                _ => {}
            }
            Ok(())
        })?;
        match (applications, source) {
            ([Some(source_application), Some(destination_application)], Some(source)) => Ok(FlowRequest {
                source_application,
                destination_application,
                source,
                ..rest
            }),
            _ => missing("flow application or source", bytes),
        }
    }
}

fn read_connection(field: &Field<'_>) -> Result<ConnectionId, WireError> {
    let mut connection = ConnectionId::default();
    fields(field.message("flow connection")?, |field| {
        match field.number {
            1 => connection.qos = field.uint32("connection QoS id")?,
            2 => connection.source_cep = field.uint32("connection source CEP id")?,
            3 => connection.destination_cep = field.uint32("connection destination CEP id")?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(connection)
}

fn read_qos(field: &Field<'_>) -> Result<QosRequest, WireError> {
    let mut qos = QosRequest::default();
    fields(field.message("flow QoS")?, |field| {
        match field.number {
            2 => qos.qos = field.uint32("QoS id")?,
            3 => qos.average_bandwidth = field.varint("QoS average bandwidth")?,
            9 => qos.in_order = field.boolean("QoS in-order delivery")?,
            10 => qos.max_gap = field.int32("QoS maximum gap")?,
            11 => qos.delay = field.uint32("QoS delay")?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(qos)
}
