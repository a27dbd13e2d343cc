//! Loads and stores by linear address. Every handler (function that executes a guest instruction) inlines the TLB hit
//! path; the other paths are cold.

use super::coherence::{CODE, TABLE};
use super::mmio::Request;
use super::{Access, Mem, Mode, Prim, canonical};
use crate::stop::{Fault, Stop, vector};

impl Mem {
    /// Loads from linear address `va`.
    #[inline(always)]
    pub(crate) fn load<T: Prim>(&mut self, va: u64) -> Result<T, Stop> {
        match self.tlb.load(va) {
            Some(v) => Ok(v),
            None => {
                let mode = self.tlb.mode();
                self.load_slow(va, Access::Read, mode)
            }
        }
    }
    /// Stores to linear address `va`.
    #[inline(always)]
    pub(crate) fn store<T: Prim>(&mut self, va: u64, v: T) -> Result<(), Stop> {
        if self.tlb.store(va, v) {
            return Ok(());
        }
        let mode = self.tlb.mode();
        self.store_slow(va, v, mode)
    }
    /// Replaces the value at `va` by the first result of `f`, and returns the second result. If the store fails, the
    /// CPU may execute the instruction and thus `f` again, so a handler must commit the second result only after
    /// success.
    #[inline(always)]
    pub(crate) fn update<T: Prim, R>(&mut self, va: u64, f: impl FnOnce(T) -> (T, R)) -> Result<R, Stop> {
        match self.tlb.update(va, f) {
            Ok(r) => Ok(r),
            Err(f) => {
                let mode = self.tlb.mode();
                let old: T = self.load_slow(va, Access::Write, mode)?;
                let (new, r) = f(old);
                self.store_slow(va, new, mode)?;
                Ok(r)
            }
        }
    }
    /// Raises the exceptions that a write of `size` bytes at `va` would raise, but writes nothing.
    pub(crate) fn probe_write(&mut self, va: u64, size: u64) -> Result<(), Stop> {
        let mode = self.tlb.mode();
        self.check_alignment(va, size, mode)?;
        self.translate(va, Access::Write, mode)?;
        if va & 0xfff > 4096 - size {
            self.translate((va | 0xfff).wrapping_add(1), Access::Write, mode)?;
        }
        Ok(())
    }

    /// Raises the exceptions that a read of the byte at `va` would raise, but reads nothing.
    pub(crate) fn probe_read(&mut self, va: u64) -> Result<(), Stop> {
        let mode = self.tlb.mode();
        self.translate(va, Access::Read, mode).map(drop)
    }

    /// Raises #AC if alignment checking is on and `va` is misaligned. A non-canonical address raises its own fault
    /// instead. 16-byte operands are exempt: their instructions raise #GP themselves or allow any alignment. Ten-byte
    /// x87 numbers must be aligned to eight bytes.
    fn check_alignment(&mut self, va: u64, size: u64, mode: Mode) -> Result<(), Stop> {
        let mask = if size == 10 { 7 } else { size - 1 };
        if mode == Mode::UserAligned && size <= 10 && va & mask != 0 && canonical(va) {
            self.fault = Fault { vector: vector::AC, error: Some(0), non_canonical: false };
            return Err(Stop::Fault);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn load_slow<T: Prim>(&mut self, va: u64, access: Access, mode: Mode) -> Result<T, Stop> {
        self.check_alignment(va, T::SIZE, mode)?;
        let (first, second) = self.translate_span(va, T::SIZE, access, mode)?;
        self.check_watched(va, T::SIZE, false)?;
        self.note_access(va, T::SIZE, false);
        let loaded: T = self.load_translated(va, first, second)?;
        self.note_watched(va, T::SIZE, false, loaded.widen());
        Ok(loaded)
    }

    /// Loads from translated physical addresses. `second` is the start of the second page if the access crosses into
    /// it.
    fn load_translated<T: Prim>(&mut self, va: u64, first: u64, second: u64) -> Result<T, Stop> {
        let in_first = T::SIZE.min(4096 - (va & 0xfff));
        if in_first == T::SIZE && self.ram.contains(first, T::SIZE) {
            return Ok(self.ram.load(first));
        }
        let low = self.load_physical(first, in_first)?;
        if in_first == T::SIZE {
            return Ok(T::narrow(low));
        }
        let high = self.load_physical(second, T::SIZE - in_first)?;
        Ok(T::narrow(low | high << (8 * in_first)))
    }

    /// Translates the first and the second page of an access, in this order. The second address is 0 if the access lies
    /// within one page.
    fn translate_span(&mut self, va: u64, size: u64, access: Access, mode: Mode) -> Result<(u64, u64), Stop> {
        let first = self.translate(va, access, mode)?;
        if va & 0xfff <= 4096 - size {
            return Ok((first, 0));
        }
        let second = self.translate((va | 0xfff).wrapping_add(1), access, mode)?;
        Ok((first, second))
    }

    /// Loads up to 16 bytes within one page, from RAM or from a device.
    fn load_physical(&mut self, gpa: u64, size: u64) -> Result<u128, Stop> {
        let mut v = 0u128;
        let mut done = 0;
        while done < size {
            let at = gpa + done;
            let n = piece(at, size - done);
            let part = if self.ram.contains(at, n) {
                match n {
                    1 => u64::from(self.ram.load::<u8>(at)),
                    2 => u64::from(self.ram.load::<u16>(at)),
                    4 => u64::from(self.ram.load::<u32>(at)),
                    _ => self.ram.load::<u64>(at),
                }
            } else {
                let mask = if n == 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
                self.mmio.ask(Request::MmioRead { gpa: at, size: n as u8 }).ok_or(Stop::Exit)? & mask
            };
            v |= u128::from(part) << (8 * done);
            done += n;
        }
        Ok(v)
    }

    #[cold]
    #[inline(never)]
    fn store_slow<T: Prim>(&mut self, va: u64, v: T, mode: Mode) -> Result<(), Stop> {
        self.check_alignment(va, T::SIZE, mode)?;
        let (first, second) = self.translate_span(va, T::SIZE, Access::Write, mode)?;
        self.check_watched(va, T::SIZE, true)?;
        self.note_access(va, T::SIZE, true);
        let in_first = T::SIZE.min(4096 - (va & 0xfff));
        let wide = v.widen();
        self.check_marked(first, wide, in_first)?;
        if in_first == T::SIZE {
            self.store_physical(first, wide, in_first)?;
        } else {
            let high = wide >> (8 * in_first);
            self.check_marked(second, high, T::SIZE - in_first)?;
            self.store_physical(first, wide, in_first)?;
            self.store_physical(second, high, T::SIZE - in_first)?;
        }
        self.note_watched(va, T::SIZE, true, wide);
        Ok(())
    }

    /// Returns `Err(Stop::Single)` for a store that would drop decoded code or TLB entries, unless the instruction is
    /// executed alone. `Err(Stop::Single)` makes the CPU execute the instruction again, alone.
    fn check_marked(&mut self, gpa: u64, v: u128, size: u64) -> Result<(), Stop> {
        if self.single || !self.ram.contains(gpa, size) {
            return Ok(());
        }
        let marks = self.marks_of(gpa);
        if marks & CODE != 0 || (marks & TABLE != 0 && self.changes_entry(gpa, v, size).is_some()) {
            return Err(Stop::Single);
        }
        Ok(())
    }

    /// Returns the addresses of the first and last paging entries that a store touches, if the store changes a present
    /// entry.
    fn changes_entry(&self, gpa: u64, v: u128, size: u64) -> Option<(u64, u64)> {
        let (first, last) = (gpa & !7, (gpa + size - 1) & !7);
        let mut at = first;
        let mut changed = false;
        while at <= last {
            let old = self.ram.load::<u64>(at);
            let mut new = old.to_le_bytes();
            for (i, byte) in new.iter_mut().enumerate() {
                let address = at + i as u64;
                if (gpa..gpa + size).contains(&address) {
                    *byte = (v >> (8 * (address - gpa))) as u8;
                }
            }
            changed |= old & 1 != 0 && old != u64::from_le_bytes(new);
            at += 8;
        }
        changed.then_some((first, last))
    }

    fn store_physical(&mut self, gpa: u64, v: u128, size: u64) -> Result<(), Stop> {
        if self.ram.contains(gpa, size) {
            let drops = if self.marks_of(gpa) & TABLE != 0 { self.changes_entry(gpa, v, size) } else { None };
            self.note_write(gpa);
            match size {
                1 => self.ram.store(gpa, v as u8),
                2 => self.ram.store(gpa, v as u16),
                4 => self.ram.store(gpa, v as u32),
                8 => self.ram.store(gpa, v as u64),
                16 => self.ram.store(gpa, v),
                _ => (0..size).for_each(|i| self.ram.store(gpa + i, (v >> (8 * i)) as u8)),
            }
            if let Some((first, last)) = drops
                && !self.leak_stale_tlb
            {
                for at in (first..=last).step_by(8) {
                    self.entry_changed(at);
                }
            }
            return Ok(());
        }
        let mut done = 0;
        while done < size {
            let at = gpa + done;
            let n = piece(at, size - done);
            let part = (v >> (8 * done)) as u64 & if n == 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
            self.mmio.ask(Request::MmioWrite { gpa: at, size: n as u8, value: part }).ok_or(Stop::Exit)?;
            done += n;
        }
        Ok(())
    }
}

/// Returns the size of the next bus access: the largest power of two that is at most `left` and at most 8.
fn piece(_at: u64, left: u64) -> u64 {
    match left {
        8.. => 8,
        4..8 => 4,
        2..4 => 2,
        _ => 1,
    }
}
