//! Requests of a caller outside the timeline, for example of a shell in a throw-away fork.
//!
//! Answers and output of these requests go to the caller, and no event reports them. They have numbers of their own, so
//! they cannot be confused with the requests of the timeline. Moments do not store them, because a timeline that has them
//! is no recorded one any more.

use std::collections::BTreeSet;

use everett_input::causes::with_causes;
use everett_protocol::{self as protocol, LineText, Operation, Reply, Request, Stream, Unit};

use super::{COMMANDS_MAX, Conversation, PENDING_MAX, Phase};

/// Requests of a caller outside the timeline.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Numbers of the requests that the agent has not answered.
    pending: BTreeSet<u64>,
    /// Numbers of the latest requests. Their commands can leave processes that go on printing.
    known: BTreeSet<u64>,
    /// Answers that the caller has not taken.
    answers: Vec<Answer>,
}

/// Part of the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Number of the request, as [`Conversation::ask`] returned it.
    pub request: u64,
    /// Vtime of the answer, in nanoseconds.
    pub vtime_ns: u64,
    /// Content of the answer.
    pub what: Answered,
}

/// Content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// The command printed a line.
    Output {
        /// Stream of the line.
        stream: Stream,
        /// The line, without its newline.
        text: LineText,
        /// True if the agent has cut the line, because it was too long.
        truncated: bool,
        /// True if the stream ended after this line without a newline.
        unfinished: bool,
    },
    /// The agent has answered. No other answer follows, but output of processes that the command left.
    Reply(Reply),
    /// The machine has ended or lost its power.
    Lost,
}

/// Reason why a request cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    /// The agent is not up.
    #[error("its agent, Everett's program in the machine, is not up: {waits_for}")]
    NotUp {
        /// Event for which the conversation waits.
        waits_for: String,
    },
    /// The node has no power, or its machine has ended.
    #[error("the machine has no power at this instant")]
    Off,
    /// A fault has paused the node.
    #[error("a fault has paused the machine at this instant")]
    Paused,
    /// Too many requests are pending.
    #[error("the agent has not answered {PENDING_MAX} requests")]
    TooMany,
    /// The request violates a bound.
    #[error("invalid request: {0}")]
    Invalid(String),
}

impl Conversation {
    /// Sends a request to the agent and returns its number. [`Conversation::take_answers`] has the answers.
    ///
    /// # Errors
    /// Returns an error if the agent is not up, if too many requests are pending, or if the request is invalid.
    pub fn ask(&mut self, op: Operation) -> Result<u64, CannotAsk> {
        if !self.is_agent_up() {
            return Err(CannotAsk::NotUp { waits_for: self.waits_for() });
        }
        if self.asked.pending.len() >= PENDING_MAX {
            return Err(CannotAsk::TooMany);
        }
        let id = self.at.next_id;
        let line = protocol::encode_request(&Request { id, op });
        let line = line.map_err(|error| CannotAsk::Invalid(with_causes(&error)))?;
        self.at.next_id = id.saturating_add(1);
        self.outgoing.extend_from_slice(&line);
        self.asked.pending.insert(id);
        if self.asked.known.len() >= COMMANDS_MAX {
            self.asked.known.pop_first();
        }
        self.asked.known.insert(id);
        Ok(id)
    }

    /// Returns true if the agent has mounted the root filesystem, so that it can run programs.
    #[must_use]
    pub fn is_agent_up(&self) -> bool {
        self.at.phase >= Phase::Joining
    }

    /// Takes the answers since the last call.
    pub fn take_answers(&mut self) -> Vec<Answer> {
        std::mem::take(&mut self.asked.answers)
    }

    /// Returns true if [`Conversation::take_answers`] would return answers.
    #[must_use]
    pub fn has_answers(&self) -> bool {
        !self.asked.answers.is_empty()
    }

    /// Takes an answer to a request of the caller. Returns the reply if the request is not the caller's.
    pub(super) fn answered(&mut self, id: u64, reply: Reply, vtime_ns: u64) -> Option<Reply> {
        if !self.asked.pending.remove(&id) {
            return Some(reply);
        }
        self.asked.answers.push(Answer { request: id, vtime_ns, what: Answered::Reply(reply) });
        None
    }

    /// Takes a line of output of the caller's command. Returns the line if the command is not the caller's.
    pub(super) fn printed(&mut self, output: protocol::Output, vtime_ns: u64) -> Option<protocol::Output> {
        match output.unit {
            Unit::Exec(request) if self.asked.known.contains(&request) => {
                let protocol::Output { stream, text, truncated, unfinished, .. } = output;
                let what = Answered::Output { stream, text, truncated, unfinished };
                self.asked.answers.push(Answer { request, vtime_ns, what });
                None
            }
            _ => Some(output),
        }
    }

    /// Answers all requests of the caller, because the machine cannot answer them any more.
    pub fn lose_asked(&mut self, vtime_ns: u64) {
        for request in std::mem::take(&mut self.asked.pending) {
            self.asked.answers.push(Answer { request, vtime_ns, what: Answered::Lost });
        }
        self.asked.known.clear();
    }
}

#[cfg(test)]
mod tests {
    use everett_protocol::{Exec, Exit, Message, Output, Port, Response, encode_message};

    use super::super::state::tests::driven;
    use super::super::tests::script;
    use super::*;

    fn said(conversation: &mut Conversation, message: &Message) {
        conversation.received(Port::Control, &encode_message(message).unwrap(), 7);
    }

    fn output(request: u64, text: &str) -> Message {
        Message::Output(Output {
            unit: Unit::Exec(request),
            stream: Stream::Stdout,
            text: text.into(),
            truncated: false,
            unfinished: true,
        })
    }

    /// A driver, a check and a command of the timeline can be in flight at the same time.
    #[test]
    fn the_timeline_does_not_notice_requests_of_others() {
        let mut conversation = Conversation::new(script());
        conversation.restore(driven()).unwrap();
        conversation.command("own", Exec::new(vec!["a".to_owned()]), 5);
        let own = conversation.at.next_id - 1;
        let request = conversation.ask(Operation::Exec(Exec::new(vec!["b".to_owned()]))).unwrap();
        conversation.take_events();
        let exited = |id, code| Message::Response(Response { id, reply: Reply::Exited(Exit::Code(code)) });
        for message in
            [output(request, "theirs"), exited(request, 3), exited(own, 0), output(request, "late")]
        {
            said(&mut conversation, &message);
        }
        let answers = conversation.take_answers();
        let texts: Vec<&Answered> = answers.iter().map(|answer| &answer.what).collect();
        assert!(matches!(texts[0], Answered::Output { text, .. } if text.as_bytes() == b"theirs"));
        assert_eq!(texts[1], &Answered::Reply(Reply::Exited(Exit::Code(3))));
        assert!(matches!(texts[2], Answered::Output { text, .. } if text.as_bytes() == b"late"));
        assert_eq!(conversation.take_events().len(), 1, "the end of the own command");
        assert_eq!(conversation.command_exit(), Some(Exit::Code(0)));
        // An answer that comes twice is the agent's failure.
        said(&mut conversation, &exited(request, 3));
        assert_eq!(conversation.take_events().len(), 1);
    }

    #[test]
    fn a_machine_that_ends_loses_the_requests() {
        let mut conversation = Conversation::new(script());
        assert!(matches!(conversation.ask(Operation::Ping), Err(CannotAsk::NotUp { .. })));
        conversation.restore(driven()).unwrap();
        let request = conversation.ask(Operation::Ping).unwrap();
        conversation.machine_ended(9, "machine-stopped", "why");
        let lost = Answer { request, vtime_ns: 9, what: Answered::Lost };
        assert_eq!(conversation.take_answers(), [lost]);
        let invalid = conversation.ask(Operation::List { path: "relative".to_owned() });
        assert!(matches!(invalid, Err(CannotAsk::Invalid(_))));
    }
}
