//! Packet generators: applications that send packets out of a buffer into ingress, when a timer or
//! an event triggers them.
//!
//! There is one generator per pipe, as on the chips. It has no thread and no clock: it receives
//! events, reports when it next sends, and returns the packets that are due. The switch calls it
//! between all that leaves its queues.
//!
//! A packet is a header of six bytes (which pipe and application, and of which batch; see
//! `pktgen_*_header_t` in the architectures' files), what the trigger brought along, if it is so,
//! and bytes of the buffer.

mod application;
mod change;
mod header;

pub use application::{Application, Counts, Pattern, Trigger};
pub use change::{GeneratorUndo, GeneratorWrite};

use crate::state::split_mix;
use application::{Cause, Slot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use thiserror::Error;

/// Bytes of a generator's buffer.
pub const BUFFER: usize = 16 * 1024;
/// Bits per second that a generator sends at most: those of its port.
const RATE: u64 = 100_000_000_000;
/// Bytes that a packet takes on a wire besides its own.
const GAP_BYTES: u64 = 20;
/// Ports of a pipe.
const PORTS: u32 = 128;
/// Port masks of a pipe, where the chip has any.
pub const MASKS: usize = 2;

/// The capabilities of generators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratorModel {
    /// Pipes, each with a generator.
    pub pipes: u32,
    /// Applications of each.
    pub applications: u32,
    /// Local numbers of the ports that can generate packets and match patterns.
    pub ports: RangeInclusive<u32>,
    /// The first bytes of a packet, which patterns match.
    pub pattern_bytes: usize,
    /// Generated packets carry these bytes after their header; deparsers may give them, too. Else
    /// three of them are in the header.
    pub brings_context: bool,
    /// Gaps are from the end of a packet to the next, not from its beginning.
    pub gaps_from_end: bool,
}

/// The role of a port for its pipe's generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GeneratorPort {
    /// Applications send by it.
    pub generates: bool,
    /// Packets that recirculate by it are matched against patterns.
    pub matches: bool,
}

/// Why something of a generator cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GeneratorError {
    /// The architecture has none.
    #[error("a program of this architecture has no packet generator")]
    None,
    /// A number is too large.
    #[error("{what} {number} is beyond the last, {last}")]
    Beyond {
        /// The kind of number.
        what: &'static str,
        /// The number.
        number: u64,
        /// The largest.
        last: u64,
    },
    /// The port is another one.
    #[error("port {port} does not generate packets; those that can are {first} to {last} of each pipe")]
    Port {
        /// The port.
        port: u32,
        /// Local number of the first that can.
        first: u32,
        /// And of the last.
        last: u32,
    },
    /// The chip has no such trigger.
    #[error("the first chip's deparsers trigger nothing, and it has no port masks")]
    Trigger,
    /// A pattern has more bits than the chip compares.
    #[error("a pattern is about the first {bytes} bytes of a packet: its value or mask has more bits")]
    Pattern {
        /// Bytes that the chip compares.
        bytes: usize,
    },
}

fn within(what: &'static str, number: u64, last: u64) -> Result<(), GeneratorError> {
    if number <= last {
        return Ok(());
    }
    Err(GeneratorError::Beyond { what, number, last })
}

/// A packet that is to begin at ingress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The port that it says it came in at.
    pub port: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When it was due, in ns.
    pub time_ns: u64,
}

/// The generator of a pipe.
#[derive(Debug, Clone)]
struct Pipe {
    slots: Vec<Slot>,
    /// Nothing until something is written.
    buffer: Vec<u8>,
    masks: [u128; MASKS],
}

/// The generators of all pipes.
#[derive(Debug, Clone)]
pub struct Generators {
    model: GeneratorModel,
    pipes: Vec<Pipe>,
    ports: BTreeMap<u32, GeneratorPort>,
    /// Timers and ports trigger; else that is left to others that have the same applications.
    is_leader: bool,
    /// When something is due.
    next_ns: Option<u64>,
    random: u64,
}

impl Generators {
    /// Generators without applications.
    #[must_use]
    pub fn new(model: GeneratorModel) -> Self {
        let pipe = Pipe {
            slots: vec![Slot::default(); model.applications as usize],
            buffer: Vec::new(),
            masks: [0; MASKS],
        };
        Generators {
            pipes: vec![pipe; model.pipes as usize],
            model,
            ports: BTreeMap::new(),
            is_leader: true,
            next_ns: None,
            random: 0,
        }
    }

    /// Their capabilities.
    #[must_use]
    pub fn model(&self) -> &GeneratorModel {
        &self.model
    }

    /// Whether timers and ports trigger here, and not only packets: where several switches have the
    /// same applications, one of them is to do that.
    pub fn set_leader(&mut self, on: bool) {
        self.is_leader = on;
        self.refresh();
    }

    fn slot(&self, pipe: u32, app: u32) -> Result<&Slot, GeneratorError> {
        self.check(pipe, app)?;
        Ok(&self.pipes[pipe as usize].slots[app as usize])
    }

    fn check(&self, pipe: u32, app: u32) -> Result<(), GeneratorError> {
        within("pipe", pipe.into(), u64::from(self.model.pipes) - 1)?;
        within("application", app.into(), u64::from(self.model.applications) - 1)
    }

    /// Gives a pipe an application in place of what it had at this number; its timer starts now.
    /// Its counts stay.
    ///
    /// # Errors
    /// There is no such pipe or application, or something of it is beyond what the generator has.
    pub fn configure(
        &mut self,
        pipe: u32,
        app: u32,
        application: Application,
        now_ns: u64,
    ) -> Result<(), GeneratorError> {
        self.check(pipe, app)?;
        let length = u64::from(application.length);
        within(
            "the last byte of the buffer",
            u64::from(application.offset) + length,
            BUFFER as u64,
        )?;
        within("source port", application.source_port.into(), u64::from(PORTS) - 1)?;
        within(
            "last source port",
            application.last_source_port.into(),
            u64::from(PORTS) - 1,
        )?;
        match application.trigger {
            Trigger::Deparser(_) if !self.model.brings_context => return Err(GeneratorError::Trigger),
            Trigger::PortDown { mask: Some(mask) } if self.model.brings_context => {
                within("port mask", mask.into(), MASKS as u64 - 1)?;
            }
            Trigger::PortDown { mask: Some(_) } => return Err(GeneratorError::Trigger),
            Trigger::Recirculated(pattern) => {
                let bytes = self.model.pattern_bytes;
                let beyond = |bits: u128| bits.checked_shr(bytes as u32 * 8).unwrap_or(0) != 0;
                if beyond(pattern.value) || beyond(pattern.mask) {
                    return Err(GeneratorError::Pattern { bytes });
                }
            }
            _ => {}
        }
        if let Some(channel) = application.channel {
            self.check_port(channel)?;
        }
        let slot = &mut self.pipes[pipe as usize].slots[app as usize];
        *slot = Slot::new(application, slot.counts, now_ns);
        self.refresh();
        Ok(())
    }

    /// An application and what it has done.
    ///
    /// # Errors
    /// There is no such pipe or application.
    pub fn application(&self, pipe: u32, app: u32) -> Result<(&Application, Counts), GeneratorError> {
        let slot = self.slot(pipe, app)?;
        Ok((&slot.application, slot.counts))
    }

    /// Sets what an application has done so far.
    ///
    /// # Errors
    /// There is no such pipe or application.
    pub fn set_counts(&mut self, pipe: u32, app: u32, counts: Counts) -> Result<(), GeneratorError> {
        self.check(pipe, app)?;
        self.pipes[pipe as usize].slots[app as usize].counts = counts;
        Ok(())
    }

    /// Writes to the buffer of a pipe.
    ///
    /// # Errors
    /// There is no such pipe, or the buffer ends before the bytes do.
    pub fn write_buffer(&mut self, pipe: u32, offset: u32, bytes: &[u8]) -> Result<(), GeneratorError> {
        self.check(pipe, 0)?;
        within(
            "the last byte of the buffer",
            u64::from(offset) + bytes.len() as u64,
            BUFFER as u64,
        )?;
        let buffer = &mut self.pipes[pipe as usize].buffer;
        buffer.resize(BUFFER, 0);
        buffer[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Bytes of the buffer of a pipe.
    ///
    /// # Errors
    /// There is no such pipe, or the buffer is shorter than these bytes.
    pub fn buffer(&self, pipe: u32, offset: u32, length: u32) -> Result<Vec<u8>, GeneratorError> {
        self.check(pipe, 0)?;
        within(
            "the last byte of the buffer",
            u64::from(offset) + u64::from(length),
            BUFFER as u64,
        )?;
        let written = self.pipes[pipe as usize].buffer.iter().copied();
        let all = written.chain(std::iter::repeat(0)).skip(offset as usize);
        Ok(all.take(length as usize).collect())
    }

    /// Whether a port can generate.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_port(&self, port: u32) -> Result<(), GeneratorError> {
        let (first, last) = (*self.model.ports.start(), *self.model.ports.end());
        let is_one = port / PORTS < self.model.pipes && self.model.ports.contains(&(port % PORTS));
        is_one.then_some(()).ok_or(GeneratorError::Port { port, first, last })
    }

    /// Sets the role of a port for its pipe's generator.
    ///
    /// # Errors
    /// It is none of those that can generate.
    pub fn set_port(&mut self, port: u32, what: GeneratorPort) -> Result<(), GeneratorError> {
        self.check_port(port)?;
        self.ports.insert(port, what);
        Ok(())
    }

    /// The role of a port for its pipe's generator.
    #[must_use]
    pub fn port(&self, port: u32) -> GeneratorPort {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// Sets one of the masks of a pipe: bits of local ports whose going down triggers applications
    /// with this mask.
    ///
    /// # Errors
    /// There is no such pipe or mask, or the chip has none.
    pub fn set_mask(&mut self, pipe: u32, mask: u32, ports: u128) -> Result<(), GeneratorError> {
        self.check(pipe, 0)?;
        if !self.model.brings_context {
            return Err(GeneratorError::Trigger);
        }
        within("port mask", mask.into(), MASKS as u64 - 1)?;
        self.pipes[pipe as usize].masks[mask as usize] = ports;
        Ok(())
    }

    /// One of the masks of a pipe.
    ///
    /// # Errors
    /// There is no such pipe or mask.
    pub fn mask(&self, pipe: u32, mask: u32) -> Result<u128, GeneratorError> {
        self.check(pipe, 0)?;
        within("port mask", mask.into(), MASKS as u64 - 1)?;
        Ok(self.pipes[pipe as usize].masks[mask as usize])
    }

    // ----------------------------------------------------------------------------------- events

    /// Whether packets trigger applications: then the packets that are due depend on the
    /// outcome of earlier ones.
    #[must_use]
    pub fn has_packet_triggers(&self) -> bool {
        let slots = self.pipes.iter().flat_map(|p| &p.slots);
        let mut enabled = slots.map(|s| &s.application).filter(|a| a.enabled);
        enabled.any(|a| matches!(a.trigger, Trigger::Recirculated(_) | Trigger::Deparser(_)))
    }

    /// A port went down.
    pub fn port_down(&mut self, port: u32, now_ns: u64) {
        if self.is_leader {
            self.trigger(port / PORTS, now_ns, |application, masks| {
                let Trigger::PortDown { mask } = application.trigger else {
                    return None;
                };
                let is_selected = mask.is_none_or(|m| masks[m as usize] >> (port % PORTS) & 1 == 1);
                is_selected.then(|| Cause {
                    key: port,
                    ..Cause::default()
                })
            });
        }
    }

    /// A packet comes in again at a port by which it left.
    pub fn recirculated(&mut self, port: u32, bytes: &[u8], now_ns: u64) {
        if !self.port(port).matches {
            return;
        }
        let Some(first) = bytes.get(..self.model.pattern_bytes).map(number) else {
            return;
        };
        let context = self
            .model
            .brings_context
            .then(|| bytes[..self.model.pattern_bytes].to_vec());
        self.trigger(port / PORTS, now_ns, |application, _| match application.trigger {
            Trigger::Recirculated(pattern) if pattern.matches(first) => Some(Cause {
                key: first as u32 & 0xff_ffff,
                context: context.clone().unwrap_or_default(),
                from: None,
            }),
            _ => None,
        });
    }

    /// A deparser requests packets: with this context, of these bytes of the buffer.
    pub fn requested_by_deparser(&mut self, port: u32, context: &[u8], from: (u32, u32), now_ns: u64) {
        let mut context = context.to_vec();
        context.resize(self.model.pattern_bytes, 0);
        let first = number(&context);
        self.trigger(port / PORTS, now_ns, |application, _| match application.trigger {
            Trigger::Deparser(pattern) if pattern.matches(first) => Some(Cause {
                key: 0,
                context: context.clone(),
                from: Some(from),
            }),
            _ => None,
        });
    }

    /// Starts the applications of a pipe for which there is a cause.
    fn trigger(&mut self, pipe: u32, now_ns: u64, cause: impl Fn(&Application, &[u128; MASKS]) -> Option<Cause>) {
        let Some(Pipe { slots, masks, .. }) = self.pipes.get_mut(pipe as usize) else {
            return;
        };
        for slot in slots.iter_mut().filter(|s| s.application.enabled) {
            if sends(&self.model, &self.ports, pipe, &slot.application)
                && let Some(cause) = cause(&slot.application, masks)
            {
                slot.begin(cause, now_ns);
            }
        }
        self.refresh();
    }

    // ---------------------------------------------------------------------------------- sending

    fn refresh(&mut self) {
        let slots = self.pipes.iter().flat_map(|p| &p.slots);
        self.next_ns = slots.filter_map(|s| s.next_ns(self.is_leader)).min();
    }

    /// When something is due next.
    #[must_use]
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        self.next_ns
    }

    /// The next packet that is due by then.
    pub fn due(&mut self, now_ns: u64) -> Option<Generated> {
        while let Some(event_ns) = self.next_ns.filter(|event_ns| *event_ns <= now_ns) {
            let generated = self.work(event_ns, now_ns);
            self.refresh();
            if generated.is_some() {
                return generated;
            }
        }
        None
    }

    /// Performs the first due event, which is due at `event_ns`. The time now is `now_ns`.
    fn work(&mut self, event_ns: u64, now_ns: u64) -> Option<Generated> {
        let leader = self.is_leader;
        let is_first = |slot: &Slot| slot.next_ns(leader) == Some(event_ns);
        let (number, pipe) = (0..)
            .zip(&mut self.pipes)
            .find(|(_, pipe)| pipe.slots.iter().any(is_first))?;
        let (app, slot) = (0..).zip(&mut pipe.slots).find(|(_, slot)| is_first(slot))?;
        if leader && slot.expire(event_ns) {
            if sends(&self.model, &self.ports, number, &slot.application) {
                slot.begin(Cause::default(), event_ns);
                slot.skip_lost(now_ns);
            } else {
                slot.skip(now_ns);
            }
            return None;
        }
        let running = slot.running.as_ref()?;
        let mut bytes = header::bytes(&self.model, (number, app), &slot.application.trigger, running);
        bytes.extend_from_slice(&running.cause.context);
        let application = &slot.application;
        let own = (application.offset.into(), application.length.into());
        let (offset, length): (u32, u32) = running.cause.from.unwrap_or(own);
        let buffer = pipe.buffer.iter().copied().chain(std::iter::repeat(0));
        bytes.extend(buffer.skip(offset as usize).take(length as usize));
        let port = application.port_of(running.packet);
        let wire_ns = ((bytes.len() as u64 + GAP_BYTES) * 8 * 1_000_000_000).div_ceil(RATE);
        let random = &mut self.random;
        slot.sent(event_ns, wire_ns, self.model.gaps_from_end, |most| {
            split_mix(random) % (u64::from(most) + 1)
        });
        Some(Generated {
            port: number * PORTS + port,
            bytes,
            time_ns: event_ns,
        })
    }
}

/// Whether a port is there that the application can send by.
fn sends(model: &GeneratorModel, ports: &BTreeMap<u32, GeneratorPort>, pipe: u32, application: &Application) -> bool {
    let generates = |local: u32| ports.get(&(pipe * PORTS + local)).is_some_and(|p| p.generates);
    match application.channel {
        Some(channel) => generates(channel),
        None => model.ports.clone().any(generates),
    }
}

/// Bytes as a number.
fn number(bytes: &[u8]) -> u128 {
    bytes.iter().take(16).fold(0, |n, byte| n << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests;
