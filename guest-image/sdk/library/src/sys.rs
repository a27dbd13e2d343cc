//! System calls of x86-64 Linux.

use core::arch::asm;
use core::mem::MaybeUninit;

const WRITE: usize = 1;
const CLOSE: usize = 3;
const FSTAT: usize = 5;
const SOCKET: usize = 41;
const CONNECT: usize = 42;
const RECVMSG: usize = 47;
const FCNTL: usize = 72;
const READLINK: usize = 89;
const GETTID: usize = 186;
const GETRANDOM: usize = 318;

const EINTR: isize = -4;

const AF_UNIX: usize = 1;
const SOCK_STREAM: usize = 1;
const SOCK_CLOEXEC: usize = 0o2_000_000;
const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
const SOL_SOCKET: u32 = 1;
const SCM_RIGHTS: u32 = 1;
const F_DUPFD_CLOEXEC: usize = 1030;
const S_IFMT: u32 = 0o170_000;
const S_IFCHR: u32 = 0o020_000;

/// Makes a system call.
///
/// # Safety
/// The arguments must be valid for the call. Each pointer must point to as much memory as the kernel accesses.
unsafe fn call(number: usize, a: usize, b: usize, c: usize, d: usize) -> isize {
    let result: isize;
    // SAFETY: the caller guarantees that the kernel may access the memory behind the arguments. The instruction changes
    // only `rax`, `rcx` and `r11`.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Ends the process with an invalid instruction.
pub(crate) fn trap() -> ! {
    // SAFETY: the instruction only raises an exception.
    unsafe { asm!("ud2", options(noreturn, nostack)) }
}

/// Copies bytes from `from` to `to`. If `to` is shorter, copies only the bytes that fit.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    let length = if from.len() < to.len() { from.len() } else { to.len() };
    // SAFETY: both slices have at least `length` bytes. They cannot overlap, because one is borrowed mutably. The
    // direction flag is clear at every call (System V ABI, 3.2.1).
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") from.as_ptr() => _,
            inout("rdi") to.as_mut_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Fills an array with zeros. Does not use `[0; N]`, because the compiler would call `memset` for a large array.
pub(crate) fn zeroed<const N: usize>(array: &mut MaybeUninit<[u8; N]>) -> &mut [u8; N] {
    // SAFETY: the instruction writes the N bytes of the array. The direction flag is clear at every call.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") N => _,
            inout("rdi") array.as_mut_ptr() => _,
            in("al") 0u8,
            options(nostack, preserves_flags),
        );
        array.assume_init_mut()
    }
}

/// Returns a random number from the kernel's generator.
pub(crate) fn random() -> u64 {
    let mut number = MaybeUninit::<u64>::zeroed();
    // SAFETY: the kernel writes at most eight bytes to `number`.
    while unsafe { call(GETRANDOM, number.as_mut_ptr() as usize, size_of::<u64>(), 0, 0) } == EINTR {}
    // SAFETY: the memory was zeroed, and every bit pattern is a valid number.
    unsafe { number.assume_init() }
}

/// Returns the thread ID of the caller.
pub(crate) fn thread() -> u32 {
    // SAFETY: the call has no arguments.
    unsafe { call(GETTID, 0, 0, 0, 0) as u32 }
}

/// Closes a descriptor.
pub(crate) fn close(fd: i32) {
    // SAFETY: the call accesses no memory.
    unsafe { call(CLOSE, fd as usize, 0, 0, 0) };
}

/// Writes all bytes with one system call. Returns false if that failed.
pub(crate) fn write(fd: i32, bytes: &[u8]) -> bool {
    loop {
        // SAFETY: the kernel reads the bytes of the slice.
        let written = unsafe { call(WRITE, fd as usize, bytes.as_ptr() as usize, bytes.len(), 0) };
        if written != EINTR {
            return written == bytes.len() as isize;
        }
    }
}

/// Returns the device number of a character device, which is never 0. `None` if the descriptor is anything else.
pub(crate) fn device(fd: i32) -> Option<u64> {
    // `struct stat` has 144 bytes. Its field `st_mode` starts at byte 24, `st_rdev` at byte 40.
    let mut stat = MaybeUninit::<[u64; 18]>::uninit();
    let at = stat.as_mut_ptr().cast::<u8>();
    // SAFETY: the kernel writes one `struct stat` to the array.
    if unsafe { call(FSTAT, fd as usize, at as usize, 0, 0) } != 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so the kernel has written both fields. They are aligned.
    let (mode, device) = unsafe { (at.add(24).cast::<u32>().read(), at.add(40).cast::<u64>().read()) };
    (mode & S_IFMT == S_IFCHR).then_some(device)
}

/// Reads the target of a symbolic link. `path` must end in a zero byte. Returns the length, or 0 after a failure.
pub(crate) fn link(path: &[u8], into: &mut [u8]) -> usize {
    // SAFETY: the path ends in a zero byte, and the kernel writes at most the length of `into`.
    let length = unsafe { call(READLINK, path.as_ptr() as usize, into.as_mut_ptr() as usize, into.len(), 0) };
    if length > 0 { length as usize } else { 0 }
}

/// Moves a descriptor to a free number of at least `least`. If that fails, returns the same descriptor.
pub(crate) fn moved(fd: i32, least: usize) -> i32 {
    // SAFETY: the call accesses no memory.
    let copy = unsafe { call(FCNTL, fd as usize, F_DUPFD_CLOEXEC, least, 0) };
    if copy < 0 {
        return fd;
    }
    close(fd);
    copy as i32
}

#[repr(C)]
struct Piece {
    at: *mut u8,
    length: usize,
}

/// The kernel's `struct msghdr`.
#[repr(C)]
struct Message {
    name: usize,
    name_length: usize,
    pieces: *mut Piece,
    pieces_length: usize,
    control: *mut Control,
    control_length: usize,
    flags: usize,
}

/// The kernel's `struct cmsghdr` with one descriptor.
#[repr(C, align(8))]
struct Control {
    length: usize,
    level: u32,
    kind: u32,
    fd: i32,
}

/// Connects to the Unix socket with this abstract name, and receives a descriptor from it.
pub(crate) fn descriptor_from(name: &[u8]) -> Option<i32> {
    // SAFETY: the call accesses no memory.
    let socket = unsafe { call(SOCKET, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0) };
    if socket < 0 {
        return None;
    }
    let fd = receive(socket as usize, name);
    close(socket as i32);
    fd
}

fn receive(socket: usize, name: &[u8]) -> Option<i32> {
    // `struct sockaddr_un` has the family, a zero byte that marks an abstract name, and the name.
    let mut address = [0u8; 32];
    address[0] = AF_UNIX as u8;
    copy(name, &mut address[3..]);
    let length = 3 + name.len();
    loop {
        // SAFETY: the kernel reads at most `length` bytes of the address, which has 32 bytes.
        match unsafe { call(CONNECT, socket, address.as_ptr() as usize, length.min(32), 0) } {
            0 => break,
            EINTR => {}
            _ => return None,
        }
    }
    let mut byte = 0u8;
    let mut piece = Piece { at: &raw mut byte, length: 1 };
    let mut control = Control { length: 0, level: 0, kind: 0, fd: -1 };
    let mut message = Message {
        name: 0,
        name_length: 0,
        pieces: &raw mut piece,
        pieces_length: 1,
        control: &raw mut control,
        control_length: size_of::<Control>(),
        flags: 0,
    };
    loop {
        let at = (&raw mut message) as usize;
        // SAFETY: the message points to one byte and to a control message. The kernel may write to both.
        match unsafe { call(RECVMSG, socket, at, MSG_CMSG_CLOEXEC, 0) } {
            EINTR => {}
            1 => break,
            _ => return None,
        }
    }
    (control.level == SOL_SOCKET && control.kind == SCM_RIGHTS && control.fd >= 0).then_some(control.fd)
}
