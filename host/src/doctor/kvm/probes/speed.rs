//! Probes for the speed of guests in ring 0 and ring 3, and for the cost of an exit.

use super::Notes;
use crate::doctor::kvm::guest::{Guest, Ring};
use crate::doctor::kvm::host::{End, Host};

/// Number of instructions in one pass of the loop of [`Guest::spinning`].
const PER_ROUND: u64 = 2;
const ROUNDS_FIRST: u64 = 20_000;
/// Maximum number of rounds of a measurement.
const ROUNDS_MAX: u64 = 2_000_000_000;
/// Minimum duration of a measurement, in nanoseconds. A shorter measurement is repeated with more rounds.
const ENOUGH_NS: u64 = 20_000_000;
/// Minimum speed, in instructions per second, at which the probe concludes that the processor itself executes the
/// guest. For a slower guest, the probe concludes that software emulates it, because even the slowest processor with
/// virtualisation is several times faster than this.
const HARDWARE_PER_SECOND: u64 = 200_000_000;
const EXITS: u64 = 2000;

pub(super) fn probe(host: &mut dyn Host, notes: &mut Notes) {
    // The first run after the host's start can take longer than a whole measurement, so its result is ignored. If the
    // run fails, the measurement fails in the same way.
    let _ = host.run(&Guest::spinning("warm-up", Ring::Zero, ROUNDS_FIRST));
    let rings = [("ring 0 speed", Ring::Zero), ("ring 3 speed", Ring::Three)];
    for (name, ring) in rings {
        match per_second(host, name, ring) {
            Ok(speed) if speed >= HARDWARE_PER_SECOND => {
                notes.ok(
                    name,
                    format!("{} instructions a second", millions(speed)),
                    "executed by the processor",
                );
            }
            Ok(speed) => {
                let means = "emulated: this KVM is software, and kernels are slow on it";
                notes.note(name, format!("{} instructions a second", millions(speed)), means);
            }
            Err(why) => notes.note(name, format!("not measured: {why}"), ""),
        }
    }
    match exit_cost(host) {
        Ok(ns) => {
            notes.ok("exit cost", format!("{}.{} us", ns / 1000, ns % 1000 / 100), "for each device access")
        }
        Err(why) => notes.note("exit cost", format!("not measured: {why}"), ""),
    }
}

fn per_second(host: &mut dyn Host, name: &'static str, ring: Ring) -> Result<u64, String> {
    let mut rounds = ROUNDS_FIRST;
    loop {
        let ran = host.run(&Guest::spinning(name, ring, rounds))?;
        let done = match ran.end {
            _ if ran.to_its_end() => rounds,
            End::TimedOut => rounds.saturating_sub(ran.gpr[1]),
            _ => return Err(ran.how()),
        };
        if ran.nanoseconds >= ENOUGH_NS || rounds >= ROUNDS_MAX {
            let per_second =
                u128::from(done * PER_ROUND) * 1_000_000_000 / u128::from(ran.nanoseconds.max(1));
            return Ok(u64::try_from(per_second).unwrap_or(u64::MAX));
        }
        rounds *= 10;
    }
}

fn exit_cost(host: &mut dyn Host) -> Result<u64, String> {
    let code = [
        0xe6, 0x80, // out 0x80, al
        0x48, 0xff, 0xc9, // dec rcx
        0x75, 0xf9, // jnz back
    ];
    let ran = host.run(&Guest { rcx: EXITS, ..Guest::new("exits", Ring::Zero, &code) })?;
    if !ran.to_its_end() || ran.exits < EXITS {
        return Err(format!("{}, after {} exits", ran.how(), ran.exits));
    }
    Ok(ran.nanoseconds / ran.exits)
}

fn millions(n: u64) -> String {
    if n < 10_000_000 {
        return format!("{}.{} million", n / 1_000_000, n % 1_000_000 / 100_000);
    }
    format!("{} million", n / 1_000_000)
}
