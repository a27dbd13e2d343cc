//! Probe for exact counting of the guest's retired conditional branches, and for the delay of the counter's signal.

use super::{Effort, Notes};
use crate::doctor::kvm::guest::{Guest, Ring};
use crate::doctor::kvm::host::{End, Host};

/// Raw events that count retired conditional branches on some processors. The probe finds out which event works here.
const EVENTS: [u64; 3] = [0x11c4, 0x01c4, 0xd1];
const ROUNDS: u64 = 300_000;
/// Number of conditional branches in a round: JZ, JRCXZ and LOOP. JMP and CALL are not conditional.
const CONDITIONAL: u64 = 3;
const CODE: [u8; 17] = [
    0xeb, 0x00, // again: jmp to the next
    0x48, 0x85, 0xc9, // test rcx, rcx
    0x74, 0x00, // jz to the next
    0xe3, 0x00, // jrcxz to the next
    0xe8, 0x00, 0x00, 0x00, 0x00, // call the next
    0x58, // pop rax
    0xe2, 0xef, // loop again
];
/// Number of rounds of a guest that exits once in each round.
const ROUNDS_WITH_EXITS: u64 = 3000;
/// The same loop with an exit in each round.
const CODE_WITH_EXITS: [u8; 19] = [
    0xe6, 0x80, // again: out 0x80, al
    0xeb, 0x00, // jmp to the next
    0x48, 0x85, 0xc9, // test rcx, rcx
    0x74, 0x00, // jz to the next
    0xe3, 0x00, // jrcxz to the next
    0xe8, 0x00, 0x00, 0x00, 0x00, // call the next
    0x58, // pop rax
    0xe2, 0xed, // loop again
];
/// Number of branches that sets the length of the guest with which `skid` measures the delay of the counter's signal.
/// The counter overflows after a tenth of this number, and its signal should then stop the guest. Without a signal, the
/// guest ends after a hundred times this number.
const BRANCHES: u64 = 1_000_000;
const NAME: &str = "guest counters";
const MEANS: &str = "to stop a guest at an exact place";

/// The event that counts conditional branches on this host, and how early Everett must ask for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branches {
    /// Number of the raw performance event.
    pub event: u64,
    /// Number of branches by which a stop is requested early, because the counter's signal comes late.
    pub margin: u64,
}

/// Returns the margin (see [`Branches::margin`]) for a host whose signals came at most `latest` branches late. Signals
/// may still come later than that. A larger margin costs time; with a smaller margin, more runs have to be repeated.
fn margin(latest: u64) -> u64 {
    2 * latest + 1000
}

pub(super) fn probe(host: &mut dyn Host, effort: Effort, notes: &mut Notes) {
    let mut why = "no event counts".to_owned();
    for event in EVENTS {
        match exact(host, event, effort) {
            Ok(()) => {
                let skid = skid(host, event, effort);
                notes.branches =
                    skid.as_ref().ok().map(|(latest, _)| Branches { event, margin: margin(*latest) });
                let (stops, skid) = (skid.is_ok(), skid.map_or_else(|why| why, |(_, detail)| detail));
                let detail = format!(
                    "event {event:#x} counts each of {} branches in either ring; {skid}",
                    CONDITIONAL * ROUNDS
                );
                return notes.needed(NAME, stops, detail, MEANS);
            }
            Err(reason) => why = reason,
        }
    }
    notes.needed(NAME, false, why, MEANS);
}

/// Checks that the event counts each conditional branch of a guest exactly once, and counts nothing when the processor
/// enters or leaves the guest.
fn exact(host: &mut dyn Host, event: u64, effort: Effort) -> Result<(), String> {
    for _ in 0..effort.rounds().max(3) {
        let guests = [
            (ROUNDS, Guest::new("counters", Ring::Zero, &CODE)),
            (ROUNDS, Guest::new("counters", Ring::Three, &CODE)),
            (ROUNDS_WITH_EXITS, Guest::new("counters at exits", Ring::Zero, &CODE_WITH_EXITS)),
        ];
        for (rounds, guest) in guests {
            let guest = Guest { event: Some((event, None)), rcx: rounds, ..guest };
            let ran = host.run(&guest)?;
            let counted = ran.counted.ok_or("nothing was counted")?;
            if !ran.to_its_end() {
                return Err(ran.how());
            }
            if counted != CONDITIONAL * rounds {
                let branches = CONDITIONAL * rounds;
                return Err(format!("{counted} counted for {branches} branches, with {} exits", ran.exits));
            }
        }
    }
    Ok(())
}

/// Returns the longest observed delay of the counter's signal, in branches, and its description. Fails if no signal
/// comes, or if the count is wrong after an overflow.
fn skid(host: &mut dyn Host, event: u64, effort: Effort) -> Result<(u64, String), String> {
    let after = BRANCHES / 10;
    let mut latest = 0;
    let rounds = effort.rounds().max(10);
    for _ in 0..rounds {
        let guest = Guest {
            event: Some((event, Some(after))),
            ..Guest::spinning("skid", Ring::Three, BRANCHES * 100)
        };
        let ran = host.run(&guest)?;
        if ran.end != End::Overflow {
            return Err(format!("no signal came when the counter overflowed: {}", ran.how()));
        }
        let done = (BRANCHES * 100).saturating_sub(ran.gpr[1]);
        let counted = ran.counted.ok_or("nothing was counted")?;
        // A round of this guest is a DEC and a conditional branch. The stop can come between the two.
        if counted != done && Some(counted) != done.checked_sub(1) {
            return Err(format!("{counted} counted for {done} branches, with an overflow among them"));
        }
        latest = latest.max(done.saturating_sub(after));
    }
    Ok((latest, format!("its signal comes up to {latest} branches late in {rounds} tries")))
}
