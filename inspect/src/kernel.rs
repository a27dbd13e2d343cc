//! A kernel's symbols, types and layout.

use everett_elf::{Elf, Segment};
use everett_symbols::kernel::btf::Btf;
use everett_symbols::kernel::orc::Orc;
use everett_symbols::kernel::{Symbols, Values, symbol_file, symbols_and_values};

use crate::Error;
use crate::argument_layout::ArgumentLayout;
use crate::file_layout::FileLayout;
use crate::layout::Layout;
use crate::socket_layout::SocketLayout;

/// Maximum length of the kernel's banner that is compared, in bytes.
const BANNER_BYTES: usize = 128;

/// A kernel, as the file `vmlinux` describes it.
#[derive(Debug, Clone)]
pub struct Kernel {
    symbols: Symbols,
    pub(crate) values: Values,
    pub(crate) layout: Layout,
    /// Places for open files, or the reason why they cannot be read.
    pub(crate) file_layout: Result<FileLayout, Error>,
    /// Places for sockets, or the reason why they cannot be read.
    pub(crate) socket_layout: Result<SocketLayout, Error>,
    /// Places for arguments of the kernel's functions, or the reason why they cannot be read.
    pub(crate) argument_layout: Result<ArgumentLayout, Error>,
    /// Unwind tables, if the kernel has some.
    pub(crate) orc: Option<Orc>,
    /// Segments that the machine loads at its start.
    segments: Vec<Segment>,
    /// Guest-physical address of the kernel's own root page table.
    pub(crate) root: u64,
    /// Linear address of the banner (`Linux version …`), and its bytes in the file.
    pub(crate) banner: (u64, Vec<u8>),
}

impl Kernel {
    /// Reads a `vmlinux`.
    ///
    /// # Errors
    /// Returns an error if the file is damaged, or if the kernel lacks a symbol, its types, or a field that Everett
    /// reads.
    pub fn new(vmlinux: &[u8]) -> Result<Kernel, Error> {
        let elf = Elf::parse(vmlinux)?;
        let sections = elf.sections()?;
        let types = Btf::parse(sections.named(".BTF").ok_or(Error::NoTypes)?.content()?)?;
        let orc = match (sections.named(".orc_unwind_ip"), sections.named(".orc_unwind")) {
            (Some(ips), Some(rows)) => Orc::new(&types, ips.content()?, ips.address(), rows.content()?),
            _ => None,
        };
        let (symbols, values) = symbols_and_values(vmlinux);
        let mut kernel = Kernel {
            symbols,
            values,
            layout: Layout::new(&types)?,
            file_layout: FileLayout::new(&types),
            socket_layout: SocketLayout::new(&types),
            argument_layout: ArgumentLayout::new(&types),
            orc,
            segments: elf.load_segments()?,
            root: 0,
            banner: (0, Vec::new()),
        };
        let (_, segment, within) = kernel.loaded("init_top_pgt")?;
        kernel.root = segment.physical.wrapping_add(within);
        let (at, segment, within) = kernel.loaded("linux_banner")?;
        let banner = segment.content(vmlinux)?.get(within as usize..).filter(|banner| !banner.is_empty());
        let banner = banner.ok_or(Error::Symbol("linux_banner"))?;
        kernel.banner = (at, banner.iter().copied().take(BANNER_BYTES).collect());
        Ok(kernel)
    }

    /// Returns the kernel's symbols as an ELF file without content, for debuggers.
    #[must_use]
    pub fn symbol_file(&self) -> Vec<u8> {
        symbol_file(&self.symbols, &self.values)
    }

    /// Returns the names of the kernel's code.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// Returns the linear address of the code or variable with this name. `None` if the kernel has no such symbol.
    #[must_use]
    pub fn address_of(&self, name: &str) -> Option<u64> {
        self.values.get(name)
    }

    pub(crate) fn symbol(&self, name: &'static str) -> Result<u64, Error> {
        self.values.get(name).ok_or(Error::Symbol(name))
    }

    /// Returns the part of memory with the segments at or above a linear address: linear and guest-physical address, and
    /// length in bytes. `None` if there are none, or if their distances differ in linear and in physical memory.
    pub(crate) fn extent(&self, from: u64) -> Option<(u64, u64, u64)> {
        let all = || self.segments.iter().filter(|segment| segment.address >= from);
        let first = all().min_by_key(|segment| segment.address)?;
        let end = |segment: &Segment| segment.address.checked_add(segment.memory_bytes);
        let mut last = first.address;
        for segment in all() {
            last = last.max(end(segment)?);
            let is_together =
                segment.address - first.address == segment.physical.checked_sub(first.physical)?;
            if !is_together {
                return None;
            }
        }
        Some((first.address, first.physical, last - first.address))
    }

    /// Returns the linear address of a symbol, the loaded segment that holds it, and the distance from the segment's
    /// start.
    fn loaded(&self, name: &'static str) -> Result<(u64, &Segment, u64), Error> {
        let address = self.symbol(name)?;
        let distance = |segment: &Segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.memory_bytes).then_some(within)
        };
        let found = self.segments.iter().find_map(|segment| Some((segment, distance(segment)?)));
        let (segment, within) = found.ok_or(Error::Symbol(name))?;
        Ok((address, segment, within))
    }
}
