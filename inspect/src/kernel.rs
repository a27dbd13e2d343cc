//! A kernel's symbols, types and layout.

use everett_elf::{Elf, Segment, SegmentKind};
use everett_symbols::kernel::Symbols;
use everett_symbols::kernel::btf::Btf;
use everett_symbols::kernel::orc::Orc;

use crate::Error;
use crate::layout::Layout;

/// Maximum length of the kernel's banner that is compared, in bytes.
const BANNER_BYTES: usize = 128;

/// A kernel, as the file `vmlinux` describes it.
#[derive(Debug, Clone)]
pub struct Kernel {
    symbols: Symbols,
    pub(crate) layout: Layout,
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
        let symbols = Symbols::of_kernel(vmlinux);
        let mut segments = elf.segments()?;
        segments.retain(|segment| segment.kind == SegmentKind::Load);
        let layout = Layout::new(&types)?;
        let mut kernel = Kernel { symbols, layout, orc, segments, root: 0, banner: (0, Vec::new()) };
        kernel.root = kernel.loaded("init_top_pgt")?.0;
        let at = kernel.symbol("linux_banner")?;
        let (segment, within) = kernel.segment(at).ok_or(Error::Symbol("linux_banner"))?;
        let banner = segment.content(vmlinux)?.get(within as usize..).unwrap_or_default();
        kernel.banner = (at, banner.iter().copied().take(BANNER_BYTES).collect());
        Ok(kernel)
    }

    /// Returns the symbols.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    pub(crate) fn symbol(&self, name: &'static str) -> Result<u64, Error> {
        self.symbols.value(name).ok_or(Error::Symbol(name))
    }

    /// Returns the guest-physical and the linear address of a symbol in a loaded segment.
    fn loaded(&self, name: &'static str) -> Result<(u64, u64), Error> {
        let address = self.symbol(name)?;
        let (segment, within) = self.segment(address).ok_or(Error::Symbol(name))?;
        Ok((segment.physical.wrapping_add(within), address))
    }

    /// Returns the segment that holds a linear address, and the distance from its start.
    fn segment(&self, address: u64) -> Option<(&Segment, u64)> {
        self.segments.iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            (within < segment.memory_bytes).then_some((segment, within))
        })
    }
}
