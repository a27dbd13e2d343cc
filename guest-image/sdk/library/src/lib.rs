//! `libvoidstar.so`: the library that programs with the SDK load at run time.
//!
//! It has no C library and no dependency. It makes system calls itself, so one file serves programs of glibc, of musl
//! and of neither, in any language that can load a shared object.
//!
//! - this file: the functions that programs call, with their C declarations
//! - [`port`]: the connection to Everett, and the packets that it carries
//! - [`coverage`]: numbers of edges
//! - [`sys`]: system calls
//!
//! Everything that a program passes is written to a port of the machine before the call returns. A program that is
//! killed in the next instruction has therefore said what it said.
//!
//! **Invariants.** No function fails, blocks for long or changes `errno`: without Everett they do nothing. No function
//! allocates, takes a lock or uses more than a few kilobytes of stack, so any thread may call them at any time.

#![no_std]
// The compiler must not replace loops by calls of `memcpy`, which this library does not have.
#![no_builtins]

mod coverage;
mod port;
mod sys;

use core::ffi::c_char;
use core::slice;

/// Passes a line of JSON to Everett. `void fuzz_json_data(const char *data, size_t size);`
///
/// # Safety
/// `data` must point to `size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fuzz_json_data(data: *const c_char, size: usize) {
    if !data.is_null() && size <= isize::MAX as usize {
        // SAFETY: the caller passes `size` readable bytes.
        port::line(unsafe { slice::from_raw_parts(data.cast(), size) });
    }
}

/// Does nothing, because nothing is buffered. `void fuzz_flush(void);`
#[unsafe(no_mangle)]
pub extern "C" fn fuzz_flush() {}

/// Returns a random number from the machine's kernel. `uint64_t fuzz_get_random(void);`
#[unsafe(no_mangle)]
pub extern "C" fn fuzz_get_random() -> u64 {
    sys::random()
}

/// Announces a module with `edges` edges, and returns the number of its first edge in this process.
/// `uint64_t init_coverage_module(size_t edges, const char *symbols);`
///
/// # Safety
/// `symbols` must be null or point to a text that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn init_coverage_module(edges: usize, symbols: *const c_char) -> u64 {
    // SAFETY: the caller passes a text that ends in a zero byte, or null.
    unsafe { coverage::module(edges as u64, symbols.cast()) }
}

/// Reports an edge. Returns true if it is to be reported again the next time, which it never is.
/// `bool notify_coverage(size_t edge);`
#[unsafe(no_mangle)]
pub extern "C" fn notify_coverage(edge: usize) -> bool {
    coverage::reached(edge as u64);
    false
}

/// Numbers the guards of a module (clang's `-fsanitize-coverage=trace-pc-guard`).
///
/// # Safety
/// `start` and `stop` must be the bounds of an array of guards that nothing else accesses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard_init(start: *mut u32, stop: *mut u32) {
    // SAFETY: the caller passes the bounds of an array of guards.
    unsafe { coverage::guards(start, stop) }
}

/// Reports the edge of a guard, once in each process (clang's `-fsanitize-coverage=trace-pc-guard`).
///
/// # Safety
/// `guard` must be null or a guard of a module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard(guard: *mut u32) {
    // SAFETY: the caller passes a guard or null.
    unsafe { coverage::guard(guard) }
}

/// Reports the edge of a guard, as [`__sanitizer_cov_trace_pc_guard`]. The address of the edge is not used, because it
/// is another one in each process.
///
/// # Safety
/// `guard` must be null or a guard of a module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard_internal(guard: *mut u32, _edge: u64) {
    // SAFETY: the caller passes a guard or null.
    unsafe { coverage::guard(guard) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::trap()
}
