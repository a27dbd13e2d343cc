//! Stacks of programs, with the names of their functions.

use std::fmt;
use std::sync::Arc;

use everett_symbols::lines::{Lines, SourcePlace};
use everett_symbols::program::{GoSteps, Program};
use everett_symbols::unwind::Unwinder;
use serde::Serialize;

use crate::mapping::Mapping;
use crate::memory::AddressSpace;
use crate::registers::Registers;
use crate::task::Process;
use crate::{Error, Guest};

/// Number of bytes at a code address that are compared between memory and the program's file.
const COMPARED_BYTES: usize = 16;

/// The files that processes have mapped.
pub trait Files {
    /// Returns the program or library of a mapping. `None` if the file is not known.
    fn program(&self, mapping: &Mapping) -> Option<Arc<Program>>;
    /// Returns the source lines of a mapping's program. `None` if they are not known.
    fn lines(&self, mapping: &Mapping, program: &Program) -> Option<Arc<Lines>>;
}

/// A process whose stacks are read.
pub struct ProgramStacks<'g> {
    memory: AddressSpace<'g>,
    files: &'g dyn Files,
    programs: Programs,
}

/// The programs and libraries of a process, ready to unwind its stacks. A caller that reads the stacks of a process at many
/// instants keeps them between two instants.
#[derive(Default)]
pub struct Programs {
    /// The executable mappings of files.
    mappings: Vec<Mapping>,
    mapped: Vec<Mapped>,
    unwinder: Unwinder,
}

/// An executable mapping of a known file.
struct Mapped {
    mapping: Mapping,
    program: Arc<Program>,
    /// Distance of addresses in memory from the addresses that the file states.
    bias: u64,
}

/// Frame of a program's stack. Its `Display` is one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Address of the instruction, or for an outer frame the return address.
    pub address: u64,
    /// File with the code. `None` if the file is not known, or if its code differs from the code in memory.
    pub file: Option<String>,
    /// The address as the file states it.
    pub in_file: Option<u64>,
    /// Function and distance from its start. `None` if the file names no function there.
    pub function: Option<String>,
    /// Places in source code: the innermost one first, then the places of the calls that the compiler has inlined. Empty
    /// if they are not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<SourcePlace>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        match (&self.function, &self.file, self.in_file) {
            (Some(function), Some(file), _) => write!(f, " {function} ({file})")?,
            (None, Some(file), Some(address)) => write!(f, " {file}+{address:#x}")?,
            _ => {}
        }
        // The function around inlined calls is the last.
        f.write_str(&self.source.last().map(SourcePlace::at).unwrap_or_default())
    }
}

impl Guest<'_> {
    /// Prepares the stacks of a process. `None` for threads of the kernel and for zombies.
    ///
    /// # Errors
    /// Returns an error if the process's mappings cannot be read.
    pub fn program_stacks<'f>(
        &'f self,
        process: &Process,
        files: &'f dyn Files,
    ) -> Result<Option<ProgramStacks<'f>>, Error> {
        self.program_stacks_again(process, files, Programs::default())
    }

    /// Prepares the stacks of a process, with the programs that it had at another instant, from the same files. They are read
    /// again if the process has mapped others since.
    ///
    /// # Errors
    /// See [`Guest::program_stacks`].
    pub fn program_stacks_again<'f>(
        &'f self,
        process: &Process,
        files: &'f dyn Files,
        programs: Programs,
    ) -> Result<Option<ProgramStacks<'f>>, Error> {
        let Some(memory) = self.memory_of_process(process)? else { return Ok(None) };
        let mut mappings = self.mappings(process)?;
        mappings.retain(|mapping| mapping.access.execute && mapping.file.is_some());
        let programs = if programs.mappings == mappings { programs } else { Programs::new(mappings, files) };
        Ok(Some(ProgramStacks { memory, files, programs }))
    }
}

impl Programs {
    fn new(mappings: Vec<Mapping>, files: &dyn Files) -> Programs {
        let mut programs = Programs::default();
        for mapping in &mappings {
            let Some(file) = mapping.file else { continue };
            let Some(program) = files.program(mapping) else { continue };
            let Some(address) = program.address_of_code(file.offset) else { continue };
            let bias = mapping.start.wrapping_sub(address);
            programs.unwinder.add(&program, mapping.start..mapping.end, bias);
            programs.mapped.push(Mapped { mapping: mapping.clone(), program, bias });
        }
        Programs { mappings, ..programs }
    }
}

impl ProgramStacks<'_> {
    /// Returns the programs, for another instant.
    #[must_use]
    pub fn into_programs(self) -> Programs {
        self.programs
    }

    /// Returns the frames from the innermost one outwards, and true if the stack ends as it should.
    pub fn frames(&mut self, registers: Registers) -> (Vec<Frame>, bool) {
        let memory = self.memory;
        let mut read = |address| {
            let mut word = [0; 8];
            memory.read(address, &mut word).map(|()| u64::from_le_bytes(word)).map_err(|_| ())
        };
        let Registers { instruction, stack, frame, .. } = registers;
        let frames = self.programs.unwinder.frames(instruction, stack, frame, &mut read);
        let mut steps = GoSteps::default();
        let is_return = |n: usize| n > 0 && !frames.interrupted.contains(&n);
        let named = frames.addresses.iter().enumerate();
        let named = named.map(|(n, address)| self.frame(*address, is_return(n), &mut steps));
        (named.collect(), frames.is_complete)
    }

    /// Returns address and length of the variables with this name, in the program and its libraries. The length is 0 if
    /// it is unknown.
    #[must_use]
    pub fn variables_named(&self, name: &str) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for Mapped { program, bias, .. } in &self.programs.mapped {
            let named = program.variables_named(name);
            found.extend(named.into_iter().map(|(address, bytes)| (address.wrapping_add(*bias), bytes)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn frame(&self, address: u64, is_return: bool, steps: &mut GoSteps) -> Frame {
        let unknown = Frame { address, file: None, in_file: None, function: None, source: Vec::new() };
        // A return address can lie after the end of the calling function.
        let within = address.wrapping_sub(is_return.into());
        let range = |mapped: &&Mapped| (mapped.mapping.start..mapped.mapping.end).contains(&within);
        let Some(Mapped { mapping, program, bias }) = self.programs.mapped.iter().find(range) else {
            return unknown;
        };
        let Some(file) = mapping.file else { return unknown };
        let mut code = [0; COMPARED_BYTES];
        let read = self.memory.read_some(within, &mut code);
        let expected = program.bytes_at(file.offset.wrapping_add(within - mapping.start));
        let compared = read.min(expected.len());
        if compared == 0 || code[..compared] != expected[..compared] {
            return unknown;
        }
        let in_file = address.wrapping_sub(*bias);
        let function = program.function(within.wrapping_sub(*bias));
        let function = function.map(|mut function| {
            function.offset += u64::from(is_return);
            function.to_string()
        });
        let places = self.files.lines(mapping, program).map(|lines| lines.places(within.wrapping_sub(*bias)));
        let mut source = places.unwrap_or_default();
        if source.is_empty()
            && let Some((path, line)) = program.go_source(within.wrapping_sub(*bias), steps)
        {
            let name = program.function(within.wrapping_sub(*bias)).map(|function| function.name.to_owned());
            source.push(SourcePlace { function: name, file: Some(path), line: Some(line) });
        }
        Frame { address, file: Some(mapping.name.clone()), in_file: Some(in_file), function, source }
    }
}
