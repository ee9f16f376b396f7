//! The six bytes in front of a generated packet.

use super::GeneratorModel;
use super::application::{Running, Trigger};

/// The header of a packet of an application: pipe and number in the first byte, then what the
/// trigger has to say, in the end the packet's number within its batch.
pub(super) fn bytes(model: &GeneratorModel, (pipe, app): (u32, u32), trigger: &Trigger, running: &Running) -> Vec<u8> {
    let app_bits = model.applications.next_power_of_two().trailing_zeros();
    let first = (pipe << app_bits | app) as u8;
    let key = running.cause.key.to_be_bytes();
    let batch = running.batch.to_be_bytes();
    let middle = match trigger {
        Trigger::PortDown { .. } => [0, key[2], key[3]],
        Trigger::Recirculated(_) if !model.brings_context => [key[1], key[2], key[3]],
        _ => [0, batch[0], batch[1]],
    };
    let packet = running.packet.to_be_bytes();
    vec![first, middle[0], middle[1], middle[2], packet[0], packet[1]]
}
