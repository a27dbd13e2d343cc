//! Stacks of programs.
//!
//! The library `framehop` reads the unwind tables of programs and libraries (`.eh_frame`), and follows frame pointers
//! where there are no tables. Code of Go has a table of its own.

use std::ops::Range;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use crate::FRAMES_MAX;
use crate::go::GoFrame;
use crate::program::{Content, GoSteps, GoTable, Program, Section};

/// Code that ends a signal, in the encodings of different assemblers: `mov $15, %rax; syscall` and `mov $15, %eax; syscall`.
const SIGNAL_ENDS: [&[u8]; 2] =
    [&[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05], &[0xb8, 15, 0, 0, 0, 0x0f, 0x05]];
/// Distance of the frame pointer in what the kernel saves for a signal (`ucontext`), in bytes.
const SAVED_FRAME: u64 = 120;
/// Distance of the stack pointer in what the kernel saves for a signal, in bytes.
const SAVED_STACK: u64 = 160;
/// Distance of the instruction pointer in what the kernel saves for a signal, in bytes.
const SAVED_INSTRUCTION: u64 = 168;

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
    table: GoTable,
}

/// Stack of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Code addresses, from the innermost frame outwards. The first and those in `interrupted` are instruction pointers, all
    /// others are return addresses.
    pub addresses: Vec<u64>,
    /// Numbers of the frames of Go programs that a signal has interrupted, ascending.
    pub interrupted: Vec<usize>,
    /// True if the stack ends as it should. Otherwise outer frames are missing.
    pub is_complete: bool,
}

impl Unwinder {
    /// Adds a program or library. `range` is the range of addresses at which it is mapped, and `bias` the distance of
    /// these addresses from the addresses that the file states. Unwind tables that could take unbounded time are not used.
    /// The Go table of such a program is used, because the work for it has a bound.
    pub fn add(&mut self, program: &Program, range: Range<u64>, bias: u64) {
        let address =
            |section: &Section| section.address..section.address.saturating_add(section.content.len() as u64);
        let range_of = |section: &Option<Section>| section.as_ref().map(address);
        let content = |section: &Option<Section>| section.as_ref().map(|section| section.content.clone());
        if let Some(go) = &program.go {
            self.go.push(GoModule { range: range.clone(), bias, table: go.clone() });
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
        let mut steps = GoSteps::default();
        let mut frames = Frames { addresses: Vec::new(), interrupted: Vec::new(), is_complete: false };
        while frames.addresses.len() < FRAMES_MAX {
            if !at.is_return_address() && !frames.addresses.is_empty() {
                frames.interrupted.push(frames.addresses.len());
            }
            frames.addresses.push(at.address());
            let lookup = at.address_for_lookup();
            let next = match self.go.iter().find_map(|module| module.frame(lookup, &mut steps)) {
                Some(GoFrame::Outermost) => return Frames { is_complete: true, ..frames },
                Some(GoFrame::Unknown) => None,
                Some(GoFrame::Return(distance)) => {
                    go_caller(&mut registers, distance, &mut read).and_then(FrameAddress::from_return_address)
                }
                Some(GoFrame::Injected(distance)) => go_caller(&mut registers, distance, &mut read)
                    .filter(|address| *address != 0)
                    .map(FrameAddress::from_instruction_pointer),
                Some(GoFrame::Signal(distance)) => interrupted(&mut registers, distance, &mut read)
                    .map(FrameAddress::from_instruction_pointer),
                None => match self.modules.unwind_frame(at, &mut registers, &mut self.cache, &mut read) {
                    Ok(Some(address)) => FrameAddress::from_return_address(address),
                    Ok(None) => return Frames { is_complete: true, ..frames },
                    Err(_) => None,
                },
            };
            // A return address of 0 is no proof that the stack ends here.
            let Some(next) = next else { break };
            at = next;
        }
        frames
    }
}

impl GoModule {
    /// Returns the frame at an address in memory. `None` if the table does not cover it.
    fn frame(&self, address: u64, steps: &mut GoSteps) -> Option<GoFrame> {
        if !self.range.contains(&address) {
            return None;
        }
        self.table.table()?.frame(address.wrapping_sub(self.bias), steps)
    }
}

/// Moves to the caller of a function of Go, whose return address is `distance` bytes above the stack pointer. Returns this
/// address, or `None` if memory is not mapped.
fn go_caller(
    registers: &mut UnwindRegsX86_64,
    distance: u64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    let place = registers.sp().checked_add(distance)?;
    let address = read(place).ok()?;
    if distance > 0 {
        // A function with a frame saves the frame pointer at its end.
        registers.set_bp(read(place.checked_sub(8)?).ok()?);
    }
    registers.set_sp(place.checked_add(8)?);
    registers.set_ip(address);
    Some(address)
}

/// Moves from the handler of a signal to the code that the signal has interrupted. `distance` bytes above the stack pointer is the
/// address of code that ends the signal, and behind it what the kernel has saved. Returns the instruction pointer, or `None` if
/// other code is there, or if memory is not mapped.
fn interrupted(
    registers: &mut UnwindRegsX86_64,
    distance: u64,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    let place = registers.sp().checked_add(distance)?;
    let ends = read(place).ok()?;
    let last = read(ends.checked_add(1)?).ok()?.to_le_bytes()[7];
    let code = [&read(ends).ok()?.to_le_bytes()[..], &[last]].concat();
    if !SIGNAL_ENDS.iter().any(|expected| code.starts_with(expected)) {
        return None;
    }
    let saved = place.checked_add(8)?;
    let mut word = |at: u64| read(saved.checked_add(at)?).ok();
    let (instruction, stack, frame) = (word(SAVED_INSTRUCTION)?, word(SAVED_STACK)?, word(SAVED_FRAME)?);
    *registers = UnwindRegsX86_64::new(instruction, stack, frame);
    Some(instruction)
}
