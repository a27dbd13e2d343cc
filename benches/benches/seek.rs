//! Measures how fast a cursor moves along a recorded branch, forwards and backwards, and what breakpoints cost that never
//! hit. One branch is of a cluster with faults (Redis with Sentinel), whose machines mostly wait. The other one is of a
//! machine that is always busy (Redis and its client).
//!
//! `cargo bench -p benches --bench seek [-- --json] [-- --runs N]`
//!
//! - `first_seek`: a new cursor moves to the end of the branch. The peer is a plain run of the branch to the same vtime,
//!   as `everett replay` runs it.
//! - `seek_1s_back`, `seek_random`: later moves of the same cursor
//! - `step_back_…`: one instruction back, by the count of instructions; `gdb_step_back_…`: one instruction of a process
//!   back, as gdb asks for it. `first` is the first one after a move to a random instant, `next` one of those after it.
//! - `back_rare`, `back_often`: back over the busiest second of vtime to its first stop. All later stops are refused, as
//!   those of another process are. A breakpoint hits seldom, the other one often.
//! - `run_…`: that second of vtime without a breakpoint, and with one that never hits: on the busiest page of those that
//!   the bench tries, and on the page after it
//!
//! All durations are CPU time of the one thread that runs the machines, except those of `back_…`: they are elapsed time,
//! because these searches run on several cores.

use std::process::ExitCode;

use anyhow::{Context, ensure};
use benches::{Options, Report, Samples};
use clap::Parser;
use everett_explorer::search::{Fork, Path};
use everett_gdb::motion::{Motion, Outcome};
use everett_gdb::{Debuggee, Subject};
use everett_host::interrupt::Interrupt;
use everett_host::time::{CpuClock, Stopwatch};
use everett_inspect::{Guest, Kernel};
use everett_remote_client::Online;
use everett_session::debug::cursor::position::Position;
use everett_session::debug::cursor::{Aim, Cursor, Stop};
use everett_session::explore::path_runner::PathRunner;
use everett_session::explore::setting::Setting;
use everett_session::images;
use everett_session::inside::machine::MachineRam;
use everett_session::machines::EngineOptions;
use everett_session::output::progress::Quiet;
use everett_session::run::booted::{self, Wanted};
use everett_session::run::launch::Launcher;
use everett_session::world::identity::Identity;
use everett_session::world::moments::MomentFolder;
use everett_streams::Seed;
use everett_symbols::kernel::{Values, symbols_and_values};
use everett_world_file::{self as world_file, World};

/// World file of the cluster, relative to the project's top folder.
const CLUSTER: &str = "examples/redis-sentinel/world.toml";
/// World of the busy machine.
const BUSY: &str = r#"
[[node]]
name = "n"
memory = "96M"
packages = ["redis-server", "python3-minimal"]
[[node.service]]
name = "redis"
argv = ["redis-server", "--save", ""]
ready = { tcp = 6379 }
[[workload.driver]]
name = "load"
node = "n"
argv = ["python3", "-S", "-c", '''
import socket
redis = socket.create_connection(("127.0.0.1", 6379))
while True:
    redis.sendall(b"INCR n\r\n")
    redis.recv(100)
''']
[faults]
only = []
[explore]
segment = "1s"
horizon = "6s"
"#;
/// Number of branches on the timeline.
const BRANCHES: u64 = 3;
/// Vtime over which the cursor moves back, in nanoseconds.
const SECOND_NS: u64 = 1_000_000_000;
/// Number of random instants in a round.
const INSTANTS: usize = 8;
/// Number of steps back after the first, at each instant.
const NEXT_STEPS: usize = 4;
/// Memory for the moments of a cursor, in bytes.
const BUDGET_BYTES: u64 = 2 << 30;
/// Number of hits in a second of vtime that count as often.
const OFTEN: usize = 10_000;
/// Maximum number of hits after which a run with a candidate ends.
const HITS_MAX: usize = 200_000;
/// Functions of the kernel at which breakpoints can be set. Some are called all the time, others seldom.
const CANDIDATES: [&str; 14] = [
    "tcp_sendmsg",
    "do_syscall_64",
    "__schedule",
    "ktime_get",
    "__x64_sys_epoll_wait",
    "do_filp_open",
    "vfs_fsync_range",
    "tcp_v4_connect",
    "kmem_cache_alloc",
    "__alloc_pages",
    "_raw_spin_lock",
    "_raw_spin_lock_irqsave",
    "__rcu_read_unlock",
    "native_sched_clock",
];

fn main() -> ExitCode {
    benches::end("seek", run(&Options::parse()))
}

fn run(options: &Options) -> anyhow::Result<()> {
    let mut report = Report::new("seek", options.json);
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(CLUSTER);
    // The lock file of its packages is written beside the world file.
    let folder = tempfile::tempdir()?;
    let (cluster, busy) =
        (world_file::load(&file)?, world_file::parse(BUSY, &folder.path().join("world.toml"))?);
    let subjects = [(3, "python3"), (0, "redis-server")];
    measure(options, &mut report, &setting(cluster)?, ("cluster", subjects))?;
    let subjects = [(0, "python3"), (0, "redis-server")];
    measure(options, &mut report, &setting(busy)?, ("busy", subjects))?;
    report.print();
    Ok(())
}

/// Nodes and names of the processes that the bench debugs. The first process's node also has the
/// breakpoints.
type Subjects = [(usize, &'static str); 2];

fn measure(
    options: &Options,
    report: &mut Report,
    setting: &Setting,
    (world, subjects): (&str, Subjects),
) -> anyhow::Result<()> {
    let segment_ns = setting.launcher.world.explore.segment.0;
    let mut path = Path::default();
    for n in 0..BRANCHES {
        path = path.child(Fork { vtime_ns: setting.root_ns + n * segment_ns, child: 1 })?;
    }
    let end_ns = setting.fates().end(&path).context("the root moment is not a branch")?.at_ns;
    let vtime_s = (end_ns - setting.root_ns) as f64 / 1e9;
    report.note(&format!("{world}: a branch of {vtime_s} s of vtime"));
    let mut figures = Figures::default();
    for round in 1..=options.runs {
        report.note(&format!("{world}: round {round} of {}", options.runs));
        let round = Round { setting, path: &path, end_ns, subjects, seed: round as u64 };
        round.measure(&mut figures, report)?;
    }
    figures.report(report, world);
    Ok(())
}

/// Boots a world, and returns the setting of its branches.
fn setting(world: World) -> anyhow::Result<Setting> {
    let image = images::get(&Quiet, &world, &Online, &Interrupt::default())?;
    let launcher = Launcher::new(world, image.files, EngineOptions::default());
    let folder = tempfile::tempdir()?;
    let identity = Identity::new(&launcher.world, std::slice::from_ref(&image.digest));
    let moments = MomentFolder::new(folder.path(), &identity, &identity);
    let booted = booted::get(&Quiet, &launcher, &moments, Wanted::Both, &Interrupt::default())?;
    let points = booted.restart.clone().context("the world has no restart points")?;
    Setting::new(launcher, &booted, points, &image.digest, Seed::new(1))
}

/// Measurements of all rounds, in milliseconds unless the name says otherwise.
#[derive(Default)]
struct Figures {
    plain: Samples,
    first_seek: Samples,
    seek_1s_back: Samples,
    seek_random: Samples,
    steps: Steps,
    client_steps: Steps,
    server_steps: Steps,
    back_rare: Samples,
    back_often: Samples,
    rare_hits: Samples,
    often_hits: Samples,
    run_bare: Samples,
    run_hot_page: Samples,
    run_neighbour: Samples,
}

/// Durations of steps back.
#[derive(Default)]
struct Steps {
    first: Samples,
    next: Samples,
}

impl Figures {
    fn report(&self, report: &mut Report, world: &str) {
        let mut figure = |name: &str, unit, samples: &Samples, peer| {
            report.figure(&format!("{world}_{name}"), unit, samples, peer);
        };
        figure("first_seek_ms", "ms", &self.first_seek, Some(("plain", &self.plain)));
        figure("plain_run_ms", "ms", &self.plain, None);
        figure("seek_1s_back_ms", "ms", &self.seek_1s_back, None);
        figure("seek_random_ms", "ms", &self.seek_random, None);
        let all = [
            ("step_back", &self.steps),
            ("gdb_client", &self.client_steps),
            ("gdb_server", &self.server_steps),
        ];
        for (name, steps) in all {
            figure(&format!("{name}_first_ms"), "ms", &steps.first, None);
            figure(&format!("{name}_next_ms"), "ms", &steps.next, None);
        }
        figure("back_rare_ms", "ms", &self.back_rare, None);
        figure("back_rare_hits", "", &self.rare_hits, None);
        figure("back_often_ms", "ms", &self.back_often, None);
        figure("back_often_hits", "", &self.often_hits, None);
        let bare = Some(("bare", &self.run_bare));
        figure("run_neighbour_ms", "ms", &self.run_neighbour, bare);
        figure("run_hot_page_ms", "ms", &self.run_hot_page, bare);
        figure("run_bare_ms", "ms", &self.run_bare, None);
    }
}

/// A round of measurements on the branch.
struct Round<'s> {
    setting: &'s Setting,
    path: &'s Path,
    end_ns: u64,
    subjects: Subjects,
    seed: u64,
}

impl Round<'_> {
    fn measure(&self, figures: &mut Figures, report: &Report) -> anyhow::Result<()> {
        let file = std::fs::read(&self.setting.launcher.files.kernel)?;
        let (kernel, values) = (Kernel::new(&file)?, symbols_and_values(&file).1);

        let clock = CpuClock::start();
        let mut runner = PathRunner::new(self.setting)?;
        runner.seek(self.path, self.end_ns, &mut ())?;
        figures.plain.push(ms(&clock));
        let digest = runner.timeline().digest();
        drop(runner);

        let clock = CpuClock::start();
        let mut cursor = Cursor::new(self.setting, self.path, self.end_ns, BUDGET_BYTES)?;
        let end = Aim::Vtime(self.end_ns);
        ensure!(cursor.seek(end, &mut ())? == Stop::Reached, "the branch ended early");
        figures.first_seek.push(ms(&clock));
        ensure!(cursor.digest() == digest, "the cursor's timeline is another one than the plain run's");

        let clock = CpuClock::start();
        cursor.seek(Aim::Vtime(self.end_ns - SECOND_NS), &mut ())?;
        figures.seek_1s_back.push(ms(&clock));

        self.steps(&mut cursor, &kernel, figures)?;
        let (busy_ns, instructions) = self.busiest_second(&mut cursor)?;
        report.note(&format!("the busiest second has {} million instructions", instructions / 1_000_000));
        let busy = Second { end_ns: busy_ns, node: self.subjects[0].0 };
        busy.measure(&mut cursor, (&kernel, &values), figures, report)?;
        cursor.seek(end, &mut ())?;
        ensure!(cursor.digest() == digest, "moves have changed the timeline");
        Ok(())
    }

    /// Moves to random instants, and goes back from there step by step.
    fn steps(&self, cursor: &mut Cursor<'_>, kernel: &Kernel, figures: &mut Figures) -> anyhow::Result<()> {
        let length_ns = self.end_ns - self.setting.root_ns - SECOND_NS;
        let mut state = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..INSTANTS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at_ns = self.setting.root_ns + SECOND_NS + state % length_ns;
            let mut seek = |cursor: &mut Cursor<'_>| -> anyhow::Result<()> {
                let clock = CpuClock::start();
                cursor.seek(Aim::Vtime(at_ns), &mut ())?;
                figures.seek_random.push(ms(&clock));
                Ok(())
            };
            seek(cursor)?;
            steps_back(&mut figures.steps, || cursor.step_back(0, &mut ()))?;
            let steps = [&mut figures.client_steps, &mut figures.server_steps];
            for ((node, name), steps) in self.subjects.into_iter().zip(steps) {
                cursor.seek(Aim::Vtime(at_ns), &mut ())?;
                let Some(pid) = process(cursor, kernel, node, name)? else { continue };
                let mut debuggee = Debuggee::new(cursor, kernel, None, node, Subject::Process(pid))?;
                let back = Motion::StepBack(pid);
                steps_back(steps, || Ok(debuggee.go(&back, &mut ())? == Outcome::Stepped(pid)))?;
            }
        }
        Ok(())
    }

    /// Returns the end of the second in which the first process's node executes most, and its number of instructions.
    fn busiest_second(&self, cursor: &mut Cursor<'_>) -> anyhow::Result<(u64, u64)> {
        let mut counts = Vec::new();
        for vtime_ns in (self.setting.root_ns..=self.end_ns).step_by(SECOND_NS as usize / 2) {
            cursor.seek(Aim::Vtime(vtime_ns), &mut ())?;
            counts.push((vtime_ns, cursor.position(self.subjects[0].0).count));
        }
        let seconds = counts.windows(3).map(|counts| (counts[2].0, counts[2].1 - counts[0].1));
        seconds.max_by_key(|second| second.1).context("the branch is shorter than a second")
    }
}

/// A second of vtime in which a node has breakpoints.
struct Second {
    end_ns: u64,
    node: usize,
}

impl Second {
    /// Moves back over the second with breakpoints, and forwards with some that never hit.
    fn measure(
        &self,
        cursor: &mut Cursor<'_>,
        (kernel, values): (&Kernel, &Values),
        figures: &mut Figures,
        report: &Report,
    ) -> anyhow::Result<()> {
        let mut candidates = Vec::new();
        for name in CANDIDATES {
            let Some(address) = values.get(name) else { continue };
            let (hits, _) = self.run(cursor, address)?;
            report.note(&format!("{name} has {} hits", hits.len()));
            candidates.push((address, hits));
        }
        candidates.retain(|(_, hits)| !hits.is_empty());
        let rare = candidates.iter().min_by_key(|(_, hits)| hits.len()).context("no breakpoint hits")?;
        let often = candidates.iter().filter(|(_, hits)| hits.len() >= OFTEN);
        let often = often.min_by_key(|(_, hits)| hits.len()).context("no breakpoint hits often")?;
        for ((address, hits), times, counts) in [
            (rare, &mut figures.back_rare, &mut figures.rare_hits),
            (often, &mut figures.back_often, &mut figures.often_hits),
        ] {
            times.push(self.back(cursor, kernel, *address, hits[0])?);
            counts.push(hits.len() as f64);
        }
        let busiest = candidates.iter().max_by_key(|(_, hits)| hits.len()).context("no breakpoint hits")?.0;
        // Both addresses lie within an instruction, as a run without hits shows.
        let hot_page = busiest + 1;
        let neighbour = (busiest & !0xfff) + 0x1000 + 1;
        for (address, times) in [
            (0, &mut figures.run_bare),
            (hot_page, &mut figures.run_hot_page),
            (neighbour, &mut figures.run_neighbour),
        ] {
            let (hits, duration_ms) = self.run(cursor, address)?;
            ensure!(hits.is_empty(), "an instruction begins at {address:#x}");
            times.push(duration_ms);
        }
        Ok(())
    }

    /// Runs the second with a breakpoint. Returns where it hit, and how long the run took, in milliseconds. The address
    /// 0 stands for no breakpoint.
    fn run(&self, cursor: &mut Cursor<'_>, address: u64) -> anyhow::Result<(Vec<Position>, f64)> {
        cursor.set_breakpoints(self.node, &[]);
        cursor.seek(Aim::Vtime(self.end_ns - SECOND_NS), &mut ())?;
        if address != 0 {
            cursor.set_breakpoints(self.node, &[address]);
        }
        let clock = CpuClock::start();
        let mut hits = Vec::new();
        while let Stop::Breakpoint { node } = cursor.run(Aim::Vtime(self.end_ns), &mut ())? {
            hits.push(cursor.position(node));
            if hits.len() == HITS_MAX {
                break;
            }
        }
        Ok((hits, ms(&clock)))
    }

    /// Moves back from the end of the second to a hit of a breakpoint. At each hit, looks for the thread that runs, as
    /// gdb's stub does. Returns how long the move took, in milliseconds.
    fn back(
        &self,
        cursor: &mut Cursor<'_>,
        kernel: &Kernel,
        address: u64,
        to: Position,
    ) -> anyhow::Result<f64> {
        cursor.set_breakpoints(self.node, &[]);
        cursor.seek(Aim::Vtime(self.end_ns), &mut ())?;
        cursor.set_breakpoints(self.node, &[address]);
        let from = cursor.position(self.node);
        let start = Stopwatch::start();
        let wanted = |cursor: &Cursor<'_>, _: &Stop| {
            let ram = MachineRam(cursor.timeline().machine(self.node));
            let running = Guest::new(kernel, &ram).and_then(|guest| guest.running());
            (running.is_ok() && cursor.position(self.node).count <= to.count).then_some(())
        };
        cursor.run_back(from, &wanted, &mut ())?;
        let duration_ms = start.seconds() * 1e3;
        ensure!(cursor.position(self.node).count == to.count, "the search found another stop");
        cursor.set_breakpoints(self.node, &[]);
        Ok(duration_ms)
    }
}

/// Measures steps back until one fails.
fn steps_back(steps: &mut Steps, mut step: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    for n in 0..=NEXT_STEPS {
        let clock = CpuClock::start();
        if !step()? {
            break;
        }
        if n == 0 { &mut steps.first } else { &mut steps.next }.push(ms(&clock));
    }
    Ok(())
}

/// Returns the ID of the process with this name on a node, if there is one at this instant.
fn process(cursor: &Cursor<'_>, kernel: &Kernel, node: usize, name: &str) -> anyhow::Result<Option<u32>> {
    let ram = MachineRam(cursor.timeline().machine(node));
    let Ok(guest) = Guest::new(kernel, &ram) else { return Ok(None) };
    let processes = guest.processes()?;
    let found = processes.iter().find(|process| process.threads.iter().any(|thread| thread.name == name));
    Ok(found.map(|process| process.pid))
}

fn ms(clock: &CpuClock) -> f64 {
    clock.elapsed_ns() as f64 / 1e6
}
