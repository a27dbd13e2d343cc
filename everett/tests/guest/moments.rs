//! Tests of the two moments of a boot that Everett stores: the *restart point*, from which machines restart after a
//! power loss, and *ready*, when all services are up. At the restart point, data disks and network cards have no driver
//! yet. A boot up to *ready* is the same under every seed of the timeline. Another boot seed changes it.

use everett_guest_image::configure::Step;
use everett_protocol::{Bytes, Exec, Operation};
use everett_session::guest::agent_script::AgentScript;
use everett_session::images::steps::{self, Attend};
use everett_session::run::launch::Launcher;
use everett_session::world::conversation::Phase;
use everett_session::world::event::{Event, What};
use everett_session::world::timeline::{BegunAlready, SessionState, Timeline};
use everett_streams::{BootSeed, Seed};

use crate::support::{MS, findings, launcher_of, lines, run_to_end};

fn exec(argv: &[&str]) -> Exec {
    Exec::new(argv.iter().copied().map(str::to_owned).collect())
}

/// Collector of the lines that commands print.
#[derive(Default)]
struct Lines(Vec<String>);

impl Attend for Lines {
    fn line(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
    fn go_on(&mut self) -> bool {
        true
    }
}

/// Boots a machine and sends the operations in order to its agent (Everett's program in the guest). Returns the lines
/// that commands print.
fn ask(launcher: &Launcher, operations: impl IntoIterator<Item = Operation>) -> Vec<String> {
    let mut machine = launcher.options.machine(launcher.config(&launcher.world.nodes[0]).unwrap()).unwrap();
    let step = |op: Operation| Step { what: format!("{op:?}"), op };
    let steps: Vec<Step> = operations.into_iter().map(step).collect();
    let mut lines = Lines::default();
    steps::run(&mut machine, &steps, &mut lines).unwrap();
    lines.0
}

fn shell(script: &str) -> Operation {
    Operation::Exec(exec(&["sh", "-c", script]))
}

fn mount(script: &AgentScript) -> Operation {
    Operation::Mount(script.mount.clone())
}

fn join(script: &AgentScript, entropy: u8) -> Operation {
    Operation::Join(Box::new(script.join(vec![entropy; 64], 1_500_000_000)))
}

/// Script that prints the driver of each device, the flags of each network interface (bit 0: up), and the number of
/// file systems at /data.
const LOOK: &str = "
    for device in /sys/bus/virtio/devices/*; do
        driver=none
        test ! -e $device/driver || driver=$(basename $(readlink $device/driver))
        echo $(basename $device) $(cat $device/device) $driver
    done
    for card in /sys/class/net/*; do echo $(basename $card) $(cat $card/flags); done
    grep -c ' /data ' /proc/mounts
    true";

const WITH_DISK: &str = "
[[node]]
name = \"a\"
disk = { path = \"/data\", size = \"64M\" }
";

#[test]
fn at_the_restart_point_disks_and_cards_have_no_driver() {
    let launcher = launcher_of(WITH_DISK);
    let [script] = &launcher.scripts()[..] else { panic!("one node") };
    // Binds and unbinds the drivers twice. If a kernel has built-in drivers, it binds them at boot and the agent unbinds
    // them before the restart point. The drivers must be able to bind again after that.
    let there_and_back = "
        cd /sys/bus/virtio/drivers
        for try in 1 2; do
            echo virtio3 > virtio_blk/bind; echo virtio4 > virtio_net/bind
            head -c 4096 /dev/vdb | wc -c; test -e /sys/class/net/eth0
            echo virtio3 > virtio_blk/unbind; echo virtio4 > virtio_net/unbind
        done
        test ! -e /dev/vdb";
    let printed = ask(
        &launcher,
        [
            mount(script),
            shell(LOOK),
            shell("set -e; cat /etc/hostname; date +%s"),
            shell(&format!("set -e; {there_and_back}")),
            shell(LOOK),
            join(script, 1),
            shell(LOOK),
            shell("date +%s; touch /data/file; stat -c %Y /data/file"),
        ],
    );
    let before = [
        "virtio0 0x0003 virtio_console",
        "virtio1 0x0004 virtio_rng",
        "virtio2 0x0002 virtio_blk",
        "virtio3 0x0002 none",
        "virtio4 0x0001 none",
        "lo 0x8",
        "0",
    ];
    let after = [
        "virtio0 0x0003 virtio_console",
        "virtio1 0x0004 virtio_rng",
        "virtio2 0x0002 virtio_blk",
        "virtio3 0x0002 virtio_blk",
        "virtio4 0x0001 virtio_net",
        "eth0 0x1003",
        "lo 0x9",
        "1",
    ];
    // The guest's clock shows the time of the hardware clock until the agent sets the guest's clock.
    let name = ["a", "1767225600"];
    let tried = ["4096", "4096"];
    let told = ["1767225601", "1767225601"];
    let wanted: Vec<&str> =
        [&before[..], &name, &tried, &before, &after, &told].into_iter().flatten().copied().collect();
    assert_eq!(printed, wanted);
}

#[test]
fn random_numbers_of_the_kernel_follow_the_entropy() {
    let launcher = launcher_of("[[node]]\nname = \"a\"\n");
    let [script] = &launcher.scripts()[..] else { panic!("one node") };
    let draw = || shell("cat /proc/sys/kernel/random/boot_id; od -An -tx1 -N16 /dev/urandom");
    let drawn = |first: u8, second: u8| {
        let reseed = Operation::Reseed { entropy: Bytes(vec![second; 64]) };
        ask(&launcher, [mount(script), join(script, first), draw(), reseed, draw()])
    };
    let one = drawn(1, 1);
    let [id, bytes, id_later, bytes_later] = &one[..] else { panic!("{one:?}") };
    assert_eq!((id.len(), id), (36, id_later));
    assert_ne!(bytes, bytes_later);
    // `other` differs from `one` only in the entropy of the operation `join`. `later` differs from `one` only in the
    // entropy of the later operation `Reseed`.
    let other = drawn(2, 1);
    assert!(other[0] != one[0] && other[1] != one[1], "{one:?} {other:?}");
    let later = drawn(1, 2);
    assert_eq!(later[..2], one[..2]);
    assert_ne!(later[3], one[3]);
}

/// World with a workload driver (a program in the guest) that prints random numbers from the kernel.
const DRAWS: &str = "
[[node]]
name = \"a\"
[[workload.driver]]
name = \"draw\"
argv = [\"sh\", \"-c\", \"echo $EVERETT_SEED; od -An -tx1 -N16 /dev/urandom; cat /proc/sys/kernel/random/boot_id\"]
";
const DRAWS_NS: u64 = 100 * MS;

#[test]
fn a_timeline_of_no_length_begins_and_ends() {
    let mut timeline = launcher_of(DRAWS).start(Seed::new(1)).unwrap();
    let (_, events) = run_to_end(&mut timeline, 0);
    assert_eq!((timeline.phase(), findings(&events)), (Phase::Done, vec![]));
    assert!(events.iter().any(|event| event.what == What::End));
}

fn whole(mut timeline: Timeline) -> (Timeline, Vec<Event>) {
    let (_, events) = run_to_end(&mut timeline, DRAWS_NS);
    assert_eq!(findings(&events), [] as [&str; 0]);
    (timeline, events)
}

#[test]
fn the_boot_is_the_same_for_all_seeds_and_the_rest_is_not() {
    let launcher = launcher_of(DRAWS);
    let (one, one_events) = whole(launcher.start(Seed::new(1)).unwrap());
    let (two, two_events) = whole(launcher.start(Seed::new(2)).unwrap());
    let (draws, others) = (lines(&one_events, "draw"), lines(&two_events, "draw"));
    assert_eq!((draws[0], others[0]), ("1", "2"));
    // The kernel draws boot_id when it is first read.
    assert!((1..3).all(|line| draws[line] != others[line]), "{draws:?} {others:?}");

    let ready_ns = one.ready_ns().unwrap();
    assert_eq!(two.ready_ns(), Some(ready_ns));
    let begin = one_events.iter().position(|event| event.what == What::Begin { seed: Seed::new(1) }).unwrap();
    assert_eq!(one_events[..begin], two_events[..begin]);
    assert_eq!(two_events[begin].what, What::Begin { seed: Seed::new(2) });
    let points = one.trail().points().iter().zip(two.trail().points());
    let mut after = 0;
    for (a, b) in points {
        assert_eq!(a == b, a.0 <= ready_ns, "at {}", a.0);
        after += u32::from(a.0 > ready_ns);
    }
    assert!(after > 0);

    // A timeline whose state is stored and restored at *ready* has the same events and the same trail as the timeline
    // above, which ran without a stop.
    let mut waiting = launcher.boot().unwrap();
    waiting.run_to(Phase::Mounted, &mut |_, _| true).unwrap();
    assert_eq!(waiting.phase(), Phase::Mounted);
    waiting.run_to(Phase::Ready, &mut |_, _| true).unwrap();
    let mut events = waiting.take_events();
    let stored = waiting.save().to_bytes().unwrap();
    let state = SessionState::from_bytes(&stored).unwrap();
    let mut resumed =
        Timeline::resume(waiting.into_world(), launcher.scripts(), launcher.checks(), state).unwrap();
    resumed.begin(Seed::new(1)).unwrap();
    assert_eq!(resumed.begin(Seed::new(2)), Err(BegunAlready(Seed::new(1))));
    let (resumed, later) = whole(resumed);
    events.extend(later);
    assert_eq!(events, one_events);
    assert_eq!(resumed.trail(), one.trail());

    // Another boot seed gives another boot.
    let mut launcher = launcher;
    launcher.world.boot_seed = BootSeed::new(5);
    let mut other = launcher.boot().unwrap();
    other.run_to(Phase::Mounted, &mut |_, _| true).unwrap();
    assert_ne!(other.trail().points()[1], one.trail().points()[1]);
}

#[test]
fn a_boot_that_does_not_get_ready_says_why() {
    let why = |launcher: &Launcher| {
        let mut timeline = launcher.boot().unwrap();
        let error = timeline.run_to(Phase::Ready, &mut |_, _| true).unwrap_err();
        assert_eq!(timeline.findings(), 1);
        (error.to_string(), timeline.vtime())
    };
    let service = |lines: &str| {
        launcher_of(&format!(
            "[[node]]\nname = \"a\"\n[[node.service]]\nname = \"s\"\nready = {{ tcp = 9 }}\n{lines}"
        ))
    };
    let (text, _) = why(&service("argv = [\"true\"]"));
    assert_eq!(
        text,
        "node a does not get ready: service s ended with exit status 0 before all services were ready"
    );
    let (text, _) = why(&service("argv = [\"sleep\", \"1000\"]\nready_timeout = \"200ms\""));
    assert_eq!(text, "node a does not get ready: service s: it was not ready in time");
    // The kernel waits for a root disk that never appears.
    let mut silent = launcher_of("[[node]]\nname = \"a\"\n");
    silent.files.initramfs = None;
    silent.cmdline = "root=/dev/vda rootdelay=100000".to_owned();
    let (text, vtime_ns) = why(&silent);
    assert_eq!(text, "node a does not get ready: its agent has not spoken after 600 s");
    assert_eq!(vtime_ns / 1_000 / MS, 600);
}
