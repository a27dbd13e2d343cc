//! Machines that may change their engine (the code that executes the guest) while they run, and observations of these
//! machines.

use std::fmt::Write as _;

use everett_snapshot::Pool;
use everett_vmm::ClockMode;
use everett_vmm::digest::registers::compared;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Moment, Stop, Until};
use everett_vmm::ram::Ram;
use tempfile::TempDir;

use crate::rng::Rng;
use crate::small::{DATA, config_in};

/// Makes engines of one kind.
pub(crate) trait EngineMaker {
    fn engine(&self, ram: &Ram) -> Result<AnyEngine, MachineError>;
}

/// Makes machines with this guest code, in this clock mode.
pub(crate) struct MachineMaker {
    pub(crate) clock: ClockMode,
    pub(crate) code: Vec<u8>,
}

/// Counts (of exits or branches, by the clock mode) at which a machine is observed and changes its engine.
pub(crate) struct Pace {
    /// Returns the distance to the next digest. The argument is the number of earlier digests.
    pub(crate) step: fn(u64) -> u64,
    /// Draws the distance to the next change of the engine.
    pub(crate) swap: fn(&mut Rng) -> u64,
    /// Count at which the test ends a guest, e.g. because the guest's timer never lets it finish. The test compares the
    /// count at each stop.
    pub(crate) counts_max: u64,
    /// Limit on the digests of a guest. If the test has taken more digests, it ends the guest at the next stop.
    pub(crate) looks_max: u64,
}

impl MachineMaker {
    fn config(&self) -> (MachineConfig, TempDir) {
        config_in(self.clock, &self.code)
    }
    pub(crate) fn machine(&self, on: &impl EngineMaker) -> Machine {
        let (config, _folder) = self.config();
        Machine::new(config, |ram| on.engine(ram)).expect("a machine")
    }
    pub(crate) fn from(&self, on: &impl EngineMaker, moment: &Moment) -> Machine {
        let (config, _folder) = self.config();
        Machine::from_moment(config, moment, |ram| on.engine(ram)).expect("a machine")
    }

    /// Runs to the end with digests at fixed counts. If `swaps` is present, the machine changes to the next engine at
    /// random counts.
    pub(crate) fn trail(&self, pace: &Pace, engines: &[impl EngineMaker], mut swaps: Option<Rng>) -> Trail {
        let mut machine = self.machine(&engines[0]);
        let (mut trail, mut swapped, mut disturbed) = (String::new(), 0, 0);
        let pool = Pool::default();
        let (mut looks, mut next) = (0, (pace.step)(0));
        loop {
            let swap = swaps.as_mut().map_or(u64::MAX, |rng| machine.icount() + (pace.swap)(rng));
            let stop = machine.run(&Until::icount(next.min(swap)));
            let over = stop != Stop::Count || looks > pace.looks_max || machine.icount() >= pace.counts_max;
            if machine.icount() == next || over {
                let said = machine.output().take_console();
                let _ = writeln!(
                    trail,
                    "{stop:?} at count {}, {} ns: {:x?}\n{:?}\n{:?}",
                    machine.icount(),
                    machine.vtime(),
                    compared(self.clock, machine.cpu()),
                    String::from_utf8_lossy(&said),
                    machine.breakdown().parts,
                );
                looks += 1;
                next += (pace.step)(looks);
            }
            if over {
                break;
            }
            if machine.icount() == swap {
                swapped += 1;
                let said = machine.output().take_console();
                disturbed += machine.stats().disturbed;
                machine = self.from(&engines[swapped % engines.len()], &machine.moment(&pool));
                machine.output().console_again(&said);
            }
        }
        disturbed += machine.stats().disturbed;
        let mut memory = vec![0; 0x1_0000];
        assert_eq!(machine.read_virtual(DATA, &mut memory), memory.len());
        let interrupts = machine.cpu().gpr[15];
        Trail { lines: trail, memory, swapped: swapped as u64, disturbed, interrupts }
    }
}

/// Observations of a machine.
pub(crate) struct Trail {
    /// Stops, digests and registers, line by line.
    pub(crate) lines: String,
    /// Memory of the guest's data at the end.
    pub(crate) memory: Vec<u8>,
    /// Number of engine changes.
    pub(crate) swapped: u64,
    /// Number of runs that machines repeated because the host had disturbed them.
    pub(crate) disturbed: u64,
    /// Number of interrupts that the machine took.
    pub(crate) interrupts: u64,
}

/// Returns the first difference between two trails: a line, their numbers of lines, or the word `memory`. `None` if
/// they are equal.
pub(crate) fn difference(one: &Trail, other: &Trail) -> Option<String> {
    let mut lines = one.lines.lines().zip(other.lines.lines());
    let line = lines.find(|(a, b)| a != b);
    let line = line.map(|(a, b)| format!("\n{a}\n{b}"));
    let lengths = (one.lines.lines().count(), other.lines.lines().count());
    line.or_else(|| (lengths.0 != lengths.1).then(|| format!("{lengths:?} lines")))
        .or_else(|| (one.memory != other.memory).then(|| "memory".to_owned()))
}
