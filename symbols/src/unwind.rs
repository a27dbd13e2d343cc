//! Stacks of programs.
//!
//! The library `framehop` reads the unwind tables of programs and libraries (`.eh_frame`), and follows frame pointers
//! where there are no tables. Code of Go has a table of its own.

use std::ops::Range;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use crate::FRAMES_MAX;
use crate::go::{GoFrame, Table};
use crate::program::{Content, Program, Section};

/// Unwinds stacks of a process.
#[derive(Default)]
pub struct Unwinder {
    modules: UnwinderX86_64<Content>,
    cache: CacheX86_64,
    go: Vec<GoModule>,
}

/// A Go program.
struct GoModule {
    /// Addresses at which it is mapped.
    range: Range<u64>,
    bias: u64,
    /// Table of functions, and the address of the section with code.
    table: Content,
    text: u64,
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
        if let Some(go) = &program.go {
            let (range, table) = (range.clone(), go.content.clone());
            self.go.push(GoModule { range, bias, table, text: program.text_address() });
        }
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
        let mut registers = UnwindRegsX86_64::new(instruction, stack, frame);
        let mut read = |address| read(address);
        let mut at = FrameAddress::from_instruction_pointer(instruction);
        let mut addresses = Vec::new();
        while addresses.len() < FRAMES_MAX {
            addresses.push(at.address());
            let lookup = at.address_for_lookup();
            let next = match self.go.iter().find_map(|module| module.frame(lookup)) {
                Some(GoFrame::Outermost) => return Frames { addresses, is_complete: true },
                Some(GoFrame::Unknown) => return Frames { addresses, is_complete: false },
                Some(GoFrame::Return(distance)) => go_caller(&mut registers, distance, &mut read),
                None => {
                    self.modules.unwind_frame(at, &mut registers, &mut self.cache, &mut read).map_err(|_| ())
                }
            };
            match next {
                Ok(Some(address)) => match FrameAddress::from_return_address(address) {
                    Some(next) => at = next,
                    None => return Frames { addresses, is_complete: true },
                },
                Ok(None) => return Frames { addresses, is_complete: true },
                Err(()) => return Frames { addresses, is_complete: false },
            }
        }
        Frames { addresses, is_complete: false }
    }
}

impl GoModule {
    /// Returns the frame at an address in memory. `None` if the table does not cover it.
    fn frame(&self, address: u64) -> Option<GoFrame> {
        if !self.range.contains(&address) {
            return None;
        }
        Table::new(&self.table, self.text)?.frame(address.wrapping_sub(self.bias))
    }
}

/// Moves to the caller of a function of Go, whose return address is `distance` bytes above the stack pointer. Returns this
/// address.
fn go_caller(
    registers: &mut UnwindRegsX86_64,
    distance: u64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, ()> {
    let place = registers.sp().checked_add(distance).ok_or(())?;
    let address = read(place)?;
    if distance > 0 {
        // A function with a frame saves the frame pointer at its end.
        registers.set_bp(read(place - 8)?);
    }
    registers.set_sp(place.checked_add(8).ok_or(())?);
    registers.set_ip(address);
    Ok(Some(address))
}
