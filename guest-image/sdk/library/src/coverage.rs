//! Numbers of the coverage edges in a process. Each instrumented module of the process has a range of numbers.
//!
//! Everett gets the module's name and the edge's number within the module. They are the same in every process.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{port, sys};

/// Maximum number of modules of a process. The library reports no edges of further modules.
const MODULES_MAX: usize = 64;
/// Maximum length of a module's name, in bytes. If a name is longer, the library uses its last bytes.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Maximum number of edges of a process. Any edge number fits into a guard, clang's 32-bit variable for an edge.
const EDGES_MAX: u64 = 1 << 31;
/// Maximum length of a program's path, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Module with its range of edge numbers.
struct Module {
    /// Number of the module's first edge in this process.
    first: AtomicU64,
    /// Number after the module's last edge. It is 0 until all other fields are written.
    end: AtomicU64,
    length: AtomicUsize,
    name: UnsafeCell<[u8; NAME_BYTES_MAX]>,
}

// SAFETY: only the thread that claimed a module writes the name. Other threads read it after `end` was stored.
unsafe impl Sync for Module {}

static MODULES: [Module; MODULES_MAX] = [const {
    Module {
        first: AtomicU64::new(0),
        end: AtomicU64::new(0),
        length: AtomicUsize::new(0),
        name: UnsafeCell::new([0; NAME_BYTES_MAX]),
    }
}; MODULES_MAX];
/// Number of claimed modules.
static CLAIMED: AtomicUsize = AtomicUsize::new(0);
/// Number for the first edge of the next module.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Adds a module with this number of edges. Returns the number of the module's first edge.
///
/// # Safety
/// `symbols` must be null or point to a text that ends in a zero byte.
pub(crate) unsafe fn module(edges: u64, symbols: *const u8) -> u64 {
    let mut length = 0;
    // SAFETY: this reads the text up to the zero byte at its end.
    while !symbols.is_null() && unsafe { symbols.add(length).read() } != 0 {
        length += 1;
    }
    if length == 0 {
        return of_program(edges);
    }
    // SAFETY: the text has `length` bytes before its zero byte.
    add(edges, base(unsafe { slice::from_raw_parts(symbols, length) }))
}

/// Gives the guards between two addresses the edge numbers of a new module, unless they are numbered already.
///
/// # Safety
/// `start` and `stop` must be the bounds of an array of guards. Nothing else may access the array during the call.
pub(crate) unsafe fn guards(start: *mut u32, stop: *mut u32) {
    if start.is_null() || start >= stop {
        return;
    }
    // SAFETY: both pointers are bounds of the same array.
    let count = unsafe { stop.offset_from(start) } as u64;
    // SAFETY: the array has an element at its start.
    if unsafe { start.read() } != 0 {
        return;
    }
    let first = of_program(count);
    let mut number = 0;
    while number < count && first + number < EDGES_MAX {
        // SAFETY: the array has `count` elements. Edges are numbered from 1 here, because 0 means no edge.
        unsafe { start.add(number as usize).write((first + number + 1) as u32) };
        number += 1;
    }
}

/// Reports the edge of a guard and clears the guard, so that the edge is reported once.
///
/// # Safety
/// `guard` must be null or a guard of a module.
pub(crate) unsafe fn guard(guard: *mut u32) {
    // SAFETY: the pointer is null or points to a guard.
    if guard.is_null() || unsafe { guard.read_volatile() } == 0 {
        return;
    }
    // SAFETY: the pointer is valid, as above. If two threads report the edge at once, Everett counts it once.
    let number = unsafe {
        let number = guard.read_volatile();
        guard.write_volatile(0);
        number
    };
    if number > 0 {
        reached(u64::from(number) - 1);
    }
}

/// Reports the edge with this number in this process.
pub(crate) fn reached(edge: u64) {
    for module in &MODULES {
        let end = module.end.load(Ordering::Acquire);
        let first = module.first.load(Ordering::Acquire);
        if edge >= first && edge < end {
            let length = module.length.load(Ordering::Acquire);
            // SAFETY: `end` was stored after the name. Nothing writes the name again, and it has `length` bytes.
            let name = unsafe { slice::from_raw_parts(module.name.get().cast::<u8>(), length) };
            return port::edge((edge - first) as u32, name);
        }
    }
}

/// Adds a module. The module's name is the file name of the program.
fn of_program(edges: u64) -> u64 {
    let mut path = MaybeUninit::uninit();
    let path: &mut [u8; PATH_BYTES_MAX] = sys::zeroed(&mut path);
    let length = sys::link(b"/proc/self/exe\0", path);
    add(edges, base(path.get(..length).unwrap_or_default()))
}

/// Returns the last component of a path.
fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

fn add(edges: u64, name: &[u8]) -> u64 {
    let edges = if edges < EDGES_MAX { edges } else { EDGES_MAX };
    let first = NEXT.fetch_add(edges, Ordering::AcqRel);
    let claimed = CLAIMED.fetch_add(1, Ordering::AcqRel);
    let (Some(module), true) = (MODULES.get(claimed), first < EDGES_MAX) else {
        CLAIMED.store(MODULES_MAX, Ordering::Release);
        return first;
    };
    let name = name.get(name.len().saturating_sub(NAME_BYTES_MAX)..).unwrap_or_default();
    // SAFETY: only this thread claimed the module. Other threads do not read the name before `end` is stored.
    sys::copy(name, unsafe { &mut *module.name.get() });
    module.length.store(name.len(), Ordering::Release);
    module.first.store(first, Ordering::Release);
    module.end.store(first + edges, Ordering::Release);
    first
}
