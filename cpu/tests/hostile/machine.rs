//! Runs a guest program in one of several ways, e.g. interpreted or translated.
#![allow(unsafe_code)]

use std::sync::OnceLock;

use everett_cpu::{
    CacheConfig, Code, Cpu, CpuModel, CpuState, Edge, Exit, Ram, Traces, TscAnchor, Until, Watchpoint,
};

use crate::crash;
use crate::events::{Event, Stop, stops};
use crate::ground::answer;
use crate::guarded::Guarded;
use crate::layout::RAM_LEN;
use crate::program::Program;
use crate::rng::Rng;
use crate::world::somewhere;

/// Maximum number of exits that the guest may cause between two stops, i.e. instruction counts at which the test stops
/// the program.
const EXITS_MAX: usize = 400;

/// A way to run a program: cache sizes, translation, and disturbances that the guest must not notice.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) tlb: usize,
    pub(crate) blocks: usize,
    pub(crate) after: Option<u32>,
    /// Maximum distance between additional stops, in instructions. Each distance is random. 0 means no additional
    /// stops.
    pub(crate) piece: u64,
    /// True if the test drops all caches at some of the additional stops.
    pub(crate) flush: bool,
    /// True if the test first runs a part of the program, and restores the initial state.
    pub(crate) restore: bool,
    /// True if all programs that run in this way and make the same recordings (edges, branches) share one code cache.
    pub(crate) shared: bool,
    /// True if the CPU has a deliberate defect, which the test must notice: stores to page tables leave stale TLB
    /// entries.
    pub(crate) stale: bool,
    /// True if the test sets watchpoints on random addresses that the program may access.
    pub(crate) watched: bool,
}

/// The way that only interprets. It defines the correct result.
pub(crate) const ORACLE: Way = Way {
    name: "interpreted",
    tlb: 64,
    blocks: 1024,
    after: None,
    piece: 0,
    flush: false,
    restore: false,
    shared: false,
    stale: false,
    watched: false,
};
/// The ways whose results must equal those of [`ORACLE`].
pub(crate) const WAYS: [Way; 8] = [
    Way { name: "at once", tlb: 64, blocks: 1024, after: Some(0), ..ORACLE },
    Way { name: "tiny", tlb: 2, blocks: 4, after: Some(1), ..ORACLE },
    Way { name: "few blocks", tlb: 16, blocks: 32, after: Some(3), ..ORACLE },
    Way { name: "by default", tlb: 1024, blocks: 1 << 14, after: Some(50), ..ORACLE },
    Way { name: "flushed", tlb: 8, blocks: 256, after: Some(0), piece: 60, flush: true, ..ORACLE },
    Way { name: "watched", tlb: 64, blocks: 1024, after: Some(0), watched: true, ..ORACLE },
    Way { name: "restored", tlb: 64, blocks: 1024, after: Some(0), piece: 200, restore: true, ..ORACLE },
    Way { name: "shared", tlb: 64, blocks: 1 << 14, after: Some(1), piece: 400, shared: true, ..ORACLE },
];

/// Observable state at a stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) state: CpuState,
    pub(crate) ram_hash: u64,
    /// Pages written since the list was last taken. `None` if this stop does not take the list.
    pub(crate) dirty: Option<Vec<u64>>,
    /// Edges, i.e. pairs of a branch and its target, that were first executed since the last stop.
    pub(crate) edges: Vec<Edge>,
    /// Number of conditional branches retired so far, or 0 if they are not counted.
    pub(crate) branches: u64,
    /// Exits that the guest caused since the last stop, each with the instruction count.
    pub(crate) exits: Vec<(u64, Exit)>,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) ram: Vec<u8>,
    pub(crate) translated: u64,
    /// Number of traces, i.e. of several blocks translated together.
    pub(crate) traces: u64,
}

/// Returns the code cache that all programs with these settings share.
fn shared(caches: CacheConfig, model: CpuModel) -> Code {
    static CODE: [OnceLock<Code>; 8] = [const { OnceLock::new() }; 8];
    let of_model = usize::from(model != CpuModel::V2);
    CODE[usize::from(caches.edges) + 2 * usize::from(caches.branches) + 4 * of_model]
        .get_or_init(|| Code::of_model(caches, model))
        .clone()
}

/// Returns watchpoints on bytes that the program may access.
fn points(p: &Program) -> Vec<Watchpoint> {
    let mut rng = Rng::for_case(p.seed, 1);
    let point = |rng: &mut Rng| Watchpoint {
        address: somewhere(rng),
        len: 1 + rng.below(300),
        loads: rng.one_in(2),
        stores: !rng.one_in(3),
    };
    (0..8).map(|_| point(&mut rng)).collect()
}

/// Runs a program for `instructions_max` instructions, or until it cannot continue.
pub(crate) fn run(p: &Program, memory: &Guarded, way: &Way, instructions_max: u64) -> Trace {
    crash::runs(way.name);
    memory.write(0, &p.ram);
    // SAFETY: `memory` outlives the CPU and is accessed only while the CPU does not run.
    let ram = unsafe { Ram::new(memory.ram(), RAM_LEN as u64) };
    let caches = CacheConfig {
        tlb_entries: way.tlb,
        block_entries: way.blocks,
        translate_after: way.after,
        traces: Traces::EAGER,
        // `edges` and `branches` are each on for half of all programs.
        edges: p.seed.count_ones() % 2 == 1,
        branches: p.seed % 2 == 1,
    };
    let code = if way.shared { shared(caches, p.model()) } else { Code::of_model(caches, p.model()) };
    let mut cpu = Cpu::sharing(ram, &code);
    let translated_before = cpu.blocks_translated();
    cpu.leak_stale_translations(way.stale);
    if way.watched {
        cpu.set_watchpoints(&points(p));
    }
    cpu.set_tsc(TscAnchor { icount: 0, tsc: 1 << 40, num: 3, den: 2 });
    let mut rng = Rng::for_case(p.seed, 2 + way.piece);
    cpu.set_state(&p.state);
    let all = stops(p, instructions_max);
    if way.restore {
        let part = stops(p, 1 + rng.below(crate::events::INSTRUCTIONS_MAX));
        drive(&mut cpu, p, memory, way, &part, &mut rng);
        let pages = p.ram.chunks(4096).zip(memory.bytes().chunks(4096)).enumerate();
        let changed: Vec<u64> = pages.filter(|(_, (a, b))| a != b).map(|(n, _)| n as u64).collect();
        memory.write(0, &p.ram);
        cpu.memory_replaced(&changed);
        cpu.set_state(&p.state);
        cpu.forget_edges();
    }
    let snapshots = drive(&mut cpu, p, memory, way, &all, &mut rng);
    let translated = cpu.blocks_translated() - translated_before;
    let traces = cpu.traces_translated();
    drop(cpu);
    assert!(
        memory.intact(),
        "program {:#x}, {}: host memory outside of guest RAM was written",
        p.seed,
        way.name
    );
    Trace { snapshots, ram: memory.bytes().to_vec(), translated, traces }
}

fn drive(
    cpu: &mut Cpu,
    p: &Program,
    memory: &Guarded,
    way: &Way,
    stops: &[Stop],
    rng: &mut Rng,
) -> Vec<Snapshot> {
    let mut snapshots = vec![];
    for stop in stops {
        let mut exits = vec![];
        let goes_on = run_until(p.seed, cpu, p.state.icount + stop.at, way, rng, &mut exits);
        let dirty = (!goes_on || matches!(stop.event, Event::TakeDirty)).then(|| cpu.take_dirty_pages());
        let (state, ram_hash, edges) = (cpu.state(), hash(memory.bytes()), cpu.take_edges());
        let branches = cpu.branches();
        snapshots.push(Snapshot { state, ram_hash, dirty, edges, branches, exits });
        if !goes_on {
            break;
        }
        match &stop.event {
            Event::Nothing | Event::TakeDirty => {}
            Event::Write(gpa, bytes) => {
                memory.write(*gpa, bytes);
                cpu.memory_written(*gpa, bytes.len() as u64);
            }
            Event::Replace(pages) => {
                for &page in pages {
                    let at = page as usize * 4096;
                    memory.write(page * 4096, &p.ram[at..at + 4096]);
                }
                cpu.memory_replaced(pages);
            }
            Event::Interrupt(vector) if cpu.interruptible() => cpu.interrupt(*vector),
            Event::Interrupt(_) => {}
        }
    }
    snapshots
}

/// Runs the CPU until its instruction count is `end`. Returns true if it reached that count and the guest can continue.
fn run_until(
    seed: u64,
    cpu: &mut Cpu,
    end: u64,
    way: &Way,
    rng: &mut Rng,
    exits: &mut Vec<(u64, Exit)>,
) -> bool {
    while cpu.icount() < end {
        let next = if way.piece == 0 { end } else { end.min(cpu.icount() + 1 + rng.below(way.piece)) };
        if way.flush && rng.one_in(3) {
            cpu.flush_caches();
        }
        let exit = cpu.run(Until { icount: next, ..Until::default() });
        match exit {
            Exit::Count => {
                assert_eq!(cpu.icount(), next, "program {seed:#x}, {}: the stop is not exact", way.name);
                continue;
            }
            Exit::Watchpoint => {
                cpu.take_hits();
                continue;
            }
            Exit::Device(request) => cpu.complete(answer(request, cpu.icount())),
            Exit::Halt if cpu.interruptible() => cpu.interrupt(0x20 + (cpu.icount() % 0xe0) as u8),
            Exit::Window
            | Exit::Breakpoint
            | Exit::ModeChange
            | Exit::Halt
            | Exit::Shutdown
            | Exit::Unsupported(_) => {
                exits.push((cpu.icount(), exit));
                return false;
            }
            Exit::NoProgress | Exit::Failed => panic!("a CPU ends with {exit:?}: {:?}", cpu.failure()),
        }
        exits.push((cpu.icount(), exit));
        if exits.len() >= EXITS_MAX {
            return false;
        }
    }
    true
}

/// Returns a hash. A change of any single byte changes the hash.
fn hash(bytes: &[u8]) -> u64 {
    let mut lanes = [1u64, 2, 3, 4];
    let (words, _) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let lane = &mut lanes[n & 3];
        *lane = (lane.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    lanes.into_iter().fold(0, |all, lane| (all ^ lane).wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29))
}
