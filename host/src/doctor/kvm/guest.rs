//! Data of a probe guest, i.e. of a few instructions that test one property of `/dev/kvm`. The guest runs 64-bit code
//! in ring 0 or ring 3, with its own page tables and descriptor tables.
//!
//! Memory is one large page, which the page tables map at four addresses. Both rings may write to it at all four,
//! unless [`Guest::kernel_pages`] reserves the first mapping for ring 0. Code ends by setting R15 to [`END_MARK`] and
//! executing HLT, which raises #GP in ring 3. Handlers of exceptions and interrupts record their vector and halt.

use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister, seg};

/// Size of guest memory in bytes: one large page.
pub const RAM_BYTES: usize = 2 << 20;
/// Number of bytes at the start of memory that guests use. The bytes after them stay zero.
pub const USED_BYTES: usize = 256 << 10;
/// Guest-physical address of the code.
pub const CODE: u64 = 0x1_0000;
/// Guest-physical address of a page that guests write. Guests only read the next page.
pub const DATA: u64 = 0x2_0000;
/// Vector of the exception that HLT raises in ring 3, which ends the code. Code does not end with INT, because some
/// hosts cannot execute it.
pub const END_VECTOR: u8 = 13;
/// Guest-virtual address at which a 1 GiB page maps the memory again.
pub const HUGE: u64 = 1 << 30;
/// Guest-virtual address at which the memory is mapped again without the right to execute.
pub const NO_EXECUTE: u64 = 2 << 20;
/// Guest-virtual address at which the memory is mapped again. Both rings may always access this mapping.
pub const FOR_PROGRAMS: u64 = 4 << 20;
/// Guest-virtual address of a small page. At first it maps [`DATA`].
pub const SWAPPED: u64 = 6 << 20;
/// Guest-physical address of the page table entry for [`SWAPPED`].
pub const SWAPPED_ENTRY: u64 = 0xc000;
/// Guest-virtual address to which both rings may write. It maps to no memory, so each store exits to Everett.
pub const DEVICE: u64 = 8 << 20;
/// Value of R15 after the code has run to its end.
pub const END_MARK: u64 = 0x600d;
/// Vector of the interrupt that a guest with [`Guest::interrupt`] gets.
pub const INTERRUPT_VECTOR: u8 = 0x41;

const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const TSS: u64 = 0x3000;
/// Address of a byte with the vector of the exception or interrupt that occurred, plus one. Zero if none occurred.
const VECTOR: u64 = 0x3800;
const STUBS: u64 = 0x4000;
const STUB_BYTES: u64 = 16;
/// Address of the SYSCALL handler, which copies CS to EBX and returns.
const SYSCALL: u64 = 0x3c00;
const PML4: u64 = 0x5000;
const PDPT: u64 = 0x6000;
const PD: u64 = 0x7000;
/// Tops of the stacks of ring 0 and ring 3. Each stack has one page.
const STACK: u64 = 0x9000;
const USER_STACK: u64 = 0xb000;

/// Bits of a page table entry: present, writable, accessible to both rings.
pub const PRESENT_WRITABLE_USER: u64 = 7;
const USER: u64 = 4;
const LARGE: u64 = 0x80;
const EXECUTE_DISABLE: u64 = 1 << 63;
// The selectors are those of Linux. An emulated `/dev/kvm` may run ring 3 on the processor itself, and may then accept
// no other selectors.
const KERNEL_CS: u16 = 0x10;
const KERNEL_SS: u16 = 0x18;
const USER_SS: u16 = 0x2b;
const USER_CS: u16 = 0x33;
/// Selector of a second code descriptor for ring 3, with the same content.
const OTHER_USER_CS: u16 = 0x3b;
const TSS_SELECTOR: u16 = 0x40;
const TSS_LIMIT: u16 = 0x67;
const VECTORS: u64 = 256;

/// Privilege level of a guest, and its code selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// Ring 0, in which a kernel runs.
    Zero,
    /// Ring 3, in which programs run.
    Three,
    /// Ring 3 with a code selector that Linux does not use.
    ThreeOtherwise,
}

/// Value at which the host holds the TSC of a guest with [`Tsc::Slow`].
pub const HELD_TSC: u64 = 1 << 40;

/// Behaviour of the guest's TSC on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tsc {
    /// The TSC runs as KVM provides it by default.
    Free,
    /// The host slows the TSC down, so that the TSC stays at [`HELD_TSC`] while the guest runs.
    Slow,
}

/// A probe guest: its code, its initial registers, and the conditions under which it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Name of the guest. Scripted hosts, with which tests imitate other hardware, recognise a guest by its name.
    pub name: &'static str,
    /// Ring in which the code runs.
    pub ring: Ring,
    /// Machine code without the sequence that ends it. [`Guest::memory`] appends this sequence.
    pub code: Vec<u8>,
    /// Initial value of RCX, often the number of passes of the guest's loop.
    pub rcx: u64,
    /// Initial value of RAX.
    pub rax: u64,
    /// Bits of CR4 to invert in the initial value.
    pub cr4: u64,
    /// Bits of RFLAGS to invert in the initial value.
    pub rflags: u64,
    /// Behaviour of the guest's TSC on the host.
    pub tsc: Tsc,
    /// True if only ring 0 may access the first mapping of memory, as with a kernel's own pages. Both rings may access
    /// the other mappings, such as [`FOR_PROGRAMS`].
    pub kernel_pages: bool,
    /// True if every MSR access of the guest exits to Everett.
    pub filter_msrs: bool,
    /// True if the host injects an interrupt as soon as the guest can take it.
    pub interrupt: bool,
    /// True if the host, after each store to [`DEVICE`], writes a new value to another page and maps this page at
    /// [`SWAPPED`].
    pub swaps: bool,
    /// Raw performance event to count while the guest runs. The second number, if given, is the count at which the
    /// counter stops the guest.
    pub event: Option<(u64, Option<u64>)>,
}

impl Guest {
    /// Creates a guest with this code and default conditions.
    #[must_use]
    pub fn new(name: &'static str, ring: Ring, code: &[u8]) -> Guest {
        Guest {
            name,
            ring,
            code: code.to_vec(),
            rcx: 0,
            rax: 0,
            cr4: 0,
            rflags: 0,
            tsc: Tsc::Free,
            kernel_pages: false,
            filter_msrs: false,
            interrupt: false,
            swaps: false,
            event: None,
        }
    }

    /// Creates a guest that executes a loop of two instructions `rounds` times. One of them is a conditional branch.
    #[must_use]
    pub fn spinning(name: &'static str, ring: Ring, rounds: u64) -> Guest {
        let code = [
            0x48, 0xff, 0xc9, // dec rcx
            0x75, 0xfb, // jnz back
        ];
        Guest { rcx: rounds, ..Guest::new(name, ring, &code) }
    }

    /// Returns the guest's initial memory, [`RAM_BYTES`] bytes.
    #[must_use]
    pub fn memory(&self) -> Vec<u8> {
        let mut image = Image(vec![0; RAM_BYTES]);
        image.put(PML4, PDPT | PRESENT_WRITABLE_USER);
        image.put(PDPT, PD | PRESENT_WRITABLE_USER);
        let owner = if self.kernel_pages { USER } else { 0 };
        image.put(PD, LARGE | (PRESENT_WRITABLE_USER ^ owner));
        image.put(PDPT + HUGE / (1 << 30) * 8, LARGE | PRESENT_WRITABLE_USER);
        image.put(PD + NO_EXECUTE / (2 << 20) * 8, EXECUTE_DISABLE | LARGE | PRESENT_WRITABLE_USER);
        image.put(PD + FOR_PROGRAMS / (2 << 20) * 8, LARGE | PRESENT_WRITABLE_USER);
        image.put(PD + SWAPPED / (2 << 20) * 8, SWAPPED_ENTRY | PRESENT_WRITABLE_USER);
        image.put(PD + DEVICE / (2 << 20) * 8, DEVICE | LARGE | PRESENT_WRITABLE_USER);
        image.put(SWAPPED_ENTRY, DATA | PRESENT_WRITABLE_USER);
        image.put(GDT + u64::from(KERNEL_CS), 0x00af_9b00_0000_ffff);
        image.put(GDT + u64::from(KERNEL_SS), 0x00cf_9300_0000_ffff);
        image.put(GDT + u64::from(USER_SS & !3), 0x00cf_f300_0000_ffff);
        image.put(GDT + u64::from(USER_CS & !3), 0x00af_fb00_0000_ffff);
        image.put(GDT + u64::from(OTHER_USER_CS & !3), 0x00af_fb00_0000_ffff);
        image.put(GDT + u64::from(TSS_SELECTOR), u64::from(TSS_LIMIT) | TSS << 16 | 0x8b << 40);
        image.put(TSS + 4, STACK);
        for vector in 0..VECTORS {
            let stub = STUBS + vector * STUB_BYTES;
            // A DPL of 3 allows INT in ring 3.
            image.put(IDT + vector * 16, stub & 0xffff | u64::from(KERNEL_CS) << 16 | 0xee << 40);
            let mut code = vec![0xc6, 0x04, 0x25]; // mov byte [VECTOR], vector + 1
            code.extend((VECTOR as u32).to_le_bytes());
            code.extend([(vector as u8).wrapping_add(1), 0xf4]); // hlt
            image.bytes(stub, &code);
        }
        image.bytes(SYSCALL, &[0x8c, 0xcb, 0x48, 0x0f, 0x07]); // mov ebx, cs; sysretq
        image.bytes(CODE, &self.code);
        let mut end = vec![0x41, 0xbf]; // mov r15d, END_MARK
        end.extend((END_MARK as u32).to_le_bytes());
        end.push(0xf4); // hlt
        image.bytes(CODE + self.code.len() as u64, &end);
        image.0
    }

    /// Returns the vector that the guest has recorded in its memory, if any.
    #[must_use]
    pub fn vector(memory: &[u8]) -> Option<u8> {
        memory.get(VECTOR as usize)?.checked_sub(1)
    }

    /// Returns the quadword on top of the guest's stack. Returns 0 if the stack pointer is not in the guest's memory.
    #[must_use]
    pub fn top(memory: &[u8], stack_pointer: u64) -> u64 {
        let bytes = usize::try_from(stack_pointer).ok().and_then(|at| memory.get(at..)?.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the guest's initial registers.
    #[must_use]
    pub fn registers(&self) -> CpuState {
        let mut s = CpuState { rip: CODE, cr3: PML4, efer: 0xd01, ..CpuState::default() };
        s.gpr[0] = self.rax;
        s.gpr[1] = self.rcx;
        s.gpr[4] = STACK - 0x100;
        s.cr4 ^= self.cr4;
        s.rflags ^= self.rflags;
        s.msrs.lstar = SYSCALL;
        s.msrs.star = u64::from(KERNEL_CS) << 32 | u64::from(USER_CS - 16) << 48;
        s.gdtr = TableRegister { base: GDT, limit: 0xfff };
        s.idtr = TableRegister { base: IDT, limit: 0xfff };
        s.tr = Segment { selector: TSS_SELECTOR, base: TSS, limit: u32::from(TSS_LIMIT), access: 0x8b };
        s.seg[seg::CS].selector = KERNEL_CS;
        for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
            s.seg[which].selector = KERNEL_SS;
        }
        if self.ring != Ring::Zero {
            s.gpr[4] = USER_STACK;
            let selector = if self.ring == Ring::Three { USER_CS } else { OTHER_USER_CS };
            s.seg[seg::CS] = Segment { selector, base: 0, limit: u32::MAX, access: 0xa0fb };
            for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
                s.seg[which] = Segment { selector: USER_SS, base: 0, limit: u32::MAX, access: 0xc0f3 };
            }
        }
        s
    }
}

struct Image(Vec<u8>);

impl Image {
    fn bytes(&mut self, at: u64, bytes: &[u8]) {
        self.0[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }
    fn put(&mut self, at: u64, value: u64) {
        self.bytes(at, &value.to_le_bytes());
    }
}
