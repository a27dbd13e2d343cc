//! The arena (memory for test instructions and their data) in the test process: one memory file, mapped twice for test
//! instructions and once for the test itself.
#![allow(unsafe_code)]

use crate::arena::{CODE, CODE_LEN, CONST, CONST_LEN, DATA, DATA_LEN, HIGH, LEN, LOW};

/// Size in the file of `DATA` and `CONST`, in bytes. `CODE` follows them.
const DATA_CONST_LEN: usize = (DATA_LEN + CONST_LEN) as usize;
const FILE_LEN: usize = DATA_CONST_LEN + CODE_LEN as usize;

/// The mapped arena. It is never unmapped.
pub(super) struct Arena {
    /// Mapping of the whole file, readable and writable.
    alias: *mut u8,
}

// SAFETY: the mapping lives as long as the process. The mutex `ONE` in `super` lets only one thread at a time use the
// `Arena`.
unsafe impl Send for Arena {}

impl Arena {
    /// Maps the arena.
    ///
    /// # Panics
    /// Panics if the addresses are in use or memory is short.
    pub(super) fn new() -> Arena {
        // SAFETY: the name is a C string, and no other argument is a pointer.
        let fd = unsafe { libc::memfd_create(c"arena".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
        // SAFETY: no argument is a pointer.
        assert_eq!(unsafe { libc::ftruncate(fd, FILE_LEN as i64) }, 0);
        let (r, w, x) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
        for view in [LOW, HIGH] {
            let reserve =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
            map(view, LEN as usize, libc::PROT_NONE, reserve, -1, 0);
            let fixed = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
            map(view + DATA, DATA_LEN as usize, r | w, fixed, fd, 0);
            map(view + CONST, CONST_LEN as usize, r, fixed, fd, DATA_LEN as i64);
            map(view + CODE, CODE_LEN as usize, r | x, fixed, fd, DATA_CONST_LEN as i64);
        }
        let alias = map(0, FILE_LEN, r | w, libc::MAP_SHARED | libc::MAP_POPULATE, fd, 0);
        // SAFETY: this function opened `fd`, and the mappings keep the file alive.
        unsafe { libc::close(fd) };
        Arena { alias }
    }
    /// Writes to the arena. `offset` counts from the start of a view, i.e. of one of the two address ranges at which
    /// test instructions see the arena.
    ///
    /// # Panics
    /// Panics if a part of the range is not mapped.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) {
        let at = if offset >= CODE {
            assert!(offset + bytes.len() as u64 <= CODE + CODE_LEN);
            (offset - CODE) as usize + DATA_CONST_LEN
        } else {
            assert!(offset >= DATA && offset + bytes.len() as u64 <= CONST + CONST_LEN);
            (offset - DATA) as usize
        };
        // SAFETY: the range is inside the mapping by the assertions. No other reference to the mapping exists while
        // `self` is borrowed.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.alias.add(at), bytes.len()) };
    }
    /// Returns the current contents of `DATA` and `CONST`.
    pub(super) fn data(&self) -> &[u8] {
        // SAFETY: mapped and initialised, because a new file is zero. The bytes change only in `write` and while a test
        // instruction executes. Both borrow the `Host` exclusively, so this reference cannot exist then.
        unsafe { std::slice::from_raw_parts(self.alias, DATA_CONST_LEN) }
    }
}

fn map(at: u64, len: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8 {
    // SAFETY: the reservation replaces no mapping, and `MAP_FIXED` is used only inside the reserved range.
    let p = unsafe { libc::mmap(at as *mut libc::c_void, len, protection, flags, fd, offset) };
    assert!(p != libc::MAP_FAILED && !p.is_null(), "mmap at {at:#x}: {}", std::io::Error::last_os_error());
    assert!(at == 0 || p as u64 == at, "mmap at {at:#x} gave {p:p}");
    p.cast()
}
