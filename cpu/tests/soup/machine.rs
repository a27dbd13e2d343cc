//! Runs of a guest of random bytes (a "soup") in one of several ways.
#![allow(unsafe_code)]

use everett_cpu::{CacheConfig, Code, Cpu, CpuState, Edge, Exit, Ram, Traces, TscAnchor, Until};

use crate::ground::answer;
use crate::rng::Rng;
use crate::soup::{RAM_LEN, Soup, WINDOW, WINDOW_PAGES};

/// Maximum number of instructions that a soup executes.
pub(crate) const INSTRUCTIONS_MAX: u64 = 3000;
/// Maximum number of exits that a soup may cause.
const EXITS_MAX: usize = 2000;
/// Number of instructions between two external interrupts.
const INTERRUPT_EVERY: u64 = 200;
/// Maximum number of instructions between two flushes in [`Way::Flushes`].
const FLUSH_EVERY_MAX: u64 = 50;

/// A way to run a soup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// With caches of 1024 entries, and without additional stops.
    Plain,
    /// With sixteen entries in each cache.
    TinyCaches,
    /// With every block translated to host code before its first execution.
    Translated,
    /// With sixteen entries in each cache, and every block translated before its second execution.
    TranslatedTiny,
    /// With all caches dropped after random numbers of instructions.
    Flushes,
    /// With a stop after each instruction.
    SingleSteps,
    /// With breakpoints in the code.
    Breakpoints,
    /// With the planted defect: stores to page tables leave stale TLB entries.
    StaleTranslations,
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) state: CpuState,
    pub(crate) ram: Vec<u8>,
    pub(crate) dirty: Vec<u64>,
    pub(crate) edges: Vec<Edge>,
    /// Number of conditional branches that retired.
    pub(crate) branches: u64,
    /// Exits that the guest caused, each with its instruction count.
    pub(crate) exits: Vec<(u64, Exit)>,
}

/// Runs a soup until it has executed `instructions_max` instructions, halts with interrupts off, shuts down, or does
/// something unsupported.
pub(crate) fn run(soup: &Soup, way: Way, instructions_max: u64) -> Trace {
    // RAM must be aligned to a page.
    let layout = std::alloc::Layout::from_size_align(RAM_LEN, 4096).expect("constants");
    // SAFETY: the size is not zero.
    let memory = unsafe { std::alloc::alloc(layout) };
    assert!(!memory.is_null());
    // SAFETY: source and destination have `RAM_LEN` bytes and do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(soup.ram.as_ptr(), memory, RAM_LEN) };
    // SAFETY: the memory is freed below, after the CPU is dropped. Until then only the CPU accesses it.
    let ram = unsafe { Ram::new(memory, RAM_LEN as u64) };
    let entries = if matches!(way, Way::TinyCaches | Way::TranslatedTiny) { 16 } else { 1024 };
    let translate_after = match way {
        Way::Translated => Some(0),
        Way::TranslatedTiny => Some(1),
        _ => None,
    };
    let caches = CacheConfig {
        tlb_entries: entries,
        block_entries: entries,
        translate_after,
        traces: Traces::EAGER,
        edges: true,
        branches: true,
    };
    let mut cpu = Cpu::sharing(ram, &Code::of_model(caches, soup.model));
    cpu.leak_stale_translations(way == Way::StaleTranslations);
    cpu.set_state(&soup.state);
    cpu.set_tsc(TscAnchor { icount: 0, tsc: 1 << 40, num: 3, den: 2 });
    let mut exits = Vec::new();
    drive(&mut cpu, soup, way, instructions_max, &mut exits);
    let state = cpu.state();
    let dirty = cpu.take_dirty_pages();
    let edges = cpu.take_edges();
    let branches = cpu.branches();
    drop(cpu);
    // SAFETY: the memory is initialised, and the CPU that wrote to it is dropped.
    let ram = unsafe { std::slice::from_raw_parts(memory, RAM_LEN) }.to_vec();
    // SAFETY: the memory was allocated above with this layout.
    unsafe { std::alloc::dealloc(memory, layout) };
    Trace { state, ram, dirty, edges, branches, exits }
}

fn drive(cpu: &mut Cpu, soup: &Soup, way: Way, instructions_max: u64, exits: &mut Vec<(u64, Exit)>) {
    let mut flushes = Rng::for_case(soup.seed, 1);
    if way == Way::Breakpoints {
        let mut rng = Rng::for_case(soup.seed, 2);
        let breakpoints: Vec<u64> = (0..64).map(|_| WINDOW + rng.below(WINDOW_PAGES * 4096)).collect();
        cpu.set_breakpoints(&breakpoints);
    }
    let end = soup.state.icount + instructions_max;
    let mut interrupt_at = soup.state.icount + INTERRUPT_EVERY;
    let mut passing = false;
    while cpu.icount() < end && exits.len() < EXITS_MAX {
        let waiting = cpu.icount() >= interrupt_at;
        if waiting && cpu.interruptible() {
            interrupt_at = cpu.icount() + INTERRUPT_EVERY;
            cpu.interrupt(0x20 + (cpu.icount() % 0xe0) as u8);
        }
        let waiting = cpu.icount() >= interrupt_at;
        let next = if waiting { end } else { interrupt_at.min(end) };
        let stop = match way {
            Way::SingleSteps => cpu.icount() + 1,
            Way::Flushes => {
                cpu.flush_caches();
                cpu.icount() + 1 + flushes.below(FLUSH_EVERY_MAX)
            }
            _ => next,
        };
        let exit = cpu.run(Until { icount: stop.min(next), window: waiting, passing });
        passing = exit == Exit::Breakpoint;
        match exit {
            Exit::Count | Exit::Window | Exit::Breakpoint | Exit::Watchpoint | Exit::ModeChange => continue,
            Exit::Device(request) => cpu.complete(answer(request, cpu.icount())),
            Exit::Halt if cpu.interruptible() => interrupt_at = cpu.icount(),
            Exit::Halt | Exit::Shutdown | Exit::Unsupported(_) => {
                exits.push((cpu.icount(), exit));
                return;
            }
            Exit::NoProgress | Exit::Failed => panic!("a CPU ends with {exit:?}: {:?}", cpu.failure()),
        }
        exits.push((cpu.icount(), exit));
    }
}
