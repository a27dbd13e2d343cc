//! Tests of the assembler: instructions and programs must have the bytes that `code_asm` of `iced-x86` 1.22 gives.

use everett_assembler::*;
use iced_x86::{Decoder, DecoderOptions};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that each line's instruction is assembled to the line's bytes, and that the bytes decode to one instruction.
macro_rules! check {
    ($($bytes:literal $($call:ident($($operand:expr),*)).+;)*) => { $(
        let mut a = Assembler::new();
        a.$($call($($operand),*)).+.expect(stringify!($($call($($operand),*)).+));
        let code = a.assemble(0x1000).expect("no address is out of reach");
        assert_eq!(hex(&code), $bytes, "{}", stringify!($($call($($operand),*)).+));
        let mut decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        assert_eq!(decoder.decode().len(), code.len());
        assert!(!decoder.can_decode());
    )* };
}

#[test]
fn instructions_have_the_expected_bytes() {
    check! {
        "4889d8" mov(rax, rbx);
        "4589d1" mov(r9d, r10d);
        "88dc" mov(ah, bl);
        "48b80500000000000000" mov(rax, 5u64);
        "49b8ffffffffffffffff" mov(r8, -1i64);
        "b905000000" mov(ecx, 5);
        "b9f0ffffff" mov(ecx, 0xffff_fff0u32);
        "66b9feff" mov(cx, -2);
        "b3ff" mov(bl, 0xff);
        "48c707ffffffff" mov(qword_ptr(rdi), -1);
        "66c743023412" mov(word_ptr(rbx + 2), 0x1234);
        "41c6042407" mov(byte_ptr(r12), 7);
        "488b44cef0" mov(rax, qword_ptr(rsi + rcx * 8 - 16));
        "488b4500" mov(rax, qword_ptr(rbp));
        "498b5c1500" mov(rbx, qword_ptr(r13 + rdx));
        "898b80000000" mov(dword_ptr(rbx + 0x80), ecx);
        "488b0c2500100000" mov(rcx, qword_ptr(0x1000));
        "48a10010000000000000" mov(rax, qword_ptr(0x1000));
        "65a00800000000000000" mov(al, byte_ptr(8).gs());
        "a39a78563412000000" mov(dword_ptr(0x12_3456_789au64), eax);
        "488b148d00010000" mov(rdx, qword_ptr(rcx * 4 + 0x100));
        "48890424" mov(qword_ptr(rsp), rax);
        "668ed8" mov(ds, ax);
        "668cd8" mov(ax, ds);
        "488cd0" mov(rax, ss);
        "8c2f" mov(word_ptr(rdi), gs);
        "0f20d8" mov(rax, cr3);
        "440f22c3" mov(cr8, rbx);
        "0f23f8" mov(dr7, rax);
        "480508000000" add(rax, 8);
        "4883c308" add(rbx, 8);
        "4881c380000000" add(rbx, 0x80);
        "05ffffffff" add(eax, -1);
        "83c1ff" add(ecx, 0xffff_ffffu32);
        "6681c13412" add(cx, 0x1234);
        "6683c201" add(dx, 1);
        "0401" add(al, 1);
        "80c301" add(bl, 1);
        "48030b" add(rcx, qword_ptr(rbx));
        "48010b" add(qword_ptr(rbx), rcx);
        "810300000100" add(dword_ptr(rbx), 0x1_0000);
        "4811d8" adc(rax, rbx);
        "19d1" sbb(ecx, edx);
        "4883ec28" sub(rsp, 0x28);
        "4883e1f0" and(rcx, -16);
        "800801" or(byte_ptr(rax), 1);
        "31c0" xor(eax, eax);
        "4883fb80" cmp(rbx, -0x80);
        "4881fb7fffffff" cmp(rbx, -0x81);
        "a901000000" test(eax, 1);
        "f7c301000000" test(ebx, 1);
        "84c0" test(al, al);
        "4887d8" xchg(rax, rbx);
        "4893" xchg(rbx, rax);
        "48870f" xchg(qword_ptr(rdi), rcx);
        "90" xchg(eax, eax);
        "0fc107" xadd(dword_ptr(rdi), eax);
        "480fb11f" cmpxchg(qword_ptr(rdi), rbx);
        "0fc70f" cmpxchg8b(qword_ptr(rdi));
        "480fc70f" cmpxchg16b(xmmword_ptr(rdi));
        "48ffc0" inc(rax);
        "ff4e01" dec(dword_ptr(rsi + 1));
        "f6db" neg(bl);
        "66f717" not(word_ptr(rdi));
        "48f7e1" mul(rcx);
        "f7f1" div(ecx);
        "480fafc1" imul_2(rax, rcx);
        "4d6bf61f" imul_3(r14, r14, 31);
        "69c3e8030000" imul_3(eax, ebx, 1000);
        "48d1e0" shl(rax, 1);
        "48c1e00c" shl(rax, 12);
        "d3e9" shr(ecx, cl);
        "66c13f03" sar(word_ptr(rdi), 3);
        "d0d3" rcl(bl, 1);
        "48c1ca3f" ror(rdx, 63);
        "480fa4d804" shld(rax, rbx, 4);
        "480fa5d8" shld(rax, rbx, cl);
        "480fbae003" bt(rax, 3);
        "480fab07" bts(qword_ptr(rdi), rax);
        "0fba3705" btr(dword_ptr(rdi), 5);
        "480fbcc1" bsf(rax, rcx);
        "490fc9" bswap(r9);
        "f3480fb8c3" popcnt(rax, rbx);
        "f20f38f0c3" crc32(eax, bl);
        "0fb606" movzx(eax, byte_ptr(rsi));
        "480fb7c1" movzx(rax, cx);
        "0fbf0e" movsx(ecx, word_ptr(rsi));
        "4863c1" movsxd(rax, ecx);
        "480fc307" movnti(qword_ptr(rdi), rax);
        "488d444b03" lea(rax, ptr(rbx + rcx * 2 + 3));
        "8d4fff" lea(ecx, qword_ptr(rdi - 1));
        "50" push(rax);
        "6a01" push(1);
        "6800100000" push(0x1000);
        "687fffffff" push(-0x81);
        "ff33" push(qword_ptr(rbx));
        "0fa0" push(fs);
        "415f" pop(r15);
        "0fa9" pop(gs);
        "8f4308" pop(qword_ptr(rbx + 8));
        "c8100001" enter(16, 1);
        "c9" leave();
        "c3" ret();
        "48cf" iretq();
        "9c" pushfq();
        "9d" popfq();
        "90" nop();
        "f390" pause();
        "cd80" int(0x80);
        "cc" int3();
        "f1" int1();
        "0f0b" ud2();
        "f4" hlt();
        "e460" in_(al, 0x60);
        "ed" in_(eax, dx);
        "e680" out(0x80, al);
        "66ef" out(dx, ax);
        "ffd0" call(rax);
        "ff13" call(qword_ptr(rbx));
        "41ffe0" jmp(r8);
        "ff2b" jmp(fword_ptr(rbx));
        "48ff2b" jmp(tbyte_ptr(rbx));
        "0f94c0" sete(al);
        "0f9507" setnz(byte_ptr(rdi));
        "480f4203" cmovb(rax, qword_ptr(rbx));
        "0f0113" lgdt(tbyte_ptr(rbx));
        "0f011b" lidt(ptr(rbx));
        "0f0107" sgdt(tbyte_ptr(rdi));
        "660f00d0" lldt(ax);
        "660f00d8" ltr(ax);
        "480f00c8" str(rax);
        "0f0007" sldt(word_ptr(rdi));
        "0f01e0" smsw(eax);
        "0f0127" smsw(word_ptr(rdi));
        "660f01f0" lmsw(ax);
        "480f02c3" lar(rax, rbx);
        "0f03c8" lsl(ecx, eax);
        "660f00e0" verr(ax);
        "0f013f" invlpg(byte_ptr(rdi));
        "a4" movsb();
        "48a5" movsq();
        "66ab" stosw();
        "ad" lodsd();
        "ae" scasb();
        "a6" cmpsb();
        "6c" insb();
        "6d" insd();
        "666f" outsw();
        "f3aa" rep().stosb();
        "f348a5" rep().movsq();
        "f2ae" repne().scasb();
        "f3a6" repe().cmpsb();
        "f0ff07" lock().inc(dword_ptr(rdi));
        "f0480fc70f" lock().cmpxchg16b(xmmword_ptr(rdi));
        "660f6ec0" movd(xmm0, eax);
        "66480f6ec8" movq(xmm1, rax);
        "66480f7ec8" movq(rax, xmm1);
        "f30f7e0e" movq(xmm1, qword_ptr(rsi));
        "f30f7eca" movq(xmm1, xmm2);
        "66410f6fc1" movdqa(xmm0, xmm9);
        "f30f7f1f" movdqu(xmmword_ptr(rdi), xmm3);
        "0f280e" movaps(xmm1, xmmword_ptr(rsi));
        "f30f10c1" movss(xmm0, xmm1);
        "f20f100e" movsd_2(xmm1, qword_ptr(rsi));
        "0f170f" movhps(qword_ptr(rdi), xmm1);
        "66450fefc0" pxor(xmm8, xmm8);
        "660f73d804" psrldq(xmm0, 4);
        "660f70c11b" pshufd(xmm0, xmm1, 0x1b);
        "660f3a0fc103" palignr(xmm0, xmm1, 3);
        "66480f3a22c001" pinsrq(xmm0, rax, 1);
        "660fd7c0" pmovmskb(eax, xmm0);
        "f2480f2ac0" cvtsi2sd(xmm0, rax);
        "f20f2a06" cvtsi2sd(xmm0, dword_ptr(rsi));
        "f2480f2cc0" cvttsd2si(rax, xmm0);
        "db2e" fld(tbyte_ptr(rsi));
        "d9c1" fld(st1);
        "dd1f" fstp(qword_ptr(rdi));
        "db06" fild(dword_ptr(rsi));
        "d8c1" fadd_2(st0, st1);
        "dcca" fmul_2(st2, st0);
        "d9e0" fchs();
        "0fae1f" stmxcsr(dword_ptr(rdi));
        "0f180f" prefetcht0(byte_ptr(rdi));
    }
}

/// Assembles a program at address 0x1000 and returns its bytes. `write` gets an assembler and two new labels, and adds
/// the program's instructions to the assembler.
fn program(write: fn(&mut Assembler, Label, Label) -> Result<(), Error>) -> Result<Vec<u8>, Error> {
    let mut a = Assembler::new();
    let (end, top) = (a.create_label(), a.create_label());
    write(&mut a, end, top)?;
    a.assemble(0x1000)
}

#[test]
fn branches_are_short_where_their_targets_are_in_reach() {
    type Program = fn(&mut Assembler, Label, Label) -> Result<(), Error>;
    let programs: [(&str, &str, Program); 12] = [
        ("forward 124", "eb7c[125]", |a, end, _| {
            a.jmp(end)?;
            a.db(&[0x90; 124])?;
            a.set_label(end)?;
            a.nop()
        }),
        ("forward 125", "e97d000000[126]", |a, end, _| {
            a.jmp(end)?;
            a.db(&[0x90; 125])?;
            a.set_label(end)?;
            a.nop()
        }),
        ("conditional 123", "747b[124]", |a, end, _| {
            a.jz(end)?;
            a.db(&[0x90; 123])?;
            a.set_label(end)?;
            a.nop()
        }),
        ("conditional 124", "0f847c000000[125]", |a, end, _| {
            a.jz(end)?;
            a.db(&[0x90; 124])?;
            a.set_label(end)?;
            a.nop()
        }),
        ("backward 126", "[126]eb80", |a, end, _| {
            a.set_label(end)?;
            a.db(&[0x90; 126])?;
            a.jmp(end)
        }),
        ("backward 127", "[127]e97cffffff", |a, end, _| {
            a.set_label(end)?;
            a.db(&[0x90; 127])?;
            a.jmp(end)
        }),
        ("chain", "747beb7a[123]", |a, end, top| {
            a.jz(end)?;
            a.jmp(top)?;
            a.db(&[0x90; 121])?;
            a.set_label(end)?;
            a.nop()?;
            a.set_label(top)?;
            a.nop()
        }),
        ("chain of long ones", "0f847e000000e97d000000[126]", |a, end, top| {
            a.jz(end)?;
            a.jmp(top)?;
            a.db(&[0x90; 121])?;
            a.set_label(end)?;
            a.db(&[0x90; 4])?;
            a.set_label(top)?;
            a.nop()
        }),
        ("over a call", "e803000000e30190ebfd", |a, end, top| {
            a.call(end)?;
            a.jrcxz(end)?;
            a.set_label(top)?;
            a.nop()?;
            a.set_label(end)?;
            a.jmp(top)
        }),
        ("absolute", "ebfeeb7de9f70f000075e5e8f0ffffff", |a, _, _| {
            a.jmp(0x1000u64)?;
            a.jmp(0x1081u64)?;
            a.jmp(0x2000u64)?;
            a.jne(0x0ff0u64)?;
            a.call(0x1000u64)
        }),
        (
            "relative to rip",
            "488d05f9ffffff488d1d14000000488b0d0d000000ff25070000008305000000000190",
            |a, end, top| {
                a.set_label(top)?;
                a.lea(rax, ptr(top))?;
                a.lea(rbx, ptr(end))?;
                a.mov(rcx, ptr(end))?;
                a.jmp(qword_ptr(end))?;
                a.add(dword_ptr(end), 1)?;
                a.set_label(end)?;
                a.nop()
            },
        ),
        ("data", "488b0503000000010203010203040807060504030201ebfe", |a, end, top| {
            a.mov(rax, ptr(end))?;
            a.db(&[1, 2, 3])?;
            a.set_label(end)?;
            a.dd(&[0x0403_0201])?;
            a.dq(&[0x0102_0304_0506_0708])?;
            a.set_label(top)?;
            a.jmp(top)
        }),
    ];
    for (name, bytes, write) in programs {
        let code = hex(&program(write).expect(name));
        assert_eq!(code, nops(bytes), "{name}");
    }
}

/// Replaces `[N]` by the bytes of N `nop` instructions.
fn nops(bytes: &str) -> String {
    match bytes.split_once('[').and_then(|(start, rest)| Some((start, rest.split_once(']')?))) {
        Some((start, (count, end))) => {
            format!("{start}{}{end}", "90".repeat(count.parse().expect("a number")))
        }
        None => bytes.to_owned(),
    }
}

#[test]
fn errors_name_the_mistake() {
    type Program = fn(&mut Assembler, Label, Label) -> Result<(), Error>;
    let programs: [(&str, Program); 11] = [
        ("no encoding has these operands", |a, _, _| a.mov(al, rbx)),
        ("no encoding has these operands", |a, _, _| a.add(rax, 0xffff_ffffu32)),
        ("no encoding has these operands", |a, _, _| a.add(rax, 1u64)),
        ("no encoding has these operands", |a, _, _| a.mov(rbx, qword_ptr(0x8000_0000u64))),
        ("no encoding has a memory operand of this size", |a, _, _| a.inc(ptr(rdi))),
        ("no encoding has a memory operand of this size", |a, _, _| a.push(tbyte_ptr(rdi))),
        ("Label(0) is not set", |a, end, _| a.jmp(end)),
        ("Label(0) is set twice", |a, end, _| a.set_label(end).and_then(|()| a.set_label(end))),
        ("a prefix has no instruction", |a, _, _| a.rep().db(&[0xa4])),
        ("Jmp_rel32_64 at 0x1000", |a, _, _| a.jmp(0x1_0000_0000u64)),
        ("Jrcxz_rel8_64 at 0x1000", |a, end, _| {
            a.jrcxz(end)?;
            a.db(&[0; 128])?;
            a.set_label(end)
        }),
    ];
    for (message, write) in programs {
        let error = program(write).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
