//! Complete guest programs: page tables, descriptors, handlers, code and registers.

use everett_cpu::state::{OSXSAVE, Segment, TableRegister, xcr0};
use everett_cpu::{CpuModel, CpuState};

use crate::code::Code;
use crate::ground::{KERNEL_CS, TSS_SELECTOR, descriptors, user_segments};
use crate::handlers;
use crate::layout::*;
use crate::rng::Rng;
use crate::units::{function, unit};
use crate::world::{World, somewhere};

/// Bit of a seed. Programs whose seed has this bit contain vector instructions.
pub(crate) const VECTORS: u64 = 1 << 48;

/// Bit of a seed. Programs whose seed has this bit run on the model `v3` with all extras, and contain its instructions.
pub(crate) const EXTENDED: u64 = 1 << 49;

/// A guest program: its initial RAM and CPU state.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) ram: Vec<u8>,
    pub(crate) state: CpuState,
    /// Addresses in RAM of the instructions' immediate operands. External events (writes as by a device) may change
    /// these operands.
    pub(crate) sites: Vec<u64>,
}

impl Program {
    /// Creates the program of a seed. The same seed always gives the same program.
    pub(crate) fn new(seed: u64) -> Program {
        let mut rng = Rng::for_case(seed, 0);
        let user = rng.one_in(2);
        let world = World::new(&mut rng, user, seed & VECTORS != 0, seed & EXTENDED != 0);
        let mut p = Program { seed, ram: vec![0; RAM_LEN], state: CpuState::default(), sites: vec![] };
        p.tables(&mut rng, &world);
        p.descriptors(&mut rng);
        for (gpa, code) in handlers::all() {
            p.ram[gpa as usize..gpa as usize + code.len()].copy_from_slice(&code);
        }
        rng.fill(&mut p.ram[DATA as usize..]);
        p.code(&mut rng, &world);
        p.targets(&mut rng, &world);
        p.registers(&mut rng, user, &world);
        p
    }
    /// Returns the program's CPU model.
    pub(crate) fn model(&self) -> CpuModel {
        if self.seed & EXTENDED != 0 { CpuModel::LARGEST } else { CpuModel::V2 }
    }
    fn put(&mut self, gpa: u64, value: u64) {
        self.ram[gpa as usize..gpa as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn tables(&mut self, rng: &mut Rng, world: &World) {
        let all = PRESENT | WRITABLE | USER;
        let owner = if world.user { USER } else { 0 };
        self.put(PML4, PDPT | all);
        self.put(PDPT, PD | all);
        self.put(PD + (WINDOW >> 21) * 8, PT | all);
        self.put(PD + (LARGE >> 21) * 8, PRESENT | WRITABLE | owner | PAGE_SIZE);
        for (n, entry) in world.window.iter().enumerate() {
            self.put(window_entry(n as u64), entry.unwrap_or(0));
        }
        self.put(window_entry((FIXED - WINDOW) >> 12), FIXED_PAGE | PRESENT | WRITABLE | owner);
        self.put(PDPT + (FAR >> 30) * 8, FAR_PD | all);
        self.put(FAR_PD + (FAR >> 21 & 511) * 8, FAR_PT | all);
        for n in 0..FAR_PAGES {
            let gpa = CODE + rng.below(CODE_PAGES + DATA_PAGES + 1) * 4096;
            self.put(FAR_PT + ((FAR >> 12 & 511) + n) * 8, gpa | PRESENT | owner | rng.below(8));
        }
        // The last pages of both halves of linear memory.
        self.put(PML4 + 255 * 8, EDGE_PDPT | all);
        self.put(EDGE_PDPT + 511 * 8, EDGE_PD | all);
        self.put(EDGE_PD + 511 * 8, EDGE_PT | all);
        let gpa = if rng.one_in(2) { CODE } else { DATA };
        self.put(EDGE_PT + 511 * 8, gpa | PRESENT | WRITABLE | owner);
        self.put(PML4 + 511 * 8, KERNEL_PDPT | all);
        self.put(KERNEL_PDPT + 511 * 8, EDGE_PD | all);
        self.put(KERNEL_PDPT + 510 * 8, KERNEL_PD | all);
        self.put(KERNEL_PD, KERNEL_PT | all);
        for gpa in (PML4..KERNEL_END).step_by(4096) {
            self.put(KERNEL_PT + (gpa >> 12) * 8, gpa | PRESENT | WRITABLE);
        }
    }
    fn descriptors(&mut self, rng: &mut Rng) {
        for (at, descriptor) in descriptors(KERNEL + TSS) {
            self.put(GDT + at, descriptor);
        }
        // RSP0 to RSP2, a reserved word, and the seven stacks of the IST.
        for n in 0..11 {
            let at = (TSS + 4 + n * 8) as usize;
            let top = KERNEL + STACKS + 0x400 + n * 0x100;
            self.ram[at..at + 8].copy_from_slice(&top.to_le_bytes());
        }
        for vector in 0..256 {
            let to = if rng.one_in(60) { somewhere(rng) } else { handlers::for_vector(vector, rng) };
            // Number of the IST entry with the handler's stack, or 0 for none.
            let stack = match vector {
                8 => 2,
                1 => 3,
                0x80 => 0,
                _ if rng.one_in(8) => 0,
                _ => 1,
            };
            let kind = if rng.one_in(4) { 0xf } else { 0xe };
            let privilege = if vector == 0x80 || rng.one_in(2) { 3 } else { 0 };
            let access = kind | privilege << 5 | 0x80;
            let selector = u64::from(KERNEL_CS);
            self.put(
                IDT + vector * 16,
                to & 0xffff | selector << 16 | stack << 32 | access << 40 | (to >> 16 & 0xffff) << 48,
            );
            self.put(IDT + vector * 16 + 8, to >> 32);
        }
    }
    fn code(&mut self, rng: &mut Rng, world: &World) {
        let background = rng.below(3);
        for at in (CODE..DATA).step_by(8) {
            let bytes = match background {
                0 => rng.next().to_le_bytes(),
                1 => [0x90; 8],
                // Short harmless instructions, among them a jump.
                _ => rng.pick(&[
                    [0x48, 0xff, 0xc2, 0x01, 0xd0, 0x90, 0x90, 0x90],
                    [0x83, 0xc0, 0x01, 0x83, 0xc2, 0x01, 0xeb, 0x00],
                    [0x0f, 0xaf, 0xc2, 0x01, 0xc2, 0x11, 0xd0, 0xf8],
                    [0xc3, 0xc3, 0xcc, 0x90, 0x89, 0xc2, 0x31, 0xc0],
                ]),
            };
            self.put(at, u64::from_le_bytes(bytes));
        }
        let mut all: Vec<Code> = vec![];
        for &at in &world.units {
            all.push(unit(at, rng, world));
        }
        for &at in &world.functions {
            all.push(function(at, rng, world));
        }
        let sites: Vec<u64> = all.iter().flat_map(|code| code.sites.iter().copied()).collect();
        for code in &mut all {
            for &(at, offset) in &code.fixups {
                // A fixup is the address operand of an instruction that accesses a site, i.e. an immediate operand in
                // the code. In two of three cases, the site is in the same loop or function.
                let from = if code.sites.is_empty() || rng.one_in(3) { &sites } else { &code.sites };
                let site = if from.is_empty() { code.at } else { rng.pick(from) };
                let to = world.alias(rng, site).wrapping_add(offset as u64) as u32;
                code.bytes[at..at + 4].copy_from_slice(&to.to_le_bytes());
            }
        }
        for code in &all {
            for (n, &byte) in code.bytes.iter().enumerate() {
                if let Some(gpa) = world.code_at(code.at + n as u64) {
                    self.ram[gpa as usize] = byte;
                }
            }
        }
        self.sites = sites.iter().filter_map(|&site| world.code_at(site)).collect();
        // In half of the programs, the second half of the code pages (the twins) is a copy of the first half with some
        // changed constants.
        let (first, second) = (CODE as usize, (CODE + TWIN_PAGES * 4096) as usize);
        if rng.one_in(2) {
            self.ram.copy_within(first..second, second);
            for n in 0..self.sites.len() {
                let site = self.sites[n] as usize;
                if site < second {
                    self.ram[site + (second - first)] ^= 1 << rng.below(8);
                }
            }
        }
    }
    /// Stores the addresses at which units (the program's loops) and handlers continue, and pointers to functions.
    fn targets(&mut self, rng: &mut Rng, world: &World) {
        for n in 0..TARGETS_COUNT {
            let unit = rng.pick(&world.units);
            let to = if rng.one_in(4) { world.target(rng) } else { unit };
            self.put(FIXED_PAGE + TARGETS + n * 8, to);
            self.put(TSS + 0x400 + n * 8, if rng.one_in(8) { to } else { unit });
        }
        for n in 0..POINTER_WORDS_COUNT {
            let to = if rng.one_in(16) { world.target(rng) } else { world.function(rng) };
            self.put(FIXED_PAGE + POINTER_WORDS + n * 8, to);
        }
    }
    fn registers(&mut self, rng: &mut Rng, user: bool, world: &World) {
        let s = &mut self.state;
        s.icount = rng.below(1 << 30);
        s.gpr = std::array::from_fn(|_| if rng.one_in(8) { rng.next() } else { somewhere(rng) });
        s.gpr[4] = FIXED + STACK_TOP;
        s.rip = rng.pick(&world.units);
        s.rflags = 2 | rng.next() & 0x8d5 | if rng.one_in(2) { 0x200 } else { 0 };
        s.cr3 = PML4;
        // Programs in ring 0 run without SMEP. With SMEP they could not execute user pages, and would test little.
        s.cr4 |=
            if user { rng.pick(&[0, 0x20_0000, 0x30_0000]) } else { rng.pick(&[0, 0, 0x20_0000, 0x20_0000]) };
        s.cr0 ^= rng.pick(&[0, 0, 0, 0x1_0000]);
        s.efer |= 1;
        s.gdtr = TableRegister { base: KERNEL + GDT, limit: 0x7f };
        s.idtr = TableRegister { base: KERNEL + IDT, limit: 0xfff };
        s.tr = Segment { selector: TSS_SELECTOR, base: KERNEL + TSS, limit: 0x67, access: 0x8b };
        s.seg[4].base = somewhere(rng);
        s.seg[5].base = rng.pick(&[0, 8, 0xfff, 0x1000]);
        s.msrs.lstar = handlers::address(handlers::Kind::Back, false);
        s.msrs.star = u64::from(KERNEL_CS) << 32 | 0x23 << 48;
        s.msrs.fmask = 0x4_7fd5;
        if user {
            [s.seg[1], s.seg[2]] = user_segments();
        }
        if world.vectors {
            s.fpu.xmm = std::array::from_fn(|_| u128::from(rng.next()) << 64 | u128::from(rng.next()));
            // Sometimes CR0.TS makes vector instructions raise #NM.
            s.cr0 |= if rng.one_in(8) { 8 } else { 0 };
        }
        if world.extended {
            s.cr4 |= if rng.one_in(8) { 0 } else { OSXSAVE };
            s.extended.xcr0 = if rng.one_in(8) { xcr0::X87 | xcr0::SSE } else { xcr0::X87 | xcr0::AVX_STATE };
            s.extended.ymm = std::array::from_fn(|_| u128::from(rng.next()) << 64 | u128::from(rng.next()));
        }
    }
}
