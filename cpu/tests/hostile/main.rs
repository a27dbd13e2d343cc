//! Hostile guests: programs that try to make translated code deviate from the interpreter.
//!
//! The programs consist of hot loops. The loops cross the ends of pages, jump into the middle of instructions, change
//! themselves and the tables that map them, and make forbidden accesses. Exception handlers repair mappings, skip
//! bytes, or continue elsewhere. A program stops after random numbers of instructions. At some of these stops, the test
//! writes RAM as a device would, gives pages their initial content back, or delivers an interrupt. The interpreter
//! defines the correct result of a program. At each stop, the test compares the registers, the RAM, the list of written
//! pages, and the exits (accesses to devices, for example) since the last stop. Guard pages around RAM detect accesses
//! outside RAM.
//!
//! - [`layout`]: addresses in guest RAM and in linear memory
//! - [`program`]: builds the complete program of a seed
//! - [`world`]: the pages and branch targets to which generated code may refer
//! - [`units`]: loops and functions, composed of [`pieces`], [`vectors`], [`extended`] and [`attacks`]
//! - [`code`]: encoder for machine code
//! - [`handlers`]: exception handlers
//! - [`events`]: instruction counts at which a program stops, and external events at these stops
//! - [`machine`]: runs a program, interpreted or translated, in memory with guard pages ([`guarded`])
//! - [`crash`]: prints the seed of a program that kills the process
//! - [`ground`], [`rng`]: descriptors, answers of devices and random numbers, shared with the other tests
//!
//! `EVERETT_HOSTILE_PROGRAMS=N` runs N programs, and `EVERETT_HOSTILE_FIRST=SEED` starts at another seed.

mod attacks;
mod code;
mod crash;
mod events;
mod extended;
#[path = "../soup/ground.rs"]
mod ground;
mod guarded;
mod handlers;
mod layout;
mod machine;
mod pieces;
mod program;
#[allow(dead_code, reason = "shared with the oracle, which uses all of it")]
#[path = "../oracle/rng.rs"]
mod rng;
mod units;
mod vectors;
mod world;

use std::sync::{Mutex, MutexGuard, PoisonError};

use events::INSTRUCTIONS_MAX;
use ground::differing;
use guarded::Guarded;
use machine::{ORACLE, Snapshot, Trace, WAYS, Way, run};
use program::{EXTENDED, Program, VECTORS};

/// Default number of programs. For every `VECTORS_EACH` programs, the test runs one more with vector instructions, and one
/// more with instructions of the largest model.
const PROGRAMS: u64 = 1500;
const VECTORS_EACH: u64 = 3;

/// Seeds of programs that found rare defects. In the first program, the bytes of an instruction cross into a page that
/// is also the page table for the instruction's own store. The page walk of the store therefore sets the accessed or
/// dirty bit in the bytes of the instruction itself. In the second program, an ADC combines AH, BH, CH or DH with a
/// register that the translator keeps in a host register from R8 up. The translated ADC would need a REX prefix, with
/// which it cannot name AH, BH, CH or DH.
const RARE: [u64; 2] = [0x2d_dc3e, 0x3d_1ded];

/// Lets only one test run programs at a time, so that a crash can be attributed to a program.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Describes the first difference between two stops. The complete states are too long to print.
fn different(a: &Snapshot, b: &Snapshot) -> Option<String> {
    if let Some((a, b)) = a.exits.iter().zip(&b.exits).find(|(a, b)| a != b) {
        return Some(format!("exits {a:x?} and {b:x?}"));
    }
    if a.state != b.state {
        let (a, b) = (format!("{:#x?}", a.state), format!("{:#x?}", b.state));
        let lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
        let lines: Vec<String> = lines.map(|(a, b)| format!("{} and {}", a.trim(), b.trim())).collect();
        return Some(lines.join("; "));
    }
    if a.exits.len() != b.exits.len() {
        return Some(format!("{} exits and {}", a.exits.len(), b.exits.len()));
    }
    if a.dirty != b.dirty {
        return Some(format!("dirty pages {:x?} and {:x?}", a.dirty, b.dirty));
    }
    if a.ram_hash != b.ram_hash {
        return Some("RAM".into());
    }
    if a.branches != b.branches {
        return Some(format!("{} branches and {}", a.branches, b.branches));
    }
    differing(&a.edges, &b.edges)
}

fn difference(a: &Trace, b: &Trace) -> Option<String> {
    let stops = a.snapshots.iter().zip(&b.snapshots).enumerate();
    let found = stops.filter_map(|(n, (a, b))| Some(format!("stop {n}: {}", different(a, b)?))).next();
    let ram = if a.ram == b.ram { None } else { a.ram.iter().zip(&b.ram).position(|(a, b)| a != b) };
    let ram = ram.map(|at| format!("RAM at {at:#x}: {:#x} and {:#x}", a.ram[at], b.ram[at]));
    match (found, ram) {
        (Some(found), Some(ram)) => Some(format!("{found}; in the end {ram}")),
        (found, ram) => found.or(ram),
    }
}

/// Describes how a run with the settings `way` (cache sizes, for example) differs from the interpreted run: the first
/// instruction after which they differ, and the registers before it.
fn disagreement(p: &Program, memory: &Guarded, way: &Way) -> Option<String> {
    let differ = |n| difference(&run(p, memory, &ORACLE, n), &run(p, memory, way, n));
    let (mut same, mut different) = (0, INSTRUCTIONS_MAX);
    while different - same > 1 {
        let middle = (same + different) / 2;
        *if differ(middle).is_some() { &mut different } else { &mut same } = middle;
    }
    let before = run(p, memory, &ORACLE, same);
    let state = &before.snapshots.last()?.state;
    let what = differ(different).unwrap_or_else(|| "visible only in a longer run".into());
    Some(format!(
        "program {:#x}: interpreted and {} differ after {different} instructions: {what}\nbefore: rip {:#x}, \
         rflags {:#x}, cs {:#x}, gpr {:x?}",
        p.seed, way.name, state.rip, state.rflags, state.seg[1].selector, state.gpr
    ))
}

#[test]
fn translated_code_does_what_the_interpreter_does() {
    let _alone = alone();
    let first = number("EVERETT_HOSTILE_FIRST").unwrap_or(1);
    let programs = number("EVERETT_HOSTILE_PROGRAMS").unwrap_or(PROGRAMS);
    let memory = Guarded::new();
    let (mut instructions, mut lived) = (0, 0);
    let (mut translated, mut traces) = ([0; WAYS.len()], 0);
    let with_vectors = (first..first + programs / VECTORS_EACH).map(|seed| seed | VECTORS);
    let extended = with_vectors.clone().map(|seed| seed | EXTENDED);
    for seed in RARE.into_iter().chain(first..first + programs).chain(with_vectors).chain(extended) {
        crash::begins(seed);
        let p = Program::new(seed);
        let oracle = run(&p, &memory, &ORACLE, INSTRUCTIONS_MAX);
        for (way, translated) in WAYS.iter().zip(&mut translated) {
            let trace = run(&p, &memory, way, INSTRUCTIONS_MAX);
            if difference(&oracle, &trace).is_some() {
                panic!("{}", disagreement(&p, &memory, way).unwrap_or_default());
            }
            *translated += trace.translated;
            traces += if way.shared { 0 } else { trace.traces };
        }
        let state = &oracle.snapshots[oracle.snapshots.len() - 1].state;
        instructions += state.icount - p.state.icount;
        lived += u64::from(state.icount - p.state.icount == INSTRUCTIONS_MAX);
    }
    crash::ends();
    println!(
        "{programs} programs: {instructions} instructions, {lived} ran to the limit, blocks translated: {translated:?}, \
         traces: {traces}"
    );
    // The test is useful only if most programs run to their limit and their blocks are translated.
    assert!(instructions > programs * INSTRUCTIONS_MAX / 2 && lived > programs / 2);
    assert!(translated.iter().all(|&blocks| blocks > programs) && traces > programs / 10);
}

/// The comparison must detect the planted defect of stale TLB entries.
#[test]
fn a_stale_translation_is_caught() {
    let _alone = alone();
    let memory = Guarded::new();
    let caught = (1..500).any(|seed| {
        crash::begins(seed);
        let p = Program::new(seed);
        let oracle = run(&p, &memory, &ORACLE, INSTRUCTIONS_MAX);
        let way = Way { stale: true, ..WAYS[0] };
        difference(&oracle, &run(&p, &memory, &way, INSTRUCTIONS_MAX)).is_some()
    });
    crash::ends();
    assert!(caught);
}
