//! Engine (executor of guest instructions) whose kind is chosen at run time.
//!
//! [`Machine`](crate::Machine) uses this enum and has no type parameter. With a type parameter, each crate that uses
//! machines would compile the run loop, the devices and the digests again, at its own level of optimisation.

use everett_cpu::{CacheConfig, CpuModel, CpuState, Edge, MissingInstruction, Watchpoint, WatchpointHit};

use super::counting::CountingEngine;
use super::kvm::KvmEngine;
use super::soft::SoftEngine;
use super::{Capabilities, Engine, Exit, Failure, TscAnchor, Until};
use crate::clock::ClockMode;

/// An engine of any kind.
pub enum AnyEngine {
    /// Soft CPU that counts instructions.
    Soft(Box<SoftEngine>),
    /// Soft CPU that counts exits or branches.
    Counting(Box<CountingEngine>),
    /// KVM engine, which uses the host's processor.
    Kvm(Box<KvmEngine>),
    /// Any other engine, for example a scripted one in tests.
    Other(Box<dyn Engine + Send>),
}

impl From<SoftEngine> for AnyEngine {
    fn from(engine: SoftEngine) -> AnyEngine {
        AnyEngine::Soft(Box::new(engine))
    }
}

impl From<CountingEngine> for AnyEngine {
    fn from(engine: CountingEngine) -> AnyEngine {
        AnyEngine::Counting(Box::new(engine))
    }
}

impl From<KvmEngine> for AnyEngine {
    fn from(engine: KvmEngine) -> AnyEngine {
        AnyEngine::Kvm(Box::new(engine))
    }
}

impl AnyEngine {
    /// Returns `caches` for a soft CPU in this clock mode. The CPU counts branches only in clock mode `branch`.
    #[must_use]
    pub fn soft_caches(clock: ClockMode, caches: CacheConfig) -> CacheConfig {
        CacheConfig { branches: clock == ClockMode::Branch, ..caches }
    }

    /// Returns an engine on a soft CPU that counts the unit of this clock mode: instructions, exits or branches.
    ///
    /// # Panics
    /// Panics in clock mode `branch` unless the CPU counts branches. A CPU with caches of [`AnyEngine::soft_caches`]
    /// does.
    #[must_use]
    pub fn on_soft(clock: ClockMode, soft: SoftEngine) -> AnyEngine {
        match clock {
            ClockMode::Insn => soft.into(),
            ClockMode::Exit => CountingEngine::exits(soft).into(),
            ClockMode::Branch => CountingEngine::branches(soft).into(),
        }
    }

    /// Returns the soft CPU's engine, to change its settings. Returns `None` for other kinds.
    pub fn soft_mut(&mut self) -> Option<&mut SoftEngine> {
        match self {
            AnyEngine::Soft(engine) => Some(engine),
            AnyEngine::Counting(engine) => Some(engine.soft_mut()),
            AnyEngine::Kvm(_) | AnyEngine::Other(_) => None,
        }
    }
    /// Returns the KVM engine. Returns `None` for other kinds.
    pub fn kvm(&self) -> Option<&KvmEngine> {
        match self {
            AnyEngine::Kvm(engine) => Some(engine),
            AnyEngine::Soft(_) | AnyEngine::Counting(_) | AnyEngine::Other(_) => None,
        }
    }
}

/// Evaluates the same expression for whichever engine the enum holds.
macro_rules! each {
    ($any:expr, $engine:ident => $body:expr) => {
        match $any {
            AnyEngine::Soft($engine) => $body,
            AnyEngine::Counting($engine) => $body,
            AnyEngine::Kvm($engine) => $body,
            AnyEngine::Other($engine) => $body,
        }
    };
}

impl Engine for AnyEngine {
    fn capabilities(&self) -> Capabilities {
        each!(self, engine => engine.capabilities())
    }
    fn cpu_model(&self) -> CpuModel {
        each!(self, engine => engine.cpu_model())
    }
    fn run(&mut self, until: Until) -> Exit {
        each!(self, engine => engine.run(until))
    }
    fn icount(&self) -> u64 {
        each!(self, engine => engine.icount())
    }
    fn failure(&self) -> Option<Failure> {
        each!(self, engine => engine.failure())
    }
    fn recover(&mut self) -> bool {
        each!(self, engine => engine.recover())
    }
    fn complete_read(&mut self, value: u64) {
        each!(self, engine => engine.complete_read(value));
    }
    fn interruptible(&self) -> bool {
        each!(self, engine => engine.interruptible())
    }
    fn interrupt(&mut self, vector: u8) {
        each!(self, engine => engine.interrupt(vector));
    }
    fn set_tsc(&mut self, anchor: TscAnchor) {
        each!(self, engine => engine.set_tsc(anchor));
    }
    fn state(&self) -> CpuState {
        each!(self, engine => engine.state())
    }
    fn set_state(&mut self, state: &CpuState) {
        each!(self, engine => engine.set_state(state));
    }
    fn memory_written(&mut self, gpa: u64, len: u64) {
        each!(self, engine => engine.memory_written(gpa, len));
    }
    fn memory_replaced(&mut self, pages: &[u64]) {
        each!(self, engine => engine.memory_replaced(pages));
    }
    fn take_dirty_pages(&mut self) -> Vec<u64> {
        each!(self, engine => engine.take_dirty_pages())
    }
    fn read_virtual(&self, gva: u64, buf: &mut [u8]) -> usize {
        each!(self, engine => engine.read_virtual(gva, buf))
    }
    fn set_watchpoints(&mut self, points: &[Watchpoint]) -> bool {
        each!(self, engine => engine.set_watchpoints(points))
    }
    fn set_breakpoints(&mut self, addresses: &[u64]) -> bool {
        each!(self, engine => engine.set_breakpoints(addresses))
    }
    fn stop_at_mode_changes(&mut self, on: bool) -> bool {
        each!(self, engine => engine.stop_at_mode_changes(on))
    }
    fn take_hits(&mut self) -> Vec<WatchpointHit> {
        each!(self, engine => engine.take_hits())
    }
    fn take_missing_instruction(&mut self) -> Option<MissingInstruction> {
        each!(self, engine => engine.take_missing_instruction())
    }
    fn take_edges(&mut self) -> Vec<Edge> {
        each!(self, engine => engine.take_edges())
    }
    fn forget_edges(&mut self) {
        each!(self, engine => engine.forget_edges());
    }
}
