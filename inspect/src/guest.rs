//! Reads numbers, lists and texts from the kernel's memory.

use everett_symbols::kernel::btf::Field;

use crate::memory::{AddressSpace, Ram};
use crate::{Error, Kernel};

/// Start of the kernel's mapping of all RAM, if the kernel does not choose it when it boots.
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;

/// A Linux guest: its kernel and its RAM at one instant.
#[derive(Clone, Copy)]
pub struct Guest<'g> {
    pub(crate) kernel: &'g Kernel,
    ram: &'g dyn Ram,
}

impl<'g> Guest<'g> {
    /// Returns the guest with this RAM.
    ///
    /// # Errors
    /// Returns an error if the RAM does not contain this kernel, for example before the kernel has set up its page
    /// tables.
    pub fn new(kernel: &'g Kernel, ram: &'g dyn Ram) -> Result<Guest<'g>, Error> {
        let guest = Guest { kernel, ram };
        let (at, banner) = &kernel.banner;
        let mut loaded = vec![0; banner.len()];
        if guest.memory().read_some(*at, &mut loaded) < loaded.len() || loaded != *banner {
            return Err(Error::OtherKernel);
        }
        Ok(guest)
    }

    /// Returns the kernel's address space.
    #[must_use]
    pub fn memory(&self) -> AddressSpace<'g> {
        AddressSpace::new(self.ram, self.kernel.root)
    }

    /// Returns the linear address at which the kernel maps all RAM (`page_offset_base`).
    ///
    /// # Errors
    /// Returns an error if the kernel's variable cannot be read, or if RAM is not mapped there.
    pub fn direct_map(&self) -> Result<u64, Error> {
        let base = match self.kernel.values.get("page_offset_base") {
            Some(at) => self.word(at)?,
            None => DIRECT_MAP,
        };
        let is_mapped = self.memory().physical(base) == Some(0);
        if is_mapped { Ok(base) } else { Err(Error::DirectMap(base)) }
    }

    /// Returns the machine's RAM.
    pub(crate) fn ram(&self) -> &'g dyn Ram {
        self.ram
    }

    /// Returns the address space of a process, from the address of its `mm_struct`.
    pub(crate) fn memory_of(&self, mm: u64) -> Result<AddressSpace<'g>, Error> {
        let table = self.number(mm, self.kernel.layout.mm_pgd)?;
        let root = self.memory().physical(table).ok_or(Error::Unmapped(table))?;
        Ok(AddressSpace::new(self.ram, root))
    }

    /// Reads a field of up to 64 bits of the structure at `base`. It can be a bit field.
    pub(crate) fn number(&self, base: u64, field: Field) -> Result<u64, Error> {
        let bit = field.bit % 8;
        let bytes = (bit + field.bits).div_ceil(8).clamp(1, 8) as usize;
        let mut number = [0; 8];
        self.memory().read(base.wrapping_add(field.offset()), &mut number[..bytes])?;
        Ok(bits_of(u64::from_le_bytes(number), field))
    }

    /// Reads bytes of the structure at `base`, from the start of a field.
    pub(crate) fn bytes<const N: usize>(&self, base: u64, field: Field) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.memory().read(base.wrapping_add(field.offset()), &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a pointer or another number of 64 bits.
    pub(crate) fn word(&self, address: u64) -> Result<u64, Error> {
        let mut number = [0; 8];
        self.memory().read(address, &mut number)?;
        Ok(u64::from_le_bytes(number))
    }

    /// Reads a text that ends with a zero byte, or after `max` bytes.
    pub(crate) fn text(&self, address: u64, max: usize) -> Result<String, Error> {
        let mut bytes = vec![0; max];
        let read = self.memory().read_some(address, &mut bytes);
        bytes.truncate(read);
        match bytes.iter().position(|byte| *byte == 0) {
            Some(end) => bytes.truncate(end),
            None if read < max => return Err(Error::Unmapped(address.wrapping_add(read as u64))),
            None => {}
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the structures of a circular list (`struct list_head`), without the structure that holds `head`. `field`
    /// is the list's place in each structure.
    pub(crate) fn list(
        &self,
        head: u64,
        field: Field,
        what: &'static str,
        max: usize,
    ) -> Result<Vec<u64>, Error> {
        let mut found = Vec::new();
        let mut next = self.word(head).map_err(Error::reading(what))?;
        while next != head {
            if found.len() >= max {
                return Err(Error::TooMany { what, max });
            }
            found.push(next.wrapping_sub(field.offset()));
            next = self.word(next).map_err(Error::reading(what))?;
        }
        Ok(found)
    }
}

/// Returns the bits of a field. `number` begins with the byte in which the field begins.
fn bits_of(number: u64, field: Field) -> u64 {
    let number = number >> (field.bit % 8);
    if field.bits.is_multiple_of(8) { number } else { number & !(u64::MAX << field.bits.min(63)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_are_cut_out() {
        assert_eq!(bits_of(0xa7, Field { bit: 136, bits: 4 }), 0x7);
        assert_eq!(bits_of(0xa7, Field { bit: 140, bits: 4 }), 0xa);
        assert_eq!(bits_of(0xa7, Field { bit: 1177, bits: 7 }), 0x53);
        assert_eq!(bits_of(0x1234, Field { bit: 64, bits: 16 }), 0x1234);
        assert_eq!(bits_of(u64::MAX, Field { bit: 0, bits: 64 }), u64::MAX);
    }
}
