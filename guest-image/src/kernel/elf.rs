//! Checks that an ELF file is for Everett's machines, which are x86-64.

use everett_elf::{Elf, Machine};

/// Reason why a file is not a suitable ELF file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not a little-endian ELF-64, or is damaged or truncated.
    #[error(transparent)]
    File(#[from] everett_elf::Error),
    /// The file is for another kind of processor.
    #[error("it is for {0}")]
    WrongMachine(Machine),
    /// The file has no loadable segment.
    #[error("it has no segment to load")]
    NothingToLoad,
}

/// Checks that the file is a little-endian ELF-64 for x86-64 with at least one loadable segment, and that its segments
/// are complete.
///
/// # Errors
/// Returns an error that names the violated condition.
pub fn check_x86_64(bytes: &[u8]) -> Result<(), Error> {
    let elf = Elf::parse(bytes)?;
    if elf.machine() != Machine::X86_64 {
        return Err(Error::WrongMachine(elf.machine()));
    }
    if elf.load_segments()?.is_empty() { Err(Error::NothingToLoad) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use everett_elf::Part;

    use super::{Error, check_x86_64};

    fn this_program() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    #[test]
    fn another_machine_is_named() {
        let mut program = this_program();
        assert_eq!(check_x86_64(&program), Ok(()));
        program[18] = 183;
        assert_eq!(check_x86_64(&program).unwrap_err().to_string(), "it is for aarch64");
        program[4] = 1;
        let expected = "it is not for a little-endian processor of 64 bits";
        assert_eq!(check_x86_64(&program).unwrap_err().to_string(), expected);
        program.truncate(1000);
        (program[4], program[18]) = (2, 62);
        assert_eq!(check_x86_64(&program), Err(Error::File(everett_elf::Error::Truncated(Part::Segments))));
    }

    #[test]
    fn a_file_without_segments_is_refused() {
        let mut program = this_program();
        program[56..58].fill(0);
        assert_eq!(check_x86_64(&program), Err(Error::NothingToLoad));
    }
}
