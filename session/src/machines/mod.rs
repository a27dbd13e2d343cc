//! Machines: their boot files and the engines that execute them.
//!
//! - this file: boot files, and new machines on an engine
//! - [`engines`]: the choice of the engine; [`memory`]: the least memory that an image boots in

pub mod engines;
pub mod memory;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
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

use crate::guest::containers::NodeImage;

/// The files that a machine boots from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFiles {
    /// Path of the `vmlinux`.
    pub kernel: PathBuf,
    /// Path of the initramfs, a cpio archive.
    pub initramfs: Option<PathBuf>,
    /// Path of the SquashFS root file system, and its BLAKE3 digest. Nodes with a container image do not use it.
    pub root: Option<(PathBuf, [u8; 32])>,
    /// Container images of the nodes that have one, by the nodes' names.
    pub images: BTreeMap<String, Arc<NodeImage>>,
}

thread_local! {
    /// Code cache that the machines of this thread share: they take turns, and execute mostly the same code.
    static CODE: RefCell<Option<Code>> = const { RefCell::new(None) };
}

/// Returns the code cache of this thread's machines, with caches of these sizes.
fn code(caches: CacheConfig) -> Code {
    CODE.with_borrow_mut(|shared| match shared {
        Some(code) if code.caches() == caches => code.clone(),
        _ => shared.insert(Code::new(caches)).clone(),
    })
}

/// Kind of the engine that executes guest code.
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
    /// Returns its name as an argument of `--engine`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Soft => "soft",
            EngineKind::Kvm => "kvm",
        }
    }
}

/// Choice of the engine, with its settings. No setting except the leaks may change what a guest computes. The settings
/// after `patience` are for tests, `everett verify` and `--edges`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// Kind of the engine.
    pub engine: EngineKind,
    /// Capabilities of the host that were proved for KVM.
    pub proved: Proved,
    /// Longest time that a guest may run on KVM without an exit.
    pub patience: Duration,
    /// Sizes of the engine's caches, and whether it translates.
    pub caches: CacheConfig,
    /// True if a second engine interprets all executed instructions, and the two are compared.
    pub lockstep: bool,
    /// Schedule of additional random cache flushes.
    pub flushes: Option<FlushSchedule>,
    /// Deliberate leaks of host state outside the CPU.
    pub leak: Leak,
    /// True if the CPU deliberately uses stale TLB entries.
    pub stale_translations: bool,
    /// True if the CPUID instruction deliberately panics.
    pub panics: bool,
}

impl EngineOptions {
    /// Makes a machine with these options.
    ///
    /// # Errors
    /// See [`Machine::new`].
    pub fn machine(&self, mut config: MachineConfig) -> Result<Machine, MachineError> {
        config.leak = self.leak;
        let clock = config.clock;
        let machine = Machine::new(config, |ram| self.engine(clock, ram))?;
        Ok(self.applied(machine))
    }

    /// Makes a machine with these options in the state of `moment`.
    ///
    /// # Errors
    /// See [`Machine::from_moment`].
    pub fn machine_at(&self, mut config: MachineConfig, moment: &Moment) -> Result<Machine, MachineError> {
        config.leak = self.leak;
        let clock = config.clock;
        Ok(self.applied(Machine::from_moment(config, moment, |ram: &Ram| self.engine(clock, ram))?))
    }

    /// Makes an engine that counts the unit of `clock`. If this kind of engine cannot count that unit, makes one that
    /// the machine refuses.
    fn engine(&self, clock: ClockMode, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match (self.engine, clock) {
            (EngineKind::Soft, ClockMode::Exit) => CountingEngine::exits(self.soft_engine(clock, ram)).into(),
            (EngineKind::Soft, ClockMode::Branch) => {
                CountingEngine::branches(self.soft_engine(clock, ram)).into()
            }
            (EngineKind::Soft, _) => self.soft_engine(clock, ram).into(),
            (EngineKind::Kvm, _) => {
                let branches = self.proved.branches.filter(|_| clock == ClockMode::Branch);
                let proved = Proved { branches, ..self.proved };
                let mut engine = KvmEngine::new(&Host::open()?, ram.shared(), proved)?;
                engine.wait_at_most(self.patience);
                engine.into()
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

    fn applied(&self, mut machine: Machine) -> Machine {
        self.apply(&mut machine);
        machine
    }

    /// Applies the options that can change on an existing machine: all but cache sizes and leaks of devices.
    pub(crate) fn apply(&self, machine: &mut Machine) {
        let Some(engine) = machine.engine_mut().soft_mut() else { return };
        match self.flushes {
            Some(schedule) => engine.flush_at_random(schedule),
            None => engine.flush_when_needed(),
        }
        engine.leak_stale_translations(self.stale_translations);
        engine.leak_panic(self.panics.then_some(0));
    }
}
