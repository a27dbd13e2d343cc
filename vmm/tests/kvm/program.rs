//! Random programs: a sequence of pieces of code, each of which ends after a bounded number of instructions.
//!
//! R15 is the address at which a program continues after a fault. R14 points to data, R13 counts system calls, and RSP
//! is a stack. After an instruction that leaves flags undefined, the next instruction defines all flags.

use everett_assembler::*;

use crate::common::KERNEL_SS;
use crate::ground::{CODE, DATA, DATA_BYTES, DEVICE, END, Guest, UNMAPPED};
use crate::lacks::Lacks;
use crate::rng::Rng;

const PIECES: usize = 40;

type Done = Result<(), Error>;

const R64: [Register; 11] = [rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11];
const R32: [Register; 11] = [eax, ebx, ecx, edx, esi, edi, ebp, r8d, r9d, r10d, r11d];
const R8: [Register; 8] = [al, bl, cl, dl, r8b, r9b, r10b, r11b];
const X: [Register; 8] = [xmm0, xmm1, xmm2, xmm3, xmm4, xmm8, xmm9, xmm15];

/// Returns a random program.
pub(crate) fn program(seed: u64, user: bool, lacks: Lacks) -> Guest {
    let mut rng = Rng::for_case(seed, 0);
    let mut g = Guest::new(user);
    for at in (DATA..DATA + DATA_BYTES).step_by(8) {
        // Only some values have 64 random bits. As floating-point numbers, most of these would be huge or tiny.
        let value = match rng.below(4) {
            0 => rng.next(),
            1 => rng.below(1000),
            2 => f64::to_bits(rng.below(1 << 40) as f64 / 7.0),
            _ => rng.next() >> rng.below(64),
        };
        g.ram[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    }
    for n in [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12] {
        g.state.gpr[n] = rng.next() >> rng.below(64);
    }
    g.state.fpu.xmm = std::array::from_fn(|_| u128::from(rng.next()) << 64 | u128::from(rng.next()));
    let mut at = CODE;
    for _ in 0..PIECES {
        // The first assembly only computes the piece's end, which the second assembly needs. Both have the same length.
        let mut twice = rng.clone();
        let end = g.code(at, |a| one(a, &mut twice, user, lacks, at));
        at = g.code(at, |a| one(a, &mut rng, user, lacks, end));
        assert_eq!(at, end);
    }
    g.code(at, |a| {
        if user {
            a.mov(rsi, END)?;
            return a.mov(dword_ptr(rsi), eax);
        }
        a.cli()?;
        a.hlt()
    });
    g
}

/// Emits one piece. If it faults, the program continues at `next`.
fn one(a: &mut Assembler, rng: &mut Rng, user: bool, lacks: Lacks, next: u64) -> Done {
    // Encoded by hand, with 8-byte constants. The first assembly does not know `next` yet, so the length must not
    // depend on it.
    a.db(&[0x49, 0xbf])?;
    a.db(&next.to_le_bytes())?;
    a.db(&[0x49, 0xbe])?;
    a.db(&(DATA + rng.below(DATA_BYTES - 64)).to_le_bytes())?;
    match rng.below(20) {
        0..=3 => alu(a, rng),
        4 => moves(a, rng),
        5 => undefined_flags(a, rng),
        6 => locked(a, rng),
        7 => strings(a, rng),
        8 => sse(a, rng),
        9 => x87(a, rng),
        10 => branches(a, rng),
        11 | 12 if !user => ports(a, rng),
        11..=14 => device(a, rng),
        15 => exceptions(a, rng, user && lacks.int_in_ring_3),
        16 => stack(a, rng),
        _ if user => calls(a, rng, lacks.system_calls),
        _ => system(a, rng, lacks),
    }
}

fn r64(rng: &mut Rng) -> Register {
    rng.pick(&R64)
}
fn memory(rng: &mut Rng) -> MemoryOperand {
    qword_ptr(r14 + rng.below(32) as i32)
}
/// Emits an instruction that defines all status flags.
fn define(a: &mut Assembler, rng: &mut Rng) -> Done {
    a.cmp(r64(rng), r64(rng))
}

fn alu(a: &mut Assembler, rng: &mut Rng) -> Done {
    for _ in 0..1 + rng.below(4) {
        let (x, y, m) = (r64(rng), r64(rng), memory(rng));
        let (d, e) = (rng.pick(&R32), rng.pick(&R32));
        let (b, c) = (rng.pick(&R8), rng.pick(&R8));
        let i = rng.next() as i32;
        match rng.below(16) {
            0 => a.add(x, y),
            1 => a.adc(x, m),
            2 => a.sub(m, x),
            3 => a.sbb(d, e),
            4 => a.add(b, c),
            5 => a.sub(x, i),
            6 => a.neg(m),
            7 => a.inc(x),
            8 => a.dec(dword_ptr(r14 + 4)),
            9 => a.cmp(b, byte_ptr(r14 + 3)),
            10 => a.adc(word_ptr(r14 + 6), i & 0x7fff),
            11 => a.lea(x, qword_ptr(y + r14 * 2 + (i & 0xfff))),
            12 => a.not(m),
            13 => a.xadd(x, y),
            14 => a.cmpxchg(m, y),
            _ => a.cmp(x, i),
        }?;
    }
    Ok(())
}

fn moves(a: &mut Assembler, rng: &mut Rng) -> Done {
    let (x, y, m) = (r64(rng), r64(rng), memory(rng));
    match rng.below(20) {
        0 => a.mov(x, rng.next()),
        1 => a.mov(m, y),
        2 => a.movzx(x, byte_ptr(r14 + 5)),
        3 => a.movsx(x, word_ptr(r14 + 7)),
        4 => a.movsxd(x, rng.pick(&R32)),
        5 => a.xchg(x, y),
        6 => a.bswap(x),
        7 => a.cmovbe(x, m),
        8 => a.setl(rng.pick(&R8)),
        9 => a.cqo(),
        10 => a.lahf(),
        11 => a.sahf(),
        12 => a.cmc(),
        13 => a.movnti(m, y),
        14 => a.cdqe(),
        15 => a.pause(),
        16 => a.mfence(),
        17 => {
            // xlatb
            a.mov(rbx, r14)?;
            a.db(&[0xd7])
        }
        18 => {
            let (over, callee) = (a.create_label(), a.create_label());
            a.jmp(over)?;
            a.set_label(callee)?;
            a.inc(rbx)?;
            a.ret()?;
            a.set_label(over)?;
            a.call(callee)
        }
        _ => a.prefetcht0(byte_ptr(r14)),
    }
}

fn undefined_flags(a: &mut Assembler, rng: &mut Rng) -> Done {
    let (x, y, m) = (r64(rng), r64(rng), memory(rng));
    let n = rng.below(64) as i32;
    match rng.below(14) {
        0 => a.shl(x, n),
        1 => a.sar(rng.pick(&R32), cl),
        2 => a.ror(m, n),
        3 => a.rcl(x, 1),
        4 => a.imul_2(x, y),
        5 => a.mul(m),
        6 => a.and(x, y),
        7 => a.xor(m, y),
        8 => a.bts(x, n),
        9 => a.popcnt(x, y),
        10 => a.shld(x, y, n),
        11 => {
            a.or(y, 1)?;
            a.bsf(x, y)
        }
        12 => {
            // The operands avoid an overflow.
            a.xor(edx, edx)?;
            a.mov(ecx, 1 + rng.below(1000) as i32)?;
            a.div(rcx)
        }
        _ => a.test(rng.pick(&R8), rng.pick(&R8)),
    }?;
    define(a, rng)
}

fn locked(a: &mut Assembler, rng: &mut Rng) -> Done {
    let y = r64(rng);
    let m = qword_ptr(r14 + 8 * rng.below(4) as i32);
    match rng.below(6) {
        0 => a.lock().add(m, y),
        1 => a.lock().xadd(m, y),
        2 => a.lock().cmpxchg(m, y),
        3 => a.xchg(m, y),
        4 => a.lock().cmpxchg8b(m),
        _ => {
            a.and(r14, -16)?;
            a.mov(rax, qword_ptr(r14))?;
            if rng.one_in(2) {
                a.mov(rdx, qword_ptr(r14 + 8))?;
            }
            a.lock().cmpxchg16b(xmmword_ptr(r14))
        }
    }?;
    define(a, rng)
}

fn strings(a: &mut Assembler, rng: &mut Rng) -> Done {
    a.mov(rsi, DATA + 512 + rng.below(DATA_BYTES - 1024))?;
    a.mov(rdi, DATA + 512 + rng.below(DATA_BYTES - 1024))?;
    a.mov(ecx, rng.below(40) as i32)?;
    let backwards = rng.one_in(4);
    if backwards {
        a.std()?;
    }
    match rng.below(7) {
        0 => a.rep().movsb(),
        1 => a.rep().movsq(),
        2 => a.rep().stosq(),
        3 => a.rep().stosb(),
        4 => a.repe().cmpsb(),
        5 => a.repne().scasb(),
        _ => a.lodsd(),
    }?;
    a.cld()
}

fn sse(a: &mut Assembler, rng: &mut Rng) -> Done {
    for _ in 0..1 + rng.below(3) {
        let (x, y) = (rng.pick(&X), rng.pick(&X));
        let m = xmmword_ptr(r14 + rng.below(16) as i32);
        match rng.below(20) {
            0 => a.movdqu(x, m),
            1 => a.movdqu(m, x),
            2 => a.paddq(x, y),
            3 => a.pxor(x, y),
            4 => a.addpd(x, y),
            5 => a.mulsd(x, qword_ptr(r14 + 8)),
            6 => a.divps(x, y),
            7 => a.sqrtsd(x, y),
            8 => a.cvtsi2sd(x, r64(rng)),
            9 => a.cvttsd2si(r64(rng), x),
            10 => a.pshufb(x, y),
            11 => a.movq(r64(rng), x),
            12 => a.crc32(r64(rng), r64(rng)),
            13 => a.pmuludq(x, y),
            14 => a.palignr(x, y, rng.below(20) as i32),
            15 => a.ptest(x, y),
            16 => a.comisd(x, y),
            17 => a.cvtps2dq(x, y),
            18 => a.stmxcsr(dword_ptr(r14)),
            _ => a.pinsrq(x, r64(rng), 1),
        }?;
    }
    Ok(())
}

fn x87(a: &mut Assembler, rng: &mut Rng) -> Done {
    a.fninit()?;
    a.fld(qword_ptr(r14))?;
    match rng.below(5) {
        0 => a.fld1(),
        1 => a.fild(dword_ptr(r14 + 8)),
        2 => a.fldpi(),
        3 => a.fsqrt(),
        _ => a.fchs(),
    }?;
    match rng.below(4) {
        0 => a.fadd_2(st0, st0),
        1 => a.fmul_2(st0, st0),
        2 => a.fstp(qword_ptr(r14 + 16)),
        _ => a.fistp(dword_ptr(r14 + 24)),
    }?;
    // Defines the four x87 condition codes. Arithmetic leaves three of them undefined.
    a.fxam()
}

fn branches(a: &mut Assembler, rng: &mut Rng) -> Done {
    let over = a.create_label();
    match rng.below(5) {
        0 => a.jb(over),
        1 => a.jne(over),
        2 => a.jg(over),
        3 => a.jrcxz(over),
        _ => {
            let again = a.create_label();
            a.mov(ecx, 1 + rng.below(50) as i32)?;
            a.set_label(again)?;
            a.add(rax, rcx)?;
            a.dec(ecx)?;
            a.jnz(again)
        }
    }?;
    a.add(r64(rng), rng.next() as i32)?;
    a.set_label(over)
}

/// Emits accesses to ports, for ring 0 only: some hosts do not let ring 3 access ports, whatever IOPL is.
fn ports(a: &mut Assembler, rng: &mut Rng) -> Done {
    a.mov(dx, rng.below(0xe00) as i32)?;
    match rng.below(7) {
        0 => a.in_(al, dx),
        1 => a.in_(ax, dx),
        2 => a.in_(eax, dx),
        3 => a.out(dx, al),
        4 => a.out(dx, ax),
        5 => a.out(dx, eax),
        _ => a.in_(eax, 0x61),
    }
}

fn device(a: &mut Assembler, rng: &mut Rng) -> Done {
    a.mov(rsi, DEVICE + 8 * rng.below(500))?;
    match rng.below(9) {
        0 => a.mov(rax, qword_ptr(rsi)),
        1 => a.mov(ebx, dword_ptr(rsi)),
        2 => a.mov(dword_ptr(rsi), ebx),
        3 => a.mov(byte_ptr(rsi + 3), cl),
        4 => a.movzx(eax, word_ptr(rsi + 2)),
        5 => a.mov(qword_ptr(rsi), rdx),
        6 => a.add(dword_ptr(rsi), eax),
        7 => a.cmp(byte_ptr(rsi), 5),
        _ => a.mov(dword_ptr(rsi), rng.next() as i32),
    }
}

fn exceptions(a: &mut Assembler, rng: &mut Rng, no_int: bool) -> Done {
    match rng.below(9) {
        0 => a.ud2(),
        1 => a.mov(rax, qword_ptr(UNMAPPED + 8 * rng.below(8))),
        2 => a.mov(qword_ptr(UNMAPPED + 8 * rng.below(8)), rbx),
        3 => {
            a.mov(rbx, 1u64 << 62)?;
            a.mov(rax, qword_ptr(rbx))
        }
        4 => {
            a.xor(ecx, ecx)?;
            a.cmp(eax, eax)?;
            a.div(rcx)
        }
        5 => a.int3(),
        6 if !no_int => a.int(0x30 + rng.below(8) as i32),
        7 => {
            a.mov(rbx, UNMAPPED)?;
            a.jmp(rbx)
        }
        _ => {
            // An access that is not aligned, by an instruction that requires alignment.
            a.or(r14, 1)?;
            a.cmp(eax, eax)?;
            a.movdqa(xmm0, xmmword_ptr(r14))
        }
    }
}

fn stack(a: &mut Assembler, rng: &mut Rng) -> Done {
    match rng.below(4) {
        0 => {
            a.push(r64(rng))?;
            a.pop(r64(rng))
        }
        1 => {
            a.pushfq()?;
            a.pop(r64(rng))
        }
        2 => {
            a.push(rng.next() as i32)?;
            a.add(rsp, 8)
        }
        _ => {
            a.enter(16, 0)?;
            a.leave()
        }
    }
}

/// Emits an instruction that only programs in ring 3 contain.
fn calls(a: &mut Assembler, rng: &mut Rng, no_syscall: bool) -> Done {
    match rng.below(3) {
        0 | 1 if !no_syscall => a.syscall(),
        // These instructions raise #GP in ring 3.
        _ => match rng.below(4) {
            0 => a.hlt(),
            1 => a.mov(rax, cr0),
            2 => a.rdmsr(),
            _ => a.lgdt(ptr(r14)),
        },
    }
}

/// Emits instructions that only programs in ring 0 contain.
fn system(a: &mut Assembler, rng: &mut Rng, lacks: Lacks) -> Done {
    const MSRS: [i32; 8] =
        [0x8b, 0x174, 0x175, 0x1a0, 0x277, 0xc000_0082u32 as i32, 0xc000_0102u32 as i32, 0x17];
    match rng.below(28) {
        0 => a.sti()?,
        1 => a.cli()?,
        2 => {
            a.sti()?;
            a.hlt()?;
        }
        3 | 4 => {
            a.mov(ecx, rng.pick(&MSRS))?;
            a.rdmsr()?;
        }
        5 => {
            a.mov(ecx, 0xc000_0102u32)?;
            a.mov(eax, rng.next() as i32)?;
            a.mov(edx, rng.below(0x7fff) as i32)?;
            a.wrmsr()?;
        }
        6 => {
            // Writes an invalid value to an MSR (PAT), or writes to an MSR that does not exist.
            a.mov(ecx, rng.pick(&[0x277, 0x1234]))?;
            a.mov(eax, 0x0202_0202)?;
            a.mov(edx, eax)?;
            a.wrmsr()?;
        }
        7 => {
            a.swapgs()?;
            a.swapgs()?;
        }
        8 => {
            a.mov(cr2, r64(rng))?;
            a.mov(r64(rng), cr2)?;
        }
        9 => {
            a.mov(dr0, r64(rng))?;
            a.mov(r64(rng), dr7)?;
        }
        10 => a.invlpg(ptr(r14))?,
        11 => a.mov(r64(rng), rng.pick(&[cr0, cr3, cr4]))?,
        12 => {
            a.mov(rax, cr3)?;
            a.mov(cr3, rax)?;
        }
        13 => {
            a.mov(eax, i32::from(KERNEL_SS))?;
            a.mov(ss, eax)?;
            a.mov(es, eax)?;
        }
        14 => {
            a.sgdt(ptr(r14))?;
            a.xor(eax, eax)?;
            define(a, rng)?;
            a.mov(fs, eax)?;
        }
        15 => {
            a.pushfq()?;
            a.popfq()?;
        }
        16 => {
            // Switches write protection off and on.
            a.mov(rax, cr0)?;
            a.btc(rax, 16)?;
            a.mov(cr0, rax)?;
            a.btc(rax, 16)?;
            a.mov(cr0, rax)?;
            define(a, rng)?;
        }
        17 => {
            a.mov(rax, cr4)?;
            a.btc(rax, 7)?;
            a.mov(cr4, rax)?;
            a.btc(rax, 7)?;
            a.mov(cr4, rax)?;
            define(a, rng)?;
        }
        18 => {
            a.smsw(rax)?;
            a.clts()?;
        }
        19 => {
            a.sldt(eax)?;
            a.str(ebx)?;
        }
        20 => {
            a.mov(eax, 0x10 + 8 * rng.below(8) as i32)?;
            a.lar(ebx, eax)?;
            // The manual leaves bits 19:16 of LAR's result undefined.
            a.and(ebx, 0x00f0_ff00)?;
            define(a, rng)?;
        }
        21 => {
            a.xor(eax, eax)?;
            define(a, rng)?;
            a.lldt(ax)?;
        }
        22 if !lacks.idt => {
            a.sidt(ptr(r14))?;
            a.lidt(ptr(r14))?;
        }
        23 => {
            a.sgdt(ptr(r14))?;
            a.lgdt(ptr(r14))?;
        }
        24 => a.wbinvd()?,
        25 => {
            // IRETQ to the next instruction, within ring 0.
            let on = a.create_label();
            a.mov(rax, rsp)?;
            a.push(i32::from(KERNEL_SS))?;
            a.push(rax)?;
            a.push(0x202)?;
            a.push(0x10)?;
            a.lea(rbx, ptr(on))?;
            a.push(rbx)?;
            a.iretq()?;
            a.set_label(on)?;
        }
        26 => {
            // Selects a descriptor that is not present, or is no data segment.
            a.mov(eax, rng.pick(&[0x50, 0x40, 0x78]))?;
            a.mov(ds, eax)?;
        }
        _ => {
            let low = rng.next() >> 32;
            let value = if rng.one_in(2) && !lacks.upper_half_of_cr0 { low | 1 << 40 } else { low };
            a.mov(rax, value)?;
            a.mov(cr0, rax)?;
        }
    }
    Ok(())
}
