//! Segment descriptors (SDM vol. 3A, 3.4.5 and 3.5), and accesses to memory with supervisor rights.

use crate::core::Core;
use crate::mem::{Mem, Mode};
use crate::state::Segment;
use crate::stop::{Flow, Stop, vector};

/// First eight bytes of a descriptor in the GDT or LDT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descriptor(pub u64);

impl Descriptor {
    /// Returns the four-bit type field.
    pub(crate) fn kind(self) -> u8 {
        (self.0 >> 40) as u8 & 0xf
    }
    /// True for code and data segments, false for gates and system segments.
    pub(crate) fn is_segment(self) -> bool {
        self.0 & (1 << 44) != 0
    }
    pub(crate) fn is_code(self) -> bool {
        self.is_segment() && self.kind() & 8 != 0
    }
    /// True for a code segment that keeps its caller's privilege level.
    pub(crate) fn is_conforming(self) -> bool {
        self.is_code() && self.kind() & 4 != 0
    }
    pub(crate) fn is_readable(self) -> bool {
        self.is_segment() && (self.kind() & 8 == 0 || self.kind() & 2 != 0)
    }
    pub(crate) fn is_writable(self) -> bool {
        self.is_segment() && self.kind() & 8 == 0 && self.kind() & 2 != 0
    }
    pub(crate) fn dpl(self) -> u8 {
        (self.0 >> 45) as u8 & 3
    }
    pub(crate) fn present(self) -> bool {
        self.0 & (1 << 47) != 0
    }
    /// True if the L bit is set, which means 64-bit code.
    pub(crate) fn long(self) -> bool {
        self.0 & (1 << 53) != 0
    }
    /// True if the D/B bit is set.
    pub(crate) fn default_32(self) -> bool {
        self.0 & (1 << 54) != 0
    }
    /// Returns the limit in bytes. The G bit is already applied.
    pub(crate) fn limit(self) -> u32 {
        let raw = (self.0 & 0xffff) as u32 | ((self.0 >> 32) & 0xf_0000) as u32;
        if self.0 & (1 << 55) != 0 { raw << 12 | 0xfff } else { raw }
    }
    /// Returns the low 32 bits of the base address.
    pub(crate) fn base(self) -> u64 {
        (self.0 >> 16) & 0xff_ffff | (self.0 >> 56) << 24
    }
    /// Returns the content of a segment register after a load of this descriptor. Code and data segments get the
    /// accessed bit.
    pub(crate) fn loaded(self, selector: u16) -> Segment {
        let access = (self.0 >> 40) as u16 & 0xf0ff | u16::from(self.is_segment());
        Segment { selector, base: self.base(), limit: self.limit(), access }
    }
}

/// True for the four null selectors.
pub(crate) fn is_null(selector: u16) -> bool {
    selector & 0xfffc == 0
}

/// Returns a selector as an error code, without its RPL.
pub(crate) fn selector_error(selector: u16) -> u32 {
    u32::from(selector & 0xfffc)
}

/// Returns the content of a segment register after a load of a null selector (SDM vol. 3A, 3.4.2).
pub(crate) fn null_segment(selector: u16) -> Segment {
    Segment { selector, base: 0, limit: 0, access: (selector & 3) << 5 }
}

impl Core {
    /// Accesses memory with the rights of `mode`, regardless of CPL and RFLAGS.AC (SDM vol. 3A, 4.6.1).
    #[inline(always)]
    pub(crate) fn with_mode<R>(
        &mut self,
        mode: Mode,
        access: impl FnOnce(&mut Mem) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        let before = self.mem.tlb.mode();
        self.mem.tlb.set_mode(mode);
        let result = access(&mut self.mem);
        self.mem.tlb.set_mode(before);
        result
    }
    /// Loads eight bytes from a descriptor table or the TSS, with supervisor rights.
    #[inline(always)]
    pub(crate) fn load_table(&mut self, va: u64) -> Result<u64, Stop> {
        let loaded = self.with_mode(Mode::Kernel, |mem| mem.load::<u64>(va));
        if loaded.is_err() {
            // This fault is no stack fault, even if the instruction also accesses the stack.
            self.mem.fault.non_canonical = false;
        }
        loaded
    }
    /// Returns the address of a selector's descriptor, or `None` if the table does not contain all of its `size` bytes.
    pub(crate) fn descriptor_address(&self, selector: u16, size: u32) -> Option<u64> {
        let (base, limit) = if selector & 4 == 0 {
            (self.gdtr.base, u32::from(self.gdtr.limit))
        } else if self.ldtr.present() && !is_null(self.ldtr.selector) {
            (self.ldtr.base, self.ldtr.limit)
        } else {
            return None;
        };
        let offset = u32::from(selector & 0xfff8);
        (offset + size - 1 <= limit).then(|| base.wrapping_add(u64::from(offset)))
    }
    /// Reads the descriptor of `selector`. If the descriptor lies outside its table, raises exception `outside`. The
    /// error code is the selector, with `ext` in bit 0.
    pub(crate) fn descriptor(&mut self, selector: u16, outside: u8, ext: u32) -> Result<Descriptor, Stop> {
        match self.descriptor_address(selector, 8) {
            Some(at) => self.load_table(at).map(Descriptor),
            None => Err(self.raise_with(outside, selector_error(selector) | ext)),
        }
    }
    /// Sets the accessed bit of a code or data descriptor in its table, as a load of the descriptor does.
    #[inline(always)]
    pub(crate) fn touch_descriptor(&mut self, selector: u16, d: Descriptor) -> Flow {
        if d.0 & (1 << 40) != 0 { Ok(()) } else { self.set_accessed(selector, d) }
    }
    #[cold]
    fn set_accessed(&mut self, selector: u16, d: Descriptor) -> Flow {
        match self.descriptor_address(selector, 8) {
            Some(at) => {
                let byte = (d.0 >> 40) as u8 | 1;
                self.with_mode(Mode::Kernel, |mem| mem.store(at.wrapping_add(5), byte))
            }
            None => Ok(()),
        }
    }
    /// Reads the descriptor of a stack segment for privilege level `cpl`. The selector must not be null. If RPL or DPL
    /// differs from `cpl`, or the segment is not writable, raises `wrong`. If the segment is not present, raises #SS.
    /// The error code is the selector.
    pub(crate) fn stack_descriptor(&mut self, selector: u16, cpl: u8, wrong: u8) -> Result<Descriptor, Stop> {
        let d = self.descriptor(selector, wrong, 0)?;
        if selector as u8 & 3 != cpl || !d.is_writable() || d.dpl() != cpl {
            return Err(self.raise_with(wrong, selector_error(selector)));
        }
        if !d.present() {
            return Err(self.raise_with(vector::SS, selector_error(selector)));
        }
        Ok(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_flat_code_descriptor() {
        let d = Descriptor(0x00af_9b00_0000_ffff);
        assert!(d.is_code() && d.is_readable() && !d.is_writable() && !d.is_conforming());
        assert!(d.present() && d.long() && !d.default_32());
        assert_eq!((d.limit(), d.base(), d.dpl()), (0xffff_ffff, 0, 0));
        assert_eq!(d.loaded(0x10), Segment { selector: 0x10, base: 0, limit: 0xffff_ffff, access: 0xa09b });
    }

    #[test]
    fn fields_of_a_small_data_descriptor() {
        let d = Descriptor(0x1240_f234_5678_9abc);
        assert!(d.is_writable() && d.is_readable() && !d.is_code());
        assert_eq!((d.limit(), d.base(), d.dpl()), (0x9abc, 0x1234_5678, 3));
        assert_eq!(d.loaded(0x23).access, 0x40f3);
    }
}
