//! When the test process dies or hangs, prints the seed of the generated guest program that is running.
//!
//! The signal handler writes the seed and the way in which the program runs, e.g. interpreted
//! ([`crate::machine::Way`]), and ends the process.
#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Time limit for one guest program in seconds. A guest program that takes longer counts as hanging.
const SECONDS_MAX: u32 = 30;

static SEED: AtomicU64 = AtomicU64::new(0);
/// Name of the way in which the program runs: its address and length.
static WAY: (AtomicPtr<u8>, AtomicUsize) = (AtomicPtr::new(std::ptr::null_mut()), AtomicUsize::new(0));

/// Records that the program with this seed begins. Starts the time limit.
pub(crate) fn begins(seed: u64) {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        for signal in [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGALRM]
        {
            // SAFETY: `action` is valid, and `died` calls only functions that a signal handler may call.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = died as *const () as usize;
                action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    });
    SEED.store(seed, Ordering::Relaxed);
    // SAFETY: `alarm` accesses no memory.
    unsafe { libc::alarm(SECONDS_MAX) };
}

/// Records the way in which the program runs.
pub(crate) fn runs(way: &'static str) {
    WAY.0.store(way.as_ptr().cast_mut(), Ordering::Relaxed);
    WAY.1.store(way.len(), Ordering::Relaxed);
}

/// Ends the time limit, because the program has ended.
pub(crate) fn ends() {
    // SAFETY: `alarm` accesses no memory.
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
    // SAFETY: the first length is that of the array. The second is that of a string that lives forever, or 0 without a
    // string. A signal handler may call both functions.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::write(2, way.cast(), len);
        libc::write(2, b"\n".as_ptr().cast(), 1);
        libc::abort();
    }
}
