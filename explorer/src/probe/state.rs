//! State of the probes on a branch, and the judgement of each hit.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{ProbeConfig, Scope};
use super::limits::PROCESSES_MAX;
use crate::coverage::Capture;

/// Hit of a probe. Values that could not be read are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeHit<'h> {
    /// Number of the probe.
    pub probe: u16,
    /// Index of the node.
    pub node: u16,
    /// The process. `None` for code of the kernel.
    pub process: Option<Process>,
    /// Value as an integer. `None` if the probe has no value, if it cannot be read, or if it is no integer.
    pub number: Option<i128>,
    /// Value as text.
    pub text: Option<&'h str>,
    /// Value of `always`.
    pub holds: Option<bool>,
}

/// Process in which a probe hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Process ID.
    pub pid: u32,
    /// Address of the process's address space in its kernel, which tells a process from a later one with its ID.
    pub memory: u64,
}

/// Effects of a hit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Effects {
    /// Text of the violation, if the hit violates the probe.
    pub violated: Option<String>,
    /// New value of the state variable, if it has changed.
    pub variable: Option<String>,
    /// True if this is the first hit of the probe on the path that could be judged, or the first of all hits if the probe is
    /// wanted, and the declaration wants it noted.
    pub is_first: bool,
    /// True if the value was compared with no earlier one, because there are too many processes.
    pub is_unfollowed: bool,
}

/// Summary of the earlier hits on a path, which a branch inherits from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeState {
    /// Last value by probe, node and process. The process is `None` for values of nodes, and 0 for the kernel's.
    last: BTreeMap<(u16, u16, Option<u32>), (u64, i128)>,
    /// Text of the state variable by probe and node.
    shown: BTreeMap<(u16, u16), String>,
    /// Probes that have hit, if their first hit is noted.
    reached: BTreeSet<u16>,
}

impl ProbeState {
    /// Judges a hit of a probe, and remembers its values.
    pub fn judge(&mut self, config: &ProbeConfig, hit: &ProbeHit<'_>) -> Effects {
        let mut effects = Effects::default();
        if config.never {
            effects.violated = Some("was reached".to_owned());
        }
        if let (Some(expression), Some(false)) = (&config.always, hit.holds) {
            effects.violated = Some(format!("{expression} is 0"));
        }
        if let (Some(scope), Some(number)) = (config.never_decreases, hit.number) {
            match self.follow(scope, hit, number) {
                Followed::After(before) if before > number => {
                    effects.violated = Some(format!("decreased from {before} to {number}"));
                }
                Followed::After(_) | Followed::First => {}
                Followed::TooMany => effects.is_unfollowed = true,
            }
        }
        if let (Some(capture), Some(text)) = (config.state, hit.text) {
            let number = hit.number.filter(|number| *number >= 0).map(|number| number.to_string());
            let shown = if capture == Capture::Exact { Some(text.to_owned()) } else { number };
            let key = (hit.probe, hit.node);
            if let Some(new) = shown.filter(|new| self.shown.get(&key) != Some(new)) {
                self.shown.insert(key, new.clone());
                effects.variable = Some(new);
            }
        }
        let is_judged = config.always.is_some() && hit.holds.is_some()
            || config.never_decreases.is_some() && hit.number.is_some();
        effects.is_first =
            config.notes_first_hit() && (config.sometimes || is_judged) && self.reached.insert(hit.probe);
        effects
    }

    /// Forgets the state variable of a node, whose new value could not be reported.
    pub fn forget_variable(&mut self, probe: u16, node: u16) {
        self.shown.remove(&(probe, node));
    }

    /// Remembers a value. Returns the value before it.
    fn follow(&mut self, scope: Scope, hit: &ProbeHit<'_>, number: i128) -> Followed {
        let (pid, memory) = match (scope, hit.process) {
            (Scope::Node, _) => (None, 0),
            (Scope::Process, None) => (Some(0), 0),
            (Scope::Process, Some(process)) => (Some(process.pid), process.memory),
        };
        let key = (hit.probe, hit.node, pid);
        if pid.is_some_and(|pid| pid != 0) && !self.last.contains_key(&key) && self.is_full(hit.probe) {
            return Followed::TooMany;
        }
        let before = self.last.insert(key, (memory, number));
        let before = before.filter(|(other, _)| *other == memory);
        before.map_or(Followed::First, |(_, number)| Followed::After(number))
    }

    /// True if a probe has values of as many processes as are remembered.
    fn is_full(&self, probe: u16) -> bool {
        // Those of all probes are at least as many, and need no search.
        if self.last.len() < PROCESSES_MAX {
            return false;
        }
        let of_probe = self.last.range((probe, 0, None)..=(probe, u16::MAX, Some(u32::MAX)));
        let is_process = |(_, _, pid): &(u16, u16, Option<u32>)| pid.is_some_and(|pid| pid != 0);
        of_probe.filter(|(key, _)| is_process(key)).count() >= PROCESSES_MAX
    }

    /// Forgets the values of a process on a node, which has loaded another program.
    pub fn loaded(&mut self, node: u16, pid: u32) {
        self.last.retain(|(_, of, other), _| (*of, *other) != (node, Some(pid)) || pid == 0);
    }

    /// Forgets the values of all processes of a node and its state variables, because the node has lost its memory.
    pub fn lost_memory(&mut self, node: u16) {
        self.last.retain(|(_, of, pid), _| *of != node || pid.is_none());
        self.shown.retain(|(_, of), _| *of != node);
    }
}

/// Value before another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    /// There is none.
    First,
    /// The value.
    After(i128),
    /// It is not known, because there are too many processes.
    TooMany,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> ProbeConfig {
        toml::from_str(&format!("name = \"p\"\nat = \"a:f\"\nvalue = \"x\"\n{text}")).unwrap()
    }

    fn hit(node: u16, process: Option<(u32, u64)>, number: i128) -> ProbeHit<'static> {
        let process = process.map(|(pid, memory)| Process { pid, memory });
        ProbeHit { probe: 0, node, process, number: Some(number), text: None, holds: None }
    }

    #[test]
    fn a_counter_is_compared_within_its_process() {
        let (config, mut state) = (config("never_decreases = \"process\""), ProbeState::default());
        let mut violated = |hit| state.judge(&config, &hit).violated.is_some();
        assert!(!violated(hit(0, Some((5, 1)), 9)));
        assert!(!violated(hit(0, Some((5, 1)), 9)));
        assert!(!violated(hit(1, Some((5, 1)), 3)), "another node");
        assert!(!violated(hit(0, Some((6, 1)), 3)), "another process");
        assert!(!violated(ProbeHit { number: None, ..hit(0, Some((5, 1)), 0) }), "an unknown value");
        assert!(violated(hit(0, Some((5, 1)), 8)));
        assert!(!violated(hit(0, Some((5, 2)), 1)), "a later process with this ID");
        state.loaded(0, 5);
        assert_eq!(state.judge(&config, &hit(0, Some((5, 2)), 0)).violated, None);
        state.lost_memory(0);
        assert_eq!(state.judge(&config, &hit(0, Some((5, 2)), -1)).violated, None);
    }

    #[test]
    fn a_value_of_a_node_outlives_its_processes() {
        let (config, mut state) = (config("never_decreases = \"node\""), ProbeState::default());
        assert_eq!(state.judge(&config, &hit(0, Some((5, 1)), 9)).violated, None);
        state.loaded(0, 5);
        state.lost_memory(0);
        let effects = state.judge(&config, &hit(0, Some((7, 3)), 8));
        assert_eq!(effects.violated.as_deref(), Some("decreased from 9 to 8"));
    }

    #[test]
    fn a_state_variable_is_reported_when_it_changes() {
        let (config, mut state) = (config("state = \"relative\"\nsometimes = true"), ProbeState::default());
        let mut of = |node, text, number| {
            let hit = ProbeHit { text: Some(text), number, ..hit(node, None, 0) };
            let effects = state.judge(&config, &hit);
            (effects.variable, effects.is_first)
        };
        assert_eq!(of(0, "3", Some(3)), (Some("3".to_owned()), true));
        assert_eq!(of(0, "3", Some(3)), (None, false));
        assert_eq!(of(1, "3", Some(3)), (Some("3".to_owned()), false));
        assert_eq!(of(1, "-3", Some(-3)), (None, false), "ranks are of numbers without a sign");
        assert_eq!(of(1, "x", None), (None, false));
        assert_eq!(of(1, "LEADER", Some(2)), (Some("2".to_owned()), false), "the number of a name");
        state.lost_memory(1);
        assert_eq!(
            state.judge(&config, &ProbeHit { text: Some("3"), ..hit(1, None, 3) }).variable.as_deref(),
            Some("3")
        );
    }

    #[test]
    fn conditions_that_do_not_hold_and_forbidden_places_are_violations() {
        let mut state = ProbeState::default();
        let always = config("always = \"x > 0\"");
        let mut of = |config: &ProbeConfig, holds| {
            state.judge(config, &ProbeHit { holds, ..hit(0, None, 0) }).violated
        };
        assert_eq!(of(&always, Some(true)), None);
        assert_eq!(of(&always, None), None);
        assert_eq!(of(&always, Some(false)).as_deref(), Some("x > 0 is 0"));
        assert_eq!(of(&config("never = true"), None).as_deref(), Some("was reached"));
    }

    #[test]
    fn the_number_of_processes_is_bounded() {
        let (config, mut state) = (config("never_decreases = \"process\""), ProbeState::default());
        let most = u32::try_from(PROCESSES_MAX).unwrap();
        for pid in 1..=most + 9 {
            let effects = state.judge(&config, &hit(0, Some((pid, 1)), 1));
            assert_eq!(effects.is_unfollowed, pid > most);
        }
        assert_eq!(state.last.len(), PROCESSES_MAX);
        // Processes of another probe, the kernel, and processes that are already followed have their own place.
        let other = ProbeHit { probe: 1, ..hit(0, Some((most + 9, 1)), 1) };
        assert!(!state.judge(&config, &other).is_unfollowed);
        assert!(!state.judge(&config, &hit(3, None, 1)).is_unfollowed);
        assert!(state.judge(&config, &hit(0, Some((most, 1)), 0)).violated.is_some());
        assert!(state.judge(&config, &hit(1, Some((1, 1)), 1)).is_unfollowed, "another node");
        state.loaded(0, 7);
        assert!(!state.judge(&config, &hit(0, Some((most + 1, 1)), 1)).is_unfollowed);
        // A node's value is followed all the same.
        let of_node = self::config("never_decreases = \"node\"");
        assert_eq!(state.judge(&of_node, &hit(0, Some((7, 1)), 5)).violated, None);
        assert!(state.judge(&of_node, &hit(0, Some((8, 1)), 4)).violated.is_some());
    }

    #[test]
    fn a_counter_of_the_kernel_begins_anew_with_its_memory() {
        let (config, mut state) = (config("never_decreases = \"process\""), ProbeState::default());
        assert_eq!(state.judge(&config, &hit(0, None, 500)).violated, None);
        state.loaded(0, 0);
        assert!(state.judge(&config, &hit(0, None, 499)).violated.is_some());
        state.lost_memory(0);
        assert_eq!(state.judge(&config, &hit(0, None, 3)).violated, None);
    }

    #[test]
    fn a_hit_that_cannot_be_judged_is_not_noted() {
        let (config, mut state) = (config("always = \"x\""), ProbeState::default());
        let mut of = |holds| state.judge(&config, &ProbeHit { holds, ..hit(0, None, 0) }).is_first;
        assert_eq!((of(None), of(Some(true)), of(Some(true))), (false, true, false));
    }
}
