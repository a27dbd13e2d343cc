//! A check that the host makes itself: it connects to a node over the wire, says something, and waits for an answer.
//!
//! The host looks at its connection at fixed vtimes, [`LOOK_NS`] apart. So what it did is a function of what it heard: that is
//! stored, and a timeline that goes on from a moment within such a check goes through the conversation once more.

use everett_explorer::property::builtin;
use everett_vmm::wire::endpoint::{Endpoint, EndpointDraws, Heard, SocketId, TcpState};
use serde::{Deserialize, Serialize};

use super::Timeline;
use crate::agent_script::HostCheck;
use crate::event::{Event, StreamName, What};

/// How often the host looks what has come, in nanoseconds of vtime.
const LOOK_NS: u64 = 1_000_000;
/// Bytes of an answer that are looked through. One that is longer without what is expected is wrong.
const HEARD_BYTES_MAX: usize = 1 << 20;
/// Lines of an answer that are told, and characters of a line.
const LINES_TOLD_MAX: usize = 64;
const LINE_CHARS_MAX: usize = 1_000;

/// A conversation that goes on.
pub(super) struct Talk {
    /// What the host's endpoint was made with.
    draws: EndpointDraws,
    socket: SocketId,
    /// How much of what is to be said was said.
    said: usize,
    heard: Vec<u8>,
    begun_ns: u64,
    /// When the host looks next.
    pub(super) next_ns: u64,
    /// What came of it. The connection is reset, and the host stays until the node can know.
    outcome: Option<Result<(), &'static str>>,
}

/// One as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TalkState {
    /// What the host's endpoint was made with.
    pub(super) draws: EndpointDraws,
    begun_ns: u64,
    next_ns: u64,
    heard: Heard,
}

impl TalkState {
    /// Whether that check can be here.
    pub(super) fn is_sound(&self, check: &HostCheck) -> bool {
        // The last look but one is the first after its time.
        let last_ns = self.begun_ns.saturating_add(check.timeout_ns).saturating_add(2 * LOOK_NS);
        (self.begun_ns..=last_ns).contains(&self.next_ns) && self.heard.is_sound(self.next_ns)
    }

    /// The host's machine and the conversation, come to here once more; none if that cannot be.
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
    /// Connect to the node.
    pub(super) fn start_talk(&mut self, check: &HostCheck) {
        let now = self.world.vtime();
        let start = What::Start { unit: check.name.clone(), round: 0 };
        self.tell_of_check(check, start);
        let draws = EndpointDraws::draw(&mut self.course.host);
        let endpoint = Endpoint::new(&check.host, draws).map_err(|error| error.to_string());
        let plugged =
            endpoint.and_then(|endpoint| self.world.plug(endpoint).map_err(|error| error.to_string()));
        let begun = plugged.and_then(|()| match self.world.host() {
            Some(host) => Talk::begin(host, check, draws, now),
            None => Err("the host is not there".to_owned()),
        });
        match begun {
            Ok(talk) => self.talk = Some(talk),
            Err(why) => self.end_talk(check, &[], Some(&why)),
        }
    }

    /// Say what can be said, and hear what has come. Returns whether the check is over.
    pub(super) fn go_on_talking(&mut self, check: &HostCheck) -> bool {
        let Some(mut talk) = self.talk.take() else {
            // Nothing came of it.
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
            self.end_talk(check, &talk.heard, Some("the host is not there"));
            return true;
        };
        talk.look(host, check);
        self.talk = Some(talk);
        false
    }

    /// What is stored of a conversation, if there is one.
    pub(super) fn save_talk(&mut self) -> Option<TalkState> {
        let talk = self.talk.as_ref()?;
        let heard = self.world.host()?.heard();
        Some(TalkState { draws: talk.draws, begun_ns: talk.begun_ns, next_ns: talk.next_ns, heard })
    }

    /// Go on with a conversation, in a world that is where its world was. Returns false when it cannot have come to here.
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
        let status = if wrong.is_none() { "the answer that was expected" } else { "no such answer" };
        let (unit, success) = (check.name.clone(), wrong.is_none());
        self.tell_of_check(check, What::Exit { unit, status: status.to_owned(), success });
        if let Some(why) = wrong {
            let (now, session) = (self.world.vtime(), &mut self.nodes[check.node]);
            let text = format!("check {}: {why}", check.name);
            session.conversation.noticed(now, builtin::FAILED_CHECK, &text);
            self.telling.of_host(session.conversation.take_events());
        }
    }

    fn tell_of_check(&mut self, check: &HostCheck, what: What) {
        let node = self.world.nodes()[check.node].machine().name().to_owned();
        self.telling.of_host([Event { vtime_ns: self.world.vtime(), node, what }]);
    }
}

impl Talk {
    /// Connect to the node.
    fn begin(host: &mut Endpoint, check: &HostCheck, draws: EndpointDraws, now: u64) -> Result<Talk, String> {
        let socket = host.tcp_connect(check.to).map_err(|error| error.to_string())?;
        let next_ns = now.saturating_add(LOOK_NS);
        Ok(Talk { draws, socket, said: 0, heard: Vec::new(), begun_ns: now, next_ns, outcome: None })
    }

    /// It is time to look what has come.
    fn look(&mut self, host: &mut Endpoint, check: &HostCheck) {
        let now = self.next_ns;
        self.next_ns = now.saturating_add(LOOK_NS);
        self.outcome = match self.exchange(host, check) {
            Ok(false) if now < self.begun_ns.saturating_add(check.timeout_ns) => None,
            Ok(false) => Some(Err("there was no such answer in its time")),
            Ok(true) => Some(Ok(())),
            Err(why) => Some(Err(why)),
        };
        if self.outcome.is_some() {
            // It is there, and not released yet.
            let _ = host.release(self.socket);
        }
    }

    /// Whether what is expected has come; else why it never will, if that is known.
    fn exchange(&mut self, host: &mut Endpoint, check: &HostCheck) -> Result<bool, &'static str> {
        const REFUSED: &str = "the node did not take the connection";
        let state = host.tcp_state(self.socket).unwrap_or(TcpState::Closed);
        if state == TcpState::Connecting {
            return Ok(false);
        }
        let rest = check.send.get(self.said..).unwrap_or_default();
        // A node that takes nothing more may have answered all the same.
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
            // That there was a connection is all.
            return Ok(true);
        }
        match over {
            true => Err("the node closed the connection before it said that"),
            false if self.heard.len() > HEARD_BYTES_MAX => Err("the answer is longer than 1 MiB without it"),
            false => Ok(false),
        }
    }

    /// These bytes have come. Returns whether with them what is expected has.
    fn hear(&mut self, bytes: &[u8], expected: &[u8]) -> bool {
        // It may have begun in what came before.
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
    use crate::agent_script::host_port;

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

    /// Nobody answers.
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
    fn a_conversation_comes_to_where_it_was_or_is_refused() {
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
        // It looks when it looks, and not after it has come to an end.
        for next_ns in [state.next_ns - 1, state.next_ns + 1, 7 + 5 * LOOK_NS] {
            let other = TalkState { next_ns, ..state.clone() };
            assert!(other.again(&check()).is_none(), "{next_ns}");
        }
    }
}
