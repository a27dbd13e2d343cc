//! The core of the KVM engine: enters the guest, handles its exits, counts exits or branches, and checks that the host
//! did not disturb a run. The host disturbs a run if the guest stops too late, its TSC ticks, or the host's kernel
//! takes the branch counter away.
#![allow(unsafe_code)]

mod delivery;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use everett_cpu::state::Dead;
use everett_cpu::{CpuState, Request};
use everett_input::causes::with_causes;
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemoryMmap, MmapRegion};

use super::KvmStats;
use super::access::{Access, Target};
use super::bridge::{Bridge, Memory, Step};
use super::stretch::Stretched;
use super::{Counting, Parts};
use crate::clock::ClockMode;
use crate::engine::{Exit, Failure, TscAnchor, Until};
use crate::kvm::gates::RESUME;
use crate::kvm::{HeldTsc, KvmError, KvmExit, Processor, Queued};
use crate::layout::PAGE;
use crate::ram;

const INTERRUPTS_ENABLED: u64 = 1 << 9;
/// Maximum number of parts in which KVM reports one instruction's device access.
const PARTS_MAX: usize = 64;

/// An instruction that is not finished.
#[derive(Debug)]
enum Pending {
    None,
    /// KVM finishes the instruction after this access.
    Kvm(Access),
    /// The soft CPU finishes the instruction after a device's answer.
    Soft(Box<Bridge>),
}

#[derive(Debug)]
pub(super) struct Inner {
    vcpu: Box<dyn Processor>,
    /// Branch counter; present in clock mode `branch`.
    counting: Option<Counting>,
    /// Holds the guest's TSC still. `None` if the host cannot do this.
    holder: Option<Box<dyn HeldTsc>>,
    memory: Memory,
    bytes: u64,
    pending: Pending,
    count: u64,
    halted: bool,
    dead: Option<Dead>,
    /// TSC offset that the guest has written. KVM does not store this offset, because its own one is relative to the
    /// host's TSC.
    tsc_offset: u64,
    tsc: TscAnchor,
    /// True where clock mode `exit` allows an interrupt: directly after a finished exit or after a state was loaded.
    /// Executing the guest or taking an interrupt clears it. An exit due to a host signal does not set it.
    open: bool,
    /// True if the guest's state allows an interrupt, e.g. RFLAGS.IF is set. `None` if this is unknown. The engine then
    /// reads the state.
    ready: Option<bool>,
    /// Pages that the soft CPU or devices wrote.
    written: BTreeSet<u64>,
    signals: u32,
    signals_max: Option<u32>,
    failed: Option<Failure>,
    /// How the host disturbed the run. If set, everything executed since the state was last replaced must be discarded.
    disturbed: Option<String>,
    stats: KvmStats,
    /// Owns the guest memory to which `memory` points, so that it stays mapped.
    _ram: Arc<dyn Any + Send + Sync>,
}

/// Result of a step: the exit that ends the run, or `None` to continue.
type Outcome = Result<Option<Exit>, KvmError>;

impl Inner {
    pub(super) fn new<B>(parts: Parts, memory: Arc<GuestMemoryMmap<B>>) -> Result<Inner, KvmError>
    where
        B: Bitmap + Send + Sync + 'static,
        MmapRegion<B>: Send + Sync,
    {
        let (base, bytes) = ram::whole(&memory).ok_or(KvmError::Memory)?;
        let mut inner = Inner {
            vcpu: parts.processor,
            counting: parts.counting.map(|counting| Counting { margin: counting.margin.max(1), ..counting }),
            holder: parts.tsc,
            // SAFETY: the mapping has this length, and `_ram` keeps it alive. Like devices, soft CPUs run only between
            // two entries of the guest, on the thread that owns the machine.
            memory: unsafe { Memory::new(base, bytes) },
            bytes,
            pending: Pending::None,
            count: 0,
            halted: false,
            dead: None,
            tsc_offset: 0,
            tsc: TscAnchor { icount: 0, tsc: 0, num: 1, den: 1 },
            open: true,
            ready: None,
            written: BTreeSet::new(),
            signals: 0,
            signals_max: None,
            failed: None,
            disturbed: None,
            stats: KvmStats::default(),
            _ram: memory,
        };
        inner.vcpu.load(&CpuState::default())?;
        Ok(inner)
    }

    pub(super) fn give_up_after(&mut self, signals: u32) {
        self.signals_max = Some(signals);
    }
    pub(super) fn limit_instructions(&mut self, instructions: u64) {
        self.memory.give_up_after(instructions);
    }
    pub(super) fn stats(&self) -> KvmStats {
        self.stats
    }
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failed.clone().or_else(|| self.disturbed.clone().map(Failure::Disturbed))
    }
    pub(super) fn clock(&self) -> ClockMode {
        if self.counting.is_some() { ClockMode::Branch } else { ClockMode::Exit }
    }
    /// True if the host can disturb a run. The machine must repeat each run that the host has disturbed.
    pub(super) fn can_be_disturbed(&self) -> bool {
        self.counting.is_some() || self.holder.is_some()
    }
    /// True if the TSC is held still. [`HeldTsc`] then interrupts the guest by signals of its own.
    pub(super) fn holds_tsc(&self) -> bool {
        self.holder.is_some()
    }
    /// See [`crate::engine::Engine::recover`].
    pub(super) fn recover(&mut self) -> bool {
        self.failed.is_none() && self.disturbed.take().is_some()
    }
    pub(super) fn count(&self) -> u64 {
        self.count
    }
    pub(super) fn set_tsc(&mut self, anchor: TscAnchor) {
        self.tsc = anchor;
    }

    /// Records a failure of the host or of the engine, or a disturbance. Keeps only the first failure and the first
    /// disturbance.
    #[cold]
    fn fail(&mut self, error: &KvmError) {
        let why = with_causes(error);
        match error {
            KvmError::Disturbed(_) => _ = self.disturbed.get_or_insert(why),
            KvmError::Panic(_) => _ = self.failed.get_or_insert(Failure::Engine(why)),
            _ => _ = self.failed.get_or_insert(Failure::Host(why)),
        }
    }
    /// Records that the host failed for this reason. Keeps only the first reason.
    #[cold]
    pub(super) fn fail_for(&mut self, why: &str) {
        self.failed.get_or_insert_with(|| Failure::Host(why.to_owned()));
    }
    /// Returns the value of `result`. For an error, records the failure and returns `otherwise`.
    fn or_fail<T>(&mut self, result: Result<T, KvmError>, otherwise: T) -> T {
        result.unwrap_or_else(|error| {
            self.fail(&error);
            otherwise
        })
    }

    pub(super) fn run(&mut self, until: &Until) -> Exit {
        self.signals = 0;
        loop {
            if self.failed.is_some() || self.disturbed.is_some() {
                return Exit::Failed;
            }
            match self.dead {
                None => {}
                Some(Dead::Shutdown) => return Exit::Shutdown,
                Some(Dead::Unsupported(what)) => return Exit::Unsupported(what.reason()),
            }
            match self.advance(until) {
                Ok(Some(exit)) => return exit,
                Ok(None) => {}
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Takes one step: finishes an instruction, stops if `until` says so, or enters the guest once.
    fn advance(&mut self, until: &Until) -> Outcome {
        if !matches!(self.pending, Pending::None) {
            return self.finish();
        }
        if self.halted {
            return Ok(Some(Exit::Halt));
        }
        if self.count >= until.icount {
            return Ok(Some(Exit::Count));
        }
        if until.window && self.can_interrupt()? {
            return Ok(Some(Exit::Window));
        }
        self.open = false;
        let missing = until.icount - self.count;
        if self.counting.as_ref().is_some_and(|counting| missing <= counting.margin) {
            return self.stretch(missing, until.window);
        }
        let exit = self.enter(until)?;
        if self.vcpu.priority() != 0 {
            return Err(KvmError::Exit(
                "the guest uses CR8, which is not connected to the local APIC".to_owned(),
            ));
        }
        self.exit(exit)
    }

    /// Enters the guest once, and checks that the host did not disturb it.
    fn enter(&mut self, until: &Until) -> Result<KvmExit, KvmError> {
        self.stats.entries += 1;
        if let Some(counting) = &mut self.counting {
            self.vcpu.request_window(until.window);
            counting.counter.arm(until.icount - self.count - counting.margin)?;
        }
        let tsc = self.tsc_now().tsc.wrapping_add(self.tsc_offset);
        if let Some(holder) = &mut self.holder {
            holder.hold(tsc)?;
        }
        let exit = self.vcpu.run();
        // This call also clears the timer that `hold` has set, so it is necessary even if the entry failed.
        let moved = self.holder.as_mut().map_or(Ok(false), |holder| holder.has_moved());
        let exit = exit?;
        self.ready = Some(self.vcpu.ready_for_interrupt());
        if let Err(error) = self.believe(until, moved) {
            if exit.is_unfinished() {
                // Without this, the rest of the unfinished instruction would be applied to the state that replaces the
                // current one.
                self.vcpu.answer_msr(Some(0));
                self.drain()?;
            }
            return Err(error);
        }
        Ok(exit)
    }

    /// Returns an error if the guest ran past the requested count, or if its TSC moved.
    fn believe(&mut self, until: &Until, moved: Result<bool, KvmError>) -> Result<(), KvmError> {
        if let Some(counting) = &mut self.counting {
            let counted = counting.counter.read()?;
            self.counted_branches(counted);
            // A run must stop directly after its last branch. A guest whose count equals the requested count has
            // executed further instructions after that branch, so it also ran too far.
            if let Some(late) = self.count.checked_sub(until.icount) {
                return Err(KvmError::Disturbed(format!("it was stopped at least {late} branches too late")));
            }
        }
        if moved? { Err(KvmError::Disturbed("its TSC ticked".to_owned())) } else { Ok(()) }
    }

    /// Executes `missing` branches on the soft CPU, to stop at an exact branch. Stops earlier at an exit or an
    /// interrupt window.
    fn stretch(&mut self, missing: u64, window: bool) -> Outcome {
        let state = self.settled()?;
        if self.halted || self.dead.is_some() {
            return Ok(None);
        }
        self.stats.stretches += 1;
        let TscAnchor { tsc, .. } = self.tsc_now();
        let tsc = TscAnchor { icount: 0, tsc, num: 0, den: 1 };
        match self.memory.stretch(&state, tsc, missing, window) {
            Stretched::Done { state, written, branches, endless } => {
                self.counted_branches(branches);
                self.wrote(written)?;
                self.take(&state)?;
                Ok(endless.then_some(Exit::NoProgress))
            }
            Stretched::Device { bridge, request, branches } => {
                self.counted_branches(branches);
                Ok(Some(self.ask(bridge, request)))
            }
            Stretched::Failed(message) => Err(KvmError::Panic(message)),
        }
    }

    fn exit(&mut self, exit: KvmExit) -> Outcome {
        match exit {
            KvmExit::MmioRead { gpa, size } => {
                self.access(Access::read(Target::Memory(gpa), usize::from(size)))
            }
            KvmExit::MmioWrite { gpa, size, value } => {
                let bytes = value.to_le_bytes();
                self.access(Access::write(Target::Memory(gpa), &bytes[..usize::from(size)]))
            }
            KvmExit::PioRead { port, size, count } => {
                self.access(Access::read(Target::Port(port, size), usize::from(size) * count as usize))
            }
            KvmExit::PioWrite { port, size, count } => {
                let data = self.vcpu.port_data(size, count).to_vec();
                self.access(Access::write(Target::Port(port, size), &data))
            }
            KvmExit::MsrRead { .. } | KvmExit::MsrWrite { .. } => {
                self.stats.msrs += 1;
                self.bridge(exit)
            }
            KvmExit::Failure(failure) if failure.is_emulation() => {
                self.stats.bridged += 1;
                self.bridge(exit)
            }
            KvmExit::Failure(failure) => {
                let error = format!("internal error {}", failure.suberror);
                Err(KvmError::Exit(error))
            }
            KvmExit::Halt => {
                self.counted();
                self.halted = true;
                let place = self.vcpu.save_place()?;
                self.clear_resume(&place)?;
                Ok(Some(Exit::Halt))
            }
            KvmExit::Shutdown if !self.vcpu.delivers() => {
                self.stats.delivered += 1;
                self.at_closed_gates()
            }
            KvmExit::Shutdown => {
                self.dead = Some(Dead::Shutdown);
                Ok(Some(Exit::Shutdown))
            }
            KvmExit::Interrupted => {
                self.signals += 1;
                if self.signals_max.is_some_and(|most| self.signals >= most) {
                    return Err(KvmError::Exit("the guest did not exit in time".to_owned()));
                }
                Ok(None)
            }
            KvmExit::Window if self.counting.is_some() && self.ready == Some(true) => Ok(Some(Exit::Window)),
            KvmExit::Window | KvmExit::Priority | KvmExit::Debug => Err(KvmError::Exit(format!("{exit:?}"))),
        }
    }

    /// In clock mode `branch`, adds retired branches to the count.
    fn counted_branches(&mut self, branches: u64) {
        self.count += branches;
        if branches > 0 {
            // A retired branch is progress, so the count of signals without progress starts again.
            self.signals = 0;
        }
    }
    /// Records that an exit is finished. In clock mode `exit`, counts it.
    fn counted(&mut self) {
        if self.counting.is_none() {
            self.count += 1;
        }
        self.open = true;
    }

    fn access(&mut self, mut access: Access) -> Outcome {
        let first = access.next();
        self.pending = Pending::Kvm(access);
        Ok(first)
    }

    /// Continues the unfinished instruction. Counts its exit when it is finished.
    fn finish(&mut self) -> Outcome {
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => Ok(None),
            Pending::Kvm(mut access) => {
                if let Some(piece) = access.next() {
                    self.pending = Pending::Kvm(access);
                    return Ok(Some(piece));
                }
                self.answer(&access);
                let more = self.vcpu.finish()?;
                self.ready = Some(self.vcpu.ready_for_interrupt());
                match more {
                    // KVM reports another part of the same instruction's access.
                    Some(exit) => self.exit(exit),
                    None => {
                        // If the instruction ended in an exception, deliver the exception now, as part of this exit.
                        // The next interrupt then comes after the exception, whether or not an observer reads the state
                        // here. If the processor had to deliver the exception while the gates are closed (while guest
                        // exceptions end in a triple fault, see `crate::kvm::gates`), the delivery would fail, and the
                        // soft CPU would repeat the instruction with its device access.
                        if self.vcpu.queued()? != Queued::default() {
                            self.settled()?;
                            if self.dead.is_none() {
                                self.counted();
                            }
                            return Ok(None);
                        }
                        self.finish_repeated()
                    }
                }
            }
            Pending::Soft(bridge) => self.finish_by_soft(bridge),
        }
    }

    /// Handles an instruction that KVM has reported as finished, without a queued event. If the instruction has a REP
    /// prefix, iterations may remain. The processor would execute these iterations without reporting their end, so the
    /// soft CPU executes them.
    fn finish_repeated(&mut self) -> Outcome {
        let place = self.vcpu.save_place()?;
        if !self.memory.repeats(&place) {
            self.clear_resume(&place)?;
            self.counted();
            return Ok(None);
        }
        let state = self.settled()?;
        self.stats.bridged += 1;
        let bridge = self.memory.repeat(&state, self.tsc_now());
        self.finish_by_soft(Box::new(bridge))
    }

    /// Clears RFLAGS.RF after an instruction that KVM, not the processor, has finished. A processor clears RF with
    /// each instruction (SDM volume 3, "Instruction-Breakpoint Exception Condition"). KVM leaves RF set after a
    /// port access and HLT, and the next interrupt would push it. `place` is the state after the instruction.
    fn clear_resume(&mut self, place: &CpuState) -> Result<(), KvmError> {
        // If the instruction raised a fault, RF stays set, because the fault's delivery pushes it.
        if place.rflags & RESUME == 0 || self.vcpu.queued()?.exception.is_some() {
            return Ok(());
        }
        let mut state = self.settled()?;
        state.rflags &= !RESUME;
        self.take(&state)
    }

    fn finish_by_soft(&mut self, bridge: Box<Bridge>) -> Outcome {
        let exit = self.step(bridge)?;
        let finished = matches!(self.pending, Pending::None) && exit != Some(Exit::NoProgress);
        if finished && self.dead.is_none() {
            self.counted();
        }
        Ok(exit)
    }

    /// Passes to KVM the machine's answer to a load.
    fn answer(&mut self, access: &Access) {
        if !access.is_read() {
            return;
        }
        let data = access.data();
        if self.vcpu.is_at_port() {
            // KVM stores the values of all iterations as consecutive bytes, as `data` does.
            let len = data.len() as u32;
            self.vcpu.port_data(1, len).copy_from_slice(data);
        } else {
            let mut bytes = [0; 8];
            bytes[..data.len()].copy_from_slice(data);
            self.vcpu.answer_mmio(u64::from_le_bytes(bytes));
        }
    }

    /// Makes the soft CPU execute the instruction of this exit.
    fn bridge(&mut self, exit: KvmExit) -> Outcome {
        // The registers are still those before the instruction. KVM may have queued an exception for the instruction
        // (#UD after an emulation failure), which is dropped.
        let saved = self.vcpu.save()?;
        if exit.is_unfinished() {
            self.vcpu.answer_msr(Some(0));
            self.drain()?;
        }
        let mut state = self.complete_state(saved.state);
        if let Some(vector) = saved.queued.interrupt {
            state = self.delivered(&state, |cpu| cpu.interrupt(vector))?;
        }
        let bridge = self.memory.step(&state, self.tsc_now());
        self.step(Box::new(bridge))
    }
    /// Returns the TSC value that the guest reads until the next exit.
    fn tsc_now(&self) -> TscAnchor {
        let TscAnchor { icount, tsc, num, den } = self.tsc;
        let passed = u128::from(self.count.saturating_sub(icount)) * u128::from(num) / u128::from(den);
        TscAnchor { icount: self.count, tsc: tsc.wrapping_add(passed as u64), num: 0, den: 1 }
    }

    fn step(&mut self, mut bridge: Box<Bridge>) -> Outcome {
        match bridge.go_on() {
            Step::Done { state, written, branches, endless } => {
                self.memory.keep(bridge.into_cpu());
                if self.counting.is_some() {
                    self.counted_branches(branches);
                }
                self.wrote(written)?;
                let was_halted = self.halted;
                self.take(&state)?;
                if endless {
                    return Ok(Some(Exit::NoProgress));
                }
                if self.halted && !was_halted {
                    self.counted();
                    return Ok(Some(Exit::Halt));
                }
                Ok(None)
            }
            Step::Failed(message) => Err(KvmError::Panic(message)),
            Step::Device(request) => Ok(Some(self.ask(bridge, request))),
        }
    }

    /// Returns the exit for a device access by an instruction that the soft CPU executes.
    fn ask(&mut self, mut bridge: Box<Bridge>, request: Request) -> Exit {
        if let Request::MmioWrite { .. } | Request::PioWrite { .. } = request {
            bridge.complete(0);
        }
        self.pending = Pending::Soft(bridge);
        Exit::Device(request)
    }

    /// Makes KVM finish an instruction whose result will be discarded.
    fn drain(&mut self) -> Result<(), KvmError> {
        for _ in 0..PARTS_MAX {
            if self.vcpu.finish()?.is_none() {
                return Ok(());
            }
        }
        Err(KvmError::Exit("an instruction that does not end".to_owned()))
    }

    pub(super) fn complete_read(&mut self, value: u64) {
        match &mut self.pending {
            Pending::None => {}
            Pending::Kvm(access) => access.answer(value),
            Pending::Soft(bridge) => bridge.complete(value),
        }
    }

    pub(super) fn interruptible(&mut self) -> bool {
        let can = self.can_interrupt();
        self.failed.is_none() && self.disturbed.is_none() && self.dead.is_none() && self.or_fail(can, false)
    }
    fn can_interrupt(&mut self) -> Result<bool, KvmError> {
        let boundary = self.open || self.counting.is_some();
        if !boundary || !matches!(self.pending, Pending::None) {
            return Ok(false);
        }
        if let Some(ready) = self.ready {
            return Ok(ready);
        }
        let saved = self.vcpu.save()?;
        let ready = saved.state.rflags & INTERRUPTS_ENABLED != 0
            && !saved.state.shadow
            && saved.queued == Queued::default();
        self.ready = Some(ready);
        Ok(ready)
    }

    /// See [`crate::engine::Engine::interrupt`].
    pub(super) fn interrupt(&mut self, vector: u8) {
        assert!(self.interruptible(), "an interrupt was injected into a CPU that cannot take one");
        self.halted = false;
        self.open = false;
        self.ready = None;
        let done = if self.vcpu.delivers() { self.vcpu.interrupt(vector) } else { self.deliver(vector) };
        self.or_fail(done, ());
    }

    pub(super) fn state(&mut self) -> CpuState {
        let settled = self.settled();
        let dead = self.dead;
        self.or_fail(settled, CpuState { dead, ..CpuState::default() })
    }
    /// Records pages that the soft CPU wrote. They may contain the guest's page tables, so KVM must drop everything
    /// that it derived from page tables. If the host has shown that a TLB flush suffices, this takes only a few ioctls
    /// ([`crate::kvm::processor::Real::new`]). On other hosts, the guest's memory is removed from KVM and added again.
    /// In clock mode `branch`, this happens after each stretch (the branches that the soft CPU executes before an exact
    /// stop) that has written memory.
    fn wrote(&mut self, pages: Vec<u64>) -> Result<(), KvmError> {
        if pages.is_empty() {
            return Ok(());
        }
        self.written.extend(pages);
        // Take the log of written pages first, because it may be lost with the memory.
        self.written.extend(self.vcpu.take_dirty_pages()?);
        self.vcpu.forget_memory()
    }
    /// Fills in the fields of `state` that come from the engine, because KVM does not know their values.
    fn complete_state(&self, mut state: CpuState) -> CpuState {
        state.icount = self.count;
        state.halted = self.halted;
        state.dead = self.dead;
        state.msrs.tsc_offset = self.tsc_offset;
        state
    }
    /// Loads a state except its count.
    fn take(&mut self, state: &CpuState) -> Result<(), KvmError> {
        self.vcpu.load(state)?;
        self.halted = state.halted;
        self.dead = state.dead;
        self.tsc_offset = state.msrs.tsc_offset;
        self.ready = None;
        Ok(())
    }

    pub(super) fn set_state(&mut self, state: &CpuState) {
        // The new state replaces everything that was executed since the disturbance.
        self.disturbed = None;
        let done = match std::mem::replace(&mut self.pending, Pending::None) {
            // Without this, the rest of the instruction would be applied to the new state.
            Pending::Kvm(_) => self.drain(),
            Pending::None | Pending::Soft(_) => Ok(()),
        };
        let done = done.and_then(|()| self.take(state));
        self.or_fail(done, ());
        self.open = true;
        self.count = state.icount;
    }

    pub(super) fn memory_written(&mut self, gpa: u64, len: u64) {
        if len == 0 || gpa >= self.bytes {
            return;
        }
        let last = gpa.saturating_add(len - 1).min(self.bytes - 1);
        self.written.extend(gpa / PAGE..=last / PAGE);
    }
    pub(super) fn memory_replaced(&mut self) {
        self.written.clear();
        let done = self.vcpu.forget_memory();
        self.or_fail(done, ());
    }
    pub(super) fn take_dirty_pages(&mut self) -> Vec<u64> {
        let logged = self.vcpu.take_dirty_pages();
        let logged = self.or_fail(logged, Vec::new());
        self.written.extend(logged);
        std::mem::take(&mut self.written).into_iter().collect()
    }
    pub(super) fn read_virtual(&mut self, gva: u64, buf: &mut [u8]) -> usize {
        let state = self.state();
        self.memory.read_virtual(&state, gva, buf)
    }
}
