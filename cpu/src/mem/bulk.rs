//! Bulk execution of repeated string instructions, within one page of the source and one of the destination.
//!
//! Each function returns a number of bytes, and has the same effect as single iterations over that many bytes. It
//! returns 0 if an address misses the TLB, if less than one element fits before a page's end, or if a bulk copy of
//! overlapping ranges would have another effect than single iterations.

use super::Mem;

impl Mem {
    fn host_to_gpa(&self, host: u64) -> u64 {
        host - self.ram.base_address()
    }
    /// Copies up to `len` bytes upwards, in elements of `size` bytes. Returns the number of bytes copied, a multiple of
    /// `size`.
    pub(crate) fn copy_up(&mut self, dst: u64, src: u64, len: u64, size: u64) -> u64 {
        let (Some(to), Some(from)) = (self.tlb.write_host(dst), self.tlb.read_host(src)) else { return 0 };
        let room = (4096 - (dst & 0xfff)).min(4096 - (src & 0xfff));
        let len = len.min(room) / size * size;
        // If the destination begins inside the source, an element-wise copy repeats a pattern, and memmove does not.
        if to > from && to - from < len {
            return 0;
        }
        // If the destination begins before the source, no element may be overwritten before it is read. A distance of
        // at least one element ensures that.
        if from > to && from - to < size {
            return 0;
        }
        let (to, from) = (self.host_to_gpa(to), self.host_to_gpa(from));
        self.ram.copy(to, from, len);
        len
    }
    /// Fills up to `len` bytes upwards with copies of an element of `size` bytes. Returns the number of bytes written,
    /// a multiple of `size`.
    pub(crate) fn fill_up(&mut self, dst: u64, value: u64, len: u64, size: u64) -> u64 {
        let Some(to) = self.tlb.write_host(dst) else { return 0 };
        let len = len.min(4096 - (dst & 0xfff)) / size * size;
        let to = self.host_to_gpa(to);
        let byte = value as u8;
        let uniform = (0..size).all(|i| (value >> (8 * i)) as u8 == byte);
        if uniform {
            self.ram.fill(to, byte, len);
        } else {
            for i in (0..len).step_by(size as usize) {
                match size {
                    2 => self.ram.store(to + i, value as u16),
                    4 => self.ram.store(to + i, value as u32),
                    _ => self.ram.store(to + i, value),
                }
            }
        }
        len
    }
}
