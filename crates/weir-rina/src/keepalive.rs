//! Keepalive of a neighbour: periodic reads of an object, and the verdict that it is dead.

use crate::cdap::objects::WellKnown;
use crate::cdap::{CdapDialect, Message, Opcode};
use crate::time::Time;
use std::time::Duration;

/// Interval and limit of a keepalive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepaliveConfig {
    /// The time between two requests; rlite: 20 s.
    pub interval: Duration,
    /// The neighbour is dead once this number of requests is unanswered when another one is due;
    /// rlite: 3, so that it notices after 4 intervals. 0 counts as 1.
    pub misses: u32,
    /// The dialect of the object.
    pub dialect: CdapDialect,
}

impl Default for KeepaliveConfig {
    fn default() -> Self {
        KeepaliveConfig {
            interval: Duration::from_secs(20),
            misses: 3,
            dialect: CdapDialect::Rlite,
        }
    }
}

/// What to do about a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepaliveAction {
    /// Nothing until the deadline.
    Wait,
    /// Send this request.
    Send(Box<Message>),
    /// The neighbour is dead; the keepalive has ended.
    Dead,
}

/// The keepalive of one neighbour. Any message of the neighbour shows that it is alive.
#[derive(Debug, Clone)]
pub struct Keepalive {
    config: KeepaliveConfig,
    next: Time,
    unanswered: u32,
    invoke_id: i32,
    is_dead: bool,
}

impl Keepalive {
    /// A keepalive whose first request is due after one interval.
    #[must_use]
    pub fn new(config: KeepaliveConfig, now: Time) -> Self {
        Keepalive {
            config,
            next: now + config.interval,
            unanswered: 0,
            invoke_id: 0,
            is_dead: false,
        }
    }

    /// When [`Keepalive::tick`] has something to do; `None` once the neighbour is dead.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        (!self.is_dead).then_some(self.next)
    }

    /// Notes that the neighbour has sent something.
    pub fn heard(&mut self) {
        self.unanswered = 0;
    }

    /// The response to a request of the neighbour; `None` if the message is something else.
    #[must_use]
    pub fn respond(&self, message: &Message) -> Option<Message> {
        let id = WellKnown::Keepalive.id(self.config.dialect);
        let is_request = message.opcode == Opcode::Read && message.object_name == id.name;
        if is_request { message.response(0, "") } else { None }
    }

    /// What is due.
    pub fn tick(&mut self, now: Time) -> KeepaliveAction {
        if self.is_dead || now < self.next {
            return KeepaliveAction::Wait;
        }
        if self.unanswered >= self.config.misses.max(1) {
            self.is_dead = true;
            return KeepaliveAction::Dead;
        }
        self.unanswered += 1;
        self.next = now + self.config.interval;
        self.invoke_id = self.invoke_id.checked_add(1).unwrap_or(1);
        let id = WellKnown::Keepalive.id(self.config.dialect);
        KeepaliveAction::Send(Box::new(Message {
            invoke_id: self.invoke_id,
            ..Message::about(Opcode::Read, id.class, id.name, None)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Keepalive, KeepaliveAction, KeepaliveConfig};
    use crate::time::Time;

    #[test]
    fn a_neighbour_is_dead_after_the_last_unanswered_request() {
        let mut keepalive = Keepalive::new(KeepaliveConfig::default(), Time::ZERO);
        let at = Time::from_secs;
        assert_eq!(keepalive.tick(at(19)), KeepaliveAction::Wait);
        for request in 1..=3 {
            assert_eq!(keepalive.deadline(), Some(at(20 * request)));
            let action = keepalive.tick(at(20 * request));
            assert!(matches!(action, KeepaliveAction::Send(_)), "{action:?}");
        }
        assert_eq!(keepalive.tick(at(79)), KeepaliveAction::Wait);
        assert_eq!(keepalive.tick(at(80)), KeepaliveAction::Dead);
        assert_eq!(
            (keepalive.deadline(), keepalive.tick(at(200))),
            (None, KeepaliveAction::Wait)
        );
    }

    #[test]
    fn a_neighbour_that_answers_stays_alive() {
        let config = KeepaliveConfig {
            misses: 0,
            ..KeepaliveConfig::default()
        };
        let (mut here, there) = (Keepalive::new(config, Time::ZERO), Keepalive::new(config, Time::ZERO));
        for request in 1..20 {
            let KeepaliveAction::Send(message) = here.tick(Time::from_secs(20 * request)) else {
                panic!("a request is due");
            };
            let response = there.respond(&message).expect("a request");
            assert_eq!(response.invoke_id, message.invoke_id);
            assert_eq!(there.respond(&response), None);
            here.heard();
        }
    }
}
