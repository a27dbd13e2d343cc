//! Samples of machines: the thread that runs, its stack, and the kind of code that the CPU executes.
//!
//! A sample only reads. The guest executes nothing for it, and nothing in the guest changes.

use std::collections::BTreeMap;
use std::fmt;

use everett_inspect::module::Modules;
use everett_inspect::program_stack::{Files, Frame, Programs};
use everett_inspect::registers::{CpuRegisters, Registers};
use everett_inspect::stack::{KernelFrame, Stack};
use everett_inspect::task::Process;
use everett_inspect::{Error, Guest, Kernel};
use everett_vmm::Machine;
use serde::Serialize;

use super::machine::{MachineRam, registers};

/// Mark behind functions of the kernel, as tools for flame graphs expect it.
const OF_KERNEL: &str = "_[k]";
/// Name of a function that is not known.
pub(super) const UNKNOWN: &str = "[unknown]";
/// Name of the idle thread's process. Its process ID is 0.
const IDLE_PROCESS: &str = "swapper";
/// Object of functions of the kernel's own code.
const KERNEL: &str = "kernel";
/// Maximum number of processes of a node whose programs are kept between two samples.
const PROCESSES_KEPT_MAX: usize = 256;

/// Beginnings of the names of functions with which the kernel serves interrupts and softirqs (Linux,
/// `arch/x86/entry/entry_64.S`, `arch/x86/include/asm/idtentry.h` and `kernel/softirq.c`).
const INTERRUPTS: [&str; 9] = [
    "asm_sysvec_",
    "sysvec_",
    "asm_common_interrupt",
    "common_interrupt",
    "irq_entries_start",
    "irq_exit",
    "handle_softirqs",
    "__do_softirq",
    "do_softirq",
];
/// Beginnings of the names of functions with which the kernel serves exceptions, such as page faults.
const EXCEPTIONS: [&str; 4] = ["asm_exc_", "exc_", "error_entry", "error_return"];
/// Beginnings of the names of functions with which the kernel enters system calls.
const CALLS: [&str; 3] = ["entry_SYS", "do_syscall_", "entry_INT80"];

/// Kind of code that a CPU executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Code of a program, in user mode.
    User,
    /// The kernel, in a system call. Code of the kernel in a program's thread counts as this kind if the stack does not
    /// show why the thread entered the kernel.
    SystemCall,
    /// The kernel, in an exception of the thread, such as a page fault.
    Exception,
    /// The kernel, in an interrupt or softirq. It interrupted the thread, which need not have caused it.
    Interrupt,
    /// A thread of the kernel.
    KernelThread,
    /// The kernel's idle loop, between halts. A halted CPU executes no instruction.
    Idle,
    /// The kernel, while it boots.
    Boot,
    /// Code whose thread could not be read.
    Unreadable,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::User,
        Kind::SystemCall,
        Kind::Exception,
        Kind::Interrupt,
        Kind::KernelThread,
        Kind::Idle,
        Kind::Boot,
        Kind::Unreadable,
    ];

    /// Returns the name for tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::User => "user code",
            Kind::SystemCall => "system calls",
            Kind::Exception => "exceptions",
            Kind::Interrupt => "interrupts and softirqs",
            Kind::KernelThread => "kernel threads",
            Kind::Idle => "idle loop",
            Kind::Boot => "boot of the kernel",
            Kind::Unreadable => "unreadable",
        }
    }

    /// Returns the kind of the kernel's code from the functions on its stack, the innermost first.
    fn of_kernel(functions: &[Function], thread: Kind) -> Kind {
        let has = |beginnings: &[&str], name: &str| beginnings.iter().any(|begin| name.starts_with(begin));
        let entry = functions.iter().find_map(|function| match &*function.name {
            name if has(&INTERRUPTS, name) => Some(Kind::Interrupt),
            name if has(&EXCEPTIONS, name) => Some(Kind::Exception),
            name if has(&CALLS, name) => Some(Kind::SystemCall),
            _ => None,
        });
        let is_on = |name: &str| functions.iter().any(|function| function.name == name);
        match (entry, thread) {
            (Some(entry), _) => entry,
            (None, Kind::Idle) if is_on("start_kernel") && !is_on("cpu_startup_entry") => Kind::Boot,
            (None, thread) => thread,
        }
    }
}

/// Function on a stack. Its `Display` is its name in a flame graph.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Function {
    /// Name, without a distance from its start.
    pub name: String,
    /// File of a program's function. For the kernel `kernel`, or a loadable module as `[ext4]`. Empty if not known.
    pub object: String,
    /// True if the function belongs to the kernel or to one of its modules.
    pub is_kernel: bool,
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        f.write_str(if self.is_kernel { OF_KERNEL } else { "" })
    }
}

/// A machine's running thread at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Process ID. 0 if the CPU is idle.
    pub pid: u32,
    /// Name of the process's first thread.
    pub process: String,
    /// Kind of code.
    pub kind: Kind,
    /// Functions, the outermost first.
    pub functions: Vec<Function>,
}

/// Files of a node from which samples take names, and memory between the node's samples.
pub struct Sampler<'s> {
    kernel: &'s Kernel,
    files: &'s dyn Files,
    known: Known,
}

/// Names that a node's sampler keeps between two samples.
#[derive(Default)]
pub struct Known {
    modules: Option<Modules>,
    programs: BTreeMap<u32, Programs>,
}

impl<'s> Sampler<'s> {
    /// Returns the sampler of a node that runs this kernel and these programs. `known` are the names that an earlier sampler
    /// of the node kept.
    #[must_use]
    pub fn new(kernel: &'s Kernel, files: &'s dyn Files, known: Known) -> Sampler<'s> {
        Sampler { kernel, files, known }
    }

    /// Returns the names for a later sampler of the node.
    #[must_use]
    pub fn into_known(self) -> Known {
        self.known
    }

    /// Takes a sample of the node's machine.
    ///
    /// # Errors
    /// Returns [`Error::OtherKernel`] if the machine does not run its kernel, for example while it boots, and another error
    /// if the running thread cannot be read.
    pub fn sample(&mut self, machine: &Machine) -> Result<Sample, Error> {
        let ram = MachineRam(machine);
        let guest = Guest::new(self.kernel, &ram)?;
        let cpu = registers(&machine.cpu());
        // Frames in modules that are loaded later have no names.
        let modules = match self.known.modules.take() {
            Some(modules) => modules,
            None => guest.modules().unwrap_or_default(),
        };
        if self.known.programs.len() > PROCESSES_KEPT_MAX {
            self.known.programs.clear();
        }
        let look = Look { guest, kernel: self.kernel, modules: &modules, files: self.files, cpu: &cpu };
        let sample = look.sample(&mut self.known.programs);
        self.known.modules = Some(modules);
        sample
    }
}

/// A machine of which a sample is taken.
struct Look<'l> {
    guest: Guest<'l>,
    kernel: &'l Kernel,
    modules: &'l Modules,
    files: &'l dyn Files,
    cpu: &'l CpuRegisters,
}

impl Look<'_> {
    fn sample(&self, programs: &mut BTreeMap<u32, Programs>) -> Result<Sample, Error> {
        let Some(process) = self.guest.running_process()? else {
            let stack = self.guest.idle_stack(self.cpu, self.modules)?;
            let mut functions = self.kernel_functions(&stack.kernel);
            let kind = Kind::of_kernel(&functions, Kind::Idle);
            functions.reverse();
            return Ok(Sample { pid: 0, process: IDLE_PROCESS.to_owned(), kind, functions });
        };
        let tid = self.guest.running()?.tid;
        let name = process.threads.first().map_or_else(String::new, |first| first.name.clone());
        let is_user = self.cpu.registers.unwinding().is_user;
        let thread_kind = match process.mm {
            Some(_) if is_user => Kind::User,
            Some(_) => Kind::SystemCall,
            None => Kind::KernelThread,
        };
        let thread = process.threads.iter().find(|thread| thread.tid == tid);
        let stack = thread.and_then(|thread| {
            // At the kernel's first instructions, the thread's registers are not yet where the kernel keeps them.
            self.guest.stack(&process, thread, self.cpu, self.modules).ok()
        });
        let Some(Stack { kernel, user, .. }) = stack else {
            let functions = self.innermost(is_user);
            let kind = Kind::of_kernel(&functions, thread_kind);
            return Ok(Sample { pid: process.pid, process: name, kind, functions });
        };
        let mut functions = self.kernel_functions(&kernel);
        let kind = Kind::of_kernel(&functions, thread_kind);
        if let Some(user) = user {
            self.add_program(&process, user, programs, &mut functions);
        }
        functions.reverse();
        Ok(Sample { pid: process.pid, process: name, kind, functions })
    }

    /// Returns the function that the CPU executes, if it is one of the kernel.
    fn innermost(&self, is_user: bool) -> Vec<Function> {
        let address = self.cpu.registers.unwinding().instruction;
        if is_user {
            vec![unknown()]
        } else {
            self.kernel_functions(&[KernelFrame { address, is_return: false }])
        }
    }

    /// Adds the functions of the program on a thread's stack, the innermost first.
    fn add_program(
        &self,
        process: &Process,
        user: Registers,
        programs: &mut BTreeMap<u32, Programs>,
        functions: &mut Vec<Function>,
    ) {
        let known = programs.remove(&process.pid).unwrap_or_default();
        match self.guest.program_stacks_again(process, self.files, known) {
            Ok(Some(mut stacks)) => {
                let (frames, is_complete) = stacks.frames(user);
                functions.extend(frames.iter().flat_map(of_program));
                if !is_complete {
                    functions.push(unknown());
                }
                programs.insert(process.pid, stacks.into_programs());
            }
            Ok(None) | Err(_) => functions.push(unknown()),
        }
    }

    /// Returns the functions of the kernel's frames, in their order.
    fn kernel_functions(&self, frames: &[KernelFrame]) -> Vec<Function> {
        let shown = frames.iter().map(|frame| frame.named(self.kernel.symbols(), self.modules).to_string());
        shown.map(|shown| of_kernel(&shown)).collect()
    }
}

fn unknown() -> Function {
    Function { name: UNKNOWN.to_owned(), object: String::new(), is_kernel: false }
}

/// Returns the function in the text of a frame of the kernel, `0xffffffff81000000 (name+0x10 [module])`.
fn of_kernel(shown: &str) -> Function {
    let within = shown.split_once(" (").map_or("", |(_, within)| within.trim_end_matches(')'));
    let (name, object) = match within.rsplit_once(" [") {
        Some((name, module)) => (name, format!("[{module}")),
        None => (within, KERNEL.to_owned()),
    };
    let name = name.split_once("+0x").map_or(name, |(name, _)| name);
    let name = if name.is_empty() { UNKNOWN } else { name };
    Function { name: name.to_owned(), object, is_kernel: true }
}

/// Returns the functions of a program's frame: the innermost of the calls that the compiler has inlined first.
fn of_program(frame: &Frame) -> Vec<Function> {
    let object = frame.file.clone().unwrap_or_default();
    let function = |name: &str| Function { name: name.to_owned(), object: object.clone(), is_kernel: false };
    let inlined = frame.source.iter().filter_map(|place| place.function.as_deref());
    let inlined: Vec<Function> = inlined.map(function).collect();
    if !inlined.is_empty() {
        return inlined;
    }
    vec![match (&frame.function, &frame.file) {
        (Some(name), _) => function(name.split_once("+0x").map_or(&**name, |(name, _)| name)),
        (None, Some(file)) => function(&format!("[{}]", file.rsplit('/').next().unwrap_or(file))),
        (None, None) => unknown(),
    }]
}

#[cfg(test)]
mod tests {
    use everett_symbols::lines::SourcePlace;

    use super::*;

    fn functions(innermost_first: &[&str]) -> Vec<Function> {
        innermost_first.iter().map(|name| of_kernel(&format!("0x1 ({name}+0x10)"))).collect()
    }

    #[test]
    fn functions_stand_without_distances_and_addresses() {
        let kernel = |shown| {
            let Function { name, object, is_kernel } = of_kernel(shown);
            assert!(is_kernel);
            (name, object)
        };
        let expected = |name: &str, object: &str| (name.to_owned(), object.to_owned());
        assert_eq!(kernel("0xffffffff81a10e3d (__schedule+0x34d)"), expected("__schedule", "kernel"));
        assert_eq!(
            kernel("0xffffffffc0123456 (ext4_sync_file+0x1a [ext4])"),
            expected("ext4_sync_file", "[ext4]")
        );
        assert_eq!(kernel("0xffffffffc0123456 ([ext4])"), expected("[ext4]", "kernel"));
        assert_eq!(kernel("0x1000"), expected(UNKNOWN, "kernel"));
        assert_eq!(of_kernel("0x1 (schedule+0x2)").to_string(), "schedule_[k]");
        let frame = |function: Option<&str>, file: Option<&str>, inlined: &[&str]| Frame {
            address: 1,
            file: file.map(str::to_owned),
            in_file: None,
            function: function.map(str::to_owned),
            source: inlined
                .iter()
                .map(|name| SourcePlace { function: Some((*name).to_owned()), file: None, line: None })
                .collect(),
        };
        let names =
            |frame: &Frame| -> Vec<String> { of_program(frame).iter().map(Function::to_string).collect() };
        assert_eq!(names(&frame(Some("a+0x1"), Some("/bin/x"), &[])), ["a"]);
        assert_eq!(names(&frame(Some("a+0x1"), Some("/bin/x"), &["inner", "a"])), ["inner", "a"]);
        assert_eq!(names(&frame(None, Some("/bin/x"), &[])), ["[x]"]);
        assert_eq!(names(&frame(None, None, &[])), [UNKNOWN]);
        assert_eq!(of_program(&frame(Some("a"), Some("/bin/x"), &[]))[0].object, "/bin/x");
    }

    #[test]
    fn the_innermost_entry_into_the_kernel_decides_the_kind() {
        let kind = |innermost_first: &[&str], thread| Kind::of_kernel(&functions(innermost_first), thread);
        let call = ["tcp_sendmsg", "do_syscall_64", "entry_SYSCALL_64_after_hwframe"];
        assert_eq!(kind(&call, Kind::SystemCall), Kind::SystemCall);
        let softirq = ["net_rx_action", "handle_softirqs.constprop.0", "do_softirq.part.0", "do_syscall_64"];
        assert_eq!(kind(&softirq, Kind::SystemCall), Kind::Interrupt);
        let fault = ["clear_page", "exc_page_fault", "asm_exc_page_fault", "do_syscall_64"];
        assert_eq!(kind(&fault, Kind::SystemCall), Kind::Exception);
        assert_eq!(kind(&["ret_from_fork_asm"], Kind::SystemCall), Kind::SystemCall);
        assert_eq!(kind(&["worker_thread", "kthread"], Kind::KernelThread), Kind::KernelThread);
        assert_eq!(kind(&[], Kind::User), Kind::User);
        let idle = ["do_idle", "cpu_startup_entry", "rest_init", "start_kernel"];
        assert_eq!(kind(&idle, Kind::Idle), Kind::Idle);
        assert_eq!(kind(&["mm_init", "start_kernel"], Kind::Idle), Kind::Boot);
        let timer = ["tick", "asm_sysvec_apic_timer_interrupt", "do_idle", "cpu_startup_entry"];
        assert_eq!(kind(&timer, Kind::Idle), Kind::Interrupt);
    }
}
