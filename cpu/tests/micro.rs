//! Micro-guests: small programs in 64-bit mode that exercise the privileged side of the CPU, with page tables,
//! descriptor tables and handlers of their own.
//! Each guest runs in several ways (see `harness::check`): interpreted and translated, with ordinary and with tiny
//! caches, with caches dropped at random, one instruction at a time, and in several runs of random length. All runs
//! must end with the same registers and the same RAM.

mod micro {
    mod harness;
    mod image;
    mod near;

    mod arithmetic;
    mod bit_tests;
    mod bmi;
    mod branches;
    mod breakpoints;
    mod code;
    mod debug;
    mod edges;
    mod exceptions;
    mod flag_instructions;
    mod floating;
    mod havoc;
    mod instruction_restart;
    mod models;
    mod paging;
    mod port;
    mod privilege;
    mod registers;
    mod remap;
    mod rings;
    mod roots;
    mod segments;
    mod traces;
    mod translated;
    mod vex;
    mod watch;
    mod xsave;
}
