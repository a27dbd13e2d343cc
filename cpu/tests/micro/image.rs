//! Builds guests: RAM with page tables, descriptor tables, handlers and code, and the initial registers.

use everett_assembler::*;
use everett_cpu::state::{Segment, TableRegister, seg};
use everett_cpu::{CpuModel, CpuState};

use super::harness::Outcome;

pub(crate) const RAM_BYTES: usize = 1 << 20;

pub(crate) const GDT: u64 = 0x1000;
pub(crate) const IDT: u64 = 0x2000;
pub(crate) const TSS: u64 = 0x3000;
const LOG: u64 = 0x4000;
const STUBS: u64 = 0x6000;
const COMMON: u64 = 0x7000;
const EXIT: u64 = 0x7f00;
pub(crate) const PML4: u64 = 0x8000;
/// Start of the page tables, which end below `CODE`.
const TABLES: u64 = 0x9000;
/// Start of the code of ring 0.
pub(crate) const CODE: u64 = 0x2_0000;
/// Start of the pages that ring 3 can access. They end at `USER_END`.
pub(crate) const USER: u64 = 0x3_0000;
pub(crate) const USER_STACK: u64 = 0x3_f000;
const USER_END: u64 = 0x4_0000;
pub(crate) const STACK: u64 = 0x4_f000;
/// RSP0 of the TSS. The stack of ring 0 is the page below this address.
pub(crate) const RING0_STACK: u64 = 0x5_1000;
pub(crate) const IST1: u64 = 0x5_3000;
pub(crate) const IST2: u64 = 0x5_5000;
/// Start of memory that each test uses as it likes.
pub(crate) const DATA: u64 = 0x6_0000;
/// A linear address in another part of the address space, where tests map pages of their own.
pub(crate) const ELSEWHERE: u64 = 0x80_0000_0000;

pub(crate) const KERNEL_CS: u16 = 0x08;
pub(crate) const KERNEL_SS: u16 = 0x10;
pub(crate) const USER_CS_32: u16 = 0x1b;
pub(crate) const USER_SS: u16 = 0x23;
pub(crate) const USER_CS: u16 = 0x2b;
pub(crate) const TSS_SELECTOR: u16 = 0x30;
/// Selector of the first descriptor that tests define themselves.
pub(crate) const FREE_SELECTOR: u16 = 0x40;

pub(crate) const KERNEL_CODE_DESCRIPTOR: u64 = 0x00af_9b00_0000_ffff;
pub(crate) const KERNEL_DATA_DESCRIPTOR: u64 = 0x00cf_9300_0000_ffff;
pub(crate) const USER_CODE_32_DESCRIPTOR: u64 = 0x00cf_fb00_0000_ffff;
pub(crate) const USER_CODE_DESCRIPTOR: u64 = 0x00af_fb00_0000_ffff;
pub(crate) const USER_DATA_DESCRIPTOR: u64 = 0x00cf_f300_0000_ffff;
const TSS_LIMIT: u16 = 0x67;

/// Bits of page table entries: present, writable and so on.
pub(crate) const P: u64 = 1;
pub(crate) const W: u64 = 2;
pub(crate) const U: u64 = 4;
pub(crate) const A: u64 = 0x20;
pub(crate) const D: u64 = 0x40;
pub(crate) const LARGE: u64 = 0x80;
pub(crate) const NX: u64 = 1 << 63;

pub(crate) const IF: u64 = 1 << 9;
pub(crate) const TF: u64 = 1 << 8;
pub(crate) const RF: u64 = 1 << 16;
pub(crate) const AC: u64 = 1 << 18;

/// Record of an exception or interrupt, written by its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) vector: u64,
    pub(crate) error: u64,
    pub(crate) rip: u64,
    pub(crate) cs: u64,
    pub(crate) rflags: u64,
    pub(crate) rsp: u64,
    pub(crate) ss: u64,
    pub(crate) cr2: u64,
    /// Address of the pushed RIP. An error code, if there is one, is below it.
    pub(crate) frame: u64,
}

/// Vector whose handler halts. INT can raise it from any ring.
pub(crate) const EXIT_VECTOR: u8 = 0xff;

const RECORD_WORDS: u64 = 9;

/// A guest before it runs.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) ram: Vec<u8>,
    pub(crate) state: CpuState,
    pub(crate) model: CpuModel,
    /// External interrupts: the earliest instruction count at which each comes, and its vector.
    pub(crate) interrupts: Vec<(u64, u8)>,
    /// Maximum number of instructions of the run.
    pub(crate) instructions_max: u64,
    /// True to run on a CPU that keeps stale TLB entries, a planted defect.
    pub(crate) leak_stale_translations: bool,
    tables: u64,
}

impl Guest {
    /// Creates a guest with all of RAM identity-mapped in 4 KiB pages and a handler for each vector. Ring 3 can access
    /// a part of RAM. The handler records the exception or interrupt. After a fault, the handler continues at R15, or
    /// halts if R15 is zero. After a trap or an interrupt, the handler continues at the return address.
    pub(crate) fn new() -> Guest {
        let mut g = Guest {
            ram: vec![0; RAM_BYTES],
            state: CpuState::default(),
            model: CpuModel::default(),
            interrupts: Vec::new(),
            instructions_max: 200_000,
            leak_stale_translations: false,
            tables: TABLES,
        };
        for at in (0..RAM_BYTES as u64).step_by(4096) {
            let user = if (USER..USER_END).contains(&at) { U } else { 0 };
            g.map(at, at, P | W | user);
        }
        g.descriptor(KERNEL_CS, KERNEL_CODE_DESCRIPTOR);
        g.descriptor(KERNEL_SS, KERNEL_DATA_DESCRIPTOR);
        g.descriptor(USER_CS_32, USER_CODE_32_DESCRIPTOR);
        g.descriptor(USER_SS, USER_DATA_DESCRIPTOR);
        g.descriptor(USER_CS, USER_CODE_DESCRIPTOR);
        g.descriptor(TSS_SELECTOR, u64::from(TSS_LIMIT) | (TSS & 0xff_ffff) << 16 | 0x8b << 40);
        g.put(TSS + 4, RING0_STACK);
        g.put(TSS + 0x24, IST1);
        g.put(TSS + 0x2c, IST2);
        g.put16(TSS + 102, TSS_LIMIT + 1);
        g.put(LOG, LOG + 16);
        for vector in 0..=255 {
            g.gate(vector, stub(vector), 0x8e, 0);
        }
        g.gate(EXIT_VECTOR, EXIT, 0xee, 0);
        g.code(EXIT, |a| a.hlt());
        g.handlers();
        g.registers();
        g
    }

    /// Returns a guest that executes this code in ring 0.
    pub(crate) fn in_ring_0(code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Guest {
        Guest::in_ring(0, code)
    }
    /// Returns a guest that executes this code in ring 3.
    pub(crate) fn in_ring_3(code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Guest {
        Guest::in_ring(3, code)
    }
    /// Returns a guest that executes this code in ring 0 or 3.
    pub(crate) fn in_ring(ring: u8, code: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> Guest {
        let mut g = Guest::new();
        let at = if ring == 3 { USER } else { CODE };
        if ring == 3 {
            g.start_in_ring_3(at);
        }
        g.code(at, code);
        g
    }

    fn registers(&mut self) {
        let s = &mut self.state;
        s.rip = CODE;
        s.gpr[4] = STACK;
        s.cr3 = PML4;
        s.efer = 0xd01;
        s.gdtr = TableRegister { base: GDT, limit: 0xfff };
        s.idtr = TableRegister { base: IDT, limit: 0xfff };
        s.tr = Segment { selector: TSS_SELECTOR, base: TSS, limit: u32::from(TSS_LIMIT), access: 0x8b };
        s.seg[seg::CS].selector = KERNEL_CS;
        for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
            s.seg[which].selector = KERNEL_SS;
        }
        s.msrs.star = 0x18 << 48 | u64::from(KERNEL_CS) << 32;
    }

    /// Sets the registers to start in ring 3 at `rip`.
    pub(crate) fn start_in_ring_3(&mut self, rip: u64) {
        let s = &mut self.state;
        s.rip = rip;
        s.gpr[4] = USER_STACK;
        s.seg[seg::CS] = Segment { selector: USER_CS, base: 0, limit: u32::MAX, access: 0xa0fb };
        for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
            s.seg[which] = Segment { selector: USER_SS, base: 0, limit: u32::MAX, access: 0xc0f3 };
        }
    }

    fn handlers(&mut self) {
        for vector in 0..=255u8 {
            let has_error = matches!(vector, 8 | 10..=14 | 17);
            self.code(stub(vector), |a| {
                if !has_error {
                    a.push(0)?;
                }
                a.push(i32::from(vector))?;
                a.jmp(COMMON)
            });
        }
        self.code(COMMON, |a| {
            let resume = a.create_label();
            let leave = a.create_label();
            a.push(rax)?;
            a.push(rbx)?;
            a.mov(rbx, qword_ptr(LOG))?;
            for word in 0..7 {
                a.mov(rax, qword_ptr(rsp + 16 + 8 * word))?;
                a.mov(qword_ptr(rbx + 8 * word), rax)?;
            }
            a.mov(rax, cr2)?;
            a.mov(qword_ptr(rbx + 56), rax)?;
            a.lea(rax, qword_ptr(rsp + 32))?;
            a.mov(qword_ptr(rbx + 64), rax)?;
            a.add(rbx, 8 * RECORD_WORDS as i32)?;
            a.mov(qword_ptr(LOG), rbx)?;
            // With RF set, an instruction does not trigger its breakpoint a second time.
            a.or(qword_ptr(rsp + 48), RF as i32)?;
            a.mov(rax, qword_ptr(rsp + 16))?;
            a.cmp(rax, 32)?;
            a.jae(leave)?;
            a.cmp(rax, 1)?;
            a.je(leave)?;
            a.cmp(rax, 3)?;
            a.je(leave)?;
            a.test(r15, r15)?;
            a.jnz(resume)?;
            a.hlt()?;
            a.set_label(resume)?;
            a.mov(qword_ptr(rsp + 32), r15)?;
            a.set_label(leave)?;
            a.pop(rbx)?;
            a.pop(rax)?;
            a.add(rsp, 16)?;
            a.iretq()
        });
    }

    /// Assembles code at an identity-mapped address. Returns the address after the code.
    pub(crate) fn code(&mut self, at: u64, f: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> u64 {
        self.code_for(at, at, f)
    }
    /// Assembles code that is stored at `gpa` and executed at `va`. Returns the guest-physical address after the code.
    pub(crate) fn code_for(
        &mut self,
        gpa: u64,
        va: u64,
        f: impl FnOnce(&mut Assembler) -> Result<(), Error>,
    ) -> u64 {
        let mut a = Assembler::new();
        f(&mut a).expect("the test's code can be assembled");
        let bytes = a.assemble(va).expect("the test's code can be encoded");
        self.bytes(gpa, &bytes)
    }
    /// Writes bytes. Returns the address after them.
    pub(crate) fn bytes(&mut self, gpa: u64, bytes: &[u8]) -> u64 {
        self.ram[gpa as usize..gpa as usize + bytes.len()].copy_from_slice(bytes);
        gpa + bytes.len() as u64
    }
    pub(crate) fn put(&mut self, gpa: u64, v: u64) {
        self.bytes(gpa, &v.to_le_bytes());
    }
    pub(crate) fn put16(&mut self, gpa: u64, v: u16) {
        self.bytes(gpa, &v.to_le_bytes());
    }
    pub(crate) fn word(&self, gpa: u64) -> u64 {
        u64::from_le_bytes(self.ram[gpa as usize..gpa as usize + 8].try_into().expect("eight bytes"))
    }

    /// Writes a descriptor into the GDT entry of a selector.
    pub(crate) fn descriptor(&mut self, selector: u16, v: u64) {
        self.put(GDT + u64::from(selector & 0xfff8), v);
    }
    /// Writes an IDT gate that leads to `target` in the kernel's code segment. `access` is P, DPL and type.
    pub(crate) fn gate(&mut self, vector: u8, target: u64, access: u8, ist: u8) {
        self.gate_with(vector, KERNEL_CS, target, access, ist);
    }
    pub(crate) fn gate_with(&mut self, vector: u8, selector: u16, target: u64, access: u8, ist: u8) {
        let low = target & 0xffff
            | u64::from(selector) << 16
            | u64::from(ist) << 32
            | u64::from(access) << 40
            | (target >> 16 & 0xffff) << 48;
        self.put(IDT + u64::from(vector) * 16, low);
        self.put(IDT + u64::from(vector) * 16 + 8, target >> 32);
    }

    /// Gives `vector`, an exception without an error code, a handler at `at` that records nothing. The handler counts
    /// in R8, adds the address of the fault to R9, and continues at R15.
    pub(crate) fn counting_handler(&mut self, vector: u8, at: u64) {
        self.gate(vector, at, 0x8e, 0);
        self.code(at, |a| {
            a.inc(r8)?;
            a.add(r9, qword_ptr(rsp))?;
            a.mov(qword_ptr(rsp), r15)?;
            a.iretq()
        });
    }
    /// Gives the handler of `vector` the stack below [`IST1`], the first in the TSS's interrupt stack table.
    pub(crate) fn on_ist1(&mut self, vector: u8) {
        self.gate(vector, stub(vector), 0x8e, 1);
    }
    /// Gives the handler of `vector` a stack of its own, which ends at `top`. It is the third stack (IST3) in the TSS's
    /// interrupt stack table.
    pub(crate) fn handler_stack(&mut self, vector: u8, top: u64) {
        self.gate(vector, stub(vector), 0x8e, 3);
        self.put(TSS + 0x34, top);
    }

    /// Allocates a page of zeroes for a page table. Returns its address.
    pub(crate) fn table(&mut self) -> u64 {
        let at = self.tables;
        assert!(at < CODE, "no room for page tables");
        self.tables += 4096;
        at
    }
    /// Allocates a page table and the two tables above it. Only entry 0 of each table is present, so the tables map one
    /// page, to `gpa`. Returns the address of the highest table, which the caller writes into an entry of a PML4.
    pub(crate) fn tables_of(&mut self, gpa: u64) -> u64 {
        let (pdpt, pd, pt) = (self.table(), self.table(), self.table());
        self.put(pdpt, pd | P | W);
        self.put(pd, pt | P | W);
        self.put(pt, gpa | P | W);
        pdpt
    }
    /// Returns the guest-physical address of the entry for `va` at `level` (4 is the PML4). Creates missing tables
    /// above the entry.
    pub(crate) fn entry(&mut self, va: u64, level: u32) -> u64 {
        let mut table = PML4;
        for l in (level + 1..=4).rev() {
            let at = table + (va >> (12 + 9 * (l - 1)) & 0x1ff) * 8;
            if self.word(at) & P == 0 {
                let new = self.table();
                self.put(at, new | P | W | U);
            }
            table = self.word(at) & 0x7f_ffff_f000;
        }
        table + (va >> (12 + 9 * (level - 1)) & 0x1ff) * 8
    }
    /// Maps a 4 KiB page.
    pub(crate) fn map(&mut self, va: u64, gpa: u64, flags: u64) {
        let at = self.entry(va, 1);
        self.put(at, gpa | flags);
    }

    /// Returns a device's answer to request number `n`.
    pub(crate) fn answer(&self, n: usize) -> u64 {
        0x1122_3344_5566_7788u64.rotate_left(8 * n as u32)
    }
}

/// Returns the address of a vector's handler.
pub(crate) fn stub(vector: u8) -> u64 {
    STUBS + u64::from(vector) * 16
}

/// Emits code that ends the guest from any ring.
pub(crate) fn exit(a: &mut Assembler) -> Result<(), Error> {
    a.int(i32::from(EXIT_VECTOR))
}

/// Emits code that copies RFLAGS to RBX. Uses the stack.
pub(crate) fn flags_to_rbx(a: &mut Assembler) -> Result<(), Error> {
    a.pushfq()?;
    a.pop(rbx)
}

pub(crate) fn sysretq(a: &mut Assembler) -> Result<(), Error> {
    a.db(&[0x48, 0x0f, 0x07])
}

/// Emits code that executes `body` `times` times. Uses ECX.
pub(crate) fn repeat(
    a: &mut Assembler,
    times: u32,
    body: impl FnOnce(&mut Assembler) -> Result<(), Error>,
) -> Result<(), Error> {
    let again = a.create_label();
    a.mov(ecx, times)?;
    a.set_label(again)?;
    body(a)?;
    a.dec(ecx)?;
    a.jnz(again)
}

/// Emits code that executes `body` for each number below `end`, which is in `counter`.
pub(crate) fn for_each_below(
    a: &mut Assembler,
    counter: Register,
    end: usize,
    body: impl FnOnce(&mut Assembler) -> Result<(), Error>,
) -> Result<(), Error> {
    let again = a.create_label();
    a.xor(counter, counter)?;
    a.set_label(again)?;
    body(a)?;
    a.inc(counter)?;
    a.cmp(counter, end as i32)?;
    a.jne(again)
}

/// Emits code that executes `body` `times` times. Before each time, R8 becomes a pseudo-random number, and RCX its 24
/// highest bits. Uses RAX, and counts in R11D.
pub(crate) fn repeat_at_random(
    a: &mut Assembler,
    seed: u64,
    times: u32,
    body: impl FnOnce(&mut Assembler) -> Result<(), Error>,
) -> Result<(), Error> {
    let again = a.create_label();
    a.mov(r8, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))?;
    a.mov(r11d, times)?;
    a.set_label(again)?;
    a.mov(rax, 6_364_136_223_846_793_005u64)?;
    a.imul_2(r8, rax)?;
    a.add(r8, 1)?;
    a.mov(rcx, r8)?;
    a.shr(rcx, 40)?;
    body(a)?;
    a.dec(r11d)?;
    a.jnz(again)
}

/// Emits code that sets a 32-bit register to bits of ECX: those of `mask` after a shift to the right.
pub(crate) fn bits_of_ecx(a: &mut Assembler, to: Register, shift: i32, mask: i32) -> Result<(), Error> {
    a.mov(to, ecx)?;
    if shift != 0 {
        a.shr(to, shift)?;
    }
    a.and(to, mask)
}

/// Emits code that executes `body`, and continues after it even if it faults. Uses R15.
pub(crate) fn survive(
    a: &mut Assembler,
    body: impl FnOnce(&mut Assembler) -> Result<(), Error>,
) -> Result<(), Error> {
    let next = a.create_label();
    a.lea(r15, ptr(next))?;
    body(a)?;
    a.set_label(next)
}

/// Returns the expected log: this vector and error code if `faults` is true, or else nothing.
pub(crate) fn fault_if(faults: bool, fault: (u64, u64)) -> Vec<(u64, u64)> {
    faults.then_some(fault).into_iter().collect()
}

impl Outcome {
    /// Returns the records of the handlers.
    pub(crate) fn log(&self) -> Vec<Record> {
        let end = self.word(LOG);
        (LOG + 16..end)
            .step_by(8 * RECORD_WORDS as usize)
            .map(|at| {
                let w = |n: u64| self.word(at + 8 * n);
                Record {
                    vector: w(0),
                    error: w(1),
                    rip: w(2),
                    cs: w(3),
                    rflags: w(4),
                    rsp: w(5),
                    ss: w(6),
                    cr2: w(7),
                    frame: w(8),
                }
            })
            .collect()
    }
    /// Returns the vectors and error codes of the log.
    pub(crate) fn vectors(&self) -> Vec<(u64, u64)> {
        self.log().iter().map(|r| (r.vector, r.error)).collect()
    }
}
