//! Decides which instructions the CPU model `v2` has: those of x86-64-v2, RDTSCP and SMAP, and encodings (PREFETCHW,
//! CET) that execute as NOPs on a CPU that lacks their feature.

use iced_x86::{CpuidFeature, Instruction};

/// True if the model has every CPU feature that the instruction needs.
pub fn has(i: &Instruction) -> bool {
    i.cpuid_features().iter().all(|f| {
        use CpuidFeature::*;
        matches!(
            f,
            INTEL8086
                | INTEL8086_ONLY
                | INTEL186
                | INTEL286
                | INTEL386
                | INTEL486
                | X64
                | CPUID
                | CMOV
                | FPU
                | FPU287
                | FPU387
                | FXSR
                | MMX
                | MSR
                | TSC
                | RDTSCP
                | RDPMC
                | PAUSE
                | MULTIBYTENOP
                | SEP
                | SYSCALL
                | SSE
                | SSE2
                | SSE3
                | SSSE3
                | SSE4_1
                | SSE4_2
                | POPCNT
                | CX8
                | CMPXCHG16B
                | CLFSH
                | PREFETCHW
                | SMAP
                | CET_IBT
                | CET_SS
        )
    })
}
