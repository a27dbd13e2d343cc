//! Stacks of programs.
//!
//! The library `framehop` reads the unwind tables of programs and libraries (`.eh_frame`), and follows frame pointers
//! where there are no tables.

use std::ops::Range;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};

use crate::FRAMES_MAX;
use crate::program::{Content, Program, Section};

/// Unwinds stacks of a process.
#[derive(Default)]
pub struct Unwinder {
    modules: UnwinderX86_64<Content>,
    cache: CacheX86_64,
}

/// Stack of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Code addresses, from the innermost frame outwards. The first is the instruction pointer, all others are return
    /// addresses.
    pub addresses: Vec<u64>,
    /// True if the stack ends as it should. Otherwise outer frames are missing.
    pub is_complete: bool,
}

impl Unwinder {
    /// Adds a program or library. `range` is the range of addresses at which it is mapped, and `bias` the distance of
    /// these addresses from the addresses that the file states. A program whose unwind tables could take unbounded
    /// time is not added.
    pub fn add(&mut self, program: &Program, range: Range<u64>, bias: u64) {
        let address =
            |section: &Section| section.address..section.address.saturating_add(section.content.len() as u64);
        let range_of = |section: &Option<Section>| section.as_ref().map(address);
        let content = |section: &Option<Section>| section.as_ref().map(|section| section.content.clone());
        if program.is_unbounded() {
            return;
        }
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: range_of(&program.text),
            text: content(&program.text),
            got_svma: range_of(&program.got),
            eh_frame_svma: range_of(&program.eh_frame),
            eh_frame: content(&program.eh_frame),
            // Without the index `.eh_frame_hdr`, the library reads the same entries that `is_unbounded` has read.
            ..Default::default()
        };
        self.modules.add_module(Module::new(String::new(), range, bias, sections));
    }

    /// Returns the stack of a thread. `read` returns the word at an address, or an error if it is not mapped.
    pub fn frames(
        &mut self,
        instruction: u64,
        stack: u64,
        frame: u64,
        read: &mut dyn FnMut(u64) -> Result<u64, ()>,
    ) -> Frames {
        let registers = UnwindRegsX86_64::new(instruction, stack, frame);
        let mut read = |address| read(address);
        let mut frames = self.modules.iter_frames(instruction, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while addresses.len() < FRAMES_MAX {
            match frames.next() {
                Ok(Some(frame)) => addresses.push(frame.address()),
                Ok(None) => return Frames { addresses, is_complete: true },
                Err(_) => return Frames { addresses, is_complete: false },
            }
        }
        Frames { addresses, is_complete: false }
    }
}
