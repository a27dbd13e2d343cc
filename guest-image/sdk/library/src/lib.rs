//! `libvoidstar.so`: the library that programs load at run time to use the SDK.
//!
//! The library depends on no other library. It makes system calls itself, so one file serves programs with glibc, with
//! musl or without a C library, in any language that can load a shared object.
//!
//! - this file: the functions that programs call, with their declarations in C
//! - [`port`]: the connection to Everett, and the packets
//! - [`coverage`]: the numbers of edges
//! - [`sys`]: system calls
//!
//! Every function writes its data to a port of the machine before it returns. So the data reaches Everett even if the
//! program is killed right after the call.
//!
//! **Invariants.** No function fails, blocks for long or changes `errno`. Without Everett, the functions report
//! nothing. They neither allocate nor lock, and use a few kilobytes of stack, so any thread may call them at any time.

#![no_std]
// Without this attribute, the compiler could replace loops by calls of `memcpy`, which does not exist here.
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

/// Does nothing, because the library has no buffer. `void fuzz_flush(void);`
#[unsafe(no_mangle)]
pub extern "C" fn fuzz_flush() {}

/// Returns a random number from the machine's kernel. `uint64_t fuzz_get_random(void);`
#[unsafe(no_mangle)]
pub extern "C" fn fuzz_get_random() -> u64 {
    sys::random()
}

/// Announces a module with `edges` edges. Returns the number of the module's first edge in this process.
/// `uint64_t init_coverage_module(size_t edges, const char *symbols);`
///
/// # Safety
/// `symbols` must be null or point to a text that ends in a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn init_coverage_module(edges: usize, symbols: *const c_char) -> u64 {
    // SAFETY: the caller passes a text that ends in a zero byte, or null.
    unsafe { coverage::module(edges as u64, symbols.cast()) }
}

/// Reports an edge. Always returns false, which means that the program need not report the edge again.
/// `bool notify_coverage(size_t edge);`
#[unsafe(no_mangle)]
pub extern "C" fn notify_coverage(edge: usize) -> bool {
    coverage::reached(edge as u64);
    false
}

/// Gives each guard of a module the number of its edge (clang's `-fsanitize-coverage=trace-pc-guard`).
///
/// # Safety
/// `start` and `stop` must be the bounds of an array of guards. Nothing else may access the array during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard_init(start: *mut u32, stop: *mut u32) {
    // SAFETY: the caller passes the bounds of an array of guards.
    unsafe { coverage::guards(start, stop) }
}

/// Reports the edge of a guard once in each process (clang's `-fsanitize-coverage=trace-pc-guard`).
///
/// # Safety
/// `guard` must be null or a guard of a module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_trace_pc_guard(guard: *mut u32) {
    // SAFETY: the caller passes a guard or null.
    unsafe { coverage::guard(guard) }
}

/// Reports the edge of a guard, like [`__sanitizer_cov_trace_pc_guard`]. Ignores the address of the edge, because the
/// address differs between processes.
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
