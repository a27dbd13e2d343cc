//! Checks over the wire: Everett itself connects to a node, sends bytes and waits for an answer.
//! Everett's end of the connection is its endpoint, a TCP/IP stack at a port of the wire.
//!
//! Everett polls its connection at fixed vtimes, [`LOOK_NS`] apart, so its actions are a function of the received
//! frames. A moment during a check stores these frames. A timeline that continues from the moment replays the frames to
//! rebuild the connection.

use everett_explorer::property::builtin;
use everett_input::causes::with_causes;
use everett_vmm::wire::endpoint::{Endpoint, EndpointDraws, Heard, SocketId, TcpState};
use serde::{Deserialize, Serialize};

use super::Timeline;
use crate::guest::agent_script::HostCheck;
use crate::world::event::{Event, StreamName, What};

/// Interval at which Everett polls the connection, in nanoseconds of vtime.
const LOOK_NS: u64 = 1_000_000;
/// Maximum length of the answer to a check over the wire, in bytes. A longer answer without the expected text fails the
/// check.
const HEARD_BYTES_MAX: usize = 1 << 20;
/// Maximum number of lines of the answer to a check over the wire that become events.
const LINES_TOLD_MAX: usize = 64;
/// Maximum length of a line in an event of a check over the wire, in characters.
const LINE_CHARS_MAX: usize = 1_000;

/// Connection of the running check.
pub(super) struct Talk {
    /// Random numbers from which Everett's endpoint chooses ports and sequence numbers.
    draws: EndpointDraws,
    socket: SocketId,
    /// Number of bytes that Everett has sent.
    said: usize,
    heard: Vec<u8>,
    begun_ns: u64,
    /// Vtime of the next poll, in nanoseconds.
    pub(super) next_ns: u64,
    /// Result of the check, if it is known. Everett then resets the connection. The endpoint stays until the next poll,
    /// so that the node receives the reset.
    outcome: Option<Result<(), &'static str>>,
}

/// Stored state of the connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TalkState {
    /// Random numbers from which Everett's endpoint chooses ports and sequence numbers.
    pub(super) draws: EndpointDraws,
    begun_ns: u64,
    next_ns: u64,
    heard: Heard,
}

impl TalkState {
    /// Returns true if a connection of this check can be in this state.
    pub(super) fn is_sound(&self, check: &HostCheck) -> bool {
        // The check fails at the first poll after the time limit and is over at the next poll.
        let last_ns = self.begun_ns.saturating_add(check.timeout_ns).saturating_add(2 * LOOK_NS);
        (self.begun_ns..=last_ns).contains(&self.next_ns) && self.heard.is_sound(self.next_ns)
    }

    /// Replays the connection up to this state. Returns `None` if the replay does not reach it.
    fn again(&self, check: &HostCheck) -> Option<(Endpoint, Talk)> {
        let mut host = Endpoint::new(&check.host, self.draws).ok()?;
        host.poll(self.begun_ns.saturating_sub(1), &mut |_, _| {});
        let mut talk = Talk::begin(&mut host, check, self.draws, self.begun_ns).ok()?;
        while talk.next_ns < self.next_ns && talk.outcome.is_none() {
            host.hear_again(&self.heard, talk.next_ns);
            talk.look(&mut host, check);
        }
        host.hear_again(&self.heard, u64::MAX);
        (talk.next_ns == self.next_ns).then_some((host, talk))
    }
}

impl Timeline {
    /// Starts the check: makes Everett's endpoint and connects to the node.
    pub(super) fn start_talk(&mut self, check: &HostCheck) {
        let now = self.world.vtime();
        let start = What::Start { unit: check.name.clone(), round: 0 };
        self.tell_of_check(check, start);
        let draws = EndpointDraws::draw(&mut self.course.endpoint_streams);
        let endpoint = Endpoint::new(&check.host, draws).map_err(|error| with_causes(&error));
        let plugged =
            endpoint.and_then(|endpoint| self.world.plug(endpoint).map_err(|error| with_causes(&error)));
        let begun = plugged.and_then(|()| match self.world.host() {
            Some(host) => Talk::begin(host, check, draws, now),
            None => Err("Everett's endpoint is missing".to_owned()),
        });
        match begun {
            Ok(talk) => self.talk = Some(talk),
            Err(why) => self.end_talk(check, &[], Some(&why)),
        }
    }

    /// Polls the connection if a poll is due. Returns true if the check is over.
    pub(super) fn go_on_talking(&mut self, check: &HostCheck) -> bool {
        let Some(mut talk) = self.talk.take() else {
            // The check could not start.
            return true;
        };
        if self.world.vtime() < talk.next_ns {
            self.talk = Some(talk);
            return false;
        }
        if let Some(outcome) = talk.outcome {
            self.end_talk(check, &talk.heard, outcome.err());
            return true;
        }
        let Some(host) = self.world.host() else {
            self.end_talk(check, &talk.heard, Some("Everett's endpoint is missing"));
            return true;
        };
        talk.look(host, check);
        self.talk = Some(talk);
        false
    }

    /// Returns the state of the connection, if there is one.
    pub(super) fn save_talk(&mut self) -> Option<TalkState> {
        let talk = self.talk.as_ref()?;
        let heard = self.world.host()?.heard();
        Some(TalkState { draws: talk.draws, begun_ns: talk.begun_ns, next_ns: talk.next_ns, heard })
    }

    /// Restores a connection after the world was restored. Returns false if the connection cannot have this state.
    pub(super) fn talk_again(&mut self, check: &HostCheck, state: &TalkState) -> bool {
        let Some((host, talk)) = state.again(check) else { return false };
        self.talk = Some(talk);
        self.world.plug_again(host).is_ok()
    }

    fn end_talk(&mut self, check: &HostCheck, heard: &[u8], wrong: Option<&str>) {
        self.world.unplug();
        for line in String::from_utf8_lossy(heard).lines().take(LINES_TOLD_MAX) {
            let text: String = line.chars().take(LINE_CHARS_MAX).collect();
            let truncated = text.len() < line.len();
            let unit = check.name.clone();
            self.tell_of_check(check, What::Line { unit, stream: StreamName::Stdout, text, truncated });
        }
        let status = if wrong.is_none() { "the expected answer" } else { "no expected answer" };
        let (unit, success) = (check.name.clone(), wrong.is_none());
        self.tell_of_check(check, What::Exit { unit, status: status.to_owned(), success });
        if let Some(why) = wrong {
            let (now, session) = (self.world.vtime(), &mut self.nodes[check.node]);
            let text = format!("check {}: {why}", check.name);
            session.conversation.noticed(now, builtin::FAILED_CHECK, &text);
            self.reporting.of_host(session.conversation.take_events());
        }
    }

    fn tell_of_check(&mut self, check: &HostCheck, what: What) {
        let node = self.world.nodes()[check.node].machine().name().to_owned();
        self.reporting.of_host([Event { vtime_ns: self.world.vtime(), node, what }]);
    }
}

impl Talk {
    /// Opens a TCP connection to the node.
    fn begin(host: &mut Endpoint, check: &HostCheck, draws: EndpointDraws, now: u64) -> Result<Talk, String> {
        let socket = host.tcp_connect(check.to).map_err(|error| with_causes(&error))?;
        let next_ns = now.saturating_add(LOOK_NS);
        Ok(Talk { draws, socket, said: 0, heard: Vec::new(), begun_ns: now, next_ns, outcome: None })
    }

    /// Polls the connection and sets the result if it is known.
    fn look(&mut self, host: &mut Endpoint, check: &HostCheck) {
        let now = self.next_ns;
        self.next_ns = now.saturating_add(LOOK_NS);
        self.outcome = match self.exchange(host, check) {
            Ok(false) if now < self.begun_ns.saturating_add(check.timeout_ns) => None,
            Ok(false) => Some(Err("the expected answer did not come in time")),
            Ok(true) => Some(Ok(())),
            Err(why) => Some(Err(why)),
        };
        if self.outcome.is_some() {
            // The socket is open, so the release cannot fail.
            let _ = host.release(self.socket);
        }
    }

    /// Sends and receives bytes. Returns true if the expected answer has arrived, and an error if it cannot arrive any
    /// more.
    fn exchange(&mut self, host: &mut Endpoint, check: &HostCheck) -> Result<bool, &'static str> {
        const REFUSED: &str = "the node did not accept the connection";
        let state = host.tcp_state(self.socket).unwrap_or(TcpState::Closed);
        if state == TcpState::Connecting {
            return Ok(false);
        }
        let rest = check.send.get(self.said..).unwrap_or_default();
        // A node that refuses further bytes may already have answered.
        self.said += if rest.is_empty() { 0 } else { host.tcp_send(self.socket, rest).unwrap_or(rest.len()) };
        let over = match host.tcp_receive(self.socket) {
            Ok(bytes) if self.hear(&bytes, &check.expect) => return Ok(true),
            Ok(_) => false,
            Err(_) => true,
        };
        if state == TcpState::Closed && self.heard.is_empty() {
            return Err(REFUSED);
        }
        if check.expect.is_empty() {
            // The check expects only an established connection.
            return Ok(true);
        }
        match over {
            true => Err("the node closed the connection before the expected answer"),
            false if self.heard.len() > HEARD_BYTES_MAX => {
                Err("the expected text is not in the first MiB of the answer")
            }
            false => Ok(false),
        }
    }

    /// Adds received bytes. Returns true if the answer contains the expected text.
    fn hear(&mut self, bytes: &[u8], expected: &[u8]) -> bool {
        // The text can begin within earlier bytes.
        let from = self.heard.len().saturating_sub(expected.len());
        self.heard.extend_from_slice(bytes);
        !expected.is_empty() && self.heard[from..].windows(expected.len()).any(|part| part == expected)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use everett_vmm::wire::endpoint::EndpointConfig;

    use super::*;
    use crate::guest::agent_script::host_port;

    fn check() -> HostCheck {
        let ipv4 = Some((Ipv4Addr::new(10, 0, 255, 254), 16));
        HostCheck {
            name: "a".to_owned(),
            node: 0,
            to: SocketAddr::from(([10, 0, 0, 1], 80)),
            host: EndpointConfig { port: 1, node: host_port(), ipv4, ipv6: None },
            send: Vec::new(),
            expect: b"b".to_vec(),
            timeout_ns: 3 * LOOK_NS,
        }
    }

    const DRAWS: EndpointDraws = EndpointDraws { stack: 1, port: 2 };

    /// Returns the state after `looks` polls of a connection to a node that does not answer.
    fn state(looks: u64) -> TalkState {
        let mut host = Endpoint::new(&check().host, DRAWS).unwrap();
        host.poll(6, &mut |_, _| {});
        let mut talk = Talk::begin(&mut host, &check(), DRAWS, 7).unwrap();
        for _ in 0..looks {
            host.poll(talk.next_ns - 1, &mut |_, _| {});
            talk.look(&mut host, &check());
        }
        TalkState { draws: DRAWS, begun_ns: talk.begun_ns, next_ns: talk.next_ns, heard: host.heard() }
    }

    #[test]
    fn a_stored_connection_is_replayed_or_refused() {
        for looks in 0..=3 {
            let state = state(looks);
            assert!(state.is_sound(&check()), "{looks}");
            let (host, talk) = state.again(&check()).unwrap();
            assert_eq!((host.heard(), talk.next_ns), (state.heard, state.next_ns));
            assert_eq!(talk.outcome.is_some(), looks == 3);
        }
        let state = state(2);
        for next_ns in [0, 6, state.next_ns - 2 * LOOK_NS, 7 + 6 * LOOK_NS, u64::MAX] {
            assert!(!TalkState { next_ns, ..state.clone() }.is_sound(&check()), "{next_ns}");
        }
        assert!(!TalkState { begun_ns: u64::MAX, ..state.clone() }.is_sound(&check()));
        // The replay must refuse a next poll that is not a whole number of intervals after the start, or that lies
        // after the end of the check.
        for next_ns in [state.next_ns - 1, state.next_ns + 1, 7 + 5 * LOOK_NS] {
            let other = TalkState { next_ns, ..state.clone() };
            assert!(other.again(&check()).is_none(), "{next_ns}");
        }
    }
}
