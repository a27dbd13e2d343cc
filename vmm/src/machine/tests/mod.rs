mod disks;

use everett_input::causes::with_causes;
use everett_snapshot::Pool;
use everett_streams::BootSeed;
use proptest::prelude::*;

use super::config::MachineError;
use super::fake::{FakeEngine, HostFails, Op, Script};
use super::journal::EntryKind;
use super::*;
use crate::clock::NANOS;
use crate::devices::lapic::reg;
use crate::layout::{LAPIC, RESET_PORT, SLEEP_CONTROL_PORT, UART_PORT};
use crate::output::NoteEvent;

const VECTOR: u32 = 0x40;

/// Returns code that enables the LAPIC and starts its timer with divisor 1. The timer expires after `ns` nanoseconds,
/// once or periodically.
pub(crate) fn timer(ns: u32, periodic: bool) -> Vec<Op> {
    vec![
        Op::Store(LAPIC + reg::SVR, 0x1ff),
        Op::Store(LAPIC + reg::TIMER_DIVIDE, 0xb),
        Op::Store(LAPIC + reg::LVT_TIMER, VECTOR | if periodic { 1 << 17 } else { 0 }),
        Op::Store(LAPIC + reg::TIMER_INITIAL, ns),
    ]
}

/// Interrupt handler that acknowledges the interrupt and returns.
pub(crate) const HANDLER: [Op; 3] = [Op::Work(300), Op::Store(LAPIC + reg::EOI, 0), Op::Iret];

fn interrupts(machine: &mut Machine) -> Vec<(u64, u64)> {
    let journal = machine.journal().unwrap();
    let taken = journal.entries().iter().filter(|e| matches!(e.kind, EntryKind::Interrupt { .. }));
    taken.map(|e| (e.icount, e.vtime)).collect()
}

#[test]
fn a_timer_interrupts_at_its_exact_instruction() {
    let mut main = timer(1000, false);
    main.extend([Op::Sti, Op::Work(10_000)]);
    let mut machine = Script::new(&main, &HANDLER).machine();
    machine.keep_journal(true);
    assert_eq!(machine.run(&Until::vtime(5_000)), Stop::Time);
    // The store that starts the timer is instruction 3, at vtime 3 ns.
    assert_eq!(interrupts(&mut machine), [(1003, 1003)]);
    assert_eq!((machine.vtime(), machine.icount()), (5_000, 5_000));
}

#[test]
fn an_interrupt_waits_for_its_window() {
    let mut main = timer(1000, false);
    main.extend([Op::Work(5_000), Op::Sti, Op::Work(5_000)]);
    let mut machine = Script::new(&main, &HANDLER).machine();
    machine.keep_journal(true);
    machine.run(&Until::icount(8_000));
    assert_eq!(interrupts(&mut machine), [(5_005, 5_005)], "after STI, not before");
}

#[test]
fn idle_time_is_skipped_to_the_event() {
    // The guest sleeps until the timer expires, every 200 ms. The timer starts at vtime 3 ns, so its 300th expiry comes
    // 3 ns after the 60 s of this run.
    let mut main = timer(200_000_000, true);
    main.extend([Op::Sti, Op::Hlt, Op::Tsc, Op::Jump(5)]);
    let mut machine = Script::new(&main, &HANDLER).machine();
    machine.keep_journal(true);
    assert_eq!(machine.run(&Until::vtime(60 * NANOS)), Stop::Time);
    assert_eq!(machine.vtime(), 60 * NANOS);
    let taken = interrupts(&mut machine);
    assert_eq!(taken.len(), 299);
    assert!(taken.iter().enumerate().all(|(i, &(_, vtime))| vtime == 3 + (i as u64 + 1) * 200_000_000));
    assert!(machine.icount() < 100_000);
}

#[test]
fn idling_and_halting_forever_are_distinguished() {
    let mut machine = Script::new(&[Op::Sti, Op::Hlt], &HANDLER).machine();
    assert_eq!(machine.run(&Until::vtime(NANOS)), Stop::Idle);
    assert_eq!((machine.vtime(), machine.icount()), (NANOS, 2));
    assert_eq!(machine.run(&Until::vtime(3 * NANOS)), Stop::Idle);
    assert_eq!(machine.vtime(), 3 * NANOS);
    assert_eq!(machine.run(&Until::icount(10)), Stop::Idle, "without a target vtime, time stands still");
    assert_eq!(machine.vtime(), 3 * NANOS);

    let mut machine = Script::new(&[Op::Cli, Op::Hlt], &HANDLER).machine();
    assert_eq!(machine.run(&Until::vtime(NANOS)), Stop::End(End::HaltedForever));
    assert_eq!(
        machine.run(&Until::vtime(2 * NANOS)),
        Stop::End(End::HaltedForever),
        "the end does not change"
    );
    assert_eq!(machine.vtime(), 2);
}

#[test]
fn ends_are_named() {
    for (op, end) in [
        (Op::Out(SLEEP_CONTROL_PORT, 0x34), End::PowerOff),
        (Op::Out(RESET_PORT, 1), End::Reset),
        (Op::Crash, End::TripleFault),
    ] {
        let mut machine = Script::new(&[Op::Work(5), op], &[]).machine();
        assert_eq!(machine.run(&Until::vtime(NANOS)), Stop::End(end.clone()));
        assert_eq!(machine.end(), Some(&end));
        assert_eq!(machine.icount(), 5);
    }
}

#[test]
fn console_lines_and_unknown_accesses_are_noted_with_their_vtime() {
    let main = [
        Op::Work(100),
        Op::Out(UART_PORT, b'h'.into()),
        Op::Out(UART_PORT, b'i'.into()),
        Op::Out(UART_PORT, b'\n'.into()),
        Op::In(0x300),
        Op::Load(0xd800_0000),
        Op::Out(0x80, 1),
        Op::Store(0xe000_0000, 7),
    ];
    let mut machine = Script::new(&main, &[]).machine();
    machine.run(&Until::icount(108));
    assert_eq!(machine.output().take_console(), b"hi\n");
    let notes = machine.output().take_notes();
    let unknown = |port, address, size, value| NoteEvent::Unknown { port, address, size, value };
    let events: Vec<(u64, NoteEvent)> = notes.into_iter().map(|note| (note.vtime, note.event)).collect();
    assert_eq!(
        events,
        [
            (102, NoteEvent::Console { text: b"hi".to_vec(), cut: false }),
            (103, unknown(true, 0x300, 1, None)),
            (104, unknown(false, 0xd800_0000, 4, None)),
            (106, unknown(false, 0xe000_0000, 4, Some(7))),
        ]
    );
    assert_eq!(machine.cpu().gpr[0], (100 * 31 + 0xff) * 31 + 0xffff_ffff);
}

#[test]
fn an_interrupt_storm_is_found() {
    // The handler itself requests the next interrupt.
    let handler =
        [Op::Store(LAPIC + reg::EOI, 0), Op::Store(LAPIC + reg::ICR_LOW, 0x4_0000 | VECTOR), Op::Iret];
    let main = [
        Op::Store(LAPIC + reg::SVR, 0x1ff),
        Op::Store(LAPIC + reg::ICR_LOW, 0x4_0000 | VECTOR),
        Op::Sti,
        Op::Work(u64::MAX / 2),
    ];
    let mut machine = Script::new(&main, &handler).machine();
    let stop = machine.run(&Until::vtime(NANOS));
    assert!(
        matches!(stop, Stop::End(End::InterruptStorm { vector: 0x40, count: STORM_INTERRUPTS })),
        "{stop:?}"
    );
}

#[test]
fn an_instruction_that_never_ends_is_found() {
    let mut machine = Script::new(&[Op::Work(3), Op::Stuck], &HANDLER).machine();
    assert_eq!(machine.run(&Until::vtime(NANOS)), Stop::End(End::NoProgress));
    assert_eq!(machine.stats().pio, u64::from(ACCESSES_MAX) + 1);
}

#[test]
fn machines_can_move_between_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<Machine>();
}

#[test]
fn a_periodic_timer_of_a_nanosecond_does_not_hang() {
    let mut main = timer(1, true);
    main.extend([Op::Sti, Op::Work(1_000_000)]);
    // The handler acknowledges each interrupt, but the next one follows at once. The guest hardly progresses, and the
    // machine reports a storm.
    let mut machine = Script::new(&main, &[Op::Store(LAPIC + reg::EOI, 0), Op::Iret]).machine();
    assert!(matches!(machine.run(&Until::vtime(NANOS)), Stop::End(End::InterruptStorm { .. })));
    // The CPU is halted and the task priority blocks the timer's vector. Nothing happens, and it costs no host time.
    let mut main = timer(1, true);
    main.extend([Op::Store(LAPIC + reg::TPR, 0xf0), Op::Sti, Op::Hlt]);
    let mut machine = Script::new(&main, &HANDLER).machine();
    assert_eq!(machine.run(&Until::vtime(60 * NANOS)), Stop::Idle);
    assert!(machine.stats().events <= 2);
}

#[test]
fn a_run_stops_before_a_breakpoint_and_continues_from_it() {
    let main = [Op::Work(10), Op::Tsc, Op::Work(10), Op::Jump(0)];
    let mut machine = Script::new(&main, &[]).machine();
    assert!(machine.set_breakpoints(&[0x100_0001]));
    let mut stops = Vec::new();
    while machine.run(&Until::icount(60)) == Stop::Breakpoint {
        stops.push(machine.icount());
    }
    assert_eq!(stops, [10, 32, 54]);
}

#[test]
fn a_stall_moves_time_only() {
    let mut machine = Script::new(&[Op::Work(100), Op::Tsc, Op::Work(100)], &[]).machine();
    machine.run(&Until::icount(100));
    machine.stall(5_000_000);
    machine.run(&Until::icount(101));
    assert_eq!((machine.vtime(), machine.cpu().gpr[0]), (5_000_101, 100 * 31 + 5_000_100));
}

#[test]
fn a_generation_change_interrupts() {
    let main = [Op::Store(LAPIC + reg::SVR, 0x1ff), Op::Sti, Op::Hlt, Op::Jump(2)];
    let mut setup = vec![
        // IOAPIC pin 9: edge-triggered, vector 0x51.
        Op::Store(crate::layout::IOAPIC, 0x22),
        Op::Store(crate::layout::IOAPIC + 0x10, 0x51),
    ];
    setup.extend(main.map(|op| if op == Op::Jump(2) { Op::Jump(4) } else { op }));
    let mut machine = Script::new(&setup, &HANDLER).machine();
    machine.keep_journal(true);
    assert_eq!(machine.run(&Until::vtime(1000)), Stop::Idle);
    machine.new_generation([0xab; 16]);
    machine.run(&Until::vtime(10_000));
    assert_eq!(interrupts(&mut machine), [(5, 1000)]);
    let mut id = [0; 16];
    assert!(machine.ram().read(GENERATION_ID, &mut id));
    assert_eq!(id, [0xab; 16]);
}

#[test]
fn configurations_are_checked() {
    let script = Script::new(&[], &[]);
    let error = |change: fn(&mut MachineConfig)| {
        let mut config = MachineConfig::new("/nonexistent/vmlinux");
        change(&mut config);
        let machine = Machine::new(config, |_| -> Result<FakeEngine, MachineError> { unreachable!() });
        with_causes(&machine.err().unwrap())
    };
    assert_eq!(error(|_| {}), "cannot read /nonexistent/vmlinux: no such file or folder");
    assert!(error(|c| c.memory_bytes = 5).contains("multiple of 4096"));
    assert!(error(|c| c.cpu_hz = 7).contains("cpu_hz = 7"));
    let card = CardConfig { mac: [2; 6], wire: crate::virtio::net::Wire::Unplugged };
    let machine = script.machine_with(|c| c.cards = vec![card; 14]);
    assert_eq!(machine.state().virtio.len(), 16);
}

/// Returns a busy program: timers, sleeps, RTC reads, TSC reads, stores to RAM.
pub(crate) fn busy() -> Script {
    let mut main = timer(777, true);
    main.extend([
        Op::Sti,
        Op::Work(2_003),
        Op::Out(0x70, 0x0a),
        Op::In(0x71),
        Op::Tsc,
        Op::Save(0x20_0000),
        Op::Load(LAPIC + reg::TIMER_CURRENT),
        Op::Hlt,
        Op::Save(0x1f_0008),
        Op::Jump(5),
    ]);
    Script::new(&main, &HANDLER)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Stopping a machine anywhere, computing its digest and taking its output do not change how the guest executes.
    #[test]
    fn stopping_and_digesting_change_nothing(
        stops in proptest::collection::vec((0u64..30_000, any::<bool>(), any::<bool>()), 0..60),
    ) {
        let mut straight = busy().machine();
        straight.run(&Until::vtime(50_000));
        let mut observed = busy().machine();
        observed.keep_journal(true);
        let mut stops = stops;
        stops.sort_unstable();
        for (at, by_count, digest) in stops {
            observed.run(&if by_count { Until::icount(at) } else { Until::vtime(at) });
            if digest { observed.digest(); }
            observed.output().take_notes();
        }
        observed.run(&Until::vtime(50_000));
        prop_assert_eq!(straight.cpu(), observed.cpu());
        prop_assert_eq!(straight.state(), observed.state());
        prop_assert_eq!(straight.digest(), observed.digest());
    }
}

#[test]
fn state_survives_storage() {
    let mut machine = busy().machine();
    machine.run(&Until::vtime(20_000));
    let stored = postcard::to_stdvec(machine.state()).unwrap();
    assert_eq!(&postcard::from_bytes::<State>(&stored).unwrap(), machine.state());
}

#[test]
fn the_boot_seed_shows_in_the_digest() {
    let digest = |number| busy().machine_with(|c| c.boot_seed = BootSeed::new(number)).digest();
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// A guest that writes garbage to every device register can at worst end its own machine.
    #[test]
    fn garbage_at_every_device_is_harmless(
        accesses in proptest::collection::vec((0u8..8, any::<u16>(), any::<u32>(), any::<bool>()), 1..400),
        horizon in 1_000u64..10_000_000,
    ) {
        let mut main = timer(500, true);
        main.push(Op::Sti);
        for (target, offset, value, write) in accesses {
            let offset = u64::from(offset & 0xffc);
            let value = if offset & 4 == 0 { value } else { value & 0xff };
            let port = |first: u16| first + (value % 8) as u16;
            let gpa = match target {
                0 => LAPIC + (offset & 0xff0),
                1 => crate::layout::IOAPIC + (offset & 0x10),
                2..=4 => crate::layout::VIRTIO + crate::layout::VIRTIO_STRIDE * u64::from(target) + (offset & 0x1fc),
                _ => 0xc000_0000 + u64::from(value & 0x3fff_fff0),
            };
            main.push(match (target, write) {
                (5, true) => Op::Out(port(UART_PORT), value >> 8),
                (6, true) => Op::Out(port(0x70) & 0x71, value >> 8),
                (5, false) => Op::In(port(UART_PORT)),
                (6, false) => Op::In(port(0x600)),
                (_, true) => Op::Store(gpa, value),
                (_, false) => Op::Load(gpa),
            });
            main.push(Op::Work(u64::from(value % 50) + 1));
        }
        main.extend([Op::Hlt, Op::Jump(main.len() as u64 - 1)]);
        let script = Script::new(&main, &HANDLER);
        let change = |c: &mut MachineConfig| {
            c.cards = vec![CardConfig { mac: [2; 6], wire: crate::virtio::net::Wire::Attached }];
            c.disks = vec![DiskConfig {
                disk: Disk::zeroed(1 << 20).unwrap(),
                serial: "d".into(),
                read_only: false,
                latency: crate::virtio::blk::Latency::default(),
            }];
        };
        let (mut a, mut b) = (script.machine_with(change), script.machine_with(change));
        let stop = a.run(&Until::vtime(horizon));
        prop_assert_eq!(&stop, &b.run(&Until::vtime(horizon)));
        prop_assert_eq!(a.digest(), b.digest());
        prop_assert!(matches!(stop, Stop::Time | Stop::Idle | Stop::End(_)), "{:?}", stop);
    }
}

/// A failure of the host ends the machine for good. On another engine, the guest continues from an earlier moment.
#[test]
fn a_failure_of_the_host_ends_the_machine() {
    let program = |host| Script { host, ..Script::new(&[Op::Work(1000), Op::Jump(0)], &HANDLER) };
    let gone = End::Host("the device is gone".to_owned());
    let mut machine = program(HostFails::Running(501)).machine();
    assert_eq!(machine.run(&Until::icount(500)), Stop::Count);
    let before = machine.moment(&Pool::default());
    for _ in 0..2 {
        assert_eq!(machine.run(&Until::icount(2000)), Stop::End(gone.clone()));
    }
    assert_eq!(gone.to_string(), "the host failed: the device is gone");

    // A failed engine stays failed. Every machine that is restored on it ends in the same way.
    machine.restore(&before).unwrap();
    assert_eq!(machine.end(), Some(&gone));

    // On another engine, the guest continues from the earlier moment.
    let mut other = program(HostFails::Never).machine();
    other.restore(&before).unwrap();
    assert_eq!(other.run(&Until::icount(2000)), Stop::Count);
}

#[test]
fn a_moment_during_which_the_host_fails_has_ended() {
    let script = Script { host: HostFails::Looking, ..Script::new(&[Op::Work(1000), Op::Jump(0)], &HANDLER) };
    let mut machine = script.machine();
    assert_eq!(machine.run(&Until::icount(500)), Stop::Count);
    let moment = machine.moment(&Pool::default());
    let end = End::Host("no log of written pages".to_owned());
    assert_eq!(machine.end(), Some(&end));
    let mut other = Script::new(&[Op::Work(1000), Op::Jump(0)], &HANDLER).machine();
    other.restore(&moment).unwrap();
    assert_eq!(other.run(&Until::icount(2000)), Stop::End(end.clone()));

    let mut machine = script.machine();
    machine.digest();
    assert_eq!(machine.run(&Until::icount(2000)), Stop::End(end));
}

#[test]
fn an_answer_of_a_failed_host_is_not_used() {
    let script = Script { host: HostFails::Asking, ..Script::new(&[Op::Sti, Op::Hlt], &HANDLER) };
    // The engine fails when the machine asks whether the halted CPU can take an interrupt. The machine must not read
    // this failure as "not interruptible", because it would then be halted forever.
    let end = End::Host("no registers".to_owned());
    assert_eq!(script.machine().run(&Until::vtime(NANOS)), Stop::End(end));
}
