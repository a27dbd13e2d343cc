//! Generates the initial memory of a soup, i.e. of a guest with random code. Page tables point anywhere, including at
//! themselves. Some handlers return, and some are random code. The code is made of typical instructions of kernels and
//! programs, in random order.

use everett_cpu::state::{OSXSAVE, Segment, TableRegister, xcr0};
use everett_cpu::{CpuModel, CpuState};

use crate::ground::{KERNEL_CS, TSS_SELECTOR, descriptors, user_segments};
use crate::rng::Rng;

/// Size of RAM in bytes. Addresses beyond it belong to a device.
pub(crate) const RAM_LEN: usize = 0x5_0000;
/// Linear address of the *window*. Most of its pages map random code; others map page tables or a device.
pub(crate) const WINDOW: u64 = 0x40_0000;
/// Number of pages of the window.
pub(crate) const WINDOW_PAGES: u64 = 64;
/// Linear address of a large page. It maps the beginning of RAM or, in some soups, addresses of a device.
const LARGE: u64 = 0x80_0000;

const PML4: u64 = 0x1000;
const PDPT: u64 = 0x2000;
const PD: u64 = 0x3000;
/// Page table that maps `WINDOW`.
const PT: u64 = 0x4000;
const KERNEL_PDPT: u64 = 0x5000;
const KERNEL_PD: u64 = 0x6000;
/// Page table that maps `KERNEL`.
const KERNEL_PT: u64 = 0x7000;
const GDT: u64 = 0x8000;
const IDT: u64 = 0x9000;
const TSS: u64 = 0xa000;
const HANDLERS: u64 = 0xb000;
const STACKS: u64 = 0xd000;
const KERNEL_END: u64 = 0x1_0000;
/// Start of the range of RAM that holds random code.
const SOUP: u64 = 0x1_0000;
const SOUP_END: u64 = 0x5_0000;

/// Linear address at which the kernel sees RAM up to `KERNEL_END`.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const USER: u64 = 4;
const PAGE_SIZE: u64 = 0x80;
const NO_EXECUTE: u64 = 1 << 63;

/// Distance from one returning handler to the next, in bytes.
const HANDLER_LEN: u64 = 32;

/// A guest with random code: its initial RAM and CPU state.
#[derive(Debug)]
pub(crate) struct Soup {
    pub(crate) seed: u64,
    pub(crate) model: CpuModel,
    pub(crate) ram: Vec<u8>,
    pub(crate) state: CpuState,
}

impl Soup {
    /// Creates the soup of a seed. `user` is true if it starts at CPL 3.
    pub(crate) fn new(seed: u64, user: bool) -> Soup {
        let mut rng = Rng::for_case(seed, 0);
        let model = if rng.one_in(3) { CpuModel::LARGEST } else { CpuModel::V2 };
        let mut soup = Soup { seed, model, ram: vec![0; RAM_LEN], state: CpuState::default() };
        soup.tables_of(&mut rng, user);
        soup.descriptors(&mut rng);
        soup.handlers(&mut rng);
        let mut at = SOUP as usize;
        while at < SOUP_END as usize {
            let is_extended = model != CpuModel::V2 && rng.one_in(4);
            let piece = if is_extended { extended(&mut rng) } else { piece(&mut rng) };
            let n = piece.len().min(SOUP_END as usize - at);
            soup.ram[at..at + n].copy_from_slice(&piece[..n]);
            at += n;
        }
        soup.registers(&mut rng, user);
        soup
    }
    /// True if the guest changed a page table. Changes of accessed and dirty bits do not count.
    pub(crate) fn changed_tables(&self, ram: &[u8]) -> bool {
        const NOTED_BY_WALKS: u8 = 0x60;
        let tables = PML4 as usize..GDT as usize;
        let mut pairs = tables.map(|at| (at, self.ram[at] ^ ram[at]));
        pairs.any(|(at, changed)| changed & if at % 8 == 0 { !NOTED_BY_WALKS } else { 0xff } != 0)
    }
    fn put(&mut self, gpa: u64, value: u64) {
        self.ram[gpa as usize..gpa as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
    fn tables_of(&mut self, rng: &mut Rng, user: bool) {
        let all = PRESENT | WRITABLE | USER;
        self.put(PML4, PDPT | all);
        self.put(PDPT, PD | all);
        self.put(PD + (WINDOW >> 21) * 8, PT | all);
        let owner = if user { USER } else { 0 };
        let large = if !rng.one_in(4) { 0 } else { 0x20_0000 };
        self.put(PD + (LARGE >> 21) * 8, large | PRESENT | WRITABLE | owner | PAGE_SIZE);
        for n in 0..WINDOW_PAGES {
            let page = match rng.below(16) {
                0 => PML4 + rng.below(7) * 4096,
                3 => PT,
                1 => RAM_LEN as u64 + rng.below(4) * 4096,
                2 => continue,
                _ => SOUP + rng.below((SOUP_END - SOUP) >> 12) * 4096,
            };
            let mut rights = PRESENT | owner;
            if !rng.one_in(4) {
                rights |= WRITABLE;
            }
            if rng.one_in(4) {
                rights ^= USER;
            }
            if rng.one_in(8) {
                rights |= NO_EXECUTE;
            }
            self.put(PT + n * 8, page | rights);
        }
        self.put(PML4 + 511 * 8, KERNEL_PDPT | PRESENT | WRITABLE);
        self.put(KERNEL_PDPT + 510 * 8, KERNEL_PD | PRESENT | WRITABLE);
        self.put(KERNEL_PD, KERNEL_PT | PRESENT | WRITABLE);
        for gpa in (GDT..KERNEL_END).step_by(4096) {
            self.put(KERNEL_PT + (gpa >> 12) * 8, gpa | PRESENT | WRITABLE);
        }
    }
    fn descriptors(&mut self, rng: &mut Rng) {
        for (at, descriptor) in descriptors(KERNEL + TSS) {
            self.put(GDT + at, descriptor);
        }
        // RSP0 to RSP2, a reserved word, and IST1 to IST6. Some of the stacks are in the window or the large page.
        for n in 0..10 {
            let top =
                if rng.one_in(8) { somewhere(rng) } else { KERNEL + STACKS + 0x1000 + rng.below(3) * 0x1000 };
            let at = (TSS + 4 + n * 8) as usize;
            self.ram[at..at + 8].copy_from_slice(&top.to_le_bytes());
        }
        for vector in 0..256 {
            let to = if rng.one_in(6) { somewhere(rng) } else { KERNEL + HANDLERS + vector * HANDLER_LEN };
            let stack = if rng.one_in(8) { rng.below(8) } else { 0 };
            let kind = if rng.one_in(4) { 0xf } else { 0xe };
            let privilege = if rng.one_in(2) { 3 } else { 0 };
            let present = u64::from(!rng.one_in(50));
            let access = kind | privilege << 5 | present << 7;
            let selector = u64::from(KERNEL_CS);
            self.put(
                IDT + vector * 16,
                to & 0xffff | selector << 16 | stack << 32 | access << 40 | (to >> 16 & 0xffff) << 48,
            );
            self.put(IDT + vector * 16 + 8, to >> 32);
        }
    }
    /// Writes the handlers. A handler returns to the interrupted address, to a random address in the window or the
    /// large page, or, for exceptions, to the byte after the interrupted address.
    fn handlers(&mut self, rng: &mut Rng) {
        for vector in 0..256 {
            let mut code = vec![];
            if matches!(vector, 8 | 10..=14 | 17) {
                code.extend([0x48, 0x83, 0xc4, 0x08]); // add rsp, 8
            }
            if vector == 14 || rng.one_in(3) {
                code.extend([0x48, 0xc7, 0x04, 0x24]); // mov qword [rsp], imm32
                code.extend((somewhere(rng) as u32).to_le_bytes());
            } else if vector < 32 {
                code.extend([0x48, 0xff, 0x04, 0x24]); // inc qword [rsp]
            }
            code.extend([0x48, 0xcf]); // iretq
            let at = (HANDLERS + vector * HANDLER_LEN) as usize;
            self.ram[at..at + code.len()].copy_from_slice(&code);
        }
    }
    fn registers(&mut self, rng: &mut Rng, user: bool) {
        let s = &mut self.state;
        s.icount = rng.below(1 << 40);
        s.gpr = std::array::from_fn(|_| if rng.one_in(8) { rng.next() } else { somewhere(rng) });
        s.rip = somewhere(rng);
        s.rflags = 2 | rng.next() & 0x8d5 | if rng.one_in(2) { 0x200 } else { 0 };
        s.cr3 = PML4;
        s.cr4 |= rng.pick(&[0, 0x10_0000, 0x20_0000, 0x30_0000]);
        s.cr0 ^= rng.pick(&[0, 0, 0x1_0000, 0x8]);
        s.efer |= 1;
        s.gdtr = TableRegister { base: KERNEL + GDT, limit: 0x7f };
        s.idtr = TableRegister { base: KERNEL + IDT, limit: 0xfff };
        s.tr = Segment { selector: TSS_SELECTOR, base: KERNEL + TSS, limit: 0x67, access: 0x8b };
        s.seg[4].base = somewhere(rng);
        s.seg[5].base = somewhere(rng);
        s.msrs.lstar = KERNEL + HANDLERS + 3 * HANDLER_LEN;
        s.msrs.star = u64::from(KERNEL_CS) << 32 | 0x23 << 48;
        s.msrs.fmask = rng.next() & 0x4_7fd5;
        s.fpu.fcw = rng.pick(&[0x37f, 0x27f, 0x340]);
        s.fpu.mxcsr = rng.pick(&[0x1f80, 0x9fc0, 0x0000]);
        s.fpu.xmm = std::array::from_fn(|_| u128::from(rng.next()) << 64 | u128::from(rng.next()));
        if user {
            [s.seg[1], s.seg[2]] = user_segments();
        }
        if self.model != CpuModel::V2 {
            s.cr4 |= if rng.one_in(8) { 0 } else { OSXSAVE };
            s.extended.xcr0 = rng.pick(&[xcr0::X87, 3, 7, 7, 7, 7]);
            s.extended.ymm = std::array::from_fn(|_| u128::from(rng.next()) << 64 | u128::from(rng.next()));
        }
    }
}

/// Returns a random address in the window or in the large page.
fn somewhere(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => LARGE + rng.below(SOUP_END),
        1 if rng.one_in(2) => LARGE + PT + rng.below(WINDOW_PAGES * 8),
        _ => WINDOW + rng.below(WINDOW_PAGES * 4096),
    }
}

/// Emits ModRM for a register operand, or for memory at a register with or without a displacement.
fn modrm(rng: &mut Rng, out: &mut Vec<u8>) {
    let mode = rng.below(4) as u8;
    let rm = [0, 1, 2, 3, 5, 6, 7][rng.below(7) as usize];
    let mode = if mode == 0 && rm == 5 { 1 } else { mode };
    out.push(mode << 6 | (rng.below(8) as u8) << 3 | rm);
    if mode == 1 {
        out.push(rng.next() as u8);
    } else if mode == 2 {
        out.extend((rng.next() as i32 >> 20).to_le_bytes());
    }
}

/// Returns the bytes of one instruction that only larger models than `v2` have.
fn extended(rng: &mut Rng) -> Vec<u8> {
    let mut out = vec![];
    match rng.below(8) {
        // A VEX encoding, with any opcode.
        0..=2 => {
            let map = rng.pick(&[1, 1, 2, 2, 3]);
            out.extend([0xc4, rng.next() as u8 & 0xe0 | map, rng.next() as u8, rng.next() as u8]);
            modrm(rng, &mut out);
            if map == 3 {
                out.push(rng.next() as u8);
            }
        }
        3..=4 => {
            out.extend([
                0xc5,
                rng.next() as u8,
                rng.pick(&[0x10, 0x11, 0x58, 0x59, 0x5e, 0x6f, 0x7f, 0xc2, 0xef, 0xfe]),
            ]);
            modrm(rng, &mut out);
            out.push(rng.next() as u8);
        }
        // XSAVE, XRSTOR, XSAVEOPT, XSAVEC, XGETBV and XSETBV, with an area whose address is often aligned.
        5 => {
            let register = rng.pick(&[3, 5, 6, 7]);
            out.extend([0x83, 0xe0 | register, 0xc0]);
            out.extend(rng.pick(&[
                [0x0f, 0xae, 0x60 | register, 0],
                [0x0f, 0xae, 0x68 | register, 0],
                [0x0f, 0xae, 0x70 | register, 0],
                [0x0f, 0xc7, 0x60 | register, 0],
                [0x0f, 0x01, 0xd0, 0x90],
                [0x0f, 0x01, 0xd1, 0x90],
            ]));
        }
        // MOVBE, LZCNT and TZCNT.
        6 => {
            out.extend(rng.pick(&[
                [0x0f, 0x38, 0xf0],
                [0x0f, 0x38, 0xf1],
                [0xf3, 0x0f, 0xbd],
                [0xf3, 0x0f, 0xbc],
            ]));
            modrm(rng, &mut out);
        }
        // AES and SHA.
        _ => {
            out.extend(rng.pick(&[
                &[0x66, 0x0f, 0x38, 0xdc][..],
                &[0x66, 0x0f, 0x38, 0xdf],
                &[0x0f, 0x38, 0xc9],
                &[0x0f, 0x38, 0xcb],
            ]));
            modrm(rng, &mut out);
        }
    }
    out
}

/// Returns the bytes of one instruction, or random bytes.
fn piece(rng: &mut Rng) -> Vec<u8> {
    let register = |rng: &mut Rng| rng.below(8) as u8;
    let mut out = vec![];
    match rng.below(39) {
        0 => out.push(rng.next() as u8),
        // MOV of an address to a register.
        1..=3 => {
            out.push(0xb8 + register(rng));
            out.extend((somewhere(rng) as u32).to_le_bytes());
        }
        4..=7 => {
            out.extend([0x48, rng.pick(&[0x01, 0x03, 0x29, 0x2b, 0x31, 0x39, 0x3b, 0x21, 0x0b, 0x85, 0x87])]);
            modrm(rng, &mut out);
        }
        8..=10 => {
            out.extend([
                rng.pick(&[0x48, 0x66, 0x45, 0x40]),
                rng.pick(&[0x88, 0x89, 0x8a, 0x8b, 0x8d, 0x63]),
            ]);
            modrm(rng, &mut out);
        }
        11 => {
            out.push(rng.pick(&[0x80, 0x83, 0xc0, 0xc1, 0xc6, 0x6b]));
            modrm(rng, &mut out);
            out.push(rng.next() as u8);
        }
        12..=13 => out.extend([0x70 + rng.below(16) as u8, rng.next() as u8]),
        14 => {
            out.push(rng.pick(&[0xe8, 0xe9]));
            out.extend((rng.next() as i32 >> 18).to_le_bytes());
        }
        15 => out.push(rng.pick(&[0xc3, 0x50, 0x51, 0x58, 0x59, 0x9c, 0x9d, 0xc9, 0x5c, 0x54])),
        16 => {
            // A short repeated string instruction.
            out.extend([0xb9, rng.next() as u8, rng.below(8) as u8, 0, 0]);
            out.extend([
                rng.pick(&[0xf3, 0xf2]),
                rng.pick(&[0x48, 0x40, 0x67]),
                rng.pick(&[0xa4, 0xa5, 0xaa, 0xab, 0xae, 0xa6, 0xac]),
            ]);
        }
        17 => {
            out.extend([
                0x0f,
                rng.pick(&[
                    0x28, 0x29, 0x58, 0x5e, 0x10, 0x11, 0xae, 0xc7, 0xb1, 0xc1, 0xab, 0xbc, 0x6f, 0x7f,
                ]),
            ]);
            modrm(rng, &mut out);
        }
        18 => {
            out.push(0xd8 + register(rng));
            modrm(rng, &mut out);
        }
        19 => out.push(rng.pick(&[0xfa, 0xfb, 0xf4, 0xfc, 0xfd, 0xf8, 0xf9, 0x90, 0xcc, 0xf1])),
        20 => out.extend([0xcd, rng.next() as u8]),
        21 => out.extend([0x48, 0xcf]),
        22 => out.extend([
            0x0f,
            rng.pick(&[0x05, 0x07, 0x31, 0x32, 0x30, 0xa2, 0x06, 0x0b, 0x08, 0xa0, 0xa1, 0xa9]),
        ]),
        23 => {
            // Accesses to control and debug registers, mostly reads.
            let to = rng.pick(&[0x20, 0x20, 0x21, 0x22, 0x23]);
            out.extend([0x0f, to, 0xc0 | rng.pick(&[0, 2, 3, 4, 7]) << 3 | register(rng)]);
        }
        24 => {
            // INVLPG, LGDT, SGDT, SWAPGS, STAC, CLAC and their neighbours.
            out.extend([0x0f, rng.pick(&[0x00, 0x01, 0x01])]);
            modrm(rng, &mut out);
        }
        25 | 33 => out.extend([rng.pick(&[0xe4, 0xe5, 0xe6, 0xec, 0xee, 0x6c, 0x6e])]),
        26 => {
            // STI or MOV SS. Its interrupt shadow covers the next instruction.
            out.extend(if rng.one_in(2) { vec![0xfb] } else { vec![0x8e, 0xd0 | register(rng)] });
        }
        27..=30 | 34 => {
            // Store of a new paging entry for a page of the window: another page, other rights, or not present.
            out.extend([0x48, 0xc7, 0x04, 0x25]);
            out.extend(((LARGE + PT + rng.below(WINDOW_PAGES) * 8) as u32).to_le_bytes());
            let page = SOUP + rng.below((SOUP_END - SOUP) >> 12) * 4096;
            let rights = rng.below(8) | if rng.one_in(4) { 0 } else { PRESENT | WRITABLE };
            out.extend(((page | rights) as u32).to_le_bytes());
        }
        31..=32 => {
            // Multiplications, divisions, bit scans, POPCNT, and shifts by CL, some with a sign extension before them.
            if rng.one_in(4) {
                out.extend(rng.pick(&[&[0x99][..], &[0x48, 0x99], &[0x31, 0xd2]]));
            }
            let popcnt = rng.one_in(8);
            if popcnt {
                out.push(0xf3);
            }
            out.push(rng.pick(&[0x40, 0x48, 0x48, 0x4d]));
            match rng.below(4) {
                _ if popcnt => out.extend([0x0f, 0xb8]),
                0 => out.extend([0x0f, rng.pick(&[0xaf, 0xbc, 0xbd])]),
                1 => out.push(rng.pick(&[0xd2, 0xd3])),
                _ => out.push(rng.pick(&[0xf6, 0xf7])),
            }
            modrm(rng, &mut out);
        }
        35..=37 => {
            // Floating-point arithmetic, compares and conversions.
            out.extend(rng.pick(&[&[][..], &[0x66], &[0xf2], &[0xf3], &[0xf2, 0x48]]));
            let opcode = rng.pick(&[
                0x2a, 0x2c, 0x2d, 0x2e, 0x2f, 0x51, 0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d, 0x5e, 0x5f, 0xc2,
                0xe6,
            ]);
            out.extend([0x0f, opcode]);
            modrm(rng, &mut out);
            if opcode == 0xc2 {
                out.push(rng.below(9) as u8);
            }
        }
        _ => {
            out.push(0xf0);
            out.extend([0x0f, rng.pick(&[0xb1, 0xc1, 0xb3, 0xbb])]);
            modrm(rng, &mut out);
        }
    }
    out
}
