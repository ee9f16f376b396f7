//! Control PDUs (DTCP): acknowledgement, retransmission and flow control.

use crate::error::{EncodeError, WireError};
use crate::read::{ByteOrder, Reader, Width, write_uint};

/// The type of a control PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlType {
    /// Answers a control PDU with the state of windows and rate.
    ControlAck,
    /// Acknowledges data.
    Ack,
    /// Reports missing data.
    Nack,
    /// Changes the window or rate.
    Flow,
    /// Acknowledges data, and changes window or rate.
    AckFlow,
    /// Reports missing data, and changes window or rate.
    NackFlow,
    /// Acknowledges ranges of data.
    Sack,
    /// Reports ranges of missing data.
    Snack,
    /// Acknowledges ranges of data, and changes window or rate.
    SackFlow,
    /// Reports ranges of missing data, and changes window or rate.
    SnackFlow,
    /// Requests the state of the window, sent while the window is closed.
    Rendezvous,
}

impl ControlType {
    /// All types.
    pub const ALL: [ControlType; 11] = [
        ControlType::ControlAck,
        ControlType::Ack,
        ControlType::Nack,
        ControlType::Flow,
        ControlType::AckFlow,
        ControlType::NackFlow,
        ControlType::Sack,
        ControlType::Snack,
        ControlType::SackFlow,
        ControlType::SnackFlow,
        ControlType::Rendezvous,
    ];

    /// A name for metrics: lower case, words separated by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ControlType::ControlAck => "control_ack",
            ControlType::Ack => "ack",
            ControlType::Nack => "nack",
            ControlType::Flow => "flow",
            ControlType::AckFlow => "ack_flow",
            ControlType::NackFlow => "nack_flow",
            ControlType::Sack => "sack",
            ControlType::Snack => "snack",
            ControlType::SackFlow => "sack_flow",
            ControlType::SnackFlow => "snack_flow",
            ControlType::Rendezvous => "rendezvous",
        }
    }

    /// The code in the paper's format and IRATI's (`PDU_TYPE_*` of IRATI).
    pub(super) const fn irati_code(self) -> u8 {
        match self {
            ControlType::ControlAck => 0xc0,
            ControlType::Ack => 0xc1,
            ControlType::Nack => 0xc2,
            ControlType::Flow => 0xc4,
            ControlType::AckFlow => 0xc5,
            ControlType::NackFlow => 0xc6,
            ControlType::Sack => 0xc9,
            ControlType::Snack => 0xca,
            ControlType::SackFlow => 0xcd,
            ControlType::SnackFlow => 0xce,
            ControlType::Rendezvous => 0xcf,
        }
    }

    /// The fields that IRATI sends after the control sequence number. It implements neither
    /// negative nor selective acknowledgement: their contents are payload.
    pub(super) const fn irati_fields(self) -> &'static [ControlField] {
        use ControlField as F;
        const FLOW: &[ControlField] = &[F::NewRight, F::MyLeft, F::MyRight, F::Rate, F::TimeUnit];
        const STATE: &[ControlField] = &[
            F::LastControl,
            F::NewLeft,
            F::NewRight,
            F::MyLeft,
            F::MyRight,
            F::Rate,
            F::TimeUnit,
        ];
        const ACK_FLOW: &[ControlField] = &[
            F::Acknowledged,
            F::LastControl,
            F::NewLeft,
            F::NewRight,
            F::MyLeft,
            F::MyRight,
            F::Rate,
            F::TimeUnit,
        ];
        match self {
            ControlType::Ack => &[F::Acknowledged],
            ControlType::Flow => FLOW,
            ControlType::AckFlow => ACK_FLOW,
            ControlType::ControlAck | ControlType::Rendezvous => STATE,
            ControlType::Nack
            | ControlType::NackFlow
            | ControlType::Sack
            | ControlType::Snack
            | ControlType::SackFlow
            | ControlType::SnackFlow => &[],
        }
    }
}

/// A field of control PDUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlField {
    /// [`ControlFields::acknowledged`].
    Acknowledged,
    /// [`ControlFields::last_control`].
    LastControl,
    /// [`ControlFields::new_left`].
    NewLeft,
    /// [`ControlFields::new_right`].
    NewRight,
    /// [`ControlFields::my_left`].
    MyLeft,
    /// [`ControlFields::my_right`].
    MyRight,
    /// [`ControlFields::rate`].
    Rate,
    /// [`ControlFields::time_unit`].
    TimeUnit,
}

impl ControlField {
    /// The name in errors.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ControlField::Acknowledged => "EFCP acknowledged sequence number",
            ControlField::LastControl => "EFCP last control sequence number",
            ControlField::NewLeft => "EFCP new left window edge",
            ControlField::NewRight => "EFCP new right window edge",
            ControlField::MyLeft => "EFCP own left window edge",
            ControlField::MyRight => "EFCP own right window edge",
            ControlField::Rate => "EFCP rate",
            ControlField::TimeUnit => "EFCP time unit",
        }
    }
}

/// The fields of control PDUs. A type has only some of them ([`super::Dialect::control_fields`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlFields {
    /// IRATI: the last data PDU received in order. rlite: the next one expected, one more.
    pub acknowledged: u32,
    /// The last control sequence number received.
    pub last_control: u32,
    /// The left edge of the window that the receiver of this PDU may use.
    pub new_left: u32,
    /// The right edge, inclusive, of the window that the receiver of this PDU may use.
    pub new_right: u32,
    /// The left edge of the window that the sender of this PDU uses.
    pub my_left: u32,
    /// The right edge, inclusive, of the window that the sender of this PDU uses.
    pub my_right: u32,
    /// The rate for the receiver of this PDU: PDUs per time unit in IRATI's text, bytes per time
    /// unit in its code.
    pub rate: u32,
    /// The time unit of the rate, in ms.
    pub time_unit: u32,
}

impl ControlFields {
    /// The value of a field.
    #[must_use]
    pub const fn get(&self, field: ControlField) -> u32 {
        match field {
            ControlField::Acknowledged => self.acknowledged,
            ControlField::LastControl => self.last_control,
            ControlField::NewLeft => self.new_left,
            ControlField::NewRight => self.new_right,
            ControlField::MyLeft => self.my_left,
            ControlField::MyRight => self.my_right,
            ControlField::Rate => self.rate,
            ControlField::TimeUnit => self.time_unit,
        }
    }

    /// Sets the value of a field.
    pub const fn set(&mut self, field: ControlField, value: u32) {
        let place = match field {
            ControlField::Acknowledged => &mut self.acknowledged,
            ControlField::LastControl => &mut self.last_control,
            ControlField::NewLeft => &mut self.new_left,
            ControlField::NewRight => &mut self.new_right,
            ControlField::MyLeft => &mut self.my_left,
            ControlField::MyRight => &mut self.my_right,
            ControlField::Rate => &mut self.rate,
            ControlField::TimeUnit => &mut self.time_unit,
        };
        *place = value;
    }

    /// Only the fields of a list; the others are 0.
    #[must_use]
    pub fn only(&self, fields: &[ControlField]) -> ControlFields {
        let mut only = ControlFields::default();
        for field in fields {
            only.set(*field, self.get(*field));
        }
        only
    }

    /// Reads fields in an order, each of its width.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        fields: &[ControlField],
        width: impl Fn(ControlField) -> Width,
        order: ByteOrder,
    ) -> Result<Self, WireError> {
        let mut values = ControlFields::default();
        for field in fields {
            values.set(*field, reader.uint(width(*field), order, field.name())?);
        }
        Ok(values)
    }

    /// Appends fields in an order, each of its width.
    pub(super) fn write(
        &self,
        fields: &[ControlField],
        width: impl Fn(ControlField) -> Width,
        order: ByteOrder,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        fields
            .iter()
            .try_for_each(|field| write_uint(self.get(*field), width(*field), order, field.name(), out))
    }
}

/// The type and fields of a control PDU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// The type.
    pub kind: ControlType,
    /// The fields.
    pub fields: ControlFields,
}
