//! Simulated world for tests of the composer, which decides when test commands start. The commands take time, fail,
//! hang and are killed, and the nodes go down and come back.

use chacha20::rand_core::Rng;
use proptest::prelude::*;

use super::rules::Rules;
use super::*;

const NODES: u16 = 3;

/// Behaviour of commands and nodes in a simulated world. Shares are in percent.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) stop_ns: u64,
    /// Maximum duration of a command, in nanoseconds.
    pub(super) takes_ns_max: u64,
    pub(super) fails: u64,
    pub(super) hangs: u64,
    pub(super) killed: u64,
    /// Share of commands that survive being killed.
    pub(super) stubborn: u64,
    /// Mean time between changes, in nanoseconds. A change takes a node down or brings it back. `None` if nodes never
    /// change.
    pub(super) changes_ns: Option<u64>,
}

pub(super) fn worlds() -> impl Strategy<Value = World> {
    let share = || prop_oneof![3 => Just(0u64), 1 => 1u64..30];
    let takes = prop_oneof![0..10 * MS, 0..S, 0..30 * S];
    let changes = prop::option::of(100 * MS..10 * S);
    (any::<u64>(), 0..40 * S, takes, share(), share(), share(), share(), changes).prop_map(
        |(seed, stop_ns, takes_ns_max, fails, hangs, killed, stubborn, changes_ns)| World {
            seed,
            stop_ns,
            takes_ns_max,
            fails,
            hangs,
            killed,
            stubborn,
            changes_ns,
        },
    )
}

/// Returns a world in which no command fails and every command ends within two seconds.
pub(super) fn calm(seed: u64, stop_ns: u64) -> World {
    let takes_ns_max = 2 * S;
    World { seed, stop_ns, takes_ns_max, fails: 0, hangs: 0, killed: 0, stubborn: 0, changes_ns: None }
}

pub(super) fn templates() -> impl Strategy<Value = Template> {
    let names =
        "(first|parallel_driver|serial_driver|singleton_driver|anytime|eventually|finally|helper)_[ab]";
    let files = prop::collection::vec((0..NODES, names), 1..14);
    files.prop_filter_map("no driver", |files| Template::new(files).ok())
}

/// Actions of the composer with their vtimes.
pub(super) type Log = Vec<(u64, Act)>;

struct Run {
    start: Start,
    ends_ns: u64,
    success: bool,
    killed: bool,
}

pub(super) struct Caller<'t> {
    world: &'t World,
    template: &'t Template,
    dice: ChaCha20Rng,
    rng: ChaCha20Rng,
    composer: Option<Composer<'t>>,
    pub(super) rules: Rules<'t>,
    /// Tally (how often each command started, succeeded and failed) up to the last cut, i.e. up to the last event after
    /// which the composer was stored and restored.
    tally: Tally,
    runs: Vec<Run>,
    change_ns: u64,
    pub(super) log: Log,
    pub(super) states: Vec<ComposerState>,
}

impl<'t> Caller<'t> {
    pub(super) fn new(template: &'t Template, world: &'t World) -> Caller<'t> {
        let mut rng = rng(world.seed);
        let composer = Composer::begin(template, 0, &mut rng);
        let mut caller = Caller {
            world,
            template,
            dice: super::rng(!world.seed),
            rng,
            composer: Some(composer),
            rules: Rules::new(template),
            tally: Tally::new(template),
            runs: Vec::new(),
            change_ns: u64::MAX,
            log: Vec::new(),
            states: Vec::new(),
        };
        caller.plan_change(0);
        caller
    }

    /// Runs the timeline to its end. After each event for which `cuts` returns true, stores and restores the composer.
    /// Returns how many `finally_` and how many `eventually_` commands started.
    pub(super) fn run(&mut self, cuts: impl Fn(usize) -> bool) -> (u64, u64) {
        let (mut is_stopped, mut last_ns) = (false, 0);
        for event in 0.. {
            assert!(event < 100_000, "the timeline does not end");
            let ended = self.runs.iter().map(|run| run.ends_ns).min().unwrap_or(u64::MAX);
            let stop = if is_stopped { u64::MAX } else { self.world.stop_ns };
            // `down` and `up` do not tell the composer their vtime, so the composer's vtime can be earlier than the
            // last event.
            let due = self.composer().due().map(|due_ns| due_ns.max(last_ns));
            let now_ns = [ended, stop, self.change_ns, due.unwrap_or(u64::MAX)].into_iter().min().unwrap();
            assert!(now_ns >= last_ns, "time does not go back");
            last_ns = now_ns;
            if now_ns == ended && ended < u64::MAX {
                self.end(now_ns);
            } else if now_ns == self.change_ns && now_ns < u64::MAX {
                self.change(now_ns);
            } else if now_ns == stop && stop < u64::MAX {
                is_stopped = true;
                self.rules.stop(now_ns);
                self.composer().stop(now_ns);
            } else {
                assert_eq!(due, Some(now_ns), "the composer has something due if no other event is left");
                self.act(now_ns);
            }
            assert_eq!(self.composer().faults_allowed(), self.rules.faults_allowed());
            assert_eq!(self.composer().is_stopped(), is_stopped);
            let running: Vec<Start> = self.runs.iter().map(|run| run.start).collect();
            let state = self.composer().state().clone();
            assert!(self.composer().due().is_none_or(|due_ns| due_ns >= state.now_ns));
            assert_eq!(state.runs(), running);
            assert!(state.is_sound(self.template));
            if self.composer().is_over() {
                assert_eq!(self.composer().due(), None);
                let mut tally = self.tally.clone();
                tally.merge(self.composer().tally());
                return self.rules.over(now_ns, &tally);
            }
            self.states.push(state);
            if cuts(event) {
                self.cut();
            }
        }
        unreachable!()
    }

    fn composer(&mut self) -> &mut Composer<'t> {
        self.composer.as_mut().unwrap()
    }

    fn roll(&mut self, n: u64) -> u64 {
        self.dice.next_u64() % n.max(1)
    }

    fn cut(&mut self) {
        let (state, tally) = self.composer.take().unwrap().finish();
        let stored = postcard::to_stdvec(&(&state, &tally)).unwrap();
        let (again, counted): (ComposerState, Tally) = postcard::from_bytes(&stored).unwrap();
        assert_eq!((&again, &counted), (&state, &tally));
        self.tally.merge(&counted);
        self.composer = Some(Composer::go_on(self.template, again).unwrap());
    }

    fn act(&mut self, now_ns: u64) {
        let mut composer = self.composer.take().unwrap();
        let acts = composer.act(now_ns, &mut self.rng);
        self.composer = Some(composer);
        for act in acts {
            self.log.push((now_ns, act));
            match act {
                Act::Start(start) => {
                    self.rules.start(start);
                    let takes_ns = self.roll(self.world.takes_ns_max);
                    let hangs = self.roll(100) < self.world.hangs;
                    let ends_ns = if hangs { u64::MAX } else { now_ns + takes_ns };
                    let success = self.roll(100) >= self.world.fails;
                    let killed = self.roll(100) < self.world.killed;
                    self.runs.push(Run { start, ends_ns, success, killed });
                }
                Act::KillAll => {
                    self.rules.kill_all();
                    for i in 0..self.runs.len() {
                        let (stubborn, soon) = (self.roll(100), self.roll(5 * MS));
                        // Half of the killed commands are reported as killed. The other half are reported as exited
                        // with a failure.
                        let killed = self.roll(2) == 0;
                        if stubborn >= self.world.stubborn {
                            let run = &mut self.runs[i];
                            run.ends_ns = run.ends_ns.min(now_ns + soon);
                            run.killed |= killed;
                            run.success &= killed;
                        }
                    }
                }
                Act::Over => {}
            }
        }
    }

    fn end(&mut self, now_ns: u64) {
        let first = self.runs.iter().position(|run| run.ends_ns == now_ns).unwrap();
        let run = self.runs.remove(first);
        self.rules.ended(run.start, run.success, run.killed);
        self.composer().ended(run.start.run, now_ns, run.success, run.killed);
        // The composer ignores a second end of the same run.
        let before = self.composer().state().clone();
        self.composer().ended(run.start.run, now_ns, false, true);
        assert_eq!(self.composer().state(), &before);
    }

    fn plan_change(&mut self, now_ns: u64) {
        if let Some(mean_ns) = self.world.changes_ns {
            self.change_ns = now_ns + self.roll(2 * mean_ns);
        }
    }

    fn change(&mut self, now_ns: u64) {
        let (node, what) = (self.roll(NODES.into()) as u16, self.roll(4));
        match what {
            0 => {
                let (lost, left) =
                    std::mem::take(&mut self.runs).into_iter().partition(|run| run.start.node == node);
                self.runs = left;
                for run in lost {
                    self.rules.ended(run.start, run.success, true);
                }
                self.composer().lost(node, now_ns);
            }
            1 => self.composer().down(node),
            _ => self.composer().up(node),
        }
        self.rules.set_up(node, what > 1);
        self.plan_change(now_ns);
    }
}
