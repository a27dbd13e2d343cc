//! Which program it was, when the host process dies or does not come back.
//!
//! A signal has no business here but to name the program and end the process.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// A program that takes longer hangs.
const SECONDS_MAX: u32 = 30;

static SEED: AtomicU64 = AtomicU64::new(0);
/// The way's name: where it is and how long.
static WAY: (AtomicPtr<u8>, AtomicUsize) = (AtomicPtr::new(std::ptr::null_mut()), AtomicUsize::new(0));

/// A program begins.
pub(crate) fn begins(seed: u64) {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGALRM]
        {
            // SAFETY: `action` is valid, and `died` does only what a handler may do.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = died as *const () as usize;
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    });
    SEED.store(seed, Ordering::Relaxed);
    // SAFETY: no memory is involved.
    unsafe { libc::alarm(SECONDS_MAX) };
}

/// A way of running it begins.
pub(crate) fn runs(way: &'static str) {
    WAY.0.store(way.as_ptr().cast_mut(), Ordering::Relaxed);
    WAY.1.store(way.len(), Ordering::Relaxed);
}

/// No program is running.
pub(crate) fn ends() {
    // SAFETY: no memory is involved.
    unsafe { libc::alarm(0) };
}

extern "C" fn died(signal: libc::c_int) {
    let mut text = *b"\nhostile guest: signal 00, program 0x0000000000000000, ";
    text[23] = b'0' + (signal / 10) as u8;
    text[24] = b'0' + (signal % 10) as u8;
    let seed = SEED.load(Ordering::Relaxed);
    for n in 0..16 {
        text[37 + n] = b"0123456789abcdef"[(seed >> (60 - 4 * n) & 15) as usize];
    }
    let (way, len) = (WAY.0.load(Ordering::Relaxed), WAY.1.load(Ordering::Relaxed));
    // SAFETY: as many bytes as there are, of the array and of a string that lives forever (or none); both calls are allowed in a
    // handler.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::write(2, way.cast(), len);
        libc::write(2, b"\n".as_ptr().cast(), 1);
        libc::abort();
    }
}
