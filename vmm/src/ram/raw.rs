//! Access to whole pages of RAM by pointer, for digests and restores, which an extra copy would slow down noticeably.
//!
//! No other code accesses RAM at the same time. An engine runs only inside [`Engine::run`](crate::engine::Engine::run),
//! devices run only between two calls of it, and all of them run on the one thread that owns the machine.
#![allow(unsafe_code)]

use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion, MemoryRegionAddress};

use super::Ram;
use crate::layout::PAGE;

/// Content of one page.
pub(super) type PageBytes = [u8; PAGE as usize];

/// Returns the host address and the length in bytes of guest memory. Returns `None` unless it is one region from
/// address 0.
pub(crate) fn whole<B: Bitmap + 'static>(memory: &GuestMemoryMmap<B>) -> Option<(*mut u8, u64)> {
    let region = memory.iter().next()?;
    let alone = memory.num_regions() == 1 && region.start_addr() == GuestAddress(0);
    let base = region.get_host_address(MemoryRegionAddress(0)).ok()?;
    alone.then_some((base, region.len()))
}

impl Ram {
    /// Returns the content of page number `page`. Returns `None` beyond the end of RAM.
    pub(crate) fn page(&self, page: u64) -> Option<&PageBytes> {
        let pointer = self.pointer(page)?;
        // SAFETY: `pointer` is the start of a page of the mapping, which lives as long as `self`. Nothing writes RAM
        // while the machine's owner holds this borrow (see the module).
        Some(unsafe { &*pointer })
    }

    /// Replaces the content of page number `page`, with zeroes if `content` is `None`. Does not add the page to the log
    /// of written pages. Does nothing beyond the end of RAM.
    pub(crate) fn replace(&mut self, page: u64, content: Option<&PageBytes>) {
        let Some(pointer) = self.pointer(page) else { return };
        match content {
            // SAFETY: as in `page`. The source is a page of a moment's memory image. No RAM mapping overlaps it,
            // because these images are immutable and RAM is private.
            Some(content) => unsafe { std::ptr::copy_nonoverlapping(content, pointer, 1) },
            // SAFETY: as above.
            None => unsafe { std::ptr::write_bytes(pointer, 0, 1) },
        }
    }

    /// Returns the host address of a page, or `None` beyond the end of RAM.
    fn pointer(&self, page: u64) -> Option<*mut PageBytes> {
        let address = page.checked_mul(PAGE).filter(|&address| address < self.bytes)?;
        // RAM is one region of whole pages, so a page that starts in it also ends in it.
        self.memory.get_host_address(GuestAddress(address)).ok().map(<*mut u8>::cast)
    }
}
