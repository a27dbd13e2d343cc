//! A machine's RAM as an ELF core file of the kernel, as kdump writes it (Linux, `Documentation/admin-guide/kdump`).
//!
//! crash and drgn open the file. It has all RAM with its guest-physical addresses, the registers of the CPU, and the
//! text `VMCOREINFO`, in which the kernel says where its structures are. Pages of zeros are holes in the file.

use std::io::{self, Seek, SeekFrom, Write};

use crate::elf_core::{
    self, FILE_HEADER_BYTES, OWNER, PROGRAM_HEADER_BYTES, ProgramHeader, file_header, notes_header, put_note,
};
use crate::limits::{VMCORE_BYTES_MAX, VMCOREINFO_BYTES_MAX};
use crate::memory::{PAGE, Ram};
use crate::registers::CpuRegisters;
use crate::{Error, Guest};

/// Number of program headers: notes, the kernel, and RAM.
const PROGRAM_HEADERS: usize = 3;
/// Start of the addresses of the kernel's own code and data (Linux, `Documentation/arch/x86/x86_64/mm.rst`).
const KERNEL_START: u64 = 0xffff_ffff_8000_0000;
/// The kernel's memory at an instant, ready to be written as a core file.
pub struct VmCore<'g> {
    ram: &'g dyn Ram,
    ram_bytes: u64,
    /// Part of RAM with the kernel: linear and guest-physical address, and length.
    kernel: (u64, u64, u64),
    /// Linear address at which the kernel maps RAM.
    direct_map: u64,
    notes: Vec<u8>,
    release: Option<String>,
}

impl<'g> Guest<'g> {
    /// Returns the core file of the kernel. `ram_bytes` is the length of RAM, which begins at 0.
    ///
    /// # Errors
    /// Returns an error if the kernel's structures cannot be read or contradict its page tables, or if the kernel has not
    /// yet written `VMCOREINFO`.
    pub fn vmcore(&self, cpu: &CpuRegisters, ram_bytes: u64) -> Result<VmCore<'g>, Error> {
        if ram_bytes > VMCORE_BYTES_MAX {
            return Err(Error::TooMany { what: "bytes of RAM", max: VMCORE_BYTES_MAX as usize });
        }
        let information = self.vmcoreinfo().map_err(Error::reading("VMCOREINFO"))?;
        let direct_map = self.direct_map()?;
        let kernel = self.kernel.extent(KERNEL_START).ok_or(Error::Symbol("_text"))?;
        let is_mapped = |address: u64, physical: u64| self.memory().physical(address) == Some(physical);
        if !is_mapped(direct_map.wrapping_add(kernel.1), kernel.1) {
            return Err(Error::DirectMap(direct_map));
        }
        if !is_mapped(kernel.0, kernel.1) || kernel.1.checked_add(kernel.2).is_none_or(|end| end > ram_bytes)
        {
            return Err(Error::OtherKernel);
        }
        let task = self.number(self.current()?, self.kernel.layout.task_pid)? as u32;
        let mut notes = Vec::new();
        put_note(&mut notes, OWNER, elf_core::REGISTERS, &elf_core::status([task, 0], &cpu.registers, false));
        put_note(&mut notes, "VMCOREINFO", 0, &information);
        let text = String::from_utf8_lossy(&information);
        let release = text.lines().find_map(|line| line.strip_prefix("OSRELEASE=")).map(str::to_owned);
        Ok(VmCore { ram: self.ram(), ram_bytes, kernel, direct_map, notes, release })
    }

    /// Returns the text in which the kernel says where its structures are.
    fn vmcoreinfo(&self) -> Result<Vec<u8>, Error> {
        let start = self.word(self.kernel.symbol("vmcoreinfo_data")?)?;
        let bytes = self.word(self.kernel.symbol("vmcoreinfo_size")?)?;
        if bytes > VMCOREINFO_BYTES_MAX as u64 {
            return Err(Error::TooMany { what: "bytes in VMCOREINFO", max: VMCOREINFO_BYTES_MAX });
        }
        if bytes == 0 {
            return Err(Error::Unmapped(start));
        }
        let mut text = vec![0; bytes as usize];
        self.memory().read(start, &mut text)?;
        Ok(text)
    }
}

impl VmCore<'_> {
    /// Returns the kernel's release, e.g. `6.1.0-40-cloud-amd64`, as the kernel states it.
    #[must_use]
    pub fn release(&self) -> Option<&str> {
        self.release.as_deref()
    }

    /// Returns the file's length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.content_at() + self.ram_bytes
    }

    /// Returns the offset of RAM in the file.
    fn content_at(&self) -> u64 {
        let headers = FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES * PROGRAM_HEADERS;
        ((headers + self.notes.len()) as u64).next_multiple_of(PAGE)
    }

    /// Writes the file. It must be empty. `go_on` is called again and again, and can end the writing with an error.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn write<W: Write + Seek>(
        &self,
        out: &mut W,
        mut go_on: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let content_at = self.content_at();
        let notes_at = (FILE_HEADER_BYTES + PROGRAM_HEADER_BYTES * PROGRAM_HEADERS) as u64;
        let (address, physical, bytes) = self.kernel;
        let mut head = file_header(PROGRAM_HEADERS as u16).to_vec();
        head.extend(notes_header(notes_at, self.notes.len() as u64));
        // Both parts have the same content in the file.
        let offset = content_at + physical;
        head.extend(ProgramHeader { flags: 7, offset, address, physical, bytes }.bytes());
        let (offset, address, bytes) = (content_at, self.direct_map, self.ram_bytes);
        head.extend(ProgramHeader { flags: 7, offset, address, physical: 0, bytes }.bytes());
        head.extend(&self.notes);
        head.resize(content_at as usize, 0);
        out.write_all(&head)?;
        /// Bytes that are read at once.
        const CHUNK: u64 = 256 * PAGE;
        let mut chunk = vec![0; CHUNK as usize];
        let mut is_hole = false;
        for at in (0..self.ram_bytes).step_by(CHUNK as usize) {
            go_on()?;
            let chunk = &mut chunk[..(self.ram_bytes - at).min(CHUNK) as usize];
            if !self.ram.read(at, chunk) {
                return Err(io::Error::other(Error::Unmapped(self.direct_map.wrapping_add(at))));
            }
            for page in chunk.chunks(PAGE as usize) {
                is_hole = page.iter().all(|byte| *byte == 0);
                if is_hole {
                    out.seek(SeekFrom::Current(page.len() as i64))?;
                } else {
                    out.write_all(page)?;
                }
            }
        }
        if is_hole {
            out.seek(SeekFrom::Current(-1))?;
            out.write_all(&[0])?;
        }
        out.flush()
    }
}
