//! Machines: the files that they boot from, and the engines on which they run.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use everett_cpu::{CacheConfig, Code};
use everett_vmm::clock::ClockMode;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::counting::CountingEngine;
use everett_vmm::engine::kvm::{KvmEngine, Proved};
use everett_vmm::engine::soft::{FlushSchedule, SoftEngine};
use everett_vmm::kvm::Host;
use everett_vmm::leak::Leak;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Moment};
use everett_vmm::ram::Ram;
use serde::Serialize;

/// The files that a machine boots from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFiles {
    /// `vmlinux`.
    pub kernel: PathBuf,
    /// cpio archive.
    pub initramfs: Option<PathBuf>,
    /// SquashFS, and its blake3.
    pub root: Option<(PathBuf, [u8; 32])>,
}

thread_local! {
    /// What the machines of this thread share: they take turns, and most of what they execute is the same.
    static CODE: RefCell<Option<Code>> = const { RefCell::new(None) };
}

/// The code of this thread's machines, for caches of these sizes.
fn code(caches: CacheConfig) -> Code {
    CODE.with_borrow_mut(|shared| match shared {
        Some(code) if code.caches() == caches => code.clone(),
        _ => shared.insert(Code::new(caches)).clone(),
    })
}

/// What executes guest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// Everett's own CPU.
    #[default]
    Soft,
    /// The host's `/dev/kvm`.
    Kvm,
}

impl EngineKind {
    /// What `--engine` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Soft => "soft",
            EngineKind::Kvm => "kvm",
        }
    }
}

/// Which engine, and how it is to behave. Only tests change the latter, and no choice may change what a guest does (leaks
/// excepted).
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// What executes.
    pub engine: EngineKind,
    /// What the host has for it.
    pub proved: Proved,
    /// How long a guest may compute there without an exit.
    pub patience: Duration,
    /// Sizes of the engine's caches, and whether it translates.
    pub caches: CacheConfig,
    /// A second engine interprets all that is executed, and is compared.
    pub lockstep: bool,
    /// When they are dropped besides.
    pub flushes: Option<FlushSchedule>,
    /// Leaks outside the CPU.
    pub leak: Leak,
    /// The CPU's leak.
    pub stale_translations: bool,
    /// CPUID panics.
    pub panics: bool,
}

impl EngineOptions {
    /// A machine whose engine behaves so.
    ///
    /// # Errors
    /// See [`Machine::new`].
    pub fn machine(&self, mut config: MachineConfig) -> Result<Machine<AnyEngine>, MachineError> {
        config.leak = self.leak;
        let clock = config.clock;
        let machine = Machine::new(config, |ram| self.engine(clock, ram))?;
        Ok(self.applied(machine))
    }

    /// A machine that is where `moment` was, and whose engine behaves so.
    ///
    /// # Errors
    /// See [`Machine::from_moment`].
    pub fn machine_at(
        &self,
        mut config: MachineConfig,
        moment: &Moment,
    ) -> Result<Machine<AnyEngine>, MachineError> {
        config.leak = self.leak;
        let clock = config.clock;
        Ok(self.applied(Machine::from_moment(config, moment, |ram: &Ram| self.engine(clock, ram))?))
    }

    /// An engine that counts what this clock does, as far as there is one of the kind: a machine refuses others.
    fn engine(&self, clock: ClockMode, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match (self.engine, clock) {
            (EngineKind::Soft, ClockMode::Exit) => {
                AnyEngine::Counting(Box::new(CountingEngine::exits(self.soft_engine(clock, ram))))
            }
            (EngineKind::Soft, ClockMode::Branch) => {
                AnyEngine::Counting(Box::new(CountingEngine::branches(self.soft_engine(clock, ram))))
            }
            (EngineKind::Soft, _) => AnyEngine::Soft(Box::new(self.soft_engine(clock, ram))),
            (EngineKind::Kvm, _) => {
                let branches = self.proved.branches.filter(|_| clock == ClockMode::Branch);
                let proved = Proved { branches, ..self.proved };
                let mut engine = KvmEngine::new(&Host::open()?, ram.shared(), proved)?;
                engine.wait_at_most(self.patience);
                AnyEngine::Kvm(Box::new(engine))
            }
        })
    }

    fn soft_engine(&self, clock: ClockMode, ram: &Ram) -> SoftEngine {
        let caches = CacheConfig { branches: clock == ClockMode::Branch, ..self.caches };
        let mut engine = SoftEngine::sharing(ram.shared(), &code(caches));
        if self.lockstep {
            engine.run_in_lockstep(caches);
        }
        engine
    }

    fn applied(&self, mut machine: Machine<AnyEngine>) -> Machine<AnyEngine> {
        self.apply(&mut machine);
        machine
    }

    /// What can be changed on a machine that is there: all but the sizes of caches and leaks of devices.
    pub(crate) fn apply(&self, machine: &mut Machine<AnyEngine>) {
        let Some(engine) = machine.engine_mut().soft_mut() else { return };
        match self.flushes {
            Some(schedule) => engine.flush_at_random(schedule),
            None => engine.flush_when_needed(),
        }
        engine.leak_stale_translations(self.stale_translations);
        engine.leak_panic(self.panics.then_some(0));
    }
}
