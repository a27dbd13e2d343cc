//! Machines: their boot files and the engines that execute them.
//!
//! - this file: boot files and new machines
//! - [`engines`]: choice of the engine
//! - [`memory`]: minimum RAM with which a machine can boot its image

pub mod engines;
pub mod memory;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use everett_cpu::{CacheConfig, Code, CpuModel};
use everett_vmm::clock::ClockMode;
use everett_vmm::engine::any::AnyEngine;
use everett_vmm::engine::kvm::{KvmEngine, Proved};
use everett_vmm::engine::soft::{FlushSchedule, SoftEngine};
use everett_vmm::kvm::Host;
use everett_vmm::leak::Leak;
use everett_vmm::machine::{Machine, MachineConfig, MachineError, Moment};
use everett_vmm::ram::Ram;
use serde::Serialize;

use crate::guest::containers::NodeImage;

/// Files from which a machine boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFiles {
    /// Path of the `vmlinux`.
    pub kernel: PathBuf,
    /// Path of the initramfs, a cpio archive.
    pub initramfs: Option<PathBuf>,
    /// Path of the SquashFS root file system, and its BLAKE3 digest. A node with a container image does not use it.
    pub root: Option<(PathBuf, [u8; 32])>,
    /// Container images by node name.
    pub images: BTreeMap<String, Arc<NodeImage>>,
}

thread_local! {
    /// Code cache that all machines of a host thread share. They run one at a time and execute mostly the same code.
    static CODE: RefCell<Option<Code>> = const { RefCell::new(None) };
}

/// Returns this thread's code cache. A cache with other sizes or for another CPU model is replaced.
fn code(caches: CacheConfig, model: CpuModel) -> Code {
    CODE.with_borrow_mut(|shared| match shared {
        Some(code) if code.caches() == caches && code.model() == model => code.clone(),
        _ => shared.insert(Code::of_model(caches, model)).clone(),
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
    /// Returns the engine's name as the option `--engine` spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Soft => "soft",
            EngineKind::Kvm => "kvm",
        }
    }
}

/// Engine and its settings. Only the last three fields, which are deliberate defects for tests, can change what a guest
/// computes. The fields after `patience` are for tests, `everett verify`, `everett causality` and the option `--edges`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// Kind of the engine.
    pub engine: EngineKind,
    /// Features of the host's `/dev/kvm` that Everett's checks have confirmed.
    pub proved: Proved,
    /// Longest host time that a guest may run on KVM without an exit.
    pub patience: Duration,
    /// Sizes of the engine's caches, and whether the engine translates.
    pub caches: CacheConfig,
    /// True if a second engine interprets every instruction and Everett compares the two results.
    pub lockstep: bool,
    /// Schedule of extra random cache flushes.
    pub flushes: Option<FlushSchedule>,
    /// Deliberate leaks of host state into devices.
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
        let (clock, cpu) = (config.clock, config.cpu);
        let machine = Machine::new(config, |ram| self.engine(clock, cpu, ram))?;
        Ok(self.applied(machine))
    }

    /// Makes a machine with these options in the state of `moment`.
    ///
    /// # Errors
    /// See [`Machine::from_moment`].
    pub fn machine_at(&self, mut config: MachineConfig, moment: &Moment) -> Result<Machine, MachineError> {
        config.leak = self.leak;
        let (clock, cpu) = (config.clock, config.cpu);
        Ok(self.applied(Machine::from_moment(config, moment, |ram: &Ram| self.engine(clock, cpu, ram))?))
    }

    /// Makes an engine that counts the unit of `clock`: instructions, branches or exits. If KVM cannot count this unit
    /// or does not have the CPU model, the engine differs, and [`Machine`] refuses it.
    fn engine(&self, clock: ClockMode, cpu: CpuModel, ram: &Ram) -> Result<AnyEngine, MachineError> {
        Ok(match self.engine {
            EngineKind::Soft => AnyEngine::on_soft(clock, self.soft_engine(clock, cpu, ram)),
            EngineKind::Kvm => {
                let branches = self.proved.branches.filter(|_| clock == ClockMode::Branch);
                let proved = Proved { branches, ..self.proved };
                let mut engine = KvmEngine::new(&Host::open()?, ram.shared(), proved)?;
                engine.wait_at_most(self.patience);
                engine.into()
            }
        })
    }

    fn soft_engine(&self, clock: ClockMode, cpu: CpuModel, ram: &Ram) -> SoftEngine {
        let caches = AnyEngine::soft_caches(clock, self.caches);
        let mut engine = SoftEngine::sharing(ram.shared(), &code(caches, cpu));
        if self.lockstep {
            engine.run_in_lockstep(caches);
        }
        engine
    }

    fn applied(&self, mut machine: Machine) -> Machine {
        self.apply(&mut machine);
        machine
    }

    /// Applies the options that an existing machine can change: `flushes`, `stale_translations` and `panics`. Only
    /// Everett's own CPU has these options. All other options are fixed when the machine is made.
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
