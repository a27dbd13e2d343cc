//! Numbers of edges: each module of a process has a range of them.
//!
//! Everett gets the module's name and the number within it, which are the same in every process that runs the program.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::{port, sys};

/// Maximum number of modules of a process. Edges of further modules are not reported.
const MODULES_MAX: usize = 64;
/// Maximum length of a module's name, in bytes; of longer ones, the end counts.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Maximum number of edges of a process. Guards have 32 bits.
const EDGES_MAX: u64 = 1 << 31;
/// Maximum length of the path of a program, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// A module.
struct Module {
    /// Number of its first edge in this process.
    first: AtomicU64,
    /// Number after its last edge; 0 while the other fields are being written.
    end: AtomicU64,
    length: AtomicUsize,
    name: UnsafeCell<[u8; NAME_BYTES_MAX]>,
}

// SAFETY: a module's name is written once, by the thread that claimed the module, and read only after `end` was stored.
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
/// Number of the next edge.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Adds a module with this number of edges, and returns the number of its first edge.
///
/// # Safety
/// `symbols` must be null or point to a text that ends in a zero byte.
pub(crate) unsafe fn module(edges: u64, symbols: *const u8) -> u64 {
    let mut length = 0;
    // SAFETY: the text is read up to its zero byte.
    while !symbols.is_null() && unsafe { symbols.add(length).read() } != 0 {
        length += 1;
    }
    if length == 0 {
        return of_program(edges);
    }
    // SAFETY: the text has `length` bytes before its zero byte.
    add(edges, base(unsafe { slice::from_raw_parts(symbols, length) }))
}

/// Numbers the guards between two addresses as the edges of a new module, unless they have numbers.
///
/// # Safety
/// `start` and `stop` must be the bounds of an array of guards that nothing else accesses meanwhile.
pub(crate) unsafe fn guards(start: *mut u32, stop: *mut u32) {
    if start.is_null() || start >= stop {
        return;
    }
    // SAFETY: both are bounds of one array.
    let count = unsafe { stop.offset_from(start) } as u64;
    // SAFETY: the array has an element at its start.
    if unsafe { start.read() } != 0 {
        return;
    }
    let first = of_program(count);
    let mut number = 0;
    while number < count && first + number < EDGES_MAX {
        // SAFETY: the array has `count` elements. Guards are numbered from 1, because 0 stands for none.
        unsafe { start.add(number as usize).write((first + number + 1) as u32) };
        number += 1;
    }
}

/// Reports the edge of a guard, and clears the guard: it is reported once.
///
/// # Safety
/// `guard` must be null or a guard of a module.
pub(crate) unsafe fn guard(guard: *mut u32) {
    // SAFETY: the pointer is null or that of a guard.
    if guard.is_null() || unsafe { guard.read_volatile() } == 0 {
        return;
    }
    // SAFETY: as above. Two threads that are here at once report the edge twice, which means the same as once.
    let number = unsafe {
        let number = guard.read_volatile();
        guard.write_volatile(0);
        number
    };
    if number > 0 {
        reached(u64::from(number) - 1);
    }
}

/// Reports an edge by its number in this process.
pub(crate) fn reached(edge: u64) {
    for module in &MODULES {
        let end = module.end.load(Ordering::Acquire);
        let first = module.first.load(Ordering::Acquire);
        if edge >= first && edge < end {
            let length = module.length.load(Ordering::Acquire);
            // SAFETY: `end` is stored after the name, which is not written again, and the name has `length` bytes.
            let name = unsafe { slice::from_raw_parts(module.name.get().cast::<u8>(), length) };
            return port::edge((edge - first) as u32, name);
        }
    }
}

/// Adds a module that is named as the program.
fn of_program(edges: u64) -> u64 {
    let mut path = MaybeUninit::uninit();
    let path: &mut [u8; PATH_BYTES_MAX] = sys::zeroed(&mut path);
    let length = sys::link(b"/proc/self/exe\0", path);
    add(edges, base(path.get(..length).unwrap_or_default()))
}

/// Returns the name of the file at a path.
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
    // SAFETY: this thread claimed the module, and no other thread reads the name before `end` is stored.
    sys::copy(name, unsafe { &mut *module.name.get() });
    module.length.store(name.len(), Ordering::Release);
    module.first.store(first, Ordering::Release);
    module.end.store(first + edges, Ordering::Release);
    first
}
