//! Virtual time (vtime) as a function of the instructions that the guest executed (`docs/design/time.md`).
//!
//! The clock mode says what the engine (the part that executes the guest's instructions) counts:
//!
//! - `insn`: retired instructions;
//! - `exit`: exits that the guest itself causes (a device access, HLT), counted when their instruction is finished. One
//!   exit stands for [`EXIT_INSTRUCTIONS`] instructions. Between two exits no time passes and the TSC stands still;
//! - `branch`: retired conditional branches. One branch stands for [`BRANCH_INSTRUCTIONS`] instructions.
//!
//! vtime = anchor_ns + (count - anchor_icount) x instructions per counted unit x 1e9 / speed_hz, rounded down. The
//! anchor is a count and its vtime. Each vtime is computed from the anchor and not from the previous vtime, so rounding
//! errors do not accumulate. Skipping idle time sets the anchor to the current count and the end of the skip. A stall
//! ([`Clock::stall`]) adds to the anchor's vtime. A change of speed sets the anchor to the current count and its
//! rounded vtime.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use everett_cpu::TscAnchor;

/// Nanoseconds in a second.
pub const NANOS: u64 = 1_000_000_000;
/// Frequency of the guest's TSC in Hz, as CPUID leaf 0x15 states it.
pub const TSC_HZ: u64 = NANOS;
/// Default CPU speed, in instructions per second.
pub const CPU_HZ_DEFAULT: u64 = NANOS;
/// Bounds of the CPU speed, in instructions per second. Below the lower bound, no kernel boots. At the upper bound, a
/// hundred instructions share one TSC tick.
pub const CPU_HZ: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000;
/// Greatest vtime, in nanoseconds: 146 years.
pub const VTIME_MAX: u64 = u64::MAX / 4;

/// Unit that advances vtime. All nodes of a world share it, and it is part of the world's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ClockMode {
    /// Retired instructions.
    #[default]
    Insn,
    /// Exits that the guest itself causes.
    Exit,
    /// Retired conditional branches.
    Branch,
}

/// Number of instructions that one exit stands for: ten microseconds at the default speed.
///
/// A busy server executes about this number of instructions between two exits. The host handles an exit in much less
/// time than the ten microseconds of vtime that the exit adds. A guest that polls a device until some vtime therefore
/// polls for a shorter time on the host than it would on real hardware.
pub const EXIT_INSTRUCTIONS: u64 = 10_000;

/// Number of instructions that one conditional branch stands for. Redis under load and its kernel execute 8.1
/// instructions per branch, so vtime advances about as fast as in mode `insn`.
pub const BRANCH_INSTRUCTIONS: u64 = 8;

impl ClockMode {
    /// Returns the number of instructions that one counted unit stands for.
    fn weight(self) -> u64 {
        match self {
            ClockMode::Insn => 1,
            ClockMode::Exit => EXIT_INSTRUCTIONS,
            ClockMode::Branch => BRANCH_INSTRUCTIONS,
        }
    }
    /// Returns the name of the counted unit, in the singular.
    pub fn unit(self) -> &'static str {
        match self {
            ClockMode::Insn => "instruction",
            ClockMode::Exit => "exit",
            ClockMode::Branch => "conditional branch",
        }
    }
    /// Returns the name of the counted unit, in the plural.
    pub fn units(self) -> &'static str {
        match self {
            ClockMode::Insn => "instructions",
            ClockMode::Exit => "exits",
            ClockMode::Branch => "conditional branches",
        }
    }
}

/// Error of a clock's configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// Unknown clock mode.
    #[error("unknown clock mode \"{0}\"; use \"insn\", \"branch\" or \"exit\"")]
    Unknown(String),
    /// Frequency outside [`CPU_HZ`].
    #[error("cpu_hz = {hz}: it must be from {} to {}", CPU_HZ.start(), CPU_HZ.end())]
    Frequency {
        /// Requested frequency, in Hz.
        hz: u64,
    },
}

impl FromStr for ClockMode {
    type Err = ClockError;
    fn from_str(s: &str) -> Result<ClockMode, ClockError> {
        match s {
            "insn" => Ok(ClockMode::Insn),
            "exit" => Ok(ClockMode::Exit),
            "branch" => Ok(ClockMode::Branch),
            _ => Err(ClockError::Unknown(s.into())),
        }
    }
}

impl fmt::Display for ClockMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClockMode::Insn => f.write_str("insn"),
            ClockMode::Exit => f.write_str("exit"),
            ClockMode::Branch => f.write_str("branch"),
        }
    }
}

/// Clock of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    mode: ClockMode,
    cpu_hz: u64,
    /// Current speed in Hz. It is below `cpu_hz` during a slow-CPU fault.
    speed_hz: u64,
    anchor_icount: u64,
    anchor_ns: u64,
}

impl Clock {
    /// Creates a clock at vtime 0 and count 0.
    ///
    /// # Errors
    /// Returns an error if `cpu_hz` is outside [`CPU_HZ`].
    pub fn new(mode: ClockMode, cpu_hz: u64) -> Result<Clock, ClockError> {
        if !CPU_HZ.contains(&cpu_hz) {
            return Err(ClockError::Frequency { hz: cpu_hz });
        }
        Ok(Clock { mode, cpu_hz, speed_hz: cpu_hz, anchor_icount: 0, anchor_ns: 0 })
    }

    /// Returns the vtime at count `icount`, in nanoseconds.
    pub fn vtime(&self, icount: u64) -> u64 {
        let counted = u128::from(icount.saturating_sub(self.anchor_icount));
        let ns = counted * self.count_ns() / u128::from(self.speed_hz);
        u64::try_from(ns).unwrap_or(VTIME_MAX).saturating_add(self.anchor_ns).min(VTIME_MAX)
    }

    /// Returns the least count at which the vtime is `vtime` or later.
    pub fn icount_at(&self, vtime: u64) -> u64 {
        let ns = u128::from(vtime.saturating_sub(self.anchor_ns));
        let counted = (ns * u128::from(self.speed_hz)).div_ceil(self.count_ns());
        u64::try_from(counted).unwrap_or(u64::MAX).saturating_add(self.anchor_icount)
    }

    /// Advances time to `vtime` because the CPU is idle at count `icount`. Never moves time backwards.
    pub fn skip_to(&mut self, icount: u64, vtime: u64) {
        let vtime = vtime.min(VTIME_MAX);
        if vtime > self.vtime(icount) {
            self.anchor_icount = icount;
            self.anchor_ns = vtime;
        }
    }

    /// Advances time by `ns` while the CPU executes nothing, as if a hypervisor ran another machine on this core.
    pub fn stall(&mut self, ns: u64) {
        self.anchor_ns = self.anchor_ns.saturating_add(ns).min(VTIME_MAX);
    }

    /// Sets the speed from count `icount` on to `hz` instructions per second, clamped to [`CPU_HZ`]. The fraction of a
    /// nanosecond that had passed by then is lost.
    pub fn set_speed(&mut self, icount: u64, hz: u64) {
        (self.anchor_icount, self.anchor_ns) = (icount, self.vtime(icount));
        self.speed_hz = hz.clamp(*CPU_HZ.start(), *CPU_HZ.end());
    }

    /// True if a decoded clock is valid.
    pub(crate) fn is_sound(&self) -> bool {
        CPU_HZ.contains(&self.cpu_hz) && CPU_HZ.contains(&self.speed_hz) && self.anchor_ns <= VTIME_MAX
    }

    /// Returns the function by which the CPU computes the TSC from its count. The TSC is the vtime in ticks of
    /// [`TSC_HZ`].
    pub fn tsc(&self) -> TscAnchor {
        let num = TSC_HZ * self.mode.weight();
        TscAnchor { icount: self.anchor_icount, tsc: self.anchor_ns, num, den: self.speed_hz }
    }

    /// Returns the duration of one counted unit, in nanoseconds, at a speed of one instruction per second.
    fn count_ns(&self) -> u128 {
        u128::from(NANOS) * u128::from(self.mode.weight())
    }

    /// Returns the configured speed in instructions per second. Slow-CPU faults do not change it.
    pub fn cpu_hz(&self) -> u64 {
        self.cpu_hz
    }
    /// Returns the unit that the clock counts.
    pub fn mode(&self) -> ClockMode {
        self.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unknown_modes_are_refused_by_name() {
        for (mode, name) in
            [(ClockMode::Insn, "insn"), (ClockMode::Exit, "exit"), (ClockMode::Branch, "branch")]
        {
            assert_eq!((name.parse(), mode.to_string().as_str()), (Ok(mode), name));
        }
        assert!("wall".parse::<ClockMode>().unwrap_err().to_string().contains("wall"));
        assert!(Clock::new(ClockMode::Insn, 0).is_err());
    }

    #[test]
    fn an_exit_advances_vtime_and_tsc_by_its_instructions() {
        let mut clock = Clock::new(ClockMode::Exit, NANOS).unwrap();
        assert_eq!((clock.vtime(1), clock.vtime(7)), (EXIT_INSTRUCTIONS, 7 * EXIT_INSTRUCTIONS));
        assert_eq!((clock.icount_at(1), clock.icount_at(10_000), clock.icount_at(10_001)), (1, 1, 2));
        clock.set_speed(2, NANOS / 2);
        assert_eq!(clock.vtime(3), 4 * EXIT_INSTRUCTIONS);
        let tsc = clock.tsc();
        assert_eq!(tsc.tsc + (3 - tsc.icount) * tsc.num / tsc.den, clock.vtime(3));
    }

    #[test]
    fn stalls_and_skips_lose_no_fraction_of_a_nanosecond() {
        // Three instructions take one nanosecond. A stall in the middle of a nanosecond preserves the fraction that has
        // passed.
        let mut clock = Clock::new(ClockMode::Insn, 3 * NANOS).unwrap();
        assert_eq!((clock.vtime(2), clock.vtime(3), clock.vtime(4)), (0, 1, 1));
        clock.stall(10);
        assert_eq!((clock.vtime(4), clock.vtime(5), clock.vtime(6)), (11, 11, 12));
        clock.skip_to(5, 100);
        assert_eq!((clock.vtime(5), clock.vtime(7), clock.vtime(8)), (100, 100, 101));
        clock.skip_to(8, 50);
        assert_eq!(clock.vtime(8), 101);
    }

    proptest! {
        #[test]
        fn icount_at_is_the_first_count_at_or_after_a_vtime(
            mode in 0usize..3, hz in CPU_HZ, skip in 0u64..1 << 50, at in 0u64..1 << 40, ahead in 0u64..1 << 50,
        ) {
            let mode = [ClockMode::Insn, ClockMode::Exit, ClockMode::Branch][mode];
            let mut clock = Clock::new(mode, hz).unwrap();
            clock.skip_to(at, skip);
            let vtime = clock.vtime(at) + ahead;
            let n = clock.icount_at(vtime);
            prop_assert!(clock.vtime(n) >= vtime);
            prop_assert!(n <= at || clock.vtime(n - 1) < vtime);
        }

        /// A change of speed keeps the vtime at its count, and affects only later counts.
        #[test]
        fn a_change_of_speed_applies_from_its_count(hz in CPU_HZ, slow in any::<u64>(), at in 0u64..1 << 40, ahead in 0u64..1 << 40) {
            let mut clock = Clock::new(ClockMode::Insn, hz).unwrap();
            let before = clock.vtime(at);
            clock.set_speed(at, slow);
            prop_assert!(clock.is_sound());
            prop_assert_eq!(clock.vtime(at), before);
            let slow = u128::from(slow.clamp(*CPU_HZ.start(), *CPU_HZ.end()));
            prop_assert_eq!(u128::from(clock.vtime(at + ahead) - before), u128::from(ahead) * u128::from(NANOS) / slow);
            clock.set_speed(at, hz);
            prop_assert_eq!(clock.vtime(at), before);
        }

        #[test]
        fn skipping_in_steps_equals_skipping_at_once(hz in CPU_HZ, at in 0u64..1 << 40, a in 0u64..1 << 50, b in 0u64..1 << 50) {
            let mut once = Clock::new(ClockMode::Insn, hz).unwrap();
            let mut steps = once.clone();
            once.skip_to(at, a.max(b));
            steps.skip_to(at, a.min(b));
            steps.skip_to(at, a.max(b));
            prop_assert_eq!(once, steps);
        }
    }
}
