//! A kernel's symbols and types.
//!
//! [`Symbols`] and [`Values`] come from the symbol table of a `vmlinux` (`elf`). If that table names no code, they come
//! from the compressed table that distribution kernels carry for their own stack traces (`kallsyms`). A kernel without
//! both tables gives no names and no error, and Everett shows its addresses as numbers.
//!
//! - `elf`: reads the ELF symbol table
//! - `kallsyms`: reads the compressed table
//! - [`btf`]: reads the types, i.e. the places of fields in structures
//! - [`orc`]: reads the unwind tables
//! - `file`: writes symbols as an ELF file
//!
//! Kernels are untrusted files. No function here panics, and allocations are bounded by the file's size.

pub mod btf;
mod elf;
mod file;
mod kallsyms;
pub mod orc;

pub use file::symbol_file;

use std::collections::BTreeMap;
use std::fmt;

/// Maximum length of a symbol's name, in bytes: the kernel's `KSYM_NAME_LEN`.
const NAME_BYTES_MAX: usize = 512;

/// Kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    /// A function, or a label in code.
    Code,
    /// A variable. The value of a variable in the per-CPU area is its offset in this area.
    Data,
}

/// A symbol's value, name and kind.
type Raw = (u64, String, Named);

/// Reads the functions and variables of a `vmlinux`, ascending by value.
fn read(vmlinux: &[u8]) -> Vec<Raw> {
    let mut all = elf::symbols(vmlinux);
    if !all.iter().any(|(_, _, kind)| *kind == Named::Code) {
        all.extend(kallsyms::symbols(vmlinux).unwrap_or_default());
    }
    all.sort();
    all
}

/// Reads the names of a `vmlinux`'s code, and the values of its functions and variables.
#[must_use]
pub fn symbols_and_values(vmlinux: &[u8]) -> (Symbols, Values) {
    let all = read(vmlinux);
    (Symbols::of(&all), Values::of(all))
}

/// Values of a kernel's functions and variables by name.
#[derive(Debug, Clone, Default)]
pub struct Values(BTreeMap<String, u64>);

impl Values {
    /// Keeps the functions and variables. If several have one name, the smallest value counts.
    fn of(all: Vec<Raw>) -> Values {
        let mut values = Values::default();
        for (value, name, _) in all {
            values.0.entry(name).or_insert(value);
        }
        values
    }

    /// Returns the value of a function or variable: its address, or its offset in the per-CPU area. `None` if the
    /// kernel has no symbol of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

/// Names of a kernel's code.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Addresses and names, ascending by address, one name per address.
    sorted: Vec<(u64, String)>,
}

impl Symbols {
    /// Reads the names of a `vmlinux`.
    #[must_use]
    pub fn of_kernel(vmlinux: &[u8]) -> Symbols {
        Symbols::of(&read(vmlinux))
    }

    /// Returns the names of code at these addresses, in any order. Of several names of an address, the first counts.
    #[must_use]
    pub fn of_names(mut names: Vec<(u64, String)>) -> Symbols {
        names.sort_by_key(|(address, _)| *address);
        names.dedup_by_key(|(address, _)| *address);
        Symbols { sorted: names }
    }

    fn of(all: &[Raw]) -> Symbols {
        let code = all.iter().filter(|(_, _, kind)| *kind == Named::Code);
        let mut sorted: Vec<_> = code.map(|(address, name, _)| (*address, name.clone())).collect();
        sorted.dedup_by_key(|(address, _)| *address);
        Symbols { sorted }
    }

    /// Returns the number of addresses that have a name.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Returns true if no address has a name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns `FUNCTION+0x12`, or `None` if no function begins at or shortly before the address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<String> {
        self.show(address).name.map(|(name, offset)| format!("{name}+{offset:#x}"))
    }

    /// Returns the first address and the name of the function at an address. `None` if no function begins at or shortly
    /// before the address.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(u64, &str)> {
        self.show(address).name.map(|(name, offset)| (address.wrapping_sub(offset), name))
    }

    /// Returns the address for display: the number, followed by `FUNCTION+0x12` if its function is known.
    #[must_use]
    pub fn show(&self, address: u64) -> Shown<'_> {
        self.show_in(address, address)
    }

    /// Returns a return address for display, with the function that called. If the call is the function's last
    /// instruction, the return address lies after the end of this function.
    #[must_use]
    pub fn show_return(&self, address: u64) -> Shown<'_> {
        self.show_in(address, address.wrapping_sub(1))
    }

    /// Returns `address` for display, with the function that holds the address `within`.
    fn show_in(&self, address: u64, within: u64) -> Shown<'_> {
        let after = self.sorted.partition_point(|(start, _)| *start <= within);
        let name = after
            .checked_sub(1)
            .and_then(|i| self.sorted.get(i))
            .filter(|(start, _)| within - start <= SYMBOL_BYTES_MAX)
            .map(|(start, name)| (name.as_str(), address.wrapping_sub(*start)));
        Shown { address, name }
    }
}

/// Maximum distance of an address from the start of its function, in bytes.
const SYMBOL_BYTES_MAX: u64 = 1 << 20;

/// An address and its function, if known.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    address: u64,
    name: Option<(&'a str, u64)>,
}

impl Shown<'_> {
    /// Returns the name of the function, or the address in hexadecimal if the function is unknown.
    #[must_use]
    pub fn function(&self) -> String {
        self.name.map_or_else(|| format!("{:#x}", self.address), |(name, _)| name.to_owned())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)?;
        match self.name {
            Some((name, offset)) => write!(f, " ({name}+{offset:#x})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_by_the_symbol_before_them() {
        let symbols = Symbols { sorted: vec![(0x1000, "first".to_owned()), (0x2000, "second".to_owned())] };
        assert_eq!(symbols.show(0x1004).to_string(), "0x1004 (first+0x4)");
        assert_eq!(symbols.show(0x2000).to_string(), "0x2000 (second+0x0)");
        assert_eq!(symbols.show(0xfff).to_string(), "0xfff");
        assert_eq!((symbols.function(0x1004), symbols.function(0xfff)), (Some((0x1000, "first")), None));
        assert_eq!(symbols.show(u64::MAX).to_string(), "0xffffffffffffffff");
        assert_eq!(symbols.show_return(0x2000).to_string(), "0x2000 (first+0x1000)");
        assert_eq!(symbols.show_return(0x2001).to_string(), "0x2001 (second+0x1)");
        assert_eq!(symbols.show_return(0).to_string(), "0x0");
    }

    /// Function whose address the test looks up. It must not be inlined.
    #[inline(never)]
    fn a_function_to_be_found() -> usize {
        std::hint::black_box(a_function_to_be_found as fn() -> usize as usize)
    }

    #[test]
    fn the_symbols_of_this_test_program_are_read() {
        // The test binary is an ELF file whose symbol table has the function above.
        assert!(std::hint::black_box(a_function_to_be_found as fn() -> usize)() != 0);
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let symbols = Symbols::of_kernel(&file);
        assert!(symbols.sorted.iter().any(|(_, name)| name.contains("a_function_to_be_found")));
    }

    proptest::proptest! {
        #[test]
        fn garbage_has_no_names(mut file in proptest::collection::vec(proptest::num::u8::ANY, 0..2000)) {
            for magic in [&b""[..], b"\x7fELF\x02\x01\x01"] {
                file.splice(0..0, magic.iter().copied());
                let symbols = Symbols::of_kernel(&file);
                proptest::prop_assert!(symbols.sorted.is_sorted_by(|(one, _), (next, _)| one < next));
                proptest::prop_assert!(symbols.len() <= file.len());
            }
        }
    }
}
