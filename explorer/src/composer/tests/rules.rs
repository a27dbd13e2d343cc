//! Checks that the composer, which decides when test commands start, follows its rules. A *run* is one execution of a
//! test command. The checks compare the composer's actions with the ends of runs that the test reported to it.
//!
//! The prefix of a command's name says when the command may start. Commands with the prefix `finally_` or `eventually_`
//! start after the workload and check the servers.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Observed events of a timeline, and the facts derived from them.
#[derive(Debug)]
pub(super) struct Rules<'t> {
    template: &'t Template,
    running: BTreeMap<u64, Prefix>,
    up: BTreeSet<u16>,
    last_run: Option<u64>,
    counts: BTreeMap<String, Counts>,
    /// Number of starts of each command, by the command's number.
    started: BTreeMap<usize, u64>,
    stopped_ns: Option<u64>,
    /// True if a run was killed or lost with its node, except runs of `finally_` commands.
    killed: bool,
    kill_all: bool,
}

impl<'t> Rules<'t> {
    pub(super) fn new(template: &'t Template) -> Rules<'t> {
        let names = template.commands().iter().map(|command| command.name().to_owned());
        Rules {
            template,
            running: BTreeMap::new(),
            up: (0..NODES_MAX as u16).collect(),
            last_run: None,
            counts: names.map(|name| (name, Counts::default())).collect(),
            started: BTreeMap::new(),
            stopped_ns: None,
            killed: false,
            kill_all: false,
        }
    }

    fn of(&self, is: impl Fn(Prefix) -> bool) -> usize {
        self.running.values().filter(|prefix| is(**prefix)).count()
    }

    fn starts_of(&self, is: impl Fn(Prefix) -> bool) -> u64 {
        let matching =
            self.started.iter().filter(|(number, _)| is(self.template.commands()[**number].prefix()));
        matching.map(|(_, starts)| starts).sum()
    }

    fn has(&self, prefix: Prefix) -> bool {
        self.template.commands().iter().any(|command| command.prefix() == prefix)
    }

    /// Returns true if a workload ran, so that an `eventually_` command has something to check.
    pub(super) fn worked(&self) -> bool {
        let drives = self.template.commands().iter().any(|command| command.prefix().is_driver());
        self.starts_of(|prefix| prefix.is_driver() || prefix == Prefix::Anytime && !drives) > 0
    }

    pub(super) fn start(&mut self, start: Start) {
        assert!(self.last_run.is_none_or(|last| last < start.run), "numbers of runs rise: {start:?}");
        self.last_run = Some(start.run);
        let command = &self.template.commands()[start.command];
        assert!(self.up.contains(&start.node) && command.nodes().contains(&start.node), "{start:?}");
        let (prefix, before) = (command.prefix(), self.starts_of(|_| true));
        let first = self.starts_of(|prefix| prefix == Prefix::First);
        let is_last = matches!(prefix, Prefix::Eventually | Prefix::Finally);
        assert_eq!(self.stopped_ns.is_some(), is_last, "{prefix}");
        assert_eq!(self.of(|prefix| prefix == Prefix::First), 0, "a first_ command runs alone");
        assert_eq!(
            self.of(|prefix| matches!(prefix, Prefix::Eventually | Prefix::Finally)),
            0,
            "an eventually_ or finally_ command runs alone"
        );
        assert!(prefix == Prefix::First || is_last || first == u64::from(self.has(Prefix::First)));
        let alone = self.of(|prefix| matches!(prefix, Prefix::SerialDriver | Prefix::SingletonDriver));
        match prefix {
            Prefix::First => assert_eq!(before, 0, "one first_ command runs before all others"),
            Prefix::ParallelDriver => {
                assert_eq!(alone, 0);
                assert!(self.of(|other| other == prefix) < usize::from(PARALLEL_MAX));
            }
            Prefix::SerialDriver => assert_eq!(self.of(Prefix::is_driver), 0),
            Prefix::SingletonDriver => {
                assert_eq!(self.of(Prefix::is_driver), 0);
                assert!(!self.started.contains_key(&start.command), "a singleton starts once");
            }
            Prefix::Anytime => assert!(self.of(|other| other == prefix) < usize::from(ANYTIME_MAX)),
            Prefix::Eventually => {
                assert!(self.running.is_empty() && self.worked());
                assert_eq!(self.starts_of(|other| matches!(other, Prefix::Eventually | Prefix::Finally)), 0);
            }
            Prefix::Finally => {
                assert!(self.running.is_empty() && !self.killed && !self.kill_all);
                assert_eq!(self.starts_of(|other| other == Prefix::Eventually), 0);
                // All `finally_` commands with lower numbers have started, and this command has not.
                let names = self.template.commands().iter().enumerate();
                let mut before = names.filter(|(number, c)| c.prefix() == prefix && *number <= start.command);
                assert!(
                    before.all(|(number, _)| self.started.contains_key(&number) != (number == start.command))
                );
            }
            Prefix::Helper => panic!("a helper is not a command"),
        }
        self.running.insert(start.run, prefix);
        *self.started.entry(start.command).or_default() += 1;
        self.counts.get_mut(command.name()).unwrap().started += 1;
    }

    /// Records the end of a run, as reported to the composer.
    pub(super) fn ended(&mut self, start: Start, success: bool, killed: bool) {
        let prefix = self.running.remove(&start.run).expect("the run was started");
        let killed = killed || !success && self.kill_all && prefix != Prefix::Eventually;
        self.killed |= killed && prefix != Prefix::Finally;
        let counts = self.counts.get_mut(self.template.commands()[start.command].name()).unwrap();
        match (killed, success) {
            (true, _) => {}
            (false, true) => counts.succeeded += 1,
            (false, false) => counts.failed += 1,
        }
    }

    pub(super) fn kill_all(&mut self) {
        assert!(self.stopped_ns.is_some() && !self.kill_all && !self.running.is_empty());
        assert!(
            self.has(Prefix::Eventually) && self.worked(),
            "kills need an eventually_ command that follows"
        );
        self.kill_all = true;
    }

    pub(super) fn stop(&mut self, now_ns: u64) {
        self.stopped_ns = Some(now_ns);
    }

    pub(super) fn set_up(&mut self, node: u16, up: bool) {
        if up {
            self.up.insert(node)
        } else {
            self.up.remove(&node)
        };
    }

    /// Returns true if faults may be injected now.
    pub(super) fn faults_allowed(&self) -> bool {
        let first = self.starts_of(|prefix| prefix == Prefix::First) > 0
            && self.of(|prefix| prefix == Prefix::First) == 0;
        self.stopped_ns.is_none() && (first || !self.has(Prefix::First))
    }

    /// Checks the end of the timeline. Returns how many `finally_` and how many `eventually_` commands started.
    pub(super) fn over(&self, now_ns: u64, tally: &Tally) -> (u64, u64) {
        let stopped_ns = self.stopped_ns.expect("the workload was stopped");
        assert!(now_ns <= stopped_ns + FINISH_NS_MAX + KILL_NS_MAX + LAST_NS_MAX);
        let counted: BTreeMap<String, Counts> =
            tally.commands().map(|(name, counts)| (name.to_owned(), counts)).collect();
        assert_eq!(counted, self.counts);
        let of = |prefix| self.starts_of(|other| other == prefix);
        (of(Prefix::Finally), of(Prefix::Eventually))
    }

    /// Returns the number of starts of commands whose prefix satisfies `is`.
    pub(super) fn count(&self, is: impl Fn(Prefix) -> bool) -> u64 {
        self.starts_of(is)
    }
}
