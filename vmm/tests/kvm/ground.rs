//! Environment of the test programs: memory, page tables, descriptors, and handlers that record an exception or
//! interrupt and continue.

use everett_assembler::*;
use everett_cpu::CpuState;
use everett_cpu::state::{Segment, TableRegister, seg};

use crate::common::{KERNEL_CS, KERNEL_SS, TSS_SELECTOR, descriptors, user_segments};

pub(crate) const RAM_BYTES: usize = 1 << 20;
const GDT: u64 = 0x1000;
const IDT: u64 = 0x2000;
pub(crate) const IDT_LIMIT: u32 = 0xfff;
const TSS: u64 = 0x3000;
/// Start of the page tables. Tests do not compare their accessed and dirty bits.
pub(crate) const TABLES: u64 = 0x4000;
pub(crate) const TABLES_END: u64 = 0x8000;
const STUBS: u64 = 0x8000;
const COMMON: u64 = 0x9800;
pub(crate) const SYSCALL: u64 = 0x9c00;
/// Address of a pointer to the place for the next record of an exception or interrupt. The records follow the pointer.
const LOG: u64 = 0x1_0000;
/// Start of the programs' code. Ring 3 can access only the pages from here on.
pub(crate) const CODE: u64 = 0x4_0000;
/// Start of the programs' data. Both rings may write all of it.
pub(crate) const DATA: u64 = 0x8_0000;
pub(crate) const DATA_BYTES: u64 = 0x4000;
const STACK: u64 = 0xa_0000;
const USER_STACK: u64 = 0xb_0000;
const RING_0_STACK: u64 = 0xc_0000;
/// Start of a page of device addresses.
pub(crate) const DEVICE: u64 = 0x10_0000;
/// A store to this address ends a program.
pub(crate) const END: u64 = DEVICE + 0xff8;
/// An address without a mapping.
pub(crate) const UNMAPPED: u64 = 0x18_0000;

/// A guest that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    pub(crate) ram: Vec<u8>,
    pub(crate) state: CpuState,
}

impl Guest {
    /// Returns a guest with tables and handlers.
    pub(crate) fn new(user: bool) -> Guest {
        let mut g = Guest { ram: vec![0; RAM_BYTES], state: CpuState::default() };
        g.put(TABLES, (TABLES + 0x1000) | 7);
        g.put(TABLES + 0x1000, (TABLES + 0x2000) | 7);
        g.put(TABLES + 0x2000, (TABLES + 0x3000) | 7);
        for page in 0..512 {
            let gpa = page << 12;
            let mapped = gpa < RAM_BYTES as u64 || gpa == DEVICE;
            if mapped {
                let rights = if gpa < CODE { 3 } else { 7 };
                g.put(TABLES + 0x3000 + page * 8, gpa | rights);
            }
        }
        for (at, descriptor) in descriptors(TSS) {
            g.put(GDT + at, descriptor);
        }
        g.put(TSS + 4, RING_0_STACK);
        for vector in 0..256u64 {
            let stub = STUBS + vector * 16;
            g.handle(vector, stub);
            g.code(stub, |a| {
                if !matches!(vector, 8 | 10..=14 | 17) {
                    a.push(0)?;
                }
                a.push(vector as i32)?;
                a.jmp(COMMON)
            });
        }
        g.put(LOG, LOG + 16);
        g.handler();
        g.code(SYSCALL, |a| {
            a.add(r13, 1)?;
            a.mov(qword_ptr(DATA + 0x100), rcx)?;
            a.sysretq()
        });
        g.registers(user);
        g
    }

    /// Sets the handler of a vector.
    pub(crate) fn handle(&mut self, vector: u64, at: u64) {
        let low = at & 0xffff | u64::from(KERNEL_CS) << 16 | 0xee << 40 | (at >> 16) << 48;
        self.put(IDT + vector * 16, low);
    }

    /// Writes the common handler. It records vector, error code, RIP, CS, RFLAGS without RF, RSP, SS and CR2. After a
    /// fault it continues at the address in R15. After a trap or an interrupt it returns to the pushed RIP.
    fn handler(&mut self) {
        self.code(COMMON, |a| {
            let leave = a.create_label();
            let resume = a.create_label();
            a.push(rax)?;
            a.push(rbx)?;
            a.mov(rbx, qword_ptr(LOG))?;
            for word in 0..7 {
                a.mov(rax, qword_ptr(rsp + 16 + 8 * word))?;
                if word == 4 {
                    a.and(eax, !(1 << 16))?;
                }
                a.mov(qword_ptr(rbx + 8 * word), rax)?;
            }
            a.mov(rax, cr2)?;
            a.mov(qword_ptr(rbx + 56), rax)?;
            a.add(rbx, 64)?;
            a.and(ebx, 0x1_ffff)?;
            a.or(ebx, LOG as i32)?;
            a.mov(qword_ptr(LOG), rbx)?;
            a.mov(rax, qword_ptr(rsp + 16))?;
            a.cmp(rax, 0x20)?;
            a.jae(leave)?;
            a.cmp(rax, 1)?;
            a.je(leave)?;
            a.cmp(rax, 3)?;
            a.jne(resume)?;
            a.jmp(leave)?;
            a.set_label(resume)?;
            a.mov(qword_ptr(rsp + 32), r15)?;
            a.set_label(leave)?;
            a.pop(rbx)?;
            a.pop(rax)?;
            a.add(rsp, 16)?;
            a.iretq()
        });
    }

    fn registers(&mut self, user: bool) {
        let s = &mut self.state;
        s.rip = CODE;
        s.gpr[4] = STACK;
        s.cr3 = TABLES;
        s.efer = 0xd01;
        s.rflags = 0x202;
        s.gdtr = TableRegister { base: GDT, limit: 0x7f };
        s.idtr = TableRegister { base: IDT, limit: IDT_LIMIT as u16 };
        s.tr = Segment { selector: TSS_SELECTOR, base: TSS, limit: 0x67, access: 0x8b };
        s.seg[seg::CS].selector = KERNEL_CS;
        for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
            s.seg[which].selector = KERNEL_SS;
        }
        s.msrs.star = 0x23 << 48 | u64::from(KERNEL_CS) << 32;
        s.msrs.lstar = SYSCALL;
        s.msrs.fmask = 0x4_7700;
        if user {
            s.gpr[4] = USER_STACK;
            let [code, data] = user_segments();
            s.seg[seg::CS] = code;
            for which in [seg::ES, seg::SS, seg::DS, seg::FS, seg::GS] {
                s.seg[which] = data;
            }
        }
    }

    /// Assembles code at an address. Returns its end.
    pub(crate) fn code(&mut self, at: u64, f: impl FnOnce(&mut Assembler) -> Result<(), Error>) -> u64 {
        let mut a = Assembler::new();
        f(&mut a).expect("the test's code can be assembled");
        let bytes = a.assemble(at).expect("the test's code can be encoded");
        self.ram[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
        at + bytes.len() as u64
    }
    fn put(&mut self, gpa: u64, v: u64) {
        self.ram[gpa as usize..gpa as usize + 8].copy_from_slice(&v.to_le_bytes());
    }
}
