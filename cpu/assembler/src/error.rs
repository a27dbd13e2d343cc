//! Error of the assembler.

use std::fmt::{self, Display, Formatter};

/// Mistake in the program, such as an instruction with operands that it cannot have, or an address out of reach.
#[derive(Debug)]
pub struct Error(pub(crate) String);

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
