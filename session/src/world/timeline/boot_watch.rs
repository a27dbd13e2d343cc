//! Detection of services that end again and again while a world boots.
//!
//! A service with a restart policy may end a few times while it waits for another service, so its ends alone prove
//! nothing. [`BootWatch`] gives up a boot if a service ends several times in a row in the same way and one of these
//! holds:
//!
//! - Every other service ends again and again as well.
//! - Nothing in the world has printed anything new for a while.
//! - The equal ends have gone on for longer than the time limit of every readiness check.
//!
//! The result is a function of the events before *ready*, when all services are up. Moments do not store a `BootWatch`,
//! because they lie at *ready* or later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use everett_input::units::show_duration_ns;

use crate::guest::agent_script::AgentScript;
use crate::world::event::{Event, What};

/// Time of silence after which a boot is given up, in nanoseconds of vtime. A new line, an end that differs from the
/// service's previous end, or a new phase of a node's boot ends the silence. Servers that create their database are
/// silent for several seconds.
const QUIET_NS: u64 = 15_000_000_000;
/// Number of equal ends in a row after which Everett tells the operator.
const TOLD_AT: u32 = 3;
/// Maximum number of different lines to remember during a boot. After that, every unknown line counts as new.
const SEEN_MAX: usize = 1 << 16;
/// Number of last lines to keep for each service.
const TAIL_LINES: usize = 10;
/// Maximum length of a kept line, in characters.
const TAIL_CHARS_MAX: usize = 200;
const NS_PER_MS: u64 = 1_000_000;

/// Observer of a boot that looks for services that end again and again.
#[derive(Debug)]
pub(super) struct BootWatch {
    /// Number of equal ends in a row that is too many. 0 allows any number.
    limit: u32,
    /// Longest time limit of any readiness check, in nanoseconds of vtime.
    longest_limit_ns: u64,
    /// Ends of services, by node and service name.
    services: BTreeMap<(String, String), Ends>,
    /// Digests of all lines and exit statuses so far, each hashed with the names of its node and service. In lines, `#`
    /// replaces each word that has a digit.
    seen: BTreeSet<[u8; 8]>,
    /// Vtime of the last change, in nanoseconds: a new line, an end that differs from the service's previous end, or a
    /// new phase of a node's boot.
    changed_ns: u64,
}

/// Ends of one service.
#[derive(Debug, Default)]
struct Ends {
    /// Number of all ends.
    count: u32,
    /// Number of equal ends in a row, including the latest end.
    alike: u32,
    /// Vtimes of the first and last of the equal ends, in nanoseconds.
    first_ns: u64,
    last_ns: u64,
    /// Digest of the last end: its status and the lines before it. In lines, `#` replaces each word that has a digit.
    last: [u8; 8],
    status: String,
    /// Hash of the lines since the last start.
    lines: blake3::Hasher,
    tail: VecDeque<String>,
    /// True if the service has ended and printed no line since.
    is_over: bool,
}

/// A service that keeps the world from becoming ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hopeless {
    /// Name of the node.
    pub(super) node: String,
    /// Reason, as a clause with subject and verb.
    pub(super) why: String,
}

impl BootWatch {
    /// Creates the observer for a world with these agent scripts (the requests to each node's agent). `limit` equal
    /// ends in a row are too many; 0 allows any number.
    pub(super) fn new<'p>(scripts: impl Iterator<Item = &'p AgentScript>, limit: u32) -> BootWatch {
        let (mut services, mut longest_limit_ns) = (BTreeMap::new(), 0);
        for script in scripts {
            for service in &script.services {
                services.insert((script.node.clone(), service.name.clone()), Ends::default());
                let limit_ms = service.ready.as_ref().map_or(0, |ready| ready.limit_ms);
                longest_limit_ns = longest_limit_ns.max(limit_ms.saturating_mul(NS_PER_MS));
            }
        }
        BootWatch { limit, longest_limit_ns, services, seen: BTreeSet::new(), changed_ns: 0 }
    }

    /// Takes events of the boot in order. Returns lines for the operator.
    pub(super) fn note(&mut self, events: &[Event]) -> Vec<String> {
        events.iter().filter_map(|event| self.note_one(event)).collect()
    }

    fn note_one(&mut self, event: &Event) -> Option<String> {
        match &event.what {
            What::Hello { .. } | What::Mounted | What::Ready => self.changed_ns = event.vtime_ns,
            What::Line { unit, text, .. } => {
                let shape = shape(text);
                self.see(event.vtime_ns, &[&event.node, unit, &shape]);
                if let Some(ends) = self.services.get_mut(&(event.node.clone(), unit.clone())) {
                    ends.line(text, &shape);
                }
            }
            What::Exit { unit, status, .. } => {
                self.see(event.vtime_ns, &[&event.node, unit, "", status]);
                let ends = self.services.get_mut(&(event.node.clone(), unit.clone()))?;
                if !ends.end(status, event.vtime_ns) {
                    self.changed_ns = event.vtime_ns;
                }
                if ends.alike == TOLD_AT {
                    return Some(ends.told(&event.node, unit));
                }
            }
            _ => {}
        }
        None
    }

    /// Records a line or exit status, which may be new.
    fn see(&mut self, vtime_ns: u64, parts: &[&str]) {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let is_known = self.seen.contains(&short(&hasher));
        if !is_known {
            self.changed_ns = vtime_ns;
            if self.seen.len() < SEEN_MAX {
                self.seen.insert(short(&hasher));
            }
        }
    }

    /// Returns a service that ends again and again and keeps the world from becoming ready.
    pub(super) fn hopeless(&self) -> Option<Hopeless> {
        if self.limit == 0 {
            return None;
        }
        let has_enough = |ends: &Ends| ends.alike >= self.limit;
        let all_end = self.services.values().all(has_enough);
        let given_up = self.services.iter().find(|(_, ends)| {
            let quiet_ns = ends.last_ns.saturating_sub(self.changed_ns);
            let row_ns = ends.last_ns.saturating_sub(ends.first_ns);
            let is_late = self.longest_limit_ns > 0 && row_ns >= self.longest_limit_ns;
            has_enough(ends) && (all_end || quiet_ns >= QUIET_NS || is_late)
        });
        let ((node, service), ends) = given_up?;
        let why = format!(
            "service {service} has ended {} times in a row with {} and the same lines, for {}; mend it, or allow more ends \
             with start_limit",
            ends.alike,
            ends.status,
            show_duration_ns(ends.last_ns.saturating_sub(ends.first_ns)),
        );
        Some(Hopeless { node: node.clone(), why })
    }

    /// Describes how often the services of a node have ended, as a clause. Returns `None` if none has.
    pub(super) fn ends_of(&self, node: &str) -> Option<String> {
        let of_node = self.services.iter().filter(|((of, _), ends)| of == node && ends.count > 0);
        let ends: Vec<String> = of_node
            .map(|((_, service), ends)| {
                let times = if ends.count == 1 { "once".to_owned() } else { format!("{} times", ends.count) };
                format!("{service} has ended {times}, the last time with {}", ends.status)
            })
            .collect();
        (!ends.is_empty()).then(|| ends.join(", "))
    }

    /// Returns the last lines of the node's services that have ended, or of all its services if none has.
    pub(super) fn last_lines(&self, node: &str) -> Vec<String> {
        let of_node = || self.services.iter().filter(|((of, _), _)| of == node);
        let has_ended = of_node().any(|(_, ends)| ends.count > 0);
        let of_node = of_node().filter(|(_, ends)| ends.count > 0 || !has_ended);
        of_node
            .flat_map(|((_, service), ends)| ends.tail.iter().map(move |line| format!("{service}: {line}")))
            .collect()
    }
}

impl Ends {
    fn line(&mut self, text: &str, shape: &str) {
        if std::mem::take(&mut self.is_over) {
            self.tail.clear();
        }
        self.lines.update(&(shape.len() as u64).to_le_bytes());
        self.lines.update(shape.as_bytes());
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(text.chars().take(TAIL_CHARS_MAX).collect());
    }

    /// Counts an end. Returns true if it equals the service's previous end.
    fn end(&mut self, status: &str, vtime_ns: u64) -> bool {
        let mut hasher = std::mem::take(&mut self.lines);
        hasher.update(status.as_bytes());
        let (last, is_first) = (short(&hasher), self.count == 0);
        let is_alike = !is_first && last == self.last;
        self.count = self.count.saturating_add(1);
        self.alike = if is_alike { self.alike.saturating_add(1) } else { 1 };
        if !is_alike {
            self.first_ns = vtime_ns;
        }
        (self.last_ns, self.last, self.is_over) = (vtime_ns, last, true);
        status.clone_into(&mut self.status);
        is_alike
    }

    fn told(&self, node: &str, service: &str) -> String {
        let line = self.tail.back().map_or(String::new(), |line| format!("; its last line: {line}"));
        format!(
            "node {node}: service {service} has ended {TOLD_AT} times in a row with {} and is restarted{line}",
            self.status
        )
    }
}

fn short(hasher: &blake3::Hasher) -> [u8; 8] {
    let mut digest = [0; 8];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

/// Replaces each word that has a digit with `#`. Times, addresses and process numbers differ from start to start.
fn shape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let mut has_digit = false;
    for c in text.chars().chain(std::iter::once(' ')) {
        if c.is_alphanumeric() {
            has_digit |= c.is_ascii_digit();
            word.push(c);
            continue;
        }
        out.push_str(if has_digit { "#" } else { &word });
        out.push(c);
        (has_digit, word) = (false, String::new());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::conversation::tests::script;
    use crate::world::event::StreamName;

    const S: u64 = 1_000_000_000;

    /// Returns the observer of a world with these nodes and services. Readiness checks have a limit of 60 s.
    fn watch(nodes: &[(&str, &[&str])], limit: u32) -> BootWatch {
        let scripts: Vec<AgentScript> = nodes
            .iter()
            .map(|(node, services)| {
                let mut script = script();
                let like = script.services[0].clone();
                (*node).clone_into(&mut script.node);
                script.services = services
                    .iter()
                    .map(|name| {
                        let mut service = like.clone();
                        (*name).clone_into(&mut service.name);
                        service
                    })
                    .collect();
                script
            })
            .collect();
        let mut watch = BootWatch::new(scripts.iter(), limit);
        watch.longest_limit_ns = 60 * S;
        watch
    }

    fn line(at: u64, node: &str, unit: &str, text: &str) -> Event {
        let (unit, text) = (unit.to_owned(), text.to_owned());
        let what = What::Line { unit, stream: StreamName::Stdout, text, truncated: false };
        Event { vtime_ns: at, node: node.to_owned(), what }
    }

    fn exit(at: u64, node: &str, unit: &str, status: i32) -> Event {
        let status = format!("exit status {status}");
        let what = What::Exit { unit: unit.to_owned(), status, success: false };
        Event { vtime_ns: at, node: node.to_owned(), what }
    }

    /// Reports an end of the service every 200 ms from `from` on. Returns the number of ends after which the boot was
    /// given up.
    fn ends_until_given_up(watch: &mut BootWatch, from: u64, ends: u32) -> Option<u32> {
        (1..=ends).find(|number| {
            let at = from + u64::from(*number) * S / 5;
            watch.note(&[
                line(at, "a", "app", &format!("{at} no database at 0x{at:x}")),
                exit(at, "a", "app", 1),
            ]);
            watch.hopeless().is_some()
        })
    }

    #[test]
    fn a_lone_service_that_ends_alike_is_given_up_after_the_limit() {
        let mut watch = watch(&[("a", &["app"])], 5);
        let told = watch.note(&[exit(1, "a", "app", 3), exit(2, "a", "app", 1), exit(3, "a", "app", 1)]);
        assert!(told.is_empty());
        assert_eq!(ends_until_given_up(&mut watch, S, 100), Some(5));
        let Hopeless { node, why } = watch.hopeless().unwrap();
        assert_eq!(node, "a");
        assert_eq!(
            why,
            "service app has ended 5 times in a row with exit status 1 and the same lines, for 800 ms; mend it, or allow \
             more ends with start_limit"
        );
        assert_eq!(watch.last_lines("a"), ["app: 2000000000 no database at 0x77359400"]);
        assert_eq!(
            watch.ends_of("a").as_deref(),
            Some("app has ended 8 times, the last time with exit status 1")
        );
    }

    #[test]
    fn the_operator_is_told_once() {
        let mut watch = watch(&[("a", &["app"])], 0);
        let events: Vec<Event> =
            (1..9).flat_map(|at| [line(at, "a", "app", "no"), exit(at, "a", "app", 1)]).collect();
        assert_eq!(
            watch.note(&events),
            [
                "node a: service app has ended 3 times in a row with exit status 1 and is restarted; its last line: no"
            ]
        );
        assert_eq!(ends_until_given_up(&mut watch, S, 10_000), None, "0 is no limit");
    }

    #[test]
    fn nodes_that_all_end_alike_do_not_wait_for_each_other() {
        let mut watch = watch(&[("a", &["app"]), ("b", &["app"])], 5);
        for at in 1..5 {
            watch.note(&[exit(at, "b", "app", 1), exit(at, "b", "app", 1)]);
        }
        assert_eq!(ends_until_given_up(&mut watch, S, 100), Some(5));
    }

    #[test]
    fn a_service_may_end_while_another_one_makes_progress() {
        let mut watch = watch(&[("a", &["app"]), ("db", &["db"])], 5);
        // The database prints a new line every 10 s.
        for step in 0..5 {
            let text = ["making", "filling", "checking", "starting", "recovering"][step as usize];
            watch.note(&[line(step * 10 * S, "db", "db", text)]);
            assert_eq!(ends_until_given_up(&mut watch, step * 10 * S, 49), None, "{text}");
        }
        // From here on the database only repeats an old line, which is not new.
        watch.note(&[line(50 * S, "db", "db", "making")]);
        let ends = ends_until_given_up(&mut watch, 50 * S, 500).unwrap();
        assert_eq!(ends, 25, "15 s after the last new line at 40 s");
    }

    #[test]
    fn new_lines_of_others_do_not_help_beyond_all_limits() {
        let mut watch = watch(&[("a", &["app"]), ("b", &["chatty"])], 5);
        let words = ["x", "y", "z"];
        let given_up = (1..1_000_u64).find(|second| {
            let text = format!("{}{}", words[0].repeat(*second as usize), words[1]);
            watch.note(&[line(second * S, "b", "chatty", &text), exit(second * S, "a", "app", 1)]);
            watch.hopeless().is_some()
        });
        assert_eq!(given_up, Some(61));
    }

    #[test]
    fn ends_that_differ_are_never_too_many() {
        let mut watch = watch(&[("a", &["app"])], 5);
        for at in 1..1_000_u64 {
            let text = if at % 4 == 0 { "step done" } else { "step not done" };
            watch.note(&[line(at * S, "a", "app", text), exit(at * S, "a", "app", 1)]);
            assert_eq!(watch.hopeless(), None);
        }
    }

    #[test]
    fn words_with_digits_do_not_count() {
        assert_eq!(shape("at 0x7f3a: pid 12, x1y"), "at #: pid #, # ");
        assert_eq!(shape("Error"), shape("Error"));
        assert_ne!(shape("Error a"), shape("Error b"));
    }
}
