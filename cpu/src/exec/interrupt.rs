//! Delivery of exceptions and interrupts through the 64-bit IDT (SDM vol. 3A, 6.14).
//!
//! If a delivery raises another exception, SDM vol. 3A, table 6-5 decides: the second exception replaces the first,
//! becomes a double fault, or shuts the CPU down. Values that the first delivery has already pushed stay in memory, as
//! on hardware.
//!
//! NMI and machine checks are not modelled. On hardware, an interrupt between two iterations of a repeated instruction
//! pushes RFLAGS with RF set. This CPU pushes RF clear. The difference matters only for an instruction breakpoint at
//! the repeated instruction.

use crate::core::Core;
use crate::exec::event::Event;
use crate::exec::system::descriptor::{is_null, null_segment, selector_error};
use crate::flags::bits;
use crate::mem::{Mode, canonical};
use crate::state::{Dead, Unsupported, seg};
use crate::stop::{Fault, Flow, Stop, vector};

/// Maximum number of consecutive exceptions without a retired instruction. Without this limit, a handler whose first
/// instruction always faults could be entered forever: an IST stack never overflows, because each entry starts at its
/// top.
const EXCEPTIONS_IN_A_ROW_MAX: u32 = 1000;

/// Class of an exception (SDM vol. 3A, table 6-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Benign,
    Contributory,
    PageFault,
    DoubleFault,
}

fn class(vector: u8) -> Class {
    match vector {
        vector::DE | vector::TS | vector::NP | vector::SS | vector::GP => Class::Contributory,
        vector::PF => Class::PageFault,
        vector::DF => Class::DoubleFault,
        _ => Class::Benign,
    }
}

/// Returns the exception to deliver if the delivery of `first` raises `second` (SDM vol. 3A, table 6-5). `None` means
/// that the CPU shuts down.
fn combine(first: Fault, second: Fault) -> Option<Fault> {
    let double = Fault { vector: vector::DF, error: Some(0), non_canonical: false };
    match (class(first.vector), class(second.vector)) {
        (Class::DoubleFault, Class::Benign) => Some(second),
        (Class::DoubleFault, _) => None,
        (Class::Contributory, Class::Contributory) => Some(double),
        (Class::PageFault, Class::Contributory | Class::PageFault) => Some(double),
        _ => Some(second),
    }
}

impl Core {
    /// Delivers an exception that the instruction at `rip` raised, and further exceptions that the delivery raises.
    #[cold]
    pub(crate) fn deliver_fault(&mut self, fault: Fault, rip: u64) {
        self.stray();
        self.mem.attribute_accesses_to(rip);
        if self.endless(rip) {
            return;
        }
        let debug = fault.vector == vector::DB;
        self.note_page_fault(fault);
        let event = Event { vector: fault.vector, error: fault.error, software: false, resume: !debug };
        if let Some(second) = self.try_deliver(event, rip) {
            self.deliver_second(fault, second, rip);
        }
    }
    /// Delivers an external interrupt before the next instruction.
    pub(crate) fn deliver_interrupt(&mut self, vector: u8) {
        self.stray();
        let rip = self.rip;
        self.mem.attribute_accesses_to(rip);
        let event = Event { vector, error: None, software: false, resume: false };
        if let Some(second) = self.try_deliver(event, rip) {
            // An interrupt is of the benign class, whatever its vector, so an exception during its delivery replaces
            // it.
            self.deliver_fault(second, rip);
        }
    }
    /// Delivers #DB after an instruction, or before an instruction with a breakpoint.
    #[cold]
    pub(crate) fn deliver_debug(&mut self) {
        let rip = self.rip;
        self.deliver_fault(Fault { vector: vector::DB, error: None, non_canonical: false }, rip);
    }

    /// Counts exceptions since the last retired instruction. Above the maximum, marks the CPU as dead and returns true.
    fn endless(&mut self, rip: u64) -> bool {
        if self.exceptions_at.0 != self.icount {
            self.exceptions_at = (self.icount, 0);
        }
        self.exceptions_at.1 += 1;
        let endless = self.exceptions_at.1 > EXCEPTIONS_IN_A_ROW_MAX;
        if endless {
            self.rip = rip;
            self.unsupported(Unsupported::EndlessExceptions);
        }
        endless
    }

    #[cold]
    fn deliver_second(&mut self, mut first: Fault, mut second: Fault, rip: u64) {
        while let Some(next) = combine(first, second) {
            let resume = !matches!(next.vector, vector::DB | vector::DF);
            let event = Event { vector: next.vector, error: next.error, software: false, resume };
            match self.try_deliver(event, rip) {
                None => return,
                Some(another) => (first, second) = (next, another),
            }
        }
        self.rip = rip;
        self.dead = Some(Dead::Shutdown);
    }

    /// Stores the address of a page fault in CR2, even if another exception replaces the fault.
    fn note_page_fault(&mut self, fault: Fault) {
        if fault.vector == vector::PF {
            self.cr2 = self.mem.fault_address;
        }
    }

    /// Delivers an event between instructions. Returns the exception that the delivery raised, if any.
    fn try_deliver(&mut self, event: Event, rip: u64) -> Option<Fault> {
        let single = std::mem::replace(&mut self.mem.single, true);
        let result = self.enter(event, rip);
        self.mem.single = single;
        match result {
            Ok(()) => None,
            Err(Stop::Fault) => {
                let fault = self.mem.fault;
                self.note_page_fault(fault);
                Some(fault)
            }
            Err(Stop::Exit | Stop::Single | Stop::Leave) => {
                self.mem.mmio.clear();
                self.rip = rip;
                self.unsupported(Unsupported::DeliveryOutsideRam);
                None
            }
        }
    }

    /// Enters the handler of an event, with `rip` as the return address. A delivery that fails has changed no
    /// registers.
    pub(crate) fn enter(&mut self, event: Event, rip: u64) -> Flow {
        let ext = u32::from(!event.software);
        let offset = u64::from(event.vector) * 16;
        let gate_error = u32::from(event.vector) << 3 | 2 | ext;
        if offset + 15 > u64::from(self.idtr.limit) {
            return Err(self.raise_with(vector::GP, gate_error));
        }
        let at = self.idtr.base.wrapping_add(offset);
        let (low, high) = self.with_mode(Mode::Kernel, |mem| {
            Ok((mem.load::<u64>(at)?, mem.load::<u64>(at.wrapping_add(8))?))
        })?;
        let kind = (low >> 40) & 0x1f;
        let gate_dpl = (low >> 45) as u8 & 3;
        if !matches!(kind, 0xe | 0xf) || (event.software && gate_dpl < self.cpl) {
            return Err(self.raise_with(vector::GP, gate_error));
        }
        if low & (1 << 47) == 0 {
            return Err(self.raise_with(vector::NP, gate_error));
        }
        let selector = (low >> 16) as u16;
        let target = low & 0xffff | (low >> 32) & 0xffff_0000 | high << 32;
        let ist = (low >> 32) & 7;

        if is_null(selector) {
            return Err(self.raise_with(vector::GP, ext));
        }
        let code = self.descriptor(selector, vector::GP, ext)?;
        let error = selector_error(selector) | ext;
        if !code.is_code() || code.dpl() > self.cpl {
            return Err(self.raise_with(vector::GP, error));
        }
        if !code.present() {
            return Err(self.raise_with(vector::NP, error));
        }
        if !code.long() || code.default_32() {
            return Err(self.raise_with(vector::GP, error));
        }
        let cpl = if code.is_conforming() { self.cpl } else { code.dpl() };
        let inner = cpl < self.cpl;
        let stack = match (ist, inner) {
            (0, false) => self.regs[4],
            (0, true) => self.tss_stack(4 + u64::from(cpl) * 8, ext)?,
            _ => self.tss_stack(0x24 + (ist - 1) * 8, ext)?,
        };
        if !canonical(target) {
            return Err(self.raise_with(vector::GP, ext));
        }

        let mode = if inner { self.inner_mode() } else { self.mem.tlb.mode() };
        let rflags = self.rflags() | if event.resume { bits::RF } else { 0 };
        let frame = [
            u64::from(self.seg[seg::SS].selector),
            self.regs[4],
            rflags,
            u64::from(self.seg[seg::CS].selector),
            rip,
            u64::from(event.error.unwrap_or(0)),
        ];
        let count = if event.error.is_some() { 6 } else { 5 };
        let mut rsp = stack & !15;
        let pushed = self.with_mode(mode, |mem| {
            for value in &frame[..count] {
                rsp = rsp.wrapping_sub(8);
                mem.store(rsp, *value)?;
            }
            Ok(())
        });
        if let Err(stop) = pushed {
            return Err(self.stack_fault(stop, ext));
        }
        self.touch_descriptor(selector, code)?;

        self.seg[seg::CS] = code.loaded(selector & !3 | u16::from(cpl));
        if inner {
            self.seg[seg::SS] = null_segment(u16::from(cpl));
        }
        self.cpl = cpl;
        self.regs[4] = rsp;
        self.rip = target;
        self.rflags &= !(bits::TF | bits::NT | bits::RF | if kind == 0xe { bits::IF } else { 0 });
        if event.vector == vector::DB && !event.software {
            self.dr7 &= !crate::exec::system::debug::GENERAL_DETECT;
        }
        self.halted = false;
        self.shadow = false;
        self.update_mode();
        Ok(())
    }

    /// Returns the access rules for pushes on the stack of an inner ring. RFLAGS.AC of ring 3 does not apply to them.
    pub(crate) fn inner_mode(&self) -> Mode {
        if self.cpl == 3 { Mode::Kernel } else { self.mem.tlb.mode() }
    }
    /// Loads the stack pointer at `offset` of the TSS. `ext` is the EXT bit of error codes.
    pub(crate) fn tss_stack(&mut self, offset: u64, ext: u32) -> Result<u64, Stop> {
        if offset + 7 > u64::from(self.tr.limit) {
            let selector = self.tr.selector;
            return Err(self.raise_with(vector::TS, selector_error(selector) | ext));
        }
        self.load_table(self.tr.base.wrapping_add(offset))
    }
    /// Turns a fault from a push to a non-canonical address into a stack fault (#SS). Other stops stay as they are.
    pub(crate) fn stack_fault(&mut self, stop: Stop, ext: u32) -> Stop {
        if stop == Stop::Fault && self.mem.fault.non_canonical {
            return self.raise_with(vector::SS, ext);
        }
        stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(vector: u8) -> Fault {
        Fault { vector, error: None, non_canonical: false }
    }

    #[test]
    fn second_exceptions_follow_table_6_5() {
        let next = |a, b| combine(fault(a), fault(b)).map(|f| f.vector);
        assert_eq!(next(vector::UD, vector::PF), Some(vector::PF));
        assert_eq!(next(vector::GP, vector::NP), Some(vector::DF));
        assert_eq!(next(vector::GP, vector::PF), Some(vector::PF));
        assert_eq!(next(vector::PF, vector::GP), Some(vector::DF));
        assert_eq!(next(vector::PF, vector::PF), Some(vector::DF));
        assert_eq!(next(vector::PF, vector::AC), Some(vector::AC));
        assert_eq!(next(vector::DF, vector::GP), None);
        assert_eq!(next(vector::DF, vector::PF), None);
        assert_eq!(combine(fault(vector::GP), fault(vector::TS)).and_then(|f| f.error), Some(0));
    }
}
