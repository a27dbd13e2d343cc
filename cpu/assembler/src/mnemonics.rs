//! One method per instruction that tests use.

use iced_x86::Mnemonic;

use crate::assembler::Assembler;
use crate::error::Error;
use crate::operand::Operand;

/// Defines a method that adds an instruction. The arguments are the method's name, the mnemonic and the operands'
/// names.
macro_rules! method {
    ($name:ident $mnemonic:ident [$($operand:ident)*]) => {
        #[doc = concat!("Adds the instruction `", stringify!($mnemonic), "`.")]
        ///
        /// # Errors
        ///
        /// If the instruction has no encoding with these operands.
        pub fn $name(&mut self, $($operand: impl Into<Operand>),*) -> Result<(), Error> {
            self.add_instruction(Mnemonic::$mnemonic, &[$($operand.into()),*])
        }
    };
}

/// Defines the methods of several lists. Each list begins with the names of the operands.
macro_rules! methods {
    ($($operands:tt: $($name:ident $mnemonic:ident)*;)*) => {
        impl Assembler {
            $($( method!($name $mnemonic $operands); )*)*
        }
    };
}

methods! {
    []:
        cdqe Cdqe clac Clac cld Cld cli Cli clts Clts cmc Cmc cmpsb Cmpsb cpuid Cpuid cqo Cqo
        endbr64 Endbr64 fchs Fchs fld1 Fld1 fldpi Fldpi fninit Fninit fsqrt Fsqrt fxam Fxam hlt Hlt
        insb Insb insd Insd insw Insw int1 Int1 int3 Int3 invd Invd iretq Iretq lahf Lahf leave Leave
        lodsd Lodsd mfence Mfence movsb Movsb movsq Movsq mwait Mwait nop Nop outsb Outsb outsd Outsd
        outsw Outsw pause Pause popfq Popfq pushfq Pushfq rdmsr Rdmsr rdpmc Rdpmc rdtsc Rdtsc rdtscp Rdtscp
        ret Ret sahf Sahf scasb Scasb stac Stac stc Stc std Std sti Sti stosb Stosb stosq Stosq
        stosw Stosw swapgs Swapgs syscall Syscall sysenter Sysenter sysretq Sysretq ud2 Ud2 wbinvd Wbinvd
        wrmsr Wrmsr;
    [operand]:
        bswap Bswap call Call cmpxchg16b Cmpxchg16b cmpxchg8b Cmpxchg8b dec Dec div Div fild Fild
        fistp Fistp fld Fld fstp Fstp inc Inc int Int invlpg Invlpg ja Ja jae Jae jb Jb jc Jb je Je jg Jg
        jmp Jmp jne Jne jnz Jne jp Jp jrcxz Jrcxz jz Je ldmxcsr Ldmxcsr lgdt Lgdt lidt Lidt lldt Lldt lmsw Lmsw ltr Ltr
        mul Mul neg Neg not Not pop Pop prefetcht0 Prefetcht0 push Push setc Setb sete Sete setg Setg
        setl Setl setnz Setne seto Seto setp Setp sgdt Sgdt sidt Sidt sldt Sldt smsw Smsw stmxcsr Stmxcsr str Str
        verr Verr verw Verw;
    [destination source]:
        adc Adc add Add addpd Addpd and And bsf Bsf bt Bt btc Btc btr Btr bts Bts cmova Cmova cmovb Cmovb
        cmovbe Cmovbe cmovg Cmovg cmovl Cmovl cmovo Cmovo cmovz Cmove cmp Cmp cmpxchg Cmpxchg comisd Comisd
        crc32 Crc32 cvtps2dq Cvtps2dq cvtsi2sd Cvtsi2sd cvttsd2si Cvttsd2si divps Divps enter Enter
        fadd_2 Fadd fmul_2 Fmul imul_2 Imul in_ In lar Lar lea Lea lsl Lsl mov Mov movaps Movaps movd Movd
        movdqa Movdqa movdqu Movdqu movhps Movhps movnti Movnti movq Movq movsd_2 Movsd movss Movss
        movsx Movsx movsxd Movsxd movzx Movzx mulsd Mulsd or Or out Out paddd Paddd paddq Paddq
        pmovmskb Pmovmskb pmuludq Pmuludq popcnt Popcnt pshufb Pshufb psrldq Psrldq ptest Ptest
        punpcklbw Punpcklbw pxor Pxor rcl Rcl rol Rol ror Ror sar Sar sbb Sbb shl Shl shr Shr sqrtsd Sqrtsd
        sub Sub test Test xadd Xadd xchg Xchg xor Xor;
    [destination source third]:
        imul_3 Imul palignr Palignr pinsrq Pinsrq pshufd Pshufd pshuflw Pshuflw shld Shld;
}
