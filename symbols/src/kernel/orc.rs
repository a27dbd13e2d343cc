//! The kernel's own unwind tables: ORC (Linux, Documentation/arch/x86/orc-unwinder.rst).
//!
//! For each range of code, a row says where the caller's stack pointer and frame pointer are. Kernels are built without
//! frame pointers, so nothing else leads from a frame to its caller. The rows of loadable modules are not in `vmlinux`:
//! each module has its own, in the kernel's memory.

use super::btf::{Btf, Field};
use crate::bytes::{bytes_at, u32_at};

/// Maximum number of rows. Kernels have about 400,000.
pub const ROWS_MAX: usize = 4 << 20;

/// Base of a stack pointer or frame pointer (`ORC_REG_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// Unknown, or unchanged.
    Undefined,
    /// The caller's stack pointer.
    CallersStack,
    /// The frame pointer.
    Frame,
    /// The stack pointer.
    Stack,
    /// The word in memory at the frame pointer plus the offset.
    AtFrame,
    /// The word in memory at the stack pointer, plus the offset.
    AtStack,
    /// A register that only an exception's frame has.
    Other,
}

/// Content of memory at the caller's stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The return address of a call lies below it.
    Call,
    /// All registers (`struct pt_regs`) lie at it.
    Registers,
    /// The five words that the processor pushes at an exception lie at it.
    Exception,
    /// Nothing: the stack ends here.
    End,
    /// The kernel does not know.
    Unknown,
}

/// A row: how to get from a frame to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Base of the caller's stack pointer.
    pub stack: Base,
    /// Distance of the caller's stack pointer from its base, in bytes.
    pub stack_offset: i16,
    /// Base of the caller's frame pointer.
    pub frame: Base,
    /// Distance of the place of the caller's frame pointer from its base, in bytes.
    pub frame_offset: i16,
    /// Content of memory at the caller's stack pointer.
    pub kind: Kind,
}

/// Unwind tables of a kernel.
#[derive(Debug, Clone)]
pub struct Orc {
    /// First addresses of the ranges, ascending.
    starts: Vec<u64>,
    rows: Vec<u8>,
    row_bytes: usize,
    fields: Fields,
}

/// Places of the fields of `struct orc_entry`, which differ between kernels.
#[derive(Debug, Clone, Copy)]
struct Fields {
    stack: Field,
    stack_offset: Field,
    frame: Field,
    frame_offset: Field,
    kind: Field,
    /// Linux up to 6.3 marks the end of a stack with a bit of its own.
    end: Option<Field>,
}

impl Orc {
    /// Reads the sections `.orc_unwind_ip` (`ips`, loaded at `ips_at`) and `.orc_unwind` (`rows`). `None` if the kernel
    /// has no such tables, or if they are damaged or too long.
    #[must_use]
    pub fn new(types: &Btf, ips: &[u8], ips_at: u64, rows: &[u8]) -> Option<Orc> {
        let field = |name| types.field(name);
        let fields = Fields {
            stack: field("orc_entry.sp_reg")?,
            stack_offset: field("orc_entry.sp_offset")?,
            frame: field("orc_entry.bp_reg")?,
            frame_offset: field("orc_entry.bp_offset")?,
            kind: field("orc_entry.type")?,
            end: field("orc_entry.end"),
        };
        let row_bytes = usize::try_from(types.size_of("orc_entry")?).ok().filter(|bytes| *bytes > 0)?;
        Orc::of_rows(fields, row_bytes, ips, ips_at, rows)
    }

    /// Reads the tables of a loadable module of this kernel: `ips`, loaded at `ips_at`, and `rows`. `None` if they are
    /// damaged or too long.
    #[must_use]
    pub fn of_module(&self, ips: &[u8], ips_at: u64, rows: &[u8]) -> Option<Orc> {
        Orc::of_rows(self.fields, self.row_bytes, ips, ips_at, rows)
    }

    /// Returns the length of a row, in bytes. It is not 0.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    fn of_rows(fields: Fields, row_bytes: usize, ips: &[u8], ips_at: u64, rows: &[u8]) -> Option<Orc> {
        let count = ips.len() / 4;
        if count > ROWS_MAX || rows.len() / row_bytes < count {
            return None;
        }
        // Each entry holds the distance of a range from the entry itself.
        let start = |n: usize| {
            let distance = u32_at(ips, 4 * n)?.cast_signed();
            Some(ips_at.wrapping_add(4 * n as u64).wrapping_add_signed(distance.into()))
        };
        let starts: Vec<u64> = (0..count).map(start).collect::<Option<_>>()?;
        starts.is_sorted().then(|| Orc { starts, rows: rows.to_vec(), row_bytes, fields })
    }

    /// Returns the row of the code at an address. `None` if the address is in no range.
    #[must_use]
    pub fn row(&self, address: u64) -> Option<Row> {
        let n = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        let row = self.rows.get(n * self.row_bytes..)?.get(..self.row_bytes)?;
        let fields = &self.fields;
        let old = match fields.end {
            Some(end) => Some(bits_of(row, end)?),
            None => None,
        };
        let kind = bits_of(row, fields.kind)?;
        let kind = match (old, kind) {
            (Some(1..), _) => Kind::End,
            (Some(0), 0) | (None, 2) => Kind::Call,
            (Some(0), 1) | (None, 3) => Kind::Registers,
            (Some(0), 2) | (None, 4) => Kind::Exception,
            (None, 1) => Kind::End,
            _ => Kind::Unknown,
        };
        let offset =
            |field: Field| bytes_at(row, usize::try_from(field.offset()).ok()?).map(i16::from_le_bytes);
        Some(Row {
            stack: base(bits_of(row, fields.stack)?),
            stack_offset: offset(fields.stack_offset)?,
            frame: base(bits_of(row, fields.frame)?),
            frame_offset: offset(fields.frame_offset)?,
            kind,
        })
    }
}

fn base(number: u64) -> Base {
    match number {
        0 => Base::Undefined,
        1 => Base::CallersStack,
        4 => Base::Frame,
        5 => Base::Stack,
        8 => Base::AtFrame,
        9 => Base::AtStack,
        _ => Base::Other,
    }
}

/// Returns a field of up to 16 bits.
fn bits_of(row: &[u8], field: Field) -> Option<u64> {
    let mut word = [0; 4];
    let from = row.get(usize::try_from(field.offset()).ok()?..)?;
    let bytes = from.len().min(4);
    word[..bytes].copy_from_slice(&from[..bytes]);
    let bits = u64::from(u32::from_le_bytes(word)) >> (field.bit % 8);
    Some(bits & ((1 << field.bits.min(16)) - 1))
}
