//! Execution of a test instruction with signals and the trap flag.
//!
//! The test raises a breakpoint. The signal handler saves the interrupted context, replaces it by the test's registers
//! with the trap flag set, and returns. The kernel loads all of these registers, including the FXSAVE state and RSP.
//! The CPU executes one instruction and traps. If the test has more steps, the handler returns, and the CPU executes
//! the next one. After the last step, the handler copies the context (registers, vector, error code, CR2), and restores
//! the saved context. No surrounding code can therefore disturb the instruction, and branches need no special case.
#![allow(unsafe_code)]

use crate::arena::GS_BASE;
use crate::state::{End, FXSAVE_LEN, Outcome, State, Steps, flag, from_fxsave, to_fxsave};
use std::arch::{asm, naked_asm};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Size of the alternate signal stack in bytes. A signal frame with the extended state of any processor fits.
const STACK_LEN: usize = 256 << 10;
/// `ARCH_SET_GS` of arch_prctl(2).
const ARCH_SET_GS: libc::c_ulong = 0x1001;
/// Offset in the FXSAVE image of the kernel's magic number. The number says that an XSAVE header follows the image in
/// the signal frame (asm/sigcontext.h).
const XSTATE_MAGIC_AT: usize = 464;
const XSTATE_MAGIC: u32 = 0x4650_5853;
/// Bits of XSTATE_BV for the x87, SSE and AVX state.
const XSTATE_TESTED: u64 = 7;
/// Bit of XSTATE_BV for the AVX state.
const XSTATE_AVX: u64 = 4;
/// Offset in the frame's XSAVE area of the upper halves of the YMM registers (SDM vol. 1, 13.4.3).
const YMM_AT: usize = 576;
/// Upper halves of the YMM registers in a signal frame.
type Halves = [u128; 16];

const VECTOR_DB: i64 = 1;
const VECTOR_BP: i64 = 3;
const VECTOR_PF: u8 = 14;

/// Index in `gregs` of each register of `State::gpr`.
const GREG: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// Bits of RFLAGS that a test sets. The kernel loads these and other bits from a signal frame (`FIX_EFLAGS`).
const GIVEN_FLAGS: u64 = flag::ARITH | flag::DF | flag::AC;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The next signal is the breakpoint that starts the test.
    Enter,
    /// The next signal comes from the test instruction.
    Inside,
    /// The handler has stored the outcome.
    Done,
}

/// Data that the signal handler shares with the test.
struct Job {
    phase: Phase,
    input: State,
    steps: Steps,
    retired: u64,
    output: Option<Outcome>,
    saved_gregs: [i64; 23],
    saved_fx: [u8; FXSAVE_LEN],
    saved_xstate: u64,
    saved_ymm: Halves,
}

/// Job of the test instruction that is executing, or null if none is.
static JOB: AtomicPtr<Job> = AtomicPtr::new(null_mut());

/// Installs the signal handlers of the process.
pub(super) fn install() {
    for signal in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
        // SAFETY: all zero is a valid `sigaction`.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = entry as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: `action` is initialised. The handler has the right signature and accesses only its job.
        unsafe {
            libc::sigfillset(&mut action.sa_mask);
            assert_eq!(libc::sigaction(signal, &action, null_mut()), 0);
        }
    }
}

/// Entry of all signal handlers. The kernel starts it with the flags of the test instruction. The code here turns
/// alignment checks off before any Rust code runs.
#[unsafe(naked)]
extern "C" fn entry(_signal: i32, _info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    naked_asm!(
        "pushfq",
        "and dword ptr [rsp], {keep}",
        "popfq",
        "jmp {handler}",
        keep = const !(flag::AC as i32),
        handler = sym handler,
    )
}

extern "C" fn handler(signal: i32, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a `ucontext_t`.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // SAFETY: null, or a pointer set by `Stack::run`, which this handler has interrupted on the same thread.
    match unsafe { JOB.load(Ordering::Relaxed).as_mut() } {
        Some(job) if job.phase != Phase::Done => job.signalled(context),
        _ => {
            // A real crash, not a test. With the default action, the signal occurs again and ends the process. SAFETY:
            // this resets one signal to its default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Returns the bits of XSTATE_BV that the host has.
fn available() -> u64 {
    if std::is_x86_feature_detected!("avx") { XSTATE_TESTED } else { XSTATE_TESTED & !XSTATE_AVX }
}

/// Returns the FXSAVE image of a signal frame, and XSTATE_BV if the frame has it.
fn frame(context: &mut libc::ucontext_t) -> (&mut [u8; FXSAVE_LEN], Option<&mut u64>) {
    let p = context.uc_mcontext.fpregs.cast::<u8>();
    // SAFETY: on x86-64 the kernel always saves the FXSAVE image. The magic number shows that the XSAVE header follows.
    unsafe {
        let magic = p.add(XSTATE_MAGIC_AT).cast::<u32>().read_unaligned();
        let header = (magic == XSTATE_MAGIC).then(|| &mut *p.add(FXSAVE_LEN).cast::<u64>());
        (&mut *p.cast::<[u8; FXSAVE_LEN]>(), header)
    }
}

/// Returns the upper halves of the YMM registers in a signal frame. They are zero on a host without AVX.
fn halves(context: &mut libc::ucontext_t) -> Halves {
    let p = context.uc_mcontext.fpregs.cast::<u8>();
    match frame(context).1 {
        // SAFETY: the XSAVE area has the standard format. If the AVX component is valid, it is there.
        Some(valid) if *valid & XSTATE_AVX != 0 => unsafe { p.add(YMM_AT).cast::<Halves>().read_unaligned() },
        _ => [0; 16],
    }
}

/// Replaces the upper halves of the YMM registers in a signal frame, on a host with AVX.
fn set_halves(context: &mut libc::ucontext_t, ymm: &Halves) {
    let p = context.uc_mcontext.fpregs.cast::<u8>();
    if frame(context).1.is_some() && std::is_x86_feature_detected!("avx") {
        // SAFETY: with AVX enabled, the kernel's XSAVE area has room for the AVX component.
        unsafe { p.add(YMM_AT).cast::<Halves>().write_unaligned(*ymm) };
    }
}

impl Job {
    fn signalled(&mut self, context: &mut libc::ucontext_t) {
        let vector = context.uc_mcontext.gregs[libc::REG_TRAPNO as usize];
        match self.phase {
            Phase::Enter => {
                assert_eq!(vector, VECTOR_BP, "the breakpoint that starts a test did not arrive");
                self.save(context);
                self.load(context);
                self.phase = Phase::Inside;
            }
            _ => {
                let rip = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
                if vector == VECTOR_DB {
                    self.retired += 1;
                    let goes_on = match self.steps {
                        Steps::Iterations(max) => rip == self.input.rip && self.retired < max,
                        Steps::Instructions(n) => self.retired < n,
                    };
                    if goes_on {
                        // TF is still set in the saved flags, so the next instruction traps, too.
                        return;
                    }
                }
                self.output = Some(self.outcome(context));
                self.restore(context);
                self.phase = Phase::Done;
            }
        }
    }
    fn save(&mut self, context: &mut libc::ucontext_t) {
        self.saved_gregs = context.uc_mcontext.gregs;
        let (fx, header) = frame(context);
        self.saved_fx = *fx;
        self.saved_xstate = header.map_or(0, |h| *h);
        self.saved_ymm = halves(context);
    }
    fn restore(&mut self, context: &mut libc::ucontext_t) {
        context.uc_mcontext.gregs = self.saved_gregs;
        let (fx, header) = frame(context);
        *fx = self.saved_fx;
        if let Some(h) = header {
            *h = (*h & !XSTATE_TESTED) | (self.saved_xstate & XSTATE_TESTED);
        }
        set_halves(context, &self.saved_ymm);
    }
    fn load(&mut self, context: &mut libc::ucontext_t) {
        let gregs = &mut context.uc_mcontext.gregs;
        for (n, &at) in GREG.iter().enumerate() {
            gregs[at as usize] = self.input.gpr[n] as i64;
        }
        gregs[libc::REG_RIP as usize] = self.input.rip as i64;
        let kept = gregs[libc::REG_EFL as usize] as u64 & !GIVEN_FLAGS;
        gregs[libc::REG_EFL as usize] = (kept | self.input.rflags & GIVEN_FLAGS | flag::TF) as i64;
        let (fx, header) = frame(context);
        to_fxsave(&self.input.fpu, fx);
        if let Some(h) = header {
            *h |= XSTATE_TESTED & available();
        }
        set_halves(context, &self.input.ymm);
    }
    fn outcome(&self, context: &mut libc::ucontext_t) -> Outcome {
        let gregs = context.uc_mcontext.gregs;
        let vector = gregs[libc::REG_TRAPNO as usize];
        let end = if vector == VECTOR_DB {
            End::Retired
        } else {
            let vector = vector as u8;
            let address = if vector == VECTOR_PF { gregs[libc::REG_CR2 as usize] as u64 } else { 0 };
            let has_code = matches!(vector, 8 | 10..=14 | 17);
            let error = if has_code { gregs[libc::REG_ERR as usize] as u32 } else { 0 };
            End::Fault { vector, error, address }
        };
        let ymm = halves(context);
        let (fx, _) = frame(context);
        let state = State {
            gpr: GREG.map(|at| gregs[at as usize] as u64),
            rip: gregs[libc::REG_RIP as usize] as u64,
            rflags: gregs[libc::REG_EFL as usize] as u64,
            fpu: from_fxsave(fx),
            ymm,
        };
        Outcome { state, end, retired: self.retired }
    }
}

/// Alternate signal stack of the thread that executes test instructions.
pub(super) struct Stack {
    _memory: Vec<u8>,
    before: libc::stack_t,
}

impl Stack {
    /// Sets the signal stack and the GS base of this thread.
    pub(super) fn enter() -> Stack {
        let mut memory = vec![0u8; STACK_LEN];
        let new = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: STACK_LEN };
        // SAFETY: all zero is a valid `stack_t`.
        let mut before: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: the memory lives until `drop` has restored the old stack. No other code in a 64-bit process uses GS.
        unsafe {
            assert_eq!(libc::sigaltstack(&new, &mut before), 0);
            assert_eq!(libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, GS_BASE), 0);
        }
        Stack { _memory: memory, before }
    }
    /// Executes as many instructions, or iterations of a repeated string instruction, as `steps` says, from the state
    /// `input` on. Stops at the first fault.
    pub(super) fn run(&mut self, input: &State, steps: Steps) -> Outcome {
        let mut job = Job {
            phase: Phase::Enter,
            input: input.clone(),
            steps,
            retired: 0,
            output: None,
            saved_gregs: [0; 23],
            saved_fx: [0; FXSAVE_LEN],
            saved_xstate: 0,
            saved_ymm: [0; 16],
        };
        JOB.store(&raw mut job, Ordering::Relaxed);
        // SAFETY: the breakpoint's handler runs the test instruction and returns with all registers unchanged. The
        // instruction changes only memory of the arena. POPF clears flags that an earlier test may have left set (NT,
        // ID, AC).
        unsafe { asm!("push 0x202", "popfq", "int3") };
        JOB.store(null_mut(), Ordering::Relaxed);
        job.output.expect("the handlers ran to the end")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the kernel returned `before`.
        unsafe { libc::sigaltstack(&self.before, null_mut()) };
    }
}
