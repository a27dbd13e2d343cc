//! Hostile guests: programs that try to get translated code to do what the interpreter would not.
//!
//! Loops that are hot at once run over page ends and into the middle of instructions, change themselves and the tables that
//! map them, and access what they may not; handlers repair, skip or go on elsewhere; and from outside memory is written and
//! restored between two instructions. What the interpreter makes of a program is right, and translated code has to do the
//! same: registers, RAM, pages reported as written and exits are compared at each stop. RAM lies between pages that may not
//! be touched, so that an access that leaves it does not go unnoticed.
//!
//! - [`layout`]: where things lie
//! - [`program`]: a program: its [`world`], [`units`] of [`pieces`], [`vectors`] and [`attacks`] in machine [`code`], and [`handlers`]
//! - [`events`]: stops, and what happens from outside
//! - [`machine`]: running it, in [`guarded`] memory
//! - [`crash`]: telling which program it was that killed the process
//!
//! `EVERETT_HOSTILE_PROGRAMS=N` runs more of them, `EVERETT_HOSTILE_FIRST=SEED` other ones.

mod attacks;
mod code;
mod crash;
mod events;
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
use program::{Program, VECTORS};

/// How many programs are run if nobody says otherwise, and of so many one is run with vectors, too.
const PROGRAMS: u64 = 1500;
const VECTORS_EACH: u64 = 3;

/// Programs that differed once, in ways that few programs do: an instruction whose second page is the table that maps what it
/// writes, so that it sets a bit in itself; an ADC of a second byte and a register that has no name next to it.
const RARE: [u64; 2] = [0x2d_dc3e, 0x3d_1ded];

/// Only one program runs at a time, so that a crash can tell which.
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

/// Where two stops differ, in words; the whole states would fill pages.
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

/// Where a way differs from the interpreter: the first instruction after which it does, and what it began with.
fn disagreement(p: &Program, memory: &Guarded, way: &Way) -> Option<String> {
    let differ = |n| difference(&run(p, memory, &ORACLE, n), &run(p, memory, way, n));
    let (mut same, mut different) = (0, INSTRUCTIONS_MAX);
    while different - same > 1 {
        let middle = (same + different) / 2;
        *if differ(middle).is_some() { &mut different } else { &mut same } = middle;
    }
    let before = run(p, memory, &ORACLE, same);
    let state = &before.snapshots.last()?.state;
    let what = differ(different).unwrap_or_else(|| "only if it runs on".into());
    Some(format!(
        "program {:#x}: interpreted and {} differ after {different} instructions: {what}\nbefore: rip {:#x}, rflags {:#x}, \
         cs {:#x}, gpr {:x?}",
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
    let mut translated = [0; WAYS.len()];
    let with_vectors = (first..first + programs / VECTORS_EACH).map(|seed| seed | VECTORS);
    for seed in RARE.into_iter().chain(first..first + programs).chain(with_vectors) {
        crash::begins(seed);
        let p = Program::new(seed);
        let oracle = run(&p, &memory, &ORACLE, INSTRUCTIONS_MAX);
        for (way, translated) in WAYS.iter().zip(&mut translated) {
            let trace = run(&p, &memory, way, INSTRUCTIONS_MAX);
            if difference(&oracle, &trace).is_some() {
                panic!("{}", disagreement(&p, &memory, way).unwrap_or_default());
            }
            *translated += trace.translated;
        }
        let state = &oracle.snapshots[oracle.snapshots.len() - 1].state;
        instructions += state.icount - p.state.icount;
        lived += u64::from(state.icount - p.state.icount == INSTRUCTIONS_MAX);
    }
    crash::ends();
    println!(
        "{programs} programs: {instructions} instructions, {lived} lived, blocks translated: {translated:?}"
    );
    // It would be worth little if programs died early, or never got hot.
    assert!(instructions > programs * INSTRUCTIONS_MAX / 2 && lived > programs / 2);
    assert!(translated.iter().all(|&blocks| blocks > programs));
}

/// A defect that can be planted is one that this test catches.
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
