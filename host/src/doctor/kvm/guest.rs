//! A small guest as data: 64-bit code in ring 0 or ring 3, on tables of its own.
//!
//! Memory is one large page that everybody may write. Code ends with a mark in R15 and HLT, which in ring 3 is #GP. An
//! exception or interrupt notes its vector and halts.

use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister, seg};

/// Bytes of guest memory: one large page.
pub const RAM_BYTES: usize = 2 << 20;
/// Where code lies.
pub const CODE: u64 = 0x1_0000;
/// A page for guests to write, and the one that nobody writes.
pub const DATA: u64 = 0x2_0000;
/// What HLT raises in ring 3: how its code ends. (Not INT: there are hosts that cannot execute it.)
pub const END_VECTOR: u8 = 13;
/// In R15 at the end of code that was executed to its end.
pub const END_MARK: u64 = 0x600d;
/// The vector that [`Guest::interrupt`] asks for.
pub const INTERRUPT_VECTOR: u8 = 0x41;

const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
const TSS: u64 = 0x3000;
/// One byte: the vector that came, plus one.
const VECTOR: u64 = 0x3800;
const STUBS: u64 = 0x4000;
const STUB_BYTES: u64 = 16;
/// Where SYSCALL goes: it notes CS in EBX and returns.
const SYSCALL: u64 = 0x3c00;
const PML4: u64 = 0x5000;
const PDPT: u64 = 0x6000;
const PD: u64 = 0x7000;
/// The stacks of ring 0 and of ring 3 end here, and are a page each.
const STACK: u64 = 0x9000;
const USER_STACK: u64 = 0xb000;

const PRESENT_WRITABLE_USER: u64 = 7;
const LARGE: u64 = 0x80;
// Linux's: a software KVM may run ring 3 by the processor with these only.
const KERNEL_CS: u16 = 0x10;
const KERNEL_SS: u16 = 0x18;
const USER_SS: u16 = 0x2b;
const USER_CS: u16 = 0x33;
/// Another descriptor of the same kind.
const OTHER_USER_CS: u16 = 0x3b;
const TSS_SELECTOR: u16 = 0x40;
const TSS_LIMIT: u16 = 0x67;
const VECTORS: u64 = 256;

/// Where code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// As a kernel.
    Zero,
    /// As a program.
    Three,
    /// As a program, with a code selector that is not Linux's.
    ThreeOtherwise,
}

/// What a guest's TSC is held at.
pub const HELD_TSC: u64 = 1 << 40;

/// What is done with the guest's TSC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tsc {
    /// Whatever the host does by itself.
    Free,
    /// It is slowed down and held at [`HELD_TSC`].
    Slow,
}

/// A guest and what is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// What it is for, in a word: a scripted host tells guests apart by it.
    pub name: &'static str,
    /// Where its code runs.
    pub ring: Ring,
    /// Its code, without an end.
    pub code: Vec<u8>,
    /// RCX at the beginning, for loops.
    pub rcx: u64,
    /// RAX at the beginning.
    pub rax: u64,
    /// Bits of CR4 to change.
    pub cr4: u64,
    /// Bits of RFLAGS to change.
    pub rflags: u64,
    /// What is done with its TSC.
    pub tsc: Tsc,
    /// Whether no MSR access is let through.
    pub filter_msrs: bool,
    /// Whether an interrupt is injected as soon as it can be taken.
    pub interrupt: bool,
    /// A raw performance event to count while it runs, and after how many the host wants control back.
    pub event: Option<(u64, Option<u64>)>,
}

impl Guest {
    /// An ordinary guest of this code.
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
            filter_msrs: false,
            interrupt: false,
            event: None,
        }
    }

    /// A loop with two instructions a round, of which one is a conditional branch.
    #[must_use]
    pub fn spinning(name: &'static str, ring: Ring, rounds: u64) -> Guest {
        let code = [
            0x48, 0xff, 0xc9, // dec rcx
            0x75, 0xfb, // jnz back
        ];
        Guest { rcx: rounds, ..Guest::new(name, ring, &code) }
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> Vec<u8> {
        let mut image = Image(vec![0; RAM_BYTES]);
        image.put(PML4, PDPT | PRESENT_WRITABLE_USER);
        image.put(PDPT, PD | PRESENT_WRITABLE_USER);
        image.put(PD, LARGE | PRESENT_WRITABLE_USER);
        image.put(GDT + u64::from(KERNEL_CS), 0x00af_9b00_0000_ffff);
        image.put(GDT + u64::from(KERNEL_SS), 0x00cf_9300_0000_ffff);
        image.put(GDT + u64::from(USER_SS & !3), 0x00cf_f300_0000_ffff);
        image.put(GDT + u64::from(USER_CS & !3), 0x00af_fb00_0000_ffff);
        image.put(GDT + u64::from(OTHER_USER_CS & !3), 0x00af_fb00_0000_ffff);
        image.put(GDT + u64::from(TSS_SELECTOR), u64::from(TSS_LIMIT) | TSS << 16 | 0x8b << 40);
        image.put(TSS + 4, STACK);
        for vector in 0..VECTORS {
            let stub = STUBS + vector * STUB_BYTES;
            // Open to INT of ring 3.
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

    /// The vector that was noted in such memory.
    #[must_use]
    pub fn vector(memory: &[u8]) -> Option<u8> {
        memory.get(VECTOR as usize)?.checked_sub(1)
    }

    /// Its registers.
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
