//! Instruction counts at which the run of a guest program stops, and external events at these stops. Both are the same
//! in every way of running the program, e.g. interpreted or translated.

use crate::layout::*;
use crate::program::Program;
use crate::rng::Rng;

/// Maximum number of instructions that a program executes.
pub(crate) const INSTRUCTIONS_MAX: u64 = 2400;
/// Maximum number of random stops.
const STOPS_MAX: u64 = 8;

/// External event that happens at a stop.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Nothing,
    /// The test takes the list of dirty pages.
    TakeDirty,
    /// The test writes RAM, as a device would.
    Write(u64, Vec<u8>),
    /// The test gives pages their initial content back, as a restore would.
    Replace(Vec<u64>),
    /// The test delivers an interrupt, if the guest can take it.
    Interrupt(u8),
}

/// A stop. `at` is the number of instructions since the beginning.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    pub(crate) at: u64,
    pub(crate) event: Event,
}

/// Returns all stops of a program in order. The last stop is the end of the run.
pub(crate) fn stops(p: &Program, instructions_max: u64) -> Vec<Stop> {
    let mut rng = Rng::for_case(p.seed, 1);
    let mut stops: Vec<Stop> = (0..1 + rng.below(STOPS_MAX))
        .map(|_| Stop { at: 1 + rng.below(INSTRUCTIONS_MAX), event: event(p, &mut rng) })
        .collect();
    stops.retain(|stop| stop.at < instructions_max);
    stops.sort_by_key(|stop| stop.at);
    stops.push(Stop { at: instructions_max, event: Event::TakeDirty });
    stops
}

fn event(p: &Program, rng: &mut Rng) -> Event {
    match rng.below(8) {
        0 => Event::TakeDirty,
        1 | 2 if !p.sites.is_empty() => {
            let bytes = rng.next().to_le_bytes();
            let n = 1 + rng.below(8) as usize;
            let at = rng.pick(&p.sites).min(RAM_LEN as u64 - 8);
            Event::Write(at, bytes[..if rng.one_in(4) { n } else { 1 }].to_vec())
        }
        3 => {
            let page = rng.below(VIEW_PAGES);
            let gpa = CODE + rng.below(CODE_PAGES) * 4096;
            Event::Write(window_entry(page), (gpa | PRESENT | WRITABLE | USER).to_le_bytes().to_vec())
        }
        4 | 5 => {
            let pages = (0..RAM_PAGES).filter(|_| rng.one_in(3));
            Event::Replace(pages.collect())
        }
        6 => Event::Interrupt(0x20 + rng.below(0xe0) as u8),
        _ => Event::Nothing,
    }
}
