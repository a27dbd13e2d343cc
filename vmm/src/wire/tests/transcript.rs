//! Transcripts: scenarios of a wire as text, with one line for each event.
//!
//! A line begins with a vtime. What follows is an action, or `>` and what the wire does:
//!
//! ```text
//! 0         n0 sends 1 to n1                     100 bytes from card n0 to card n1; the frame is called 1
//! 0         n0 sends 2 to all, 60 bytes
//! 0         n1 sends 3 to n0 as n9               with another source address than the card's
//! 5         fault 1: partition n0>n1 hold        or `drop`, `slow`; `all` in place of `n0>n1`
//! 5         fault 2: latency all 1s
//! 5         fault 3: bandwidth all 800000
//! 5         fault 4: clog n1
//! 5         fault 5: duplicate all 1000000       the probability in millionths
//! 9         fault 1 ends
//! 9         all faults end
//! 9         n0 loses power
//! 9         n0 gets power
//! 9         the log closes                       each held or late frame: `> 1 to n2 has timed out`
//! 9         next is 200us+1, 3 frames on the way   next arrival, and number of frames
//! 200us+1   > n1 gets 1                          or `> n1 gets a copy of 1`, or `> n1 gets 1 late`
//! 200us+1   > 1 to n2 is lost: Partition         the reason is the name of a `DropReason`
//! end       > 3 frames remain                    frames that a fault still holds after the last event
//! ```
//!
//! *The log* is the wire's record of what became of each frame. When it closes, it records the outcome "timed out" for
//! frames that a fault holds and for frames that were sent at least `TIMEOUT_NS` before.
//!
//! vtimes are sums of `s`, `ms`, `us` and nanoseconds. [`check`] runs the actions and compares the whole transcript.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use everett_fault::PartitionMode;

use super::*;

/// Units of vtimes.
const UNITS: [(u64, &str); 4] = [(S, "s"), (MS, "ms"), (1_000, "us"), (1, "")];

/// Runs the actions of `expected` on a wire, and checks that `expected` is the transcript.
#[track_caller]
pub(super) fn check(wire: Wire, expected: &str) {
    check_from(wire, 0, expected);
}

/// Like [`check`], but first lets each port tell the switch its address. vtimes count from the end of this preparation.
#[track_caller]
pub(super) fn check_taught(mut wire: Wire, expected: &str) {
    let start = teach(&mut wire);
    check_from(wire, start, expected);
}

#[track_caller]
fn check_from(wire: Wire, start: u64, expected: &str) {
    let lines = expected.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(' ').map(|(at, rest)| (at, rest.trim())).expect("a vtime"))
        .collect();
    let mut run = Run { wire, start, sent: BTreeMap::new(), lines: vec![] };
    for (at, action) in lines.iter().filter(|(_, rest)| !rest.starts_with('>')) {
        run.act(start + parse_ns(at), action);
    }
    run.finish();
    let actual: Vec<(&str, &str)> = run.lines.iter().map(|(at, rest)| (&**at, &**rest)).collect();
    if actual != lines {
        let text = actual.iter().fold(String::new(), |mut text, (at, rest)| {
            let _ = writeln!(text, "    {at:<16} {rest}");
            text
        });
        panic!("the transcript is\n{text}and not\n{expected}");
    }
}

/// Frame that was sent.
struct Sent {
    name: u32,
    at: u64,
    bytes: Vec<u8>,
}

/// Scenario that is being run.
struct Run {
    wire: Wire,
    /// vtime from which the transcript counts.
    start: u64,
    /// Frames by their numbers.
    sent: BTreeMap<u64, Sent>,
    /// Transcript so far: vtimes and events.
    lines: Vec<(String, String)>,
}

impl Run {
    fn note(&mut self, at: u64, event: String) {
        self.lines.push((show_ns(at - self.start), event));
    }

    /// Fetches all arrivals up to `until`, and notes them and the losses.
    fn fetch(&mut self, until: u64) {
        let mut deliveries = drain(&mut self.wire, until).into_iter();
        for step in self.wire.take_steps() {
            let Sent { name, at, bytes } = &self.sent[&step.frame];
            assert_eq!((step.sent_at, step.len as usize), (*at, bytes.len()), "frame {name}");
            let to = step.to.map(|to| format!(" to n{to}")).unwrap_or_default();
            let port = step.to.unwrap_or(u8::MAX);
            let event = match step.kind {
                FrameStepKind::Deliver => format!("> n{port} gets {name}"),
                FrameStepKind::Duplicate => format!("> n{port} gets a copy of {name}"),
                FrameStepKind::Timeout => format!("> n{port} gets {name} late"),
                FrameStepKind::Drop { why } => format!("> {name}{to} is lost: {why:?}"),
            };
            if !matches!(step.kind, FrameStepKind::Drop { .. }) {
                let delivery = Delivery { at: step.vtime, port, frame: step.frame, bytes: bytes.clone() };
                assert_eq!(deliveries.next(), Some(delivery), "the log and the deliveries differ");
                assert!(step.vtime >= at + self.wire.lookahead_ns(), "frame {name} is too early");
            }
            self.note(step.vtime, event);
        }
        assert_eq!(deliveries.next(), None, "the log and the deliveries differ");
    }

    /// Carries out an action after all arrivals of its vtime.
    fn act(&mut self, at: u64, action: &str) {
        self.fetch(at);
        let words: Vec<&str> = action.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        if let ["next", "is", ..] = words[..] {
            let next = self.wire.next_delivery().map_or("none".to_owned(), |next| show_ns(next - self.start));
            let event = format!("next is {next}, {} frames on the way", self.wire.frames_on_way());
            return self.note(at, event);
        }
        self.note(at, action.to_owned());
        match words[..] {
            [from, "sends", name, "to", to, ref how @ ..] => self.send(at, port(from), name, to, how),
            ["fault", id, ref what @ ..] if id.ends_with(':') => {
                self.wire.apply(number(id.trim_end_matches(':')), &fault(what), at).unwrap();
            }
            ["fault", id, "ends"] => {
                assert!(self.wire.heal(number(id), at), "fault {id} is active");
                assert!(!self.wire.heal(number(id), at), "fault {id} has ended");
            }
            ["all", "faults", "end"] => self.wire.heal_all(at),
            [node, "loses", "power"] => self.wire.detach(port(node), at),
            [node, "gets", "power"] => self.wire.attach(port(node), at),
            ["the", "log", "closes"] => self.close_log(at),
            _ => panic!("no action: {action}"),
        }
        assert_eq!(stored(&self.wire), self.wire, "after {action}");
        self.fetch(at);
    }

    fn send(&mut self, at: u64, from: u8, name: &str, to: &str, how: &[&str]) {
        let to = if to == "all" { BROADCAST } else { mac(port(to)) };
        let (source, len) = match *how {
            [] => (from, 100),
            [len, "bytes"] => (from, number(len)),
            ["as", node] => (port(node), 100),
            _ => panic!("no frame: {how:?}"),
        };
        let name = number(name);
        let bytes = frame(to, mac(source), len, name);
        let frame = self.wire.send(from, at, bytes.clone());
        self.sent.insert(frame, Sent { name, at, bytes });
    }

    fn close_log(&mut self, at: u64) {
        let before = self.wire.clone();
        self.wire.close_log(at);
        assert_eq!(self.wire, before, "the log is not state");
        for step in self.wire.take_steps() {
            assert_eq!((step.kind, step.vtime), (FrameStepKind::Timeout, at));
            let event = format!("> {} to n{} has timed out", self.sent[&step.frame].name, step.to.unwrap());
            self.note(at, event);
        }
    }

    /// Fetches all arrivals that are still to come without further actions, and notes how many frames remain.
    fn finish(&mut self) {
        self.fetch(u64::MAX);
        match self.wire.frames_on_way() {
            0 => (),
            frames => self.lines.push(("end".to_owned(), format!("> {frames} frames remain"))),
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

fn port(node: &str) -> u8 {
    number(node.strip_prefix('n').unwrap_or_else(|| panic!("no node: {node}")))
}

fn fault(words: &[&str]) -> NetworkFault {
    let links = |links: &str| match links.split_once('>') {
        Some((from, to)) => one_way(from, to),
        None => {
            assert_eq!(links, "all");
            Links::all()
        }
    };
    match *words {
        ["partition", between, mode] => {
            let mode = match mode {
                "drop" => PartitionMode::Drop,
                "hold" => PartitionMode::Hold,
                "slow" => PartitionMode::Slow,
                _ => panic!("no mode: {mode}"),
            };
            NetworkFault::Partition { links: links(between), mode }
        }
        ["latency", on, extra] => {
            NetworkFault::Latency { links: links(on), extra: Distribution::Constant(parse_ns(extra)) }
        }
        ["bandwidth", on, rate] => NetworkFault::Bandwidth { links: links(on), bits_per_s: number(rate) },
        ["duplicate", on, ppm] => NetworkFault::Duplicate { links: links(on), ppm: number(ppm) },
        ["clog", node] => NetworkFault::Clog { node: node.to_owned() },
        _ => panic!("no fault: {words:?}"),
    }
}

/// Reads a vtime or a duration, e.g. `5s+200us+1`.
fn parse_ns(text: &str) -> u64 {
    let part = |part: &str| {
        let (ns, digits) = UNITS
            .iter()
            .find_map(|(ns, unit)| {
                part.strip_suffix(unit).filter(|rest| rest.parse::<u64>().is_ok()).map(|rest| (ns, rest))
            })
            .unwrap_or_else(|| panic!("no vtime: {part}"));
        ns * number::<u64>(digits)
    };
    text.split('+').map(part).sum()
}

/// Writes a vtime as [`parse_ns`] reads it.
fn show_ns(ns: u64) -> String {
    let mut rest = ns;
    let mut parts = vec![];
    for (unit, name) in UNITS {
        if rest >= unit {
            parts.push(format!("{}{name}", rest / unit));
            rest %= unit;
        }
    }
    if parts.is_empty() { "0".to_owned() } else { parts.join("+") }
}
