//! Requests that are repeated until they are answered, and answers to repeated requests.

use super::Retries;
use crate::cdap::{Message, Opcode};
use crate::time::Time;

#[derive(Debug, Clone)]
struct Outstanding {
    request: Message,
    next: Time,
    attempts: u32,
}

/// What is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Repeat(Box<Message>),
    TimedOut,
}

/// One side of a conversation in which at most one request of each side is unanswered.
#[derive(Debug, Clone)]
pub(super) struct Exchange {
    retries: Retries,
    outstanding: Option<Outstanding>,
    answered: Option<(Message, Message)>,
    last_id: i32,
    /// When a side that waits for a request of the other gives up.
    patience: Time,
}

impl Exchange {
    pub(super) fn new(retries: Retries, now: Time) -> Self {
        let mut exchange = Exchange {
            retries,
            outstanding: None,
            answered: None,
            last_id: 0,
            patience: now,
        };
        exchange.progress(now);
        exchange
    }

    /// Notes progress: the other side has the full time for its next message.
    fn progress(&mut self, now: Time) {
        let attempts = self.retries.attempts.max(1);
        self.patience = now + self.retries.timeout.saturating_mul(attempts);
    }

    /// Gives a request its id; it is repeated until [`Exchange::take_response`] gets the response.
    pub(super) fn request(&mut self, mut request: Message, now: Time) -> Message {
        self.last_id = self.last_id.checked_add(1).unwrap_or(1);
        request.invoke_id = self.last_id;
        self.outstanding = Some(Outstanding {
            request: request.clone(),
            next: now + self.retries.timeout,
            attempts: 1,
        });
        self.progress(now);
        request
    }

    /// Whether a message is the response to the outstanding request, which ends then.
    pub(super) fn take_response(&mut self, message: &Message, now: Time) -> bool {
        let is_response = self.outstanding.as_ref().is_some_and(|outstanding| {
            let request = &outstanding.request;
            request.opcode.response() == Some(message.opcode) && request.invoke_id == message.invoke_id
        });
        if is_response {
            self.outstanding = None;
            self.progress(now);
        }
        is_response
    }

    /// Whether a response answers an earlier request, or none: it came late or twice.
    pub(super) fn is_stale(&self, message: &Message) -> bool {
        message.opcode.is_response() && message.invoke_id <= self.last_id
    }

    /// The operation of the outstanding request.
    pub(super) fn awaits(&self) -> Option<Opcode> {
        self.outstanding.as_ref().map(|outstanding| outstanding.request.opcode)
    }

    /// Keeps the response to a request for repetitions of it.
    pub(super) fn answer(&mut self, request: &Message, response: Message, now: Time) -> Message {
        self.answered = Some((request.clone(), response.clone()));
        self.progress(now);
        response
    }

    /// The response to a repeated request.
    pub(super) fn answer_again(&self, request: &Message) -> Option<Message> {
        let (answered, response) = self.answered.as_ref()?;
        (answered == request).then(|| response.clone())
    }

    /// Whether a request precedes the one that was answered last: it was repeated, and is late.
    pub(super) fn is_late(&self, request: &Message) -> bool {
        let answered = self.answered.as_ref();
        !request.opcode.is_response() && answered.is_some_and(|(last, _)| request.invoke_id <= last.invoke_id)
    }

    /// Ends all repetitions.
    pub(super) fn stop(&mut self) {
        self.outstanding = None;
    }

    pub(super) fn tick(&mut self, now: Time) -> Due {
        let attempts = self.retries.attempts.max(1);
        match &mut self.outstanding {
            Some(outstanding) if now >= outstanding.next => {
                if outstanding.attempts >= attempts {
                    return Due::TimedOut;
                }
                outstanding.attempts += 1;
                outstanding.next = now + self.retries.timeout;
                Due::Repeat(Box::new(outstanding.request.clone()))
            }
            Some(_) => Due::Nothing,
            None if now >= self.patience => Due::TimedOut,
            None => Due::Nothing,
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.outstanding
            .as_ref()
            .map_or(self.patience, |outstanding| outstanding.next)
    }
}
