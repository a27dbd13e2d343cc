//! Byte soup: guests with random code, page tables, descriptors and handlers, at CPL 0 and CPL 3.
//!
//! The CPU must not panic, and the result must not depend on the way in which the guest runs. The ways are: interpreted
//! or translated, with large or tiny caches, with caches dropped at random times, with a stop after each instruction,
//! and with breakpoints throughout the code. The test compares registers, RAM, the list of written pages, and every
//! exit with its instruction count.
//!
//! - [`soup`]: generates the initial memory of a guest
//! - [`ground`]: descriptors, and answers of devices
//! - [`rng`]: random numbers
//! - [`machine`]: runs a guest in one of these ways
//!
//! `PROPTEST_CASES` sets the number of soups.

mod ground;
mod machine;
#[allow(dead_code, reason = "shared with the oracle, which uses all of it")]
#[path = "../oracle/rng.rs"]
mod rng;
mod soup;

use ground::differing;
use machine::{INSTRUCTIONS_MAX, Trace, Way, run};
use proptest::prelude::*;
use soup::Soup;

/// Ways whose results must equal those of [`Way::Plain`].
const WAYS: [Way; 6] =
    [Way::TinyCaches, Way::Translated, Way::TranslatedTiny, Way::Flushes, Way::SingleSteps, Way::Breakpoints];

/// Describes the first difference between two runs. The complete states would fill pages.
fn difference(a: &Trace, b: &Trace) -> Option<String> {
    let exits = a.exits.iter().zip(&b.exits).position(|(a, b)| a != b);
    if let Some(n) = exits {
        return Some(format!("exit {n}: {:x?} and {:x?}", a.exits[n], b.exits[n]));
    }
    if a.exits.len() != b.exits.len() {
        return Some(format!("{} exits and {}", a.exits.len(), b.exits.len()));
    }
    if a.state != b.state {
        let (a, b) = (format!("{:#x?}", a.state), format!("{:#x?}", b.state));
        let lines = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
        return Some(
            lines.map(|(a, b)| format!("{} and {}", a.trim(), b.trim())).collect::<Vec<_>>().join("; "),
        );
    }
    if let Some(at) = a.ram.iter().zip(&b.ram).position(|(a, b)| a != b) {
        return Some(format!("RAM at {at:#x}: {:#x} and {:#x}", a.ram[at], b.ram[at]));
    }
    if let Some(differing) = differing(&a.edges, &b.edges) {
        return Some(differing);
    }
    if a.branches != b.branches {
        return Some(format!("{} branches and {}", a.branches, b.branches));
    }
    (a.dirty != b.dirty).then(|| format!("dirty pages: {:x?} and {:x?}", a.dirty, b.dirty))
}

/// Runs a soup in two ways. If the runs differ, describes the first instruction after which they differ, and the
/// registers before it.
fn disagreement(soup: &Soup, way: Way) -> Option<String> {
    let differ = |n| difference(&run(soup, Way::Plain, n), &run(soup, way, n));
    differ(INSTRUCTIONS_MAX)?;
    let (mut same, mut different) = (0, INSTRUCTIONS_MAX);
    while different - same > 1 {
        let middle = (same + different) / 2;
        *if differ(middle).is_some() { &mut different } else { &mut same } = middle;
    }
    let before = run(soup, Way::Plain, same).state;
    let what = differ(different)?;
    Some(format!(
        "{:?} and {way:?} differ after {different} instructions: {what}\nbefore: rip {:#x}, rflags {:#x}, gpr {:x?}",
        Way::Plain,
        before.rip,
        before.rflags,
        before.gpr
    ))
}

proptest! {
    // A smaller seed does not give a smaller soup, so proptest must not shrink seeds. `disagreement` finds the first
    // difference.
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn the_result_does_not_depend_on_the_way_of_running(seed: u64, user: bool) {
        let soup = Soup::new(seed, user);
        for way in WAYS {
            let found = disagreement(&soup, way);
            prop_assert!(found.is_none(), "{}", found.unwrap_or_default());
        }
        let plain = run(&soup, Way::Plain, INSTRUCTIONS_MAX);
        // The CPU must have reported every changed page.
        let changed = soup.ram.chunks(4096).zip(plain.ram.chunks(4096)).enumerate().filter(|(_, (a, b))| a != b);
        for (page, _) in changed {
            prop_assert!(plain.dirty.contains(&(page as u64)), "page {page:#x} changed, but was not reported");
        }
    }
}

/// The test above is useful only if soups run for long, reach devices, and change page tables.
#[test]
fn soups_are_rich() {
    let mut instructions = 0;
    let mut exits = 0;
    let mut table_writes = 0;
    for seed in 0..64 {
        let soup = Soup::new(seed, seed & 1 == 0);
        let trace = run(&soup, Way::Plain, INSTRUCTIONS_MAX);
        instructions += trace.state.icount - soup.state.icount;
        exits += trace.exits.len();
        table_writes += u64::from(soup.changed_tables(&trace.ram));
    }
    println!("64 soups: {instructions} instructions, {exits} exits, {table_writes} wrote page tables");
    assert!(instructions > 64 * INSTRUCTIONS_MAX / 4);
    assert!(exits > 64);
    assert!(table_writes >= 16);
}

/// The test must detect the planted defect of stale TLB entries.
#[test]
fn a_stale_translation_is_caught() {
    let caught = (0..2000).any(|seed| {
        let soup = Soup::new(seed, seed & 1 == 0);
        disagreement(&soup, Way::StaleTranslations).is_some()
    });
    assert!(caught);
}
