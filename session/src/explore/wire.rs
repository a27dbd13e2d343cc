//! Turns frames on the wire into the messages that coverage observes.
//!
//! Coverage distinguishes messages by protocol, type, service port and direction (to or from the service). Empty
//! acknowledgments and address resolution are left out.

use std::collections::BTreeMap;

use everett_explorer::coverage::{Observed, What, WireKind};
use everett_vmm::wire::log::{FrameStep, FrameStepKind};
use everett_vmm::wire::summary::{Payload, Summary};

use everett_world_file::{Ready, World};

/// First port of Linux's range for clients (`ip_local_port_range`).
const CLIENT_PORTS: u16 = 32_768;
const FIN: u8 = 1;
const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;
/// ICMP types of an echo reply and an echo request (RFC 792).
const ECHO_REPLY: u8 = 0;
const ECHO: u8 = 8;

/// Returns true if this step is the first arrival of a message. The step must come from a log that `Wire::close_log`
/// has not closed. In that log, [`FrameStepKind::Timeout`] means that the message arrived late. `close_log` adds steps
/// of the same kind for messages that have not arrived, because they are late or held by a fault.
pub(super) fn arrives(kind: FrameStepKind) -> bool {
    match kind {
        FrameStepKind::Deliver | FrameStepKind::Timeout => true,
        FrameStepKind::Duplicate | FrameStepKind::Drop { .. } => false,
    }
}

/// Names of services, by the TCP port of the service's readiness check.
#[derive(Debug, Clone, Default)]
pub(super) struct Ports(BTreeMap<u16, String>);

impl Ports {
    pub(super) fn of(world: &World) -> Ports {
        let services = world.nodes.iter().flat_map(|node| &node.services);
        let named = services.filter_map(|service| match &service.ready {
            Some(Ready::Tcp(talk)) => Some((talk.tcp, service.name.clone())),
            _ => None,
        });
        Ports(named.collect())
    }

    /// Describes the direction and the service of a message: `to` or `from`, then the service's name or port.
    fn name(&self, from: u16, to: u16) -> String {
        let of = |port: u16| self.0.get(&port).cloned().unwrap_or_else(|| format!("port {port}"));
        let answers = match (self.0.contains_key(&from), self.0.contains_key(&to)) {
            (true, false) => true,
            (false, true) => false,
            _ => from < CLIENT_PORTS && to >= CLIENT_PORTS,
        };
        if answers { format!("from {}", of(from)) } else { format!("to {}", of(to)) }
    }

    /// Returns the observation for coverage, if the step is a message between two of the world's `nodes` nodes.
    pub(super) fn observed(&self, step: &FrameStep, nodes: usize) -> Option<Observed> {
        let (from, to) = (u16::from(step.from), u16::from(step.to?));
        if usize::from(from) >= nodes || usize::from(to) >= nodes {
            return None;
        }
        let kind = match step.kind {
            FrameStepKind::Deliver => WireKind::Deliver,
            FrameStepKind::Duplicate => WireKind::Duplicate,
            FrameStepKind::Drop { .. } => WireKind::Drop,
            FrameStepKind::Timeout => WireKind::Timeout,
        };
        let what = What::Wire { kind, from, to, message: None, summary: self.message(&step.summary)? };
        Some(Observed { vtime_ns: step.vtime, node: None, what })
    }

    /// Describes the type of a message, or returns `None` if coverage does not observe it.
    fn message(&self, summary: &Summary) -> Option<String> {
        let Summary::Ip { payload, .. } = summary else { return None };
        match payload {
            Payload::Tcp { from_port, to_port, flags, len, .. } => {
                let what = match flags {
                    flags if flags & RST != 0 => "reset",
                    flags if flags & SYN != 0 => "open",
                    _ if *len > 0 => "data",
                    flags if flags & FIN != 0 => "close",
                    _ => return None,
                };
                Some(format!("tcp {what} {}", self.name(*from_port, *to_port)))
            }
            Payload::Udp { from_port, to_port, .. } => {
                Some(format!("udp {}", self.name(*from_port, *to_port)))
            }
            Payload::Icmp { v6: false, kind: ECHO | ECHO_REPLY, .. } => Some("ping".to_owned()),
            Payload::Icmp { .. } | Payload::Fragment | Payload::Other { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;

    use everett_vmm::wire::log::DropReason;

    use super::*;
    use everett_world_file::parse;

    #[test]
    fn messages_are_identified_by_service_and_direction() {
        let text = "[[node]]\nname = \"a\"\n[[node.service]]\nname = \"db\"\nargv = [\"x\"]\nready = { tcp = 6379 }\n";
        let ports = Ports::of(&parse(text, Path::new("w.toml")).unwrap());
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let tcp = |from_port, to_port, flags, len| {
            let payload = Payload::Tcp { from_port, to_port, flags, seq: 1, ack: 2, len };
            ports.message(&Summary::Ip { from: ip, to: ip, payload })
        };
        assert_eq!(tcp(40_000, 6379, SYN, 0).as_deref(), Some("tcp open to db"));
        assert_eq!(tcp(6379, 40_000, 0b1_1000, 7).as_deref(), Some("tcp data from db"));
        assert_eq!(tcp(6379, 40_000, 0b1_0000, 0), None, "an acknowledgment is no message");
        assert_eq!(tcp(40_000, 2380, FIN | 0b1_0000, 0).as_deref(), Some("tcp close to port 2380"));
        assert_eq!(tcp(2380, 40_000, RST, 0).as_deref(), Some("tcp reset from port 2380"));
        assert_eq!(ports.message(&Summary::Other { ether_type: 0x88cc }), None);
    }

    #[test]
    fn a_message_arrives_once() {
        assert!(arrives(FrameStepKind::Deliver) && arrives(FrameStepKind::Timeout));
        assert!(
            !arrives(FrameStepKind::Duplicate) && !arrives(FrameStepKind::Drop { why: DropReason::Loss })
        );
    }
}
