//! Reads numbers, lists and texts from the kernel's memory.

use everett_symbols::kernel::btf::Field;

use crate::memory::{AddressSpace, Ram};
use crate::{Error, Kernel};

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

    /// Reads a field of up to 64 bits of the structure at `base`.
    pub(crate) fn number(&self, base: u64, field: Field) -> Result<u64, Error> {
        let bytes = field.bytes().clamp(1, 8) as usize;
        let mut number = [0; 8];
        self.memory().read(base.wrapping_add(field.offset()), &mut number[..bytes])?;
        Ok(u64::from_le_bytes(number))
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
