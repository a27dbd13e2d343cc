//! The CPU under test in a small machine. The tests compare it with the host's CPU. User code runs in the arena, i.e.
//! pages with the same addresses on host and guest (`crate::arena`). The kernel is an IDT whose handlers are NOPs. The
//! address at which execution stops shows which exception was raised.
#![allow(unsafe_code)]

use everett_cpu::state::{Segment, TableRegister, seg, xcr0};
use everett_cpu::{CacheConfig, Code, Cpu, CpuModel, CpuState, Exit, Ram, Traces, Until};

use crate::arena::{CODE, CODE_LEN, CONST, CONST_LEN, DATA, DATA_LEN, GS_BASE, HIGH, LOW};
use crate::state::{End, Outcome, RSP, State};

const PAGE: u64 = 0x1000;
/// Guest-physical addresses of the tables and of the arena's memory.
const PML4: u64 = 0x1000;
const TABLES_END: u64 = 0x1_0000;
const GDT: u64 = 0x1_0000;
const IDT: u64 = 0x1_1000;
const TSS: u64 = 0x1_2000;
const HANDLERS: u64 = 0x1_3000;
const STACK: u64 = 0x1_4000;
const KERNEL_END: u64 = 0x1_5000;
const DATA_AT: u64 = 0x2_0000;
const CODE_AT: u64 = DATA_AT + DATA_LEN + CONST_LEN;
const RAM_LEN: u64 = 0x4_0000;
const _: () = assert!(CODE_AT + CODE_LEN <= RAM_LEN);

/// Linear address at which the kernel maps guest-physical address 0.
const KERNEL: u64 = 0xffff_ffff_8000_0000;
/// Distance from one exception handler to the next, in bytes.
const HANDLER_LEN: u64 = 16;

/// Bit of CR4.
const OSXSAVE: u64 = 1 << 18;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const NO_EXECUTE: u64 = 1 << 63;

/// Selectors of 64-bit Linux. With them, instructions that read a selector give the same result as on the host.
const USER_CS: u16 = 0x33;
const USER_SS: u16 = 0x2b;

/// The CPU under test.
pub(crate) struct Guest {
    cpu: Cpu,
    /// Guest RAM. `cpu` holds a pointer to it.
    ram: *mut u8,
    template: CpuState,
    next_table: u64,
}

impl Guest {
    /// Creates a machine with small caches, so that some entries are evicted.
    pub(crate) fn new(model: CpuModel) -> Guest {
        let layout = std::alloc::Layout::from_size_align(RAM_LEN as usize, PAGE as usize).expect("constant");
        // SAFETY: the size is not zero.
        let ram = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!ram.is_null());
        // SAFETY: the memory is page-aligned and never freed. Only methods of `Guest` access it, and the CPU runs only
        // inside `run`.
        let handle = unsafe { Ram::new(ram, RAM_LEN) };
        let caches = CacheConfig {
            tlb_entries: 64,
            block_entries: 256,
            translate_after: None,
            traces: Traces::EAGER,
            edges: false,
            branches: false,
        };
        let cpu = Cpu::sharing(handle, &Code::of_model(caches, model));
        let mut guest = Guest { cpu, ram, template: template(model), next_table: PML4 + PAGE };
        guest.build();
        guest
    }
    fn ram(&self) -> &[u8] {
        // SAFETY: `new` allocated and initialised this many bytes. The CPU does not run while the slice exists.
        unsafe { std::slice::from_raw_parts(self.ram, RAM_LEN as usize) }
    }
    fn ram_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `ram`; `self` is borrowed exclusively while the slice exists.
        unsafe { std::slice::from_raw_parts_mut(self.ram, RAM_LEN as usize) }
    }
    fn put_u64(&mut self, gpa: u64, value: u64) {
        self.ram_mut()[gpa as usize..gpa as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn u64_at(&self, gpa: u64) -> u64 {
        let at = gpa as usize;
        u64::from_le_bytes(std::array::from_fn(|i| self.ram()[at + i]))
    }

    fn build(&mut self) {
        for view in [LOW, HIGH] {
            for at in (0..DATA_LEN).step_by(PAGE as usize) {
                self.map(view + DATA + at, DATA_AT + at, USER | WRITABLE | NO_EXECUTE);
            }
            for at in (0..CONST_LEN).step_by(PAGE as usize) {
                self.map(view + CONST + at, DATA_AT + DATA_LEN + at, USER | NO_EXECUTE);
            }
            for at in (0..CODE_LEN).step_by(PAGE as usize) {
                self.map(view + CODE + at, CODE_AT + at, USER);
            }
        }
        for gpa in (GDT..KERNEL_END).step_by(PAGE as usize) {
            self.map(KERNEL + gpa, gpa, WRITABLE);
        }
        // Descriptor of kernel code, with selector 0x10.
        self.put_u64(GDT + 0x10, 0x00af_9b00_0000_ffff);
        // RSP0, and the base of an I/O permission bitmap beyond the limit, so that user code may access no port.
        self.put_u64(TSS + 4, KERNEL + STACK + PAGE);
        self.put_u64(TSS + 0x60, 0x68 << 48);
        for vector in 0..256 {
            // Linux lets user code use only INT 3 (#BP) and INT 4 (#OF). Any other INT n raises #GP.
            let privilege = if matches!(vector, 3 | 4) { 3 } else { 0 };
            let to = KERNEL + HANDLERS + vector * HANDLER_LEN;
            let access = 0x8e | privilege << 5;
            let low = (to & 0xffff) | 0x10 << 16 | access << 40 | (to >> 16 & 0xffff) << 48;
            self.put_u64(IDT + vector * 16, low);
            self.put_u64(IDT + vector * 16 + 8, to >> 32);
        }
        self.ram_mut()[HANDLERS as usize..(HANDLERS + PAGE) as usize].fill(0x90);
        self.cpu.memory_written(0, RAM_LEN);
    }
    fn map(&mut self, va: u64, gpa: u64, rights: u64) {
        let mut table = PML4;
        for shift in [39, 30, 21] {
            let at = table + (va >> shift & 0x1ff) * 8;
            if self.u64_at(at) == 0 {
                assert!(self.next_table < TABLES_END);
                self.put_u64(at, self.next_table | PRESENT | WRITABLE | USER);
                self.next_table += PAGE;
            }
            table = self.u64_at(at) & 0xf_ffff_f000;
        }
        self.put_u64(table + (va >> 12 & 0x1ff) * 8, gpa | PRESENT | rights);
    }

    /// Writes to the arena. The range must lie in `CODE`, or in `DATA` and the adjoining `CONST`.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let gpa = if offset >= CODE {
            assert!(offset + bytes.len() as u64 <= CODE + CODE_LEN);
            offset - CODE + CODE_AT
        } else {
            assert!(offset >= DATA && offset + bytes.len() as u64 <= CONST + CONST_LEN);
            offset - DATA + DATA_AT
        };
        self.ram_mut()[gpa as usize..][..bytes.len()].copy_from_slice(bytes);
        self.cpu.memory_written(gpa, bytes.len() as u64);
    }
    /// Returns the current contents of `DATA` and `CONST`.
    pub(crate) fn data(&self) -> &[u8] {
        &self.ram()[DATA_AT as usize..(DATA_AT + DATA_LEN + CONST_LEN) as usize]
    }
    /// Executes `count` instructions at `state.rip`. Each iteration of a REP instruction counts as one. If an
    /// instruction faults, the CPU executes NOPs of the handler until `count` is reached. The outcome does not count
    /// these NOPs as retired.
    ///
    /// # Errors
    /// Returns an error if the CPU stopped for a reason other than the count, or in ring 0 outside a handler.
    pub(crate) fn run(&mut self, state: &State, count: u64) -> Result<Outcome, String> {
        let mut cpu_state = self.template.clone();
        cpu_state.gpr = state.gpr;
        cpu_state.rip = state.rip;
        cpu_state.rflags = state.rflags;
        cpu_state.fpu = state.fpu.clone();
        cpu_state.extended.ymm = state.ymm;
        let start = cpu_state.icount;
        self.cpu.set_state(&cpu_state);
        let exit = self.cpu.run(Until { icount: start + count, ..Until::default() });
        if exit != Exit::Count {
            return Err(format!("the CPU stopped with {exit:?}"));
        }
        let mut after = self.cpu.state();
        let mut retired = after.icount - start;
        let mut end = End::Retired;
        let at = after.rip.wrapping_sub(KERNEL + HANDLERS);
        if after.seg[seg::CS].selector & 3 == 0 {
            if at >= PAGE {
                return Err(format!("in ring 0 at {:#x}", after.rip));
            }
            let vector = (at / HANDLER_LEN) as u8;
            retired -= at % HANDLER_LEN;
            let mut frame = after.gpr[RSP].wrapping_sub(KERNEL);
            let mut error = 0;
            if matches!(vector, 8 | 10..=14 | 17) {
                error = self.u64_at(frame) as u32;
                frame += 8;
            }
            let address = if vector == 14 { after.cr2 } else { 0 };
            end = End::Fault { vector, error, address };
            after.rip = self.u64_at(frame);
            after.rflags = self.u64_at(frame + 16);
            after.gpr[RSP] = self.u64_at(frame + 24);
        }
        let state = State {
            gpr: after.gpr,
            rip: after.rip,
            rflags: after.rflags,
            fpu: after.fpu,
            ymm: after.extended.ymm,
        };
        Ok(Outcome { state, end, retired })
    }
}

fn template(model: CpuModel) -> CpuState {
    let data = |selector| Segment { selector, base: 0, limit: 0xffff_ffff, access: 0xc0f3 };
    let null = Segment { selector: 0, base: 0, limit: 0, access: 0 };
    let mut s = CpuState {
        icount: 1000,
        cr3: PML4,
        gdtr: TableRegister { base: KERNEL + GDT, limit: 0xfff },
        idtr: TableRegister { base: KERNEL + IDT, limit: 0xfff },
        ..CpuState::default()
    };
    // EFER.SCE. Without it, SYSRET would raise #UD instead of #GP.
    s.efer |= 1;
    s.tr = Segment { selector: 0x40, base: KERNEL + TSS, limit: 0x67, access: 0x8b };
    s.seg = [null, Segment { access: 0xa0fb, ..data(USER_CS) }, data(USER_SS), null, null, null];
    s.seg[seg::GS].base = GS_BASE;
    if model.is_v3() {
        s.cr4 |= OSXSAVE;
        s.extended.xcr0 = xcr0::X87 | xcr0::AVX_STATE;
    }
    s
}
