//! Runs a guest in several ways, which must all have the same result.
#![allow(unsafe_code)]

use everett_cpu::{
    CacheConfig, Code, Cpu, CpuState, Edge, Exit, Ram, Request, Traces, TscAnchor, Until, Watchpoint,
    WatchpointHit,
};

use super::image::{CODE, DATA, ELSEWHERE, GDT, Guest, PML4, RAM_BYTES, STACK};

/// The way a guest ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Halt,
    Shutdown,
    Unsupported(&'static str),
    /// The guest reached its maximum number of instructions.
    Count,
}

/// Result of a guest's run.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) state: CpuState,
    pub(crate) ram: Vec<u8>,
    pub(crate) requests: Vec<Request>,
    /// Accesses to the watchpoints. `None` if no watchpoints were set.
    pub(crate) hits: Option<Vec<WatchpointHit>>,
    /// Edges (executed jumps) in the order of their first occurrence. `None` if the state moved between CPUs, or the
    /// CPU did not record edges.
    pub(crate) edges: Option<Vec<Edge>>,
    /// Number of conditional branches. `None` if the state moved between CPUs, or the CPU did not count branches.
    pub(crate) branches: Option<u64>,
}

impl Outcome {
    /// Returns the eight bytes of RAM at `gpa` as a little-endian number.
    pub(crate) fn word(&self, gpa: u64) -> u64 {
        let at = gpa as usize;
        u64::from_le_bytes(self.ram[at..at + 8].try_into().expect("eight bytes"))
    }
}

#[repr(C, align(4096))]
#[derive(Clone)]
struct Page([u8; 4096]);

/// Guest RAM.
struct Memory(Vec<Page>);

impl Memory {
    fn new(bytes: &[u8]) -> Memory {
        let mut pages = vec![Page([0; 4096]); RAM_BYTES / 4096];
        for (page, chunk) in pages.iter_mut().zip(bytes.chunks(4096)) {
            page.0[..chunk.len()].copy_from_slice(chunk);
        }
        Memory(pages)
    }
    fn ram(&mut self) -> Ram {
        // SAFETY: the CPU that gets this RAM is dropped before `self`. Until then, nothing else accesses the pages.
        unsafe { Ram::new(self.0.as_mut_ptr().cast(), RAM_BYTES as u64) }
    }
    fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(RAM_BYTES);
        for page in &self.0 {
            all.extend_from_slice(&page.0);
        }
        all
    }
}

/// A way to run a guest.
#[derive(Debug, Clone, Copy)]
struct Way {
    name: &'static str,
    caches: CacheConfig,
    /// Maximum number of instructions in one call of [`Cpu::run`], or [`WHOLE`] for a single call. The number for each
    /// call is random, from 1 to this maximum.
    piece: u64,
    /// True if all caches are dropped before some of these calls.
    flush: bool,
    /// True if the state is moved to a new CPU before some of these calls.
    restore: bool,
    /// True if watchpoints are set on [`WATCHED`].
    watched: bool,
    /// Distance of breakpoints in bytes, or 0 for none.
    breakpoints: usize,
}

pub(crate) const ORDINARY: CacheConfig = CacheConfig {
    tlb_entries: 256,
    block_entries: 1024,
    translate_after: None,
    traces: Traces::EAGER,
    edges: true,
    branches: true,
};
pub(crate) const TINY: CacheConfig = CacheConfig { tlb_entries: 2, block_entries: 2, ..ORDINARY };
pub(crate) const TRANSLATED: CacheConfig = CacheConfig { translate_after: Some(0), ..ORDINARY };
const TRANSLATED_TINY: CacheConfig = CacheConfig { translate_after: Some(1), ..TINY };
/// Translations without the code that records edges and counts branches.
pub(crate) const TRANSLATED_PLAIN: CacheConfig = CacheConfig { edges: false, branches: false, ..TRANSLATED };
/// Translates a block only after three interpreted executions, when the interpreter already knows which blocks follow
/// it.
const TRANSLATED_LATE: CacheConfig = CacheConfig { translate_after: Some(3), ..TRANSLATED_PLAIN };
const TRANSLATED_LATE_EDGES: CacheConfig = CacheConfig { edges: true, ..TRANSLATED_LATE };
const WHOLE: u64 = u64::MAX;

/// One run of an interpreting CPU with ordinary caches.
const PLAIN: Way = Way {
    name: "ordinary",
    caches: ORDINARY,
    piece: WHOLE,
    flush: false,
    restore: false,
    watched: false,
    breakpoints: 0,
};

const WAYS: [Way; 20] = [
    PLAIN,
    Way { name: "translated", caches: TRANSLATED, ..PLAIN },
    Way { name: "translated, no edges", caches: TRANSLATED_PLAIN, ..PLAIN },
    Way { name: "translated, no edges, pieces", caches: TRANSLATED_PLAIN, piece: 13, ..PLAIN },
    // Long enough for samples, by which blocks are chosen that are translated together.
    Way { name: "translated, no edges, long pieces", caches: TRANSLATED_PLAIN, piece: 300, ..PLAIN },
    Way { name: "translated, long pieces", caches: TRANSLATED, piece: 300, ..PLAIN },
    Way { name: "translated late, edges", caches: TRANSLATED_LATE_EDGES, ..PLAIN },
    Way { name: "translated late", caches: TRANSLATED_LATE, ..PLAIN },
    Way { name: "translated, tiny caches", caches: TRANSLATED_TINY, ..PLAIN },
    Way { name: "translated, pieces", caches: TRANSLATED, piece: 7, flush: true, ..PLAIN },
    Way { name: "tiny caches", caches: TINY, ..PLAIN },
    Way { name: "step by step", piece: 1, ..PLAIN },
    Way { name: "pieces", caches: TINY, piece: 7, ..PLAIN },
    Way { name: "flushed", piece: 5, flush: true, ..PLAIN },
    Way { name: "watched", caches: TINY, piece: 9, flush: true, watched: true, ..PLAIN },
    Way { name: "watched, translated", caches: TRANSLATED, watched: true, ..PLAIN },
    Way { name: "restored", piece: 11, restore: true, ..PLAIN },
    Way { name: "breakpoints", breakpoints: 3, ..PLAIN },
    Way { name: "breakpoints, translated", caches: TRANSLATED, breakpoints: 17, ..PLAIN },
    Way {
        name: "breakpoints, pieces",
        caches: TRANSLATED_PLAIN,
        piece: 9,
        flush: true,
        breakpoints: 5,
        ..PLAIN
    },
];

/// Number of bytes from [`CODE`] on that have breakpoints, at every n-th address.
const BREAKPOINT_BYTES: u64 = 2 << 12;

/// Watchpoints on tables, stacks and data.
const WATCHED: [Watchpoint; 5] = [
    Watchpoint { address: DATA + 3, len: 70, loads: true, stores: true },
    Watchpoint { address: ELSEWHERE, len: 8192, loads: false, stores: true },
    Watchpoint { address: STACK - 32, len: 24, loads: true, stores: false },
    Watchpoint { address: GDT, len: 3 * 4096, loads: true, stores: true },
    Watchpoint { address: PML4, len: 64 << 10, loads: true, stores: true },
];

/// A generator of reproducible pseudo-random numbers.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn cpu(memory: &mut Memory, caches: CacheConfig, guest: &Guest, state: &CpuState) -> Cpu {
    let mut cpu = Cpu::sharing(memory.ram(), &Code::of_model(caches, guest.model));
    cpu.set_tsc(TscAnchor { icount: 0, tsc: 1000, num: 3, den: 2 });
    cpu.set_state(state);
    cpu.leak_stale_translations(guest.leak_stale_translations);
    cpu
}

fn run(guest: &Guest, way: Way) -> Outcome {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu_now = cpu(&mut memory, way.caches, guest, &guest.state);
    let mut draw = Draw(way.piece ^ 0x9e37_79b9);
    let mut interrupts = guest.interrupts.iter().copied().peekable();
    if way.watched {
        cpu_now.set_watchpoints(&WATCHED);
    }
    if way.breakpoints > 0 {
        let addresses: Vec<u64> = (CODE..CODE + BREAKPOINT_BYTES).step_by(way.breakpoints).collect();
        cpu_now.set_breakpoints(&addresses);
    }
    let mut passing = false;
    let mut requests = Vec::new();
    // True after the answer to a device access was given. The answer is not part of the state, so the state must not
    // move to a new CPU until the instruction that needs the answer has finished.
    let mut completing = false;
    let end = loop {
        let now = cpu_now.icount();
        if now >= guest.instructions_max {
            break End::Count;
        }
        let due = interrupts.peek().is_some_and(|(at, _)| *at <= now);
        if due && cpu_now.interruptible() {
            let (_, vector) = interrupts.next().expect("peeked");
            cpu_now.interrupt(vector);
            continue;
        }
        if way.flush && draw.next(3) == 0 {
            cpu_now.flush_caches();
        }
        if way.restore && draw.next(3) == 0 && !completing {
            let state = cpu_now.state();
            drop(cpu_now);
            cpu_now = cpu(&mut memory, way.caches, guest, &state);
        }
        let piece = if way.piece == WHOLE { WHOLE } else { now + 1 + draw.next(way.piece) };
        let next = interrupts.peek().map_or(u64::MAX, |(at, _)| if due { u64::MAX } else { *at });
        let until = Until { icount: piece.min(next).min(guest.instructions_max), window: due, passing };
        let exit = cpu_now.run(until);
        completing = matches!(exit, Exit::Device(_));
        passing = exit == Exit::Breakpoint;
        match exit {
            Exit::Count => assert_eq!(cpu_now.icount(), until.icount, "{}: the stop is not exact", way.name),
            Exit::Window | Exit::Breakpoint | Exit::Watchpoint | Exit::ModeChange => {}
            Exit::Device(request) => {
                requests.push(request);
                cpu_now.complete(guest.answer(requests.len()));
            }
            Exit::Halt if interrupts.peek().is_some() && cpu_now.interruptible() => {
                let (_, vector) = interrupts.next().expect("peeked");
                cpu_now.interrupt(vector);
            }
            Exit::Halt => break End::Halt,
            Exit::Shutdown => break End::Shutdown,
            Exit::Unsupported(reason) => break End::Unsupported(reason),
            Exit::NoProgress | Exit::Failed => {
                panic!("{}: the CPU has panicked: {:?}", way.name, cpu_now.failure())
            }
        }
    };
    let state = cpu_now.state();
    let hits = way.watched.then(|| cpu_now.take_hits());
    let edges = (way.caches.edges && !way.restore).then(|| cpu_now.take_edges());
    let branches = (way.caches.branches && !way.restore).then(|| cpu_now.branches());
    drop(cpu_now);
    Outcome { end, state, ram: memory.bytes(), requests, hits, edges, branches }
}

/// Runs the guest in every way, checks that all outcomes are equal, and returns the outcome.
pub(crate) fn check(guest: &Guest) -> Outcome {
    let mut first = run(guest, WAYS[0]);
    for way in &WAYS[1..] {
        let other = run(guest, *way);
        compare(&first, &other, way.name);
        first.hits = first.hits.or(other.hits);
    }
    first
}

/// Like [`check`], for guests with many instructions: only in the ways that differ in translated code, and without
/// frequent stops.
pub(crate) fn check_translated(guest: &Guest) -> Outcome {
    let first = run(guest, PLAIN);
    for way in &WAYS[1..9] {
        compare(&first, &run(guest, *way), way.name);
    }
    first
}

/// Like [`check_translated`], for guests with so much code that stops within blocks, after which the rest of a block is
/// translated again, would take minutes.
pub(crate) fn check_translated_whole(guest: &Guest) -> Outcome {
    let first = run(guest, PLAIN);
    for way in WAYS[1..9].iter().filter(|way| way.piece == WHOLE) {
        compare(&first, &run(guest, *way), way.name);
    }
    first
}

/// Returns the number of traces, i.e. of several blocks translated together, in a run of the guest. `edges` is true if
/// edges are recorded.
pub(crate) fn traces(guest: &Guest, edges: bool) -> u64 {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu = cpu(&mut memory, CacheConfig { edges, ..TRANSLATED_PLAIN }, guest, &guest.state);
    assert_eq!(cpu.run(Until { icount: guest.instructions_max, ..Until::default() }), Exit::Halt);
    cpu.traces_translated()
}

/// Runs a guest that changes no code three times on each of two CPUs that share their code and take turns. Returns the
/// edges of each run.
pub(crate) fn edges_of_two(guest: &Guest) -> Vec<Vec<Edge>> {
    let code = Code::of_model(TRANSLATED, guest.model);
    let mut memories = [Memory::new(&guest.ram), Memory::new(&guest.ram)];
    let mut cpus: Vec<Cpu> = memories.iter_mut().map(|memory| Cpu::sharing(memory.ram(), &code)).collect();
    let mut edges = Vec::new();
    for _ in 0..3 {
        let mut runs = [true, true];
        cpus.iter_mut().for_each(|cpu| cpu.forget_edges());
        cpus.iter_mut().for_each(|cpu| cpu.set_state(&guest.state));
        while runs.contains(&true) {
            for (cpu, runs) in cpus.iter_mut().zip(&mut runs).filter(|(_, runs)| **runs) {
                let icount = (cpu.icount() + 300).min(guest.instructions_max);
                *runs = cpu.run(Until { icount, ..Until::default() }) == Exit::Count;
            }
        }
        edges.extend(cpus.iter_mut().map(Cpu::take_edges));
    }
    edges
}

/// Runs the guest in the first way only, for tests with thousands of guests.
pub(crate) fn once(guest: &Guest) -> Outcome {
    run(guest, WAYS[0])
}

/// Injects an exception before the guest's first instruction, and runs the guest.
pub(crate) fn after_exception(guest: &Guest, vector: u8, error: Option<u32>) -> Outcome {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu = cpu(&mut memory, ORDINARY, guest, &guest.state);
    cpu.exception(vector, error);
    let exit = cpu.run(Until { icount: guest.instructions_max, ..Until::default() });
    assert_eq!(exit, Exit::Halt);
    let state = cpu.state();
    drop(cpu);
    Outcome {
        end: End::Halt,
        state,
        ram: memory.bytes(),
        requests: vec![],
        hits: None,
        edges: None,
        branches: None,
    }
}

fn compare(a: &Outcome, b: &Outcome, way: &str) {
    assert_eq!(a.end, b.end, "{way}");
    assert_eq!(a.requests, b.requests, "{way}");
    assert_eq!(a.state, b.state, "{way}");
    if a.hits.is_some() && b.hits.is_some() {
        assert_eq!(a.hits, b.hits, "{way}");
    }
    if a.edges.is_some() && b.edges.is_some() {
        assert_eq!(a.edges, b.edges, "{way}");
    }
    if a.branches.is_some() && b.branches.is_some() {
        assert_eq!(a.branches, b.branches, "{way}: conditional branches");
    }
    if a.ram != b.ram {
        let at = a.ram.iter().zip(&b.ram).position(|(x, y)| x != y);
        panic!("{way}: RAM differs at {at:?}");
    }
}

/// True if a CPU that keeps stale TLB entries, a planted defect, gives another result than a correct CPU.
pub(crate) fn stale_translations_show(guest: &Guest) -> bool {
    let mut leaky = guest.clone();
    leaky.leak_stale_translations = true;
    run(&leaky, WAYS[0]) != run(guest, WAYS[0])
}

/// Runs the guest from its start to each number of instructions below its total. Checks that each stop is exact, and
/// that the state equals the state of a CPU that runs one instruction at a time.
pub(crate) fn check_every_count(guest: &Guest) {
    let total = run(guest, WAYS[0]).state.icount;
    let mut memory = Memory::new(&guest.ram);
    let mut stepped = cpu(&mut memory, TINY, guest, &guest.state);
    for n in 0..total {
        assert_eq!(stepped.run(Until { icount: n, ..Until::default() }), Exit::Count);
        let mut fresh_memory = Memory::new(&guest.ram);
        let mut fresh = cpu(&mut fresh_memory, ORDINARY, guest, &guest.state);
        assert_eq!(fresh.run(Until { icount: n, ..Until::default() }), Exit::Count, "stop at {n}");
        assert_eq!(fresh.icount(), n);
        assert_eq!(fresh.state(), stepped.state(), "stop at {n}");
    }
    drop(stepped);
}

/// Returns the count and RIP of each stop of a run with breakpoints.
pub(crate) fn stops(guest: &Guest, caches: CacheConfig, breakpoints: &[u64]) -> Vec<(u64, u64)> {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu = cpu(&mut memory, caches, guest, &guest.state);
    cpu.set_breakpoints(breakpoints);
    let mut stops = Vec::new();
    let mut passing = false;
    while cpu.run(Until { icount: guest.instructions_max, passing, ..Until::default() }) == Exit::Breakpoint {
        stops.push((cpu.icount(), cpu.state().rip));
        passing = true;
    }
    stops
}

/// Returns the count and RIP of each instruction at one of these addresses that a CPU without breakpoints executes.
pub(crate) fn passes(guest: &Guest, addresses: &[u64]) -> Vec<(u64, u64)> {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu = cpu(&mut memory, ORDINARY, guest, &guest.state);
    let mut passes = Vec::new();
    loop {
        let (icount, rip) = (cpu.icount(), cpu.state().rip);
        if addresses.contains(&rip) {
            passes.push((icount, rip));
        }
        if cpu.run(Until { icount: icount + 1, ..Until::default() }) != Exit::Count {
            return passes;
        }
    }
}

/// Returns the count and the mode (true in user mode) after each change of the mode.
pub(crate) fn mode_changes(guest: &Guest, caches: CacheConfig) -> Vec<(u64, bool)> {
    let mut memory = Memory::new(&guest.ram);
    let mut cpu = cpu(&mut memory, caches, guest, &guest.state);
    cpu.stop_at_mode_changes(true);
    let mut changes = Vec::new();
    while cpu.run(Until { icount: guest.instructions_max, ..Until::default() }) == Exit::ModeChange {
        changes.push((cpu.icount(), cpu.state().seg[everett_cpu::state::seg::CS].selector & 3 == 3));
    }
    changes
}
